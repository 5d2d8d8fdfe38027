"""A strict reader of the LIBSVM text format, plain or compressed.

A line is a label and then ``index:value`` pairs, indices from 1 and increasing; ``#`` begins a
comment. Arrow matches every line and parses all numbers; a file with anything wrong in it is gone
over line by line for the number of the first wrong one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from scipy.sparse import csr_matrix, vstack

from .content import Content, Part, check_classes
from .errors import DataError
from .files import LocalFile, reading, shown
from .parameters import Parameters
from .transforms import every

#: Indices are stored in 32 bits.
_MAX_WIDTH = 2**31 - 1
#: Larger integers are not told apart in float64, nor do all of them fit into int64.
_MAX_LABEL = 2**53
_INDEX = r"\+?[0-9]+"
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
#: Of text that is parsed at a time: small blocks stay in the processor's cache.
_BLOCK_BYTES = 1 << 21
_BLANK = r"[ \t\r]"
_LINE = rf"^{_BLANK}*({_NUMBER}({_BLANK}+{_INDEX}:{_NUMBER})*)?{_BLANK}*$"


def read_pair(
    files: Mapping[str, LocalFile],
    params: Parameters,
    *,
    train: str,
    test: str,
    width: int,
    classes: tuple[int, ...],
) -> Content:
    """Read a dataset that is published as a training file and a test file, as `read_file` does."""
    return Content(*(read_file(files[name], width, classes) for name in (train, test)))


def read_single(
    files: Mapping[str, LocalFile],
    params: Parameters,
    *,
    name: str,
    width: int,
    classes: tuple[int, ...],
    step: int,
) -> Content:
    """Read a dataset that is published as one file.

    Rows `step`, 2 `step`, ..., counted from 1, are the test part.
    """
    return every(read_file(files[name], width, classes), step, first=step - 1)


def read_file(file: LocalFile, width: int, classes: tuple[int, ...]) -> Part:
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
    classes: tuple[int, ...] | None = None,
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
    n_features = width or max(1, *(int(X.indices.max(initial=0)) + 1 for X, _ in parts))
    rows = [
        csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)) for X, _ in parts
    ]
    X = rows[0] if len(rows) == 1 else vstack(rows, format="csr")
    X.has_canonical_format = True  # as was checked
    return Part(X, np.concatenate([y for _, y in parts]).astype(np.int64))


def _read(
    file: LocalFile, width: int, classes: tuple[int, ...] | None, labelled: bool
) -> tuple[csr_matrix, np.ndarray]:
    blocks, n_lines = [], 0
    with reading(file) as stream:
        while text := stream.read(_BLOCK_BYTES) + stream.readline():
            if b"#" in text:
                text = re.sub(rb"#[^\n]*", b"", text)
            if not labelled:
                text = b"0 " + text.removesuffix(b"\n").replace(b"\n", b"\n0 ") + b"\n"
            block = _parsed(text, width, classes)
            if block is None:
                raise _explained(text, n_lines, width, classes, file.origin)
            blocks.append(block)
            n_lines += text.count(b"\n")
    if not any(len(y) for y, *_ in blocks):
        raise DataError(f"{file.origin}: the file is empty")
    y, n_pairs, columns, values = map(np.concatenate, zip(*blocks, strict=True))
    indptr = np.concatenate(([0], np.cumsum(n_pairs)))
    X = csr_matrix((values, columns, indptr), shape=(len(y), int(columns.max(initial=0)) + 1))
    X.eliminate_zeros()
    return X, y


def _parsed(
    text: bytes, width: int, classes: tuple[int, ...] | None
) -> tuple[np.ndarray, ...] | None:
    """The labels of lines, their numbers of pairs, and columns and values of all pairs; None if
    anything is wrong.
    """
    lines = pa.array(text.split(b"\n"), pa.large_binary())
    if not pc.all(pc.match_substring_regex(lines, _LINE)).as_py():
        return None
    # A line without a digit is blank.
    filled = pc.match_substring_regex(lines, "[0-9]").to_numpy(zero_copy_only=False)
    n_pairs = pc.count_substring(lines, ":").to_numpy()[filled].astype(np.int64)
    starts = np.cumsum(n_pairs) - n_pairs
    numbers = _numbers(text)
    labels = 2 * starts + np.arange(len(n_pairs))
    y = numbers[labels]
    indices, values = np.delete(numbers, labels).reshape(-1, 2).T
    steps = np.diff(indices, prepend=0.0)
    steps[starts[n_pairs > 0]] = 1.0
    known = (y % 1 == 0) & (np.abs(y) <= _MAX_LABEL) if classes is None else np.isin(y, classes)
    right = (steps > 0) & (indices >= 1) & (indices <= width) & np.isfinite(values)
    if not known.all() or not right.all():
        return None
    return y, n_pairs, indices.astype(np.int32) - 1, values.copy()


def _explained(
    text: bytes, before: int, width: int, classes: tuple[int, ...] | None, origin: str
) -> DataError:
    """The first thing that is wrong with lines of which so many come before."""
    for number, line in enumerate(text.split(b"\n"), start=before + 1):
        try:
            _check_line(line.strip(b" \t\r"), width, classes)
        except ValueError as error:
            return DataError(f"{origin}, line {number}: {error}")
    raise AssertionError("the check of a line must find what the pattern does")


def _numbers(text: bytes) -> np.ndarray:
    """All numbers of well-formed text."""
    words = text.translate(bytes.maketrans(b" :\t\r", b"\n\n\n\n"))
    # Arrow takes no sign before a number that is not negative.
    words = words.replace(b"\n+", b"\n").removeprefix(b"+")
    try:
        table = pacsv.read_csv(
            pa.BufferReader(words),
            read_options=pacsv.ReadOptions(column_names=["number"], use_threads=False),
            convert_options=pacsv.ConvertOptions(column_types={"number": pa.float64()}),
        )
        return np.asarray(table["number"].to_numpy())
    except pa.ArrowInvalid:  # out of the range of float64
        return np.array(words.split(), dtype=np.float64)


def _check_line(line: bytes, width: int, classes: tuple[int, ...] | None) -> None:
    """Raise ValueError, which says what is wrong with a line."""
    if not line:
        return
    label_text, *pair_texts = re.split(rb"[ \t\r]+", line)
    if not re.fullmatch(_NUMBER.encode(), label_text):
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
    last = 0
    for text in pair_texts:
        index_text, _, value_text = text.partition(b":")
        # NaN and infinity are numbers in the wrong range, not malformed pairs.
        infinite = value_text.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity")
        number = infinite or re.fullmatch(_NUMBER.encode(), value_text)
        if not re.fullmatch(_INDEX.encode(), index_text) or not number:
            raise ValueError(
                f"{shown(text)} is not an index:value pair (an integer from 1, a colon, a number)"
            )
        index = int(index_text)
        if not math.isfinite(float(value_text)):
            raise ValueError(f"the value of {shown(text)} is not finite")
        if index < 1:
            raise ValueError(
                f"index {index} in {shown(text)}; indices start at 1 "
                "(dump_svmlight_file of scikit-learn needs zero_based=False)"
            )
        if index <= last:
            raise ValueError(f"index {index} after {last}; indices must increase in a line")
        if index > width:
            raise ValueError(f"index {index} is over the number of features, {width}")
        last = index
