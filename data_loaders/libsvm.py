"""A strict reader of the LIBSVM text format, plain or compressed.

A line is a label and then ``index:value`` pairs, indices from 1 and increasing. Regular text is
split and converted as arrays. A block of text with anything unusual in it goes through a plain
line-by-line parser, which accepts the same language and knows the number of a wrong line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from marginbench.data_loaders import splits
from marginbench.data_loaders.content import Content, Part, check_classes
from marginbench.data_loaders.errors import DataError
from marginbench.data_loaders.files import LocalFile
from marginbench.data_loaders.parameters import Parameters
from marginbench.data_loaders.streams import reading, shown, whole_lines

#: Bytes of text that are parsed together.
BLOCK_BYTES = 1 << 22

#: Indices are stored in 32 bits.
_MAX_WIDTH = 2**31 - 1
#: Larger integers are not told apart in float64, nor do all of them fit into int64.
_MAX_LABEL = 2**53
_INDEX = re.compile(rb"[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

# Kinds of bytes for the array parser. _OTHER sends a block to the line parser.
_NUMERIC, _BLANK, _NEWLINE, _COLON, _OTHER = range(5)
_KIND = np.full(256, _OTHER, dtype=np.uint8)
_KIND[np.frombuffer(b"0123456789+-.eE", dtype=np.uint8)] = _NUMERIC
_KIND[np.frombuffer(b" \t\r", dtype=np.uint8)] = _BLANK
_KIND[ord("\n")] = _NEWLINE
_KIND[ord(":")] = _COLON


@dataclass(frozen=True, eq=False)
class _Rows:
    """Parsed lines: a label and a number of pairs for each, the pairs of all in a row."""

    labels: NDArray[np.float64]
    lengths: NDArray[np.int64]
    indices: NDArray[np.int64] | NDArray[np.int32]
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
    parts = list(blocks(files, width=width, classes=classes))
    data, indices = (
        np.concatenate([getattr(part.X, name) for part in parts]) for name in ("data", "indices")
    )
    lengths = np.concatenate([np.diff(part.X.indptr) for part in parts])
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    X = csr_matrix((data, indices, indptr), shape=(len(lengths), width))
    return Part(X, np.concatenate([part.y for part in parts]))


def blocks(
    files: Sequence[LocalFile],
    *,
    width: int | None = None,
    classes: tuple[int, ...] | None = None,
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
    widest = 1 if width is None else width
    for file in files:
        for rows in _parse_file(file, limit, classes):
            widest = max(widest, int(rows.indices.max(initial=0)))
            yield Part(_matrix(rows, widest), rows.labels.astype(np.int64))


def _matrix(rows: _Rows, width: int) -> csr_matrix:
    stored = rows.values != 0
    before = np.concatenate(([0], np.cumsum(stored)))
    indptr = before[np.concatenate(([0], np.cumsum(rows.lengths)))]
    X = csr_matrix(
        (rows.values[stored], rows.indices[stored] - 1, indptr), shape=(len(indptr) - 1, width)
    )
    X.has_canonical_format = True  # as was checked
    return X


def _parse_file(file: LocalFile, width: int, classes: tuple[int, ...] | None) -> Iterator[_Rows]:
    line = 1
    with reading(file) as stream:
        for text in whole_lines(stream, BLOCK_BYTES, file.origin):
            rows = _parse_regular(text, width, classes)
            if rows is None:
                rows = _parse_lines(text, width, classes, file.origin, line)
            line += len(rows.labels)
            # Checked to be in 1..width: half the memory will do.
            yield replace(rows, indices=rows.indices.astype(np.int32))
    if line == 1:
        raise DataError(f"{file.origin}: the file is empty")


def _parse_regular(text: bytes, width: int, classes: tuple[int, ...] | None) -> _Rows | None:
    """Parse a block with array operations; None if anything in it is irregular."""
    chars = np.frombuffer(text, dtype=np.uint8)
    kind = _KIND[chars]
    if (kind == _OTHER).any():
        return None
    # The plus sign of a label goes: not every release of Arrow converts "+1".
    newlines = np.flatnonzero(kind == _NEWLINE)
    first = np.concatenate(([0], newlines[:-1] + 1))
    first = first[kind[first] == _NUMERIC]
    plus = first[chars[first] == ord("+")]
    digit = chars[plus + 1] - ord("0") < 10  # unsigned: anything below "0" wraps around
    kind[plus[digit]] = _BLANK

    numeric = kind == _NUMERIC
    edges = np.diff(numeric.view(np.int8), prepend=0)
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    # `before` of the block's first token is its last byte, a newline.
    before, after = kind[starts - 1], kind[ends]
    is_index, is_value = after == _COLON, before == _COLON
    is_label = ~(is_index | is_value)
    n_pairs = np.count_nonzero(kind == _COLON)
    if not (np.count_nonzero(is_index) == np.count_nonzero(is_value) == n_pairs):
        return None
    # Every line's first token, and no other, is a label.
    first_tokens = np.searchsorted(starts, np.concatenate(([0], newlines[:-1])))
    if (is_index & is_value).any() or not np.array_equal(np.flatnonzero(is_label), first_tokens):
        return None

    offsets = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int32)
    tokens = pa.StringArray.from_buffers(
        len(starts), pa.py_buffer(offsets), pa.py_buffer(chars[numeric])
    )
    try:
        labels, values = (
            tokens.filter(pa.array(which)).cast(pa.float64()).to_numpy()
            for which in (is_label, is_value)
        )
        indices = tokens.filter(pa.array(is_index)).cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    lengths = np.diff(np.append(first_tokens, len(starts))) // 2
    rows = _Rows(labels, lengths, indices, values)
    return rows if _is_valid(rows, width, classes) else None


def _is_valid(rows: _Rows, width: int, classes: tuple[int, ...] | None) -> bool:
    rises = np.diff(rows.indices) > 0
    row_starts = np.cumsum(rows.lengths)[:-1]
    inner = (row_starts > 0) & (row_starts < len(rows.indices))
    rises[row_starts[inner] - 1] = True
    if classes is None:
        known = (rows.labels % 1 == 0) & (np.abs(rows.labels) <= _MAX_LABEL)
    else:
        known = np.isin(rows.labels, classes)
    return bool(
        known.all()
        and np.isfinite(rows.values).all()
        and rises.all()
        and (rows.indices >= 1).all()
        and (rows.indices <= width).all()
    )


def _parse_lines(
    text: bytes, width: int, classes: tuple[int, ...] | None, origin: str, first: int
) -> _Rows:
    """Parse a block line by line; `first` is the number of its first line in the file."""
    labels, lengths = [], []
    indices: list[int] = []
    values: list[float] = []
    for number, line in enumerate(text.split(b"\n")[:-1], start=first):
        try:
            label, pairs = _parse_line(line, width, classes)
        except ValueError as error:
            raise DataError(f"{origin}, line {number}: {error}") from None
        labels.append(label)
        lengths.append(len(pairs))
        indices.extend(pairs)
        values.extend(pairs.values())
    return _Rows(
        np.array(labels, dtype=np.float64),
        np.array(lengths, dtype=np.int64),
        np.array(indices, dtype=np.int64),
        np.array(values, dtype=np.float64),
    )


def _parse_line(
    line: bytes, width: int, classes: tuple[int, ...] | None
) -> tuple[float, dict[int, float]]:
    """The label and the pairs of a line; ValueError says what is wrong."""
    label_text, *pair_texts = re.split(rb"[ \t\r]+", line.strip(b" \t\r"))
    if not label_text:
        raise ValueError("empty line; expected a label and index:value pairs")
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
            raise ValueError(f"index {index} in {shown(text)}; indices start at 1")
        if index <= last:
            raise ValueError(f"index {index} after {last}; indices must increase in a line")
        if index > width:
            raise ValueError(f"index {index} is over the number of features, {width}")
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
