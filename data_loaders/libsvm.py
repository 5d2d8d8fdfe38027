"""A strict reader of the LIBSVM text format, plain or compressed.

A line is a label and then ``index:value`` pairs, indices from 1 and increasing. Compiled code
(`libsvm_tokens`) reads regular text. A block of text with anything unusual in it goes through a
plain line-by-line parser, which accepts the same language and knows the number of a wrong line; so
does a small block, which is read before numba is imported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from . import splits
from .content import Content, Part, check_classes
from .errors import DataError
from .files import LocalFile
from .parameters import Parameters
from .rows import joined
from .streams import reading, shown, whole_lines

#: Bytes of text that are parsed together.
BLOCK_BYTES = 1 << 21

#: Indices are stored in 32 bits.
_MAX_WIDTH = 2**31 - 1
#: Larger integers are not told apart in float64, nor do all of them fit into int64.
_MAX_LABEL = 2**53
_INDEX = re.compile(rb"[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

#: Bytes of a block for which numba is worth its import.
_COMPILED_BYTES = 1 << 17


@dataclass(frozen=True)
class _Dialect:
    """What a file may hold.

    Parameters
    ----------
    width : int
        The largest index.
    classes : tuple of int or None
        The labels; None for any integer.
    comments : bool
        Whether ``#`` begins a comment.
    labelled : bool
        Whether lines begin with a label; without one, all labels are 0.
    """

    width: int
    classes: tuple[int, ...] | None
    comments: bool = False
    labelled: bool = True


@dataclass(frozen=True, eq=False)
class _Rows:
    """Parsed lines: a label and a number of pairs for each, the pairs of all in a row."""

    labels: NDArray[np.float64]
    lengths: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]


def read_pair(
    files: Mapping[str, LocalFile],
    params: Parameters,
    *,
    train: str,
    test: str,
    width: int,
    classes: tuple[int, ...],
) -> Content:
    """Read a dataset that is published as a training file and a test file.

    Parameters
    ----------
    files : mapping of str to LocalFile
        By name.
    params : mapping
        Not used: a file has no parameters.
    train, test : str
        Names of the two files.
    width : int
        Number of features. A file may stop at a lower index.
    classes : tuple of int
        The labels that may occur.

    Returns
    -------
    Content
        float64 CSR matrices without explicit zeros, int64 labels as in the files.

    Raises
    ------
    DataError
        As `read_file`.
    """
    return Content(
        read_file(files[train], width, classes),
        read_file(files[test], width, classes),
    )


def read_single(
    files: Mapping[str, LocalFile],
    params: Parameters,
    *,
    name: str,
    width: int,
    classes: tuple[int, ...],
    step: int,
) -> Content:
    """Read a dataset that is published as one file; every `step`-th row is the test part.

    Parameters
    ----------
    files : mapping of str to LocalFile
        By name.
    params : mapping
        Not used: a file has no parameters.
    name : str
        Name of the file.
    width : int
        Number of features. The file may stop at a lower index.
    classes : tuple of int
        The labels that may occur.
    step : int
        Rows `step`, 2 `step`, ..., counted from 1, are the test part.

    Returns
    -------
    Content
        float64 CSR matrices without explicit zeros, int64 labels as in the file.

    Raises
    ------
    DataError
        As `read_file`.
    """
    return splits.every(read_file(files[name], width, classes), step, first=step - 1)


def read_file(file: LocalFile, width: int, classes: tuple[int, ...]) -> Part:
    """Read one file.

    Parameters
    ----------
    file : LocalFile
    width : int
        Number of features.
    classes : tuple of int
        The labels that may occur; two of them must.

    Returns
    -------
    Part
        float64 CSR matrix of shape (lines, width) without explicit zeros, int64 labels.

    Raises
    ------
    DataError
        If the file cannot be read, is empty or has labels of one class only; with the line's
        number, if a label is no finite number or not one of `classes`, or a pair is malformed,
        out of order, outside 1..width, or its value not finite.
    """
    part = read_rows([file], width, classes)
    check_classes(part.y, file.origin)
    return part


def read_rows(files: Sequence[LocalFile], width: int, classes: tuple[int, ...] | None) -> Part:
    """Read files one after another as the rows of one matrix.

    Parameters
    ----------
    files : sequence of LocalFile
    width : int
        Number of features.
    classes : tuple of int or None
        The labels that may occur; None for any integer.

    Returns
    -------
    Part
        As from `read_file`, the labels of one class perhaps.

    Raises
    ------
    DataError
        As `read_file`.
    """
    return joined(blocks(files, width=width, classes=classes), width)


def blocks(
    files: Sequence[LocalFile],
    *,
    width: int | None = None,
    classes: tuple[int, ...] | None = None,
    comments: bool = False,
    labelled: bool = True,
) -> Iterator[Part]:
    """Read files one after another, some thousand lines at a time.

    Parameters
    ----------
    files : sequence of LocalFile
    width : int, optional
        Number of features. Without it a block is as wide as the largest index so far, so later
        blocks may be wider.
    classes : tuple of int, optional
        The labels that may occur; without it, any integer.
    comments : bool, default False
        Whether ``#`` begins a comment, to the end of its line, as in SVM-light's files.
    labelled : bool, default True
        Whether lines begin with a label. In SVMlin's files they do not; the labels are then 0.

    Yields
    ------
    Part
        float64 CSR matrix without explicit zeros, int64 labels, perhaps of one class.

    Raises
    ------
    DataError
        As `read_file`.
    """
    limit = _MAX_WIDTH if width is None else width
    if limit > _MAX_WIDTH:
        raise DataError(
            f"{files[0].origin}: a width of {width} features was asked for; at most {_MAX_WIDTH} "
            "are supported"
        )
    dialect = _Dialect(limit, classes, comments, labelled)
    widest = 1 if width is None else width
    for file in files:
        for rows in _parse_file(file, dialect):
            widest = max(widest, int(rows.indices.max(initial=0)))
            yield Part(_matrix(rows, widest), rows.labels.astype(np.int64))


def _matrix(rows: _Rows, width: int) -> csr_matrix:
    ends = np.concatenate(([0], np.cumsum(rows.lengths)))
    values, indices = rows.values, rows.indices - np.int32(1)
    stored = values != 0
    if not stored.all():
        ends = np.concatenate(([0], np.cumsum(stored)))[ends]
        values, indices = values[stored], indices[stored]
    X = csr_matrix((values, indices, ends), shape=(len(ends) - 1, width))
    X.has_canonical_format = True  # as was checked
    return X


def _parse_file(file: LocalFile, dialect: _Dialect) -> Iterator[_Rows]:
    line, n_rows = 1, 0
    with reading(file) as stream:
        for block in whole_lines(stream, BLOCK_BYTES, file.origin):
            text = block if dialect.labelled else _labelled(block)
            rows = _parse_regular(text, dialect) if len(text) >= _COMPILED_BYTES else None
            if rows is None:
                rows = _parse_lines(text, dialect, file.origin, line)
            line += text.count(b"\n")
            n_rows += len(rows.labels)
            yield rows
    if not n_rows:
        raise DataError(f"{file.origin}: the file is empty")


def _labelled(text: bytes) -> bytes:
    """The lines, each with the label 0."""
    return b"0 " + text[:-1].replace(b"\n", b"\n0 ") + b"\n"


def _parse_regular(text: bytes, dialect: _Dialect) -> _Rows | None:
    """Parse a block by compiled code; None if anything in it is irregular."""
    # Imported here: numba would slow down every start of the command line.
    from .libsvm_tokens import tokens

    found = tokens(text, dialect.width, dialect.comments)
    if found is None:
        return None
    if dialect.classes is None:
        known = (found.labels % 1 == 0) & (np.abs(found.labels) <= _MAX_LABEL)
    else:
        known = np.isin(found.labels, dialect.classes)
    return _Rows(*found) if known.all() else None


def _parse_lines(text: bytes, dialect: _Dialect, origin: str, first: int) -> _Rows:
    """Parse a block line by line; `first` is the number of its first line in the file."""
    labels, lengths = [], []
    indices: list[int] = []
    values: list[float] = []
    for number, line in enumerate(text.split(b"\n")[:-1], start=first):
        content = line.partition(b"#")[0] if dialect.comments else line
        if not content.strip(b" \t\r"):
            continue
        try:
            label, pairs = _parse_line(content, dialect)
        except ValueError as error:
            raise DataError(f"{origin}, line {number}: {error}") from None
        labels.append(label)
        lengths.append(len(pairs))
        indices.extend(pairs)
        values.extend(pairs.values())
    return _Rows(
        np.array(labels, dtype=np.float64),
        np.array(lengths, dtype=np.int64),
        np.array(indices, dtype=np.int32),
        np.array(values, dtype=np.float64),
    )


def _parse_line(line: bytes, dialect: _Dialect) -> tuple[float, dict[int, float]]:
    """The label and the pairs of a line; ValueError says what is wrong."""
    classes = dialect.classes
    label_text, *pair_texts = re.split(rb"[ \t\r]+", line.strip(b" \t\r"))
    if not _NUMBER.fullmatch(label_text):
        raise ValueError(f"label {shown(label_text)} is not a finite number")
    label = float(label_text)
    if classes is None and not label.is_integer():
        raise ValueError(f"label {shown(label_text)} is not an integer")
    if classes is None and abs(label) > _MAX_LABEL:
        raise ValueError(f"label {shown(label_text)} is over {_MAX_LABEL} in size")
    if classes is not None and label not in classes:
        raise ValueError(
            f"label {shown(label_text)} is not one of the {len(classes)} classes "
            f"{', '.join(map(str, classes))}"
        )
    pairs: dict[int, float] = {}
    last = 0
    for text in pair_texts:
        index_text, _, value_text = text.partition(b":")
        if not _INDEX.fullmatch(index_text) or not _is_number(value_text):
            raise ValueError(
                f"{shown(text)} is not an index:value pair (an integer from 1, a colon, a number)"
            )
        index, value = int(index_text), float(value_text)
        if not math.isfinite(value):
            raise ValueError(f"the value of {shown(text)} is not finite")
        if index < 1:
            raise ValueError(
                f"index {index} in {shown(text)}; indices start at 1 "
                "(dump_svmlight_file of scikit-learn needs zero_based=False)"
            )
        if index <= last:
            raise ValueError(f"index {index} after {last}; indices must increase in a line")
        if index > dialect.width:
            raise ValueError(f"index {index} is over the number of features, {dialect.width}")
        pairs[index] = value
        last = index
    return label, pairs


def _is_number(text: bytes) -> bool:
    # NaN and infinity are numbers in the wrong range, not malformed pairs.
    return bool(_NUMBER.fullmatch(text)) or text.lower().lstrip(b"+-") in (
        b"nan",
        b"inf",
        b"infinity",
    )
