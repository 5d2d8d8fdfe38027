"""Images as published: MNIST and its likes, and CIFAR-10."""

import gzip
import io
import struct
import tarfile

import numpy as np
import pytest

from marginbench.data_loaders import idx, load

from .conftest import refused


def packed(array, magic=None):
    """The IDX form of an array, written from the format's definition."""
    magic = magic or bytes([0, 0, 8, array.ndim])
    return magic + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_mnist_and_its_likes(published):
    rng = np.random.default_rng(3)
    train, test = (rng.integers(0, 256, (n, 28, 28)).astype(np.uint8) for n in (20, 10))
    digits = (np.arange(20) % 10).astype(np.uint8)
    files = (train, digits, test, digits[:10])
    source = published("mnist", *(gzip.compress(packed(array)) for array in files))
    data = load(source)
    np.testing.assert_array_equal(data.X_train, train.reshape(20, 784) / np.float32(255))
    np.testing.assert_array_equal(data.y_train, np.where(digits == 8, 1, -1))
    assert data.X_train.dtype == np.float32
    np.testing.assert_array_equal(load(source, {"positive": "none"}).y_test, digits[:10])


PIXELS = np.arange(3 * 2 * 4, dtype=np.uint8).reshape(3, 2, 4) * 10
CLASSES = np.array([7, 0, 9], dtype=np.uint8)
WHOLE = {
    "train-images": packed(PIXELS),
    "train-labels": packed(CLASSES),
    "t10k-images": packed(PIXELS[:2]),
    "t10k-labels": packed(CLASSES[:2]),
}


@pytest.mark.parametrize(
    ("name", "data", "complaint"),
    [
        ("train-images", packed(CLASSES), "begins with the bytes '00000801', not '00000803'"),
        ("train-images", packed(PIXELS, b"\0\0\x0d\3"), "begins with the bytes '00000d03', not"),
        ("train-images", b"", "begins with the bytes ''"),
        ("train-images", packed(PIXELS)[:13], "ends in its header"),
        ("train-images", packed(PIXELS)[:-1], "23 bytes follow the header, which says 3 x 2 x 4"),
        ("t10k-images", packed(PIXELS) + b"\0", "25 bytes follow the header, which says 3 x 2 x 4"),
        ("t10k-labels", gzip.compress(packed(CLASSES), mtime=0)[:20], "cannot be read"),
        # No memory for what a wrong header promises.
        ("train-images", b"\0\0\x08\3" + b"\xff" * 12 + b"\1", "1 bytes follow the header, which"),
        ("t10k-labels", packed(CLASSES), "3 labels for the 2 images of "),
        ("train-labels", packed(np.uint8([7, 10, 12])), "label 2 is 10, not one of 0 to 9"),
    ],
)
def test_what_is_not_the_array_is_refused(published, name, data, complaint):
    message = refused(load, published("mnist", *(WHOLE | {name: data}).values()))
    assert f"{name}-idx" in message
    assert complaint in message


def test_cifar10(published, monkeypatch):
    monkeypatch.setattr(idx, "_MAX_BATCH_BYTES", 2 * 3073)  # the published batches are of the limit
    records = np.random.default_rng(2).integers(0, 256, (12, 3073)).astype(np.uint8)
    records[:, 0] = np.arange(12) % 2 * 3
    buffer = io.BytesIO()
    # Six batches of two records each, in the reverse order.
    names = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for k, name in reversed(list(enumerate(names))):
            batch = records[2 * k : 2 * k + 2].tobytes()
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(batch)
            archive.addfile(info, io.BytesIO(batch))
    source = published("cifar10", buffer.getvalue())
    data = load(source)
    assert (data.n_train, data.n_test, data.n_features) == (10, 2, 3072)
    np.testing.assert_allclose(np.linalg.norm(data.X_train, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(data.y_train, np.where(records[:10, 0] == 0, 1, -1))
    every = load(source, {"positive": "none", "scale": "unit"})
    np.testing.assert_array_equal(every.X_test, records[10:, 1:] / np.float32(255))
    np.testing.assert_array_equal(every.y_train, records[:10, 0])
    assert "one class only (every label is -1)" in refused(load, source, {"positive": 9})
