"""Readers of images as bytes: IDX files of MNIST and its likes, and CIFAR-10.

The IDX format is a header of big-endian integers, then unsigned bytes.
"""

from __future__ import annotations

import math
import tarfile
from collections.abc import Mapping
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from .content import Content, Part
from .errors import DataError, first_line
from .files import LocalFile, reading
from .parameters import Parameters

#: The third byte of the magic number: entries are unsigned bytes. The fourth counts dimensions.
_UNSIGNED_BYTE = 0x08
#: Names of the image and the label file of the training and the test part.
FILES = (
    ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
)


def read_images(files: Mapping[str, LocalFile], params: Parameters, *, n_classes: int) -> Content:
    """Read images and their classes from the four files of MNIST and its likes, named in `FILES`.

    Grey levels are float32 from 0 to 255, an image per row, row after row of its pixels; int64
    labels. Raises `DataError` as `read_array`, if there are not as many labels as images, or if a
    label is not one of 0 to `n_classes` - 1.
    """
    train, test = (_read_part(files[X], files[y], n_classes) for X, y in FILES)
    return Content(train, test)


def read_array(file: LocalFile, n_dimensions: int) -> NDArray[np.uint8]:
    """Read an array of unsigned bytes.

    Raises `DataError` if the file cannot be read, begins with another magic number, is empty, or
    holds more or fewer bytes than its header says.
    """
    magic = bytes((0, 0, _UNSIGNED_BYTE, n_dimensions))
    with reading(file) as stream:
        begin = stream.read(4)
        if begin != magic:
            raise DataError(
                f"{file.origin}: begins with the bytes '{begin.hex()}', not '{magic.hex()}': not "
                f"an IDX file of unsigned bytes in {n_dimensions} dimension(s)"
            )
        header = stream.read(4 * n_dimensions)
        if len(header) < 4 * n_dimensions:
            raise DataError(f"{file.origin}: ends in its header")
        shape = tuple(int(size) for size in np.frombuffer(header, dtype=">u4"))
        size = math.prod(shape)
        # All of the file, which is bounded: a wrong header promises any size.
        data = stream.read()
    if len(data) != size or not size:
        shown = " x ".join(map(str, shape))
        raise DataError(f"{file.origin}: {len(data)} bytes follow the header, which says {shown}")
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def _read_part(images: LocalFile, labels: LocalFile, n_classes: int) -> Part:
    pixels, classes = read_array(images, 3), read_array(labels, 1)
    if len(pixels) != len(classes):
        raise DataError(
            f"{labels.origin}: {len(classes)} labels for the {len(pixels)} images of "
            f"{images.origin}"
        )
    _check_classes(classes, n_classes, labels.origin)
    return Part(pixels.reshape(len(pixels), -1).astype(np.float32), classes.astype(np.int64))


def _check_classes(classes: NDArray[np.uint8], n_classes: int, where: str) -> None:
    if classes.max() >= n_classes:
        first = int(np.argmax(classes >= n_classes))
        raise DataError(
            f"{where}: label {first + 1} is {classes[first]}, not one of 0 to {n_classes - 1}"
        )


# CIFAR-10, binary version: records of a label and 3072 pixels in a tar

_PIXELS = 3 * 32 * 32
_BLOCK_BYTES = 1 << 20
#: A batch has 10 000 records.
_MAX_BATCH_BYTES = 10_000 * (_PIXELS + 1)
_CIFAR_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_CIFAR_TEST = ("test_batch.bin",)


def read_cifar(files: Mapping[str, LocalFile], params: Parameters, *, name: str) -> Content:
    """Read the five training batches, in the order of their numbers, and the test batch.

    Levels are float32 from 0 to 255, an image per row: its red, then its green, then its blue
    pixels. Raises `DataError` if the archive cannot be read, lacks a batch, or a batch is not a row
    of records.
    """
    file = files[name]
    batches = {}
    with reading(file) as stream:
        try:
            # "r|": the stream is read once, from front to back; nothing is written to the disk.
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    batch = PurePosixPath(member.name).name
                    if batch in _CIFAR_TRAIN + _CIFAR_TEST:
                        batches[batch] = _records(archive, member, f"{file.origin}:{batch}")
            # To the very end: the checksum of a compressed file stands there.
            while stream.read(_BLOCK_BYTES):
                pass
        except tarfile.TarError as error:
            raise DataError(f"{file.origin}: cannot be read ({first_line(error)})") from None
    for batch in _CIFAR_TRAIN + _CIFAR_TEST:
        if batch not in batches:
            raise DataError(
                f"{file.origin}: the archive has no file '{batch}'; the binary version of "
                "CIFAR-10 has"
            )
    parts = []
    for names in (_CIFAR_TRAIN, _CIFAR_TEST):
        records = np.concatenate([batches[batch] for batch in names])
        parts.append(Part(records[:, 1:].astype(np.float32), records[:, 0].astype(np.int64)))
    return Content(*parts)


def _records(archive: tarfile.TarFile, member: tarfile.TarInfo, where: str) -> NDArray[np.uint8]:
    """The records of a batch as rows; only a plain file is opened, so no link is followed."""
    source = None if member.issparse() or not member.isreg() else archive.extractfile(member)
    if source is None:
        raise DataError(f"{where}: is a link, a sparse file or a device, not a plain file")
    # The size is what the archive says; so many bytes need not follow.
    if member.size > _MAX_BATCH_BYTES:
        raise DataError(f"{where}: {member.size} bytes, more than {_MAX_BATCH_BYTES}")
    data = source.read()
    if not data or len(data) % (_PIXELS + 1):
        raise DataError(
            f"{where}: {len(data)} bytes, not a whole number of records of {_PIXELS + 1}"
        )
    records = np.frombuffer(data, dtype=np.uint8).reshape(-1, _PIXELS + 1)
    _check_classes(records[:, 0], 10, where)
    return records
