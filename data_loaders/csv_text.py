"""Strict readers of comma-separated numbers: a label and a fixed number of features in a line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, hstack

from .content import Content, Part, check_classes
from .errors import DataError, first_line
from .files import LocalFile, reading
from .own.words import printable
from .parameters import Parameters
from .transforms import every as every_row, last as last_rows


def read(
    files: Mapping[str, LocalFile],
    params: Parameters,
    *,
    name: str,
    width: int,
    classes: Sequence[int],
    label: Literal["first", "last"],
    every: tuple[int, int] | None = None,
    last: int = 0,
) -> Content:
    """Read a dataset that is published as one table without a header.

    Features are float32, rounded if need be; labels int64 as in the file, of which two must occur.
    The test part is ``every`` so many rows from a first one, counted from 0, or the ``last`` rows.
    Raises `DataError` as `read_columns`, or with the line's number for a label that is not one of
    `classes`.
    """
    file = files[name]
    columns = read_columns(file, width + 1)
    labels = columns.pop(0 if label == "first" else width)
    wrong = ~np.isin(labels, classes)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{file.origin}, line {row + 1}: label {labels[row]:g} is not one of the "
            f"{len(classes)} classes {', '.join(map(str, classes))}"
        )
    X = np.empty((len(labels), width), dtype=np.float32)
    for k, column in enumerate(columns):
        X[:, k] = column
    whole = Part(X, labels.astype(np.int64))
    check_classes(whole.y, file.origin)
    return last_rows(whole, file.origin, last) if every is None else every_row(whole, *every)


def read_columns(file: LocalFile, n_columns: int, texts: Collection[int] = ()) -> list[Any]:
    """The columns of a file: float64 arrays, and Arrow arrays of those that hold `texts`.

    Raises `DataError` if the file cannot be read or is empty, or, with the line's number, if a line
    has another number of columns or an entry that is not a finite number.
    """
    kinds = {
        str(column): pa.string() if column in texts else pa.float64() for column in range(n_columns)
    }
    with reading(file) as stream:
        try:
            table = pacsv.read_csv(
                pa.PythonFile(stream, mode="r"),
                # Without threads its messages have the number of the row.
                read_options=pacsv.ReadOptions(column_names=list(kinds), use_threads=False),
                parse_options=pacsv.ParseOptions(quote_char=False, ignore_empty_lines=False),
                convert_options=pacsv.ConvertOptions(column_types=kinds, null_values=[]),
            )
        except pa.ArrowInvalid as error:
            raise DataError(f"{file.origin}: {printable(first_line(error))}") from None
    columns = [
        column if k in texts else column.to_numpy() for k, column in enumerate(table.columns)
    ]
    for k, column in enumerate(columns):
        if k not in texts:
            _check(file, k, column, ~np.isfinite(column), ", not a finite number")
    return columns


def _check(file: LocalFile, k: int, column: Any, wrong: NDArray[np.bool_], why: str) -> None:
    """Refuse the first entry of a column that is wrong."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"{file.origin}, line {row + 1}: column {k + 1} is {column[row]:g}{why}")


# KDD Cup 1999: connections by 38 numbers and three words (the protocol, the service and the flag)

_KDD_TEST = "corrected.gz"
_LABEL = 41
_WORDS = (1, 2, 3)


def read_kdd(files: Mapping[str, LocalFile], params: Parameters, *, train: str) -> Content:
    """Read the connections; every word of the training file becomes a feature.

    Features are 38 numbers as they are, then protocols, services and flags in alphabetical order, 0
    or 1, in float64 CSR matrices. A word that only the test file has becomes zeros. Labels are +1
    for a normal connection and -1 for an attack. `DataError` names a wrong line.
    """
    categories: list[Any] = []
    parts = []
    for file in (files[train], files[_KDD_TEST]):
        columns = read_columns(file, _LABEL + 1, (*_WORDS, _LABEL))
        blocks = []
        for k in [k for k in range(_LABEL) if k not in _WORDS]:
            values, columns[k] = columns[k], None  # all of them take much memory
            _check(file, k, values, values < 0, "; none may be negative")
            # Column by column: most of the numbers are 0.
            blocks.append(csc_matrix(values[:, None]))
        categories = categories or [pc.unique(columns[k]).sort() for k in _WORDS]
        for k, words in zip(_WORDS, categories, strict=True):
            places = pc.fill_null(pc.index_in(columns[k], words), -1).to_numpy()
            rows = np.flatnonzero(places >= 0)
            shape = (len(places), len(words))
            blocks.append(csr_matrix((np.ones(len(rows)), (rows, places[rows])), shape=shape))
        normal = pc.equal(columns[_LABEL], "normal.").to_numpy(zero_copy_only=False)
        part = Part(hstack(blocks, format="csr"), np.where(normal, 1, -1))
        check_classes(part.y, file.origin)
        parts.append(part)
    return Content(*parts)


def scale_kdd(content: Content, params: Parameters) -> Content:
    """Features as float32, divided by their largest value in the training part for "unit".

    No feature is negative. One that is 0 in the training part becomes 0 in both parts.
    """
    n = content.train.X.shape[1]
    factors = np.ones(n)
    if params["scale"] == "unit":
        highest = content.train.X.max(axis=0).toarray().ravel()
        factors = np.divide(1.0, highest, out=np.zeros(n), where=highest > 0)

    def scaled(part: Part) -> Part:
        X: Any = part.X
        values = (X.data * factors[X.indices]).astype(np.float32)
        X = csr_matrix((values, X.indices, X.indptr), shape=X.shape)
        X.eliminate_zeros()
        return Part(X, part.y.astype(np.int8))

    return Content(scaled(content.train), scaled(content.test))
