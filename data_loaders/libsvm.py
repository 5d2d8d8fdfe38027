"""Strict readers of the LIBSVM text format, plain or compressed, and of what is published in it.

A line is a label and then ``index:value`` pairs, indices from 1 and increasing; ``#`` begins a
comment. scikit-learn parses; a file with anything wrong in it is gone over line by line for the
number of the first wrong one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from .content import Content, Part, check_classes
from .errors import DataError, suggest
from .files import LocalFile, reading
from .own.words import shown_word
from .parameters import Parameters
from .transforms import as_float32, every

#: Indices are stored in 32 bits.
_MAX_WIDTH = 2**31 - 1
#: Larger integers are not told apart in float64, nor do all of them fit into int64.
_MAX_LABEL = 2**53 - 1
_NUMBER = rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
#: Of these alone Python's numbers are what `_NUMBER` says; scikit-learn takes others, too.
_CHARACTERS = b"0123456789+-.eE: \t\r\n"


def read_pair(
    files: Mapping[str, LocalFile],
    params: Parameters,
    *,
    train: str,
    test: str,
    width: int,
    classes: Sequence[int],
) -> Content:
    """Read a dataset that is published as a training file and a test file, as `read_file` does."""
    return Content(*(read_file(files[name], width, classes) for name in (train, test)))


def read_single(
    files: Mapping[str, LocalFile],
    params: Parameters,
    *,
    name: str,
    width: int,
    classes: Sequence[int],
    step: int,
) -> Content:
    """Read a dataset that is published as one file.

    Rows `step`, 2 `step`, ..., counted from 1, are the test part.
    """
    return every(read_file(files[name], width, classes), step, first=step - 1)


def read_file(file: LocalFile, width: int, classes: Sequence[int]) -> Part:
    """Read one file, in which two of the labels `classes` occur.

    Returns a float64 CSR matrix of shape (lines, width) without explicit zeros, and int64 labels.
    `DataError` says, with the line's number, if a label is no finite number or not one of
    `classes`, or a pair is malformed, out of order, outside 1..width, or its value not finite.
    """
    part = read_rows([file], width, classes)
    check_classes(part.y, file.origin)
    return part


def read_rows(
    files: Sequence[LocalFile],
    width: int | None = None,
    classes: Sequence[int] | None = None,
    *,
    labelled: bool = True,
) -> Part:
    """Read files one after another as the rows of one matrix, as `read_file` does.

    The width is by default the largest index, and a label any integer. Lines that are not
    `labelled`, as in SVMlin's files, begin with a pair; their labels are then 0.
    """
    limit = _MAX_WIDTH if width is None else width
    if limit > _MAX_WIDTH:
        raise DataError(
            f"{files[0].origin}: a width of {width} features was asked for; at most {_MAX_WIDTH} "
            "are supported"
        )
    parts = [_read(file, limit, classes, labelled) for file in files]
    n_features = width or 1 + max(int(X.indices.max(initial=0)) for X, _ in parts)
    rows = [
        csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)) for X, _ in parts
    ]
    X = rows[0] if len(rows) == 1 else vstack(rows, format="csr")
    X.has_canonical_format = True  # as was checked
    return Part(X, np.concatenate([y for _, y in parts]).astype(np.int64))


def _read(
    file: LocalFile, width: int, classes: Sequence[int] | None, labelled: bool
) -> tuple[csr_matrix, NDArray[np.float64]]:
    # Imported here: scikit-learn's datasets take a second.
    from sklearn.datasets import load_svmlight_file

    try:
        with reading(file) as stream:
            lines = _Lines(stream, labelled)
            X, y = load_svmlight_file(lines, n_features=width, zero_based=False)
        whole = (y % 1 == 0) & (np.abs(y) <= _MAX_LABEL) if classes is None else np.isin(y, classes)
        if not whole.all() or not np.isfinite(X.data).all():
            raise ValueError
    except (ValueError, OverflowError):
        with reading(file) as stream:
            raise _explained(_Lines(stream, labelled), width, classes, file.origin) from None
    if not len(y):
        raise DataError(f"{file.origin}: the file is empty")
    X.eliminate_zeros()
    return X, y


class _Lines:
    """The lines of a file without comments; every other character must be one of a number."""

    def __init__(self, stream: Iterator[bytes], labelled: bool) -> None:
        self._stream, self._labelled = stream, labelled

    def read(self) -> bytes:
        """By this scikit-learn knows a file."""
        return b"".join(self)

    def plain(self) -> Iterator[bytes]:
        for line in self._stream:
            text = line.partition(b"#")[0].strip(b" \t\r\n")
            yield text if self._labelled else b"0 " + text

    def __iter__(self) -> Iterator[bytes]:
        for text in self.plain():
            if text.translate(None, _CHARACTERS):
                raise ValueError
            yield text


def _explained(lines: _Lines, width: int, classes: Sequence[int] | None, origin: str) -> DataError:
    """The first thing that is wrong with lines."""
    for number, line in enumerate(lines.plain(), start=1):
        try:
            _check_line(line, width, classes)
        except ValueError as error:
            return DataError(f"{origin}, line {number}: {error}")
    raise AssertionError("the check of a line must find what scikit-learn does")


def _check_line(line: bytes, width: int, classes: Sequence[int] | None) -> None:
    """Raise ValueError, which says what is wrong with a line."""
    if not line:
        return
    label, *pairs = re.split(rb"[ \t\r]+", line)
    value = float(label) if re.fullmatch(_NUMBER, label) else math.nan
    if classes is None and not (value % 1 == 0 and abs(value) <= _MAX_LABEL):
        raise ValueError(
            f"label {shown_word(label)} is not an integer of at most {_MAX_LABEL} in size"
        )
    if classes is not None and value not in classes:
        raise ValueError(
            f"label {shown_word(label)} is not one of the {len(classes)} classes "
            f"{', '.join(map(str, classes))}"
        )
    last = 0
    for text in pairs:
        pair = re.fullmatch(rb"\+?([0-9]{1,4000}):(%b)" % _NUMBER, text)
        index = int(pair[1]) if pair else 0
        if not (pair and last < index <= width and math.isfinite(float(pair[2]))):
            hint = "; indices start at 1, not at 0" if pair and not index else ""
            raise ValueError(
                f"{shown_word(text)} is not an index from {last + 1} to {width}, a colon and a "
                f"finite number{hint}"
            )
        last = index


# What is published in this format, or nearly

#: CUTS08 section 6.1.
_N_SAMPLE = 22_697


def sample_adult(content: Content, params: Parameters) -> Content:
    """Rows of the training part, drawn by a fixed seed; the test part is the others or all of them.

    The published test part is not used: Yu and Joachims (2008) count 32 562 points in all, and do
    not say whether those that they trained on are among the ones that they tested on.
    """
    whole = as_float32(content, params).train
    if len(whole.y) <= _N_SAMPLE:
        raise DataError(f"adult-sample: {len(whole.y)} rows in a9a, more than {_N_SAMPLE} expected")
    order = np.random.Generator(np.random.PCG64(2008)).permutation(len(whole.y))
    drawn, rest = np.sort(order[:_N_SAMPLE]), np.sort(order[_N_SAMPLE:])
    test = whole if params["test"] == "all" else Part(whole.X[rest], whole.y[rest])
    return Content(Part(whole.X[drawn], whole.y[drawn]), test)


def read_svmlin(
    files: Mapping[str, LocalFile], params: Parameters, *, points: str, labels: str, width: int
) -> Content:
    """Read a file of lines of ``index:value`` pairs, and one of lines of a label, -1 or +1, each.

    Every fifth row is the test part.
    """
    X = read_rows([files[points]], width, labelled=False).X
    # A label alone is a point without pairs.
    y = read_rows([files[labels]], 1, (-1, 1)).y
    if len(y) != X.shape[0]:
        raise DataError(
            f"{files[labels].origin}: {len(y)} labels for the {X.shape[0]} points of "
            f"{files[points].origin}; one of the files is not complete"
        )
    check_classes(y, files[labels].origin)
    return every(Part(X, y), 5, first=4)


# RCV1-v2: vectors by document, topics by document

_RCV1_WIDTH = 47236
_TOPIC = re.compile(rb"([A-Z0-9]+) ([0-9]{1,18}) 1\r?")


def read_rcv1(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """Read the documents, those of one topic (+1) against the rest (-1), as float64 CSR matrices.

    The files are the training part, those of the test part, and the topics. Vectors are LIBSVM text
    with a document's number for its label; topics are lines of a topic, a document's number and
    a 1. `DataError` names a file that cannot be read and a malformed line, and says if no document
    has the topic, or a document has no topic at all.
    """
    train, *test, topics = files.values()
    labelled, members = _topics(topics, str(params["topic"]))
    parts = []
    for vectors in ([train], test):
        part = read_rows(vectors, _RCV1_WIDTH, None)
        without = ~np.isin(part.y, labelled)
        if without.any():
            raise DataError(
                f"{topics.origin}: document {part.y[without][0]} of {vectors[0].origin} has no "
                "topic; the file is not complete"
            )
        parts.append(Part(part.X, np.where(np.isin(part.y, members), 1, -1)))
    if params["split"] == "swapped":
        parts.reverse()
    return Content(*parts)


def _topics(file: LocalFile, wanted: str) -> tuple[list[int], list[int]]:
    """Numbers of all documents that have a topic, and of those that have the wanted one."""
    documents: dict[str, list[int]] = {}
    with reading(file) as stream:
        for number, line in enumerate(stream, start=1):
            match = _TOPIC.fullmatch(line.rstrip(b"\n"))
            if match is None:
                raise DataError(
                    f"{file.origin}, line {number}: {shown_word(line.rstrip())} is not a topic, a "
                    "document's number and a 1"
                )
            documents.setdefault(match[1].decode(), []).append(int(match[2]))
    if wanted not in documents:
        raise DataError(
            f"rcv1: no document has the topic {wanted!r}{suggest(wanted, sorted(documents))}"
        )
    return [one for every_one in documents.values() for one in every_one], documents[wanted]
