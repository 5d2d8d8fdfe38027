"""Points and classes in arrays, and the NumPy files that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_matrix, issparse

from ..content import canonical
from ..errors import DataError, first_line
from .tables import Parts, SparseRows, Table, column_names, table_of_frame
from .words import in_words, listed, shown_word

#: Names of the points and of the classes in a NumPy file.
_POINTS = ("X", "data", "x")
_CLASSES = ("y", "target", "labels")


def parts_of(result: Any, origin: str) -> Parts:
    """The parts that an object is.

    It may be a Bunch or another mapping of arrays, (X, y), (X_train, y_train, X_test, y_test), or a
    table of pandas, polars or Arrow; `DataError` if it is none of these.
    """
    if isinstance(result, Mapping):
        return _parts_of_mapping(result, origin)
    if isinstance(result, tuple | list):
        if len(result) == 2:
            return rows_of_arrays(result[0], result[1], origin), None
        if len(result) == 4:
            X_train, y_train, X_test, y_test = result
            return parts_of_arrays(X_train, y_train, X_test, y_test, origin)
    elif hasattr(result, "columns") or hasattr(result, "__arrow_c_stream__"):
        return table_of_frame(result, origin), None
    raise DataError(
        f"{origin}: is a {type(result).__name__}; expected a table, a Bunch, (X, y), or (X_train, "
        "y_train, X_test, y_test)"
    )


def read_npz(path: Path, origin: str) -> Parts:
    """Read a NumPy file: X and y, or X_train, y_train, X_test and y_test; nothing is unpickled.

    Raises `DataError` if it cannot be read or does not hold such arrays.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - of a damaged file NumPy and zipfile raise anything
        if "pickle" in str(error):
            raise DataError(
                f"{origin}: holds pickled objects, or is no NumPy file; save arrays of numbers and "
                "texts with numpy.savez"
            ) from None
        raise DataError(f"{origin}: not a NumPy file of arrays ({first_line(error)})") from None
    return _parts_of_mapping(arrays, origin)


def _parts_of_mapping(arrays: Mapping[str, Any], origin: str) -> Parts:
    if "X_train" in arrays:
        needed = ("X_train", "y_train", "X_test", "y_test")
        missing = [name for name in needed if name not in arrays]
        if missing:
            raise DataError(f"{origin}: has X_train but no {listed(missing)}")
        X_train, y_train, X_test, y_test = (arrays[name] for name in needed)
        return parts_of_arrays(X_train, y_train, X_test, y_test, origin)
    points = next((name for name in _POINTS if arrays.get(name) is not None), None)
    classes = next((name for name in _CLASSES if arrays.get(name) is not None), None)
    if points is None or classes is None:
        raise DataError(
            f"{origin}: has the arrays {listed(sorted(map(str, arrays))) or '(none)'}; expected "
            "X and y, or X_train, y_train, X_test and y_test"
        )
    names = arrays.get("feature_names")
    return rows_of_arrays(arrays[points], arrays[classes], origin, names), None


def parts_of_arrays(X_train: Any, y_train: Any, X_test: Any, y_test: Any, origin: str) -> Parts:
    """A training and a test part, as `rows_of_arrays`.

    Sparse parts must have one width; of tables this is seen later.
    """
    other = f"{origin} (test part)"
    if issparse(X_train) and issparse(X_test) and X_train.shape[1] != X_test.shape[1]:
        raise DataError(
            f"{other}: {X_test.shape[1]} columns, but the training part has {X_train.shape[1]}"
        )
    return rows_of_arrays(X_train, y_train, origin), rows_of_arrays(X_test, y_test, other)


def rows_of_arrays(
    X: Any, y: Any, origin: str, names: Sequence[str] | None = None
) -> Table | SparseRows:
    """Points (an array, a sparse matrix or a table) and classes, numbers or texts, in two arrays.

    `names` are those of the columns of X. Raises `DataError` if the shapes disagree, or X does not
    hold numbers.
    """
    words = _class_words(y, origin)
    if not hasattr(X, "__len__") or getattr(X, "shape", None) == ():
        raise DataError(f"{origin}: X has the shape (); expected (rows, features)")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != len(words):
        raise DataError(f"{origin}: {n_rows} rows in X but {len(words)} in y")
    if issparse(X):
        if X.ndim != 2 or X.dtype.kind not in "iubf":
            raise DataError(f"{origin}: X is a sparse array of {X.dtype} in {X.ndim} dimensions")
        rows = canonical(csr_matrix(X, dtype=np.float64, copy=True))
        rows.eliminate_zeros()
        return SparseRows(origin, rows, words)
    nominal: frozenset[str] = frozenset()
    named = True
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        table = table_of_frame(X, origin)
        data, nominal = table.data, table.nominal
    else:
        values = _array(X, origin)
        width = values.shape[1]
        named = names is not None and len(names) == width
        labels = names if named and names is not None else [f"x{k + 1}" for k in range(width)]
        columns = column_names(origin, list(map(str, labels)), named)
        # NaN is what arrays have for a missing value.
        numbers = (values[:, k].astype(np.float64) for k in range(width))
        data = pa.table(
            {
                name: pa.array(each, from_pandas=True)
                for name, each in zip(columns, numbers, strict=True)
            }
        )
    target = "target"
    while target in data.column_names:
        target += "_"
    data = data.append_column(target, pa.array(words, pa.string()))
    return Table(origin, data, named=named, target=target, nominal=nominal)


def _array(X: Any, origin: str) -> Any:
    try:
        values = np.asarray(X)
        if values.dtype.kind == "c":
            raise ValueError("complex numbers")
        if values.dtype.kind in "mM":
            raise ValueError("dates or durations")
        if values.dtype.kind not in "iubf":
            values = np.asarray(X, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"{origin}: X does not hold numbers alone ({first_line(error)}); give a table with "
            "named columns instead"
        ) from None
    if values.ndim > 2:
        values = values.reshape(len(values), -1)
    if values.ndim != 2 or not values.shape[1]:
        raise DataError(f"{origin}: X has the shape {np.shape(X)}; expected (rows, features)")
    return values


def _class_words(y: Any, origin: str) -> list[str | None]:
    """Each class as a word: numbers as decimals, "1" for 1.0; None where it is missing."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(
            f"{origin}: y has the shape {values.shape}; expected one class for each row"
        )
    return [_class_word(value, origin) for value in cast(Any, values).tolist()]


def _class_word(value: Any, origin: str) -> str | None:
    try:
        if value is None or value != value:
            return None
    except TypeError:  # NA of pandas is neither equal to itself nor not
        return None
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        return in_words(value)
    raise DataError(f"{origin}: the class {shown_word(str(value))} is neither a number nor a text")
