"""A reader of the binary version of CIFAR-10: records of a label and 3072 pixels in a tar."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from .. import transforms
from ..content import Content, Part
from ..errors import DataError, first_line
from ..files import MIB, LocalFile, RemoteFile, reading
from ..parameters import TEN_CLASSES, Parameters, one_of
from ..sources import Source

N_CLASSES = 10
_PIXELS = 3 * 32 * 32
_BLOCK_BYTES = 1 << 20
#: A batch has 10 000 records.
_MAX_BATCH_BYTES = 10_000 * (_PIXELS + 1)
_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_TEST = ("test_batch.bin",)


def read_binary(files: Mapping[str, LocalFile], params: Parameters, *, name: str) -> Content:
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
                    if batch in _TRAIN + _TEST:
                        batches[batch] = _records(archive, member, f"{file.origin}:{batch}")
            # To the very end: the checksum of a compressed file stands there.
            while stream.read(_BLOCK_BYTES):
                pass
        except tarfile.TarError as error:
            raise DataError(f"{file.origin}: cannot be read ({first_line(error)})") from None
    for batch in _TRAIN + _TEST:
        if batch not in batches:
            raise DataError(
                f"{file.origin}: the archive has no file '{batch}'; the binary version of "
                "CIFAR-10 has"
            )
    train, test = (np.concatenate([batches[batch] for batch in names]) for names in (_TRAIN, _TEST))
    return Content(_part(train), _part(test))


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
    wrong = records[:, 0] >= N_CLASSES
    if wrong.any():
        first = int(np.argmax(wrong))
        raise DataError(
            f"{where}: the label of record {first + 1} is {records[first, 0]}, not one of 0 to "
            f"{N_CLASSES - 1}"
        )
    return records


def _part(records: NDArray[np.uint8]) -> Part:
    return Part(records[:, 1:].astype(np.float32), records[:, 0].astype(np.int64))


_CITATION = """@techreport{krizhevsky2009learning,
  author = {Krizhevsky, Alex},
  title = {Learning Multiple Layers of Features from Tiny Images},
  institution = {University of Toronto},
  year = {2009}
}"""

SOURCES = (
    Source(
        name="cifar10",
        summary="colour pictures of 32x32 pixels, aeroplanes (or another kind) against the rest",
        format="CIFAR binary",
        split="as published",
        files=(
            RemoteFile(
                "cifar-10-binary.tar.gz",
                ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
                max_bytes=512 * MIB,
            ),
        ),
        read=partial(read_binary, name="cifar-10-binary.tar.gz"),
        transform=transforms.images,
        parameters={"positive": 0, "scale": "norm"},
        check_parameters=one_of("cifar10", positive=TEN_CLASSES, scale=transforms.IMAGE_SCALES),
        licence="not stated",
        citation=_CITATION,
        # MPFP14 section 7.2, its points taken to have norm 1; that problem has no C.
        default_gamma=5.5,
        default_C=10.0,
    ),
)
