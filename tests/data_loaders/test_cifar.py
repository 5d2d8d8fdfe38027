"""The reader of CIFAR-10's binary version."""

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from marginbench.data_loaders import DataError
from marginbench.data_loaders.datasets import cifar
from marginbench.data_loaders.files import LocalFile

NAMES = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]


def batch(seed: int, n: int = 3) -> np.ndarray:
    """Records of a label and 3072 bytes."""
    records = np.random.default_rng(seed).integers(0, 256, (n, 3073)).astype(np.uint8)
    records[:, 0] = (seed + np.arange(n)) % 10
    return records


def tar(batches: dict[str, bytes], folder: str = "cifar-10-batches-bin/") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(folder + "readme.html"))
        for name, data in batches.items():
            info = tarfile.TarInfo(folder + name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def batches(**changes: bytes) -> dict[str, bytes]:
    whole = {name: batch(k).tobytes() for k, name in enumerate(NAMES)}
    return whole | {f"{name}.bin": data for name, data in changes.items()}


def read(path: Path, data: bytes):
    path.write_bytes(data)
    return cifar.read_binary({"it": LocalFile(path, str(path))}, {}, name="it")


def refusal(path: Path, data: bytes) -> str:
    with pytest.raises(DataError) as caught:
        read(path, data)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_reads_the_batches_in_order(tmp_path, compress):
    shuffled = dict(sorted(batches().items(), reverse=True))
    content = read(tmp_path / "data", compress(tar(shuffled)))
    train = np.concatenate([batch(k) for k in range(5)])
    for part, records in ((content.train, train), (content.test, batch(5))):
        np.testing.assert_array_equal(part.X, records[:, 1:])
        np.testing.assert_array_equal(part.y, records[:, 0])
        assert part.X.dtype == np.float32
        assert part.y.dtype == np.int64


def test_refuses_an_archive_that_is_not_cifar(tmp_path):
    path = tmp_path / "data"
    lacking = batches()
    del lacking["data_batch_4.bin"]
    assert "the archive has no file 'data_batch_4.bin'" in refusal(path, tar(lacking))
    cut = batches(data_batch_2=batch(1).tobytes()[:-1])
    complaint = "data_batch_2.bin: 9218 bytes, not a whole number of records of 3073"
    assert complaint in refusal(path, tar(cut))
    assert "0 bytes, not a whole number" in refusal(path, tar(batches(test_batch=b"")))
    wrong = batch(1)
    wrong[2, 0] = 10
    complaint = "data_batch_3.bin: the label of record 3 is 10, not one of 0 to 9"
    assert complaint in refusal(path, tar(batches(data_batch_3=wrong.tobytes())))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<!DOCTYPE html>" * 100,
        tar(batches())[:30000],
        gzip.compress(tar(batches()))[:-9],
        gzip.compress(tar(batches()))[:5000],
    ],
    ids=["empty", "page", "cut tar", "gzip's end", "cut gzip"],
)
def test_refuses_a_damaged_archive(tmp_path, data):
    assert "cannot be read" in refusal(tmp_path / "data", data)
