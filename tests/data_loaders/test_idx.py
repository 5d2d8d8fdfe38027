"""The IDX reader."""

import bz2
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from marginbench.data_loaders import DataError, idx
from marginbench.data_loaders.files import LocalFile

PIXELS = np.arange(3 * 2 * 4, dtype=np.uint8).reshape(3, 2, 4) * 10
CLASSES = np.array([7, 0, 9], dtype=np.uint8)
NAMES = [name for pair in idx.FILES for name in pair]


def packed(array: np.ndarray, magic: bytes | None = None) -> bytes:
    """The IDX form of an array, written from the format's definition."""
    magic = magic or bytes([0, 0, 8, array.ndim])
    return magic + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def read(path: Path, data: bytes, n_dimensions: int = 3) -> np.ndarray:
    path.write_bytes(data)
    return idx.read_array(LocalFile(path, str(path)), n_dimensions)


def refusal(path: Path, data: bytes, n_dimensions: int = 3) -> str:
    with pytest.raises(DataError) as caught:
        read(path, data, n_dimensions)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress])
def test_reads_an_array(tmp_path, compress):
    np.testing.assert_array_equal(read(tmp_path / "data", compress(packed(PIXELS))), PIXELS)
    np.testing.assert_array_equal(read(tmp_path / "data", compress(packed(CLASSES)), 1), CLASSES)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (packed(CLASSES), "begins with the bytes '00000801', not '00000803'"),
        (packed(PIXELS, b"\0\0\x0d\3"), "begins with the bytes '00000d03', not '00000803'"),
        (b"<!DOCTYPE html>", "begins with the bytes '3c21444f'"),
        (b"", "begins with the bytes ''"),
        (packed(PIXELS)[:13], "ends in its header"),
        (packed(PIXELS)[:-1], "23 bytes follow the header, which says 3 x 2 x 4"),
        (packed(PIXELS) + b"\0", "25 bytes follow the header, which says 3 x 2 x 4"),
        (gzip.compress(packed(PIXELS))[:20], "cannot be read"),
        (packed(PIXELS[:0]), "0 bytes follow the header, which says 0 x 2 x 4"),
        # No memory for what a wrong header promises.
        (b"\0\0\x08\3" + b"\xff" * 12 + b"\1", "1 bytes follow the header, which says 4294967295"),
    ],
)
def test_refuses_what_is_not_the_array(tmp_path, data, complaint):
    assert complaint in refusal(tmp_path / "data", data)


def files(folder: Path, **changes: np.ndarray) -> dict[str, LocalFile]:
    arrays = dict(zip(NAMES, [PIXELS, CLASSES, PIXELS[:2], CLASSES[:2]], strict=True))
    arrays |= {NAMES[int(key[-1])]: array for key, array in changes.items()}
    for name, array in arrays.items():
        (folder / name).write_bytes(gzip.compress(packed(array)))
    return {name: LocalFile(folder / name, name) for name in NAMES}


def test_labels_must_match_the_images(tmp_path):
    with pytest.raises(DataError, match=f"^{NAMES[3]}: 3 labels for the 2 images of {NAMES[2]}$"):
        idx.read_images(files(tmp_path, file3=CLASSES), {}, n_classes=10)
    wrong = np.array([7, 10, 12], dtype=np.uint8)
    with pytest.raises(DataError, match=f"^{NAMES[1]}: label 2 is 10, not one of 0 to 9$"):
        idx.read_images(files(tmp_path, file1=wrong), {}, n_classes=10)
