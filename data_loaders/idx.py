"""A reader of the IDX format: a header of big-endian integers, then unsigned bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from .content import Content, Part
from .errors import DataError
from .files import LocalFile, reading
from .parameters import Parameters

#: The third byte of the magic number: entries are unsigned bytes. The fourth counts dimensions.
_UNSIGNED_BYTE = 0x08
#: Names of the image and the label file of the training and the test part.
FILES = (
    ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
)
#: The names of all of them.
NAMES = tuple(name for pair in FILES for name in pair)


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
        found = stream.read(4)
        if found != magic:
            raise DataError(
                f"{file.origin}: begins with the bytes '{found.hex()}', not '{magic.hex()}': not "
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
    if classes.max() >= n_classes:
        first = int(np.argmax(classes >= n_classes))
        raise DataError(
            f"{labels.origin}: label {first + 1} is {classes[first]}, not one of 0 to "
            f"{n_classes - 1}"
        )
    return Part(pixels.reshape(len(pixels), -1).astype(np.float32), classes.astype(np.int64))
