"""A reader of the binary version of CIFAR-10: records of a label and 3072 pixels in a tar."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath

import numpy as np

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
#: The published archive has nine; each takes memory while the archive is read.
_MAX_MEMBERS = 1000
_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_TEST = ("test_batch.bin",)


def read_binary(files: Mapping[str, LocalFile], params: Parameters, *, name: str) -> Content:
    """Read the five training batches, in the order of their numbers, and the test batch.

    Levels are float32 from 0 to 255, an image per row: its red, then its green, then its blue
    pixels. Raises `DataError` if the archive cannot be read, lacks a batch, or a batch is not a row
    of records.
    """
    batches = _batches(files[name])
    missing = [batch for batch in _TRAIN + _TEST if batch not in batches]
    if missing:
        raise DataError(
            f"{files[name].origin}: the archive has no file '{missing[0]}'; the binary version "
            "of CIFAR-10 has"
        )
    train, test = (_part([batches[batch] for batch in names]) for names in (_TRAIN, _TEST))
    return Content(train, test)


def _batches(file: LocalFile) -> dict[str, bytes]:
    """The wanted files of the archive by name, in whatever folder they stand."""
    with reading(file) as stream:
        try:
            # "r|": the stream is read once, from front to back; nothing is written to the disk.
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                found = _wanted(archive, file.origin)
            # To the very end: the checksum of a compressed file stands there.
            while stream.read(_BLOCK_BYTES):
                pass
        except tarfile.TarError as error:
            raise DataError(f"{file.origin}: cannot be read ({first_line(error)})") from None
    return found


def _wanted(archive: tarfile.TarFile, origin: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for number, member in enumerate(archive, start=1):
        if number > _MAX_MEMBERS:
            raise DataError(
                f"{origin}: the archive has more than {_MAX_MEMBERS} members; it is not the "
                "binary version of CIFAR-10"
            )
        name = PurePosixPath(member.name).name
        if name in found:
            raise DataError(
                f"{origin}: the archive has more than one file '{name}', and it is not clear "
                "which one counts; pack it again"
            )
        if name in _TRAIN + _TEST:
            found[name] = _records(archive, member, f"{origin}:{name}")
    return found


def _records(archive: tarfile.TarFile, member: tarfile.TarInfo, where: str) -> bytes:
    """The bytes of a batch, checked; nothing but a plain file is opened, so no link is followed."""
    source = None if member.issparse() or not member.isreg() else archive.extractfile(member)
    if source is None:
        raise DataError(f"{where}: is a link, a sparse file or a device, not a plain file")
    # The size is what the archive says; so many bytes need not follow.
    if member.size > _MAX_BATCH_BYTES:
        raise DataError(f"{where}: {member.size} bytes, more than {_MAX_BATCH_BYTES}")
    data = source.read()
    _check_records(data, where)
    return data


def _check_records(data: bytes, where: str) -> None:
    if not data or len(data) % (_PIXELS + 1):
        raise DataError(
            f"{where}: {len(data)} bytes, not a whole number of records of {_PIXELS + 1}"
        )
    labels = np.frombuffer(data, dtype=np.uint8)[:: _PIXELS + 1]
    if labels.max() >= N_CLASSES:
        first = int(np.argmax(labels >= N_CLASSES))
        raise DataError(
            f"{where}: the label of record {first + 1} is {labels[first]}, not one of 0 to "
            f"{N_CLASSES - 1}"
        )


def _part(batches: list[bytes]) -> Part:
    records = [np.frombuffer(data, np.uint8).reshape(-1, _PIXELS + 1) for data in batches]
    X = np.concatenate([batch[:, 1:] for batch in records], dtype=np.float32)
    y = np.concatenate([batch[:, 0] for batch in records], dtype=np.int64)
    return Part(X, y)


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
