"""From columns to features: numbers scaled, categories one-hot, missing values filled in.

All that is estimated comes from the training rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import DataError
from .blocks import Spooled, listed, shown_word
from .numerals import in_words, is_number, numbers, numeric

#: Categories of a column; more of them are names or numbers of rows.
MAX_CATEGORIES = 1000
#: A column of texts that are numbers in this share of the rows is one of numbers with a mistake.
_MOSTLY = 0.9
_NOT_FINITE = ("inf", "infinity", "nan")


@dataclass(frozen=True)
class Numeric:
    """x -> gain * (x - shift) / width + offset, in one feature; 0 where the width is 0.

    ``fill`` stands for missing values, None where there must be none.
    """

    name: str
    fill: float | None
    shift: float = 0.0
    width: float = 1.0
    gain: float = 1.0
    offset: float = 0.0

    n_features = 1

    def values(self, column: Any) -> NDArray[np.float64]:
        """The feature at the rows of a block."""
        found = numbers(column)
        if self.fill is not None:
            found = np.where(np.isnan(found), self.fill, found)
        if self.width == 0:
            return np.zeros(len(found))
        return (found - self.shift) / self.width * self.gain + self.offset


@dataclass(frozen=True)
class Categorical:
    """A feature for each category that the training rows have: 1 where it is that one, else 0."""

    name: str
    fill: str | None
    categories: tuple[str, ...]

    @property
    def n_features(self) -> int:
        """Number of categories."""
        return len(self.categories)

    def codes(self, column: Any) -> NDArray[np.int64]:
        """The category at the rows of a block, -1 for those that the training rows do not have."""
        words = as_words(column)
        if self.fill is not None:
            words = pc.fill_null(words, self.fill)
        found = pc.index_in(words, pa.array(self.categories, pa.string()))
        codes: NDArray[Any] = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
        return codes.astype(np.int64)


Encoder: TypeAlias = Numeric | Categorical


def is_categorical(data: Spooled, name: str, listed_columns: Sequence[str]) -> bool:
    """Whether a column is one of categories: one that is listed, declared, or holds texts.

    Raises
    ------
    DataError
        If nearly all of its texts are numbers.
    """
    column = data.data.column(name)
    if name in listed_columns or name in data.nominal:
        return True
    if not pa.types.is_string(column.type):
        return False
    is_numeric = numeric(column)
    n_numeric = pc.sum(is_numeric).as_py() or 0
    n_words = len(column) - column.null_count
    if n_numeric == n_words:
        return False
    odd = pc.unique(column.filter(pc.fill_null(pc.invert(is_numeric), False))).to_pylist()
    row = first_row(pc.invert(is_numeric))
    if row == 0 and n_numeric == n_words - 1 > 1:
        raise DataError(
            f"{data.origin}, {data.place(row)}: column {shown_word(name)} is {shown_word(odd[0])} "
            "above numbers alone; if this line holds names, set header = true"
        )
    only_infinite = all(word.lower().lstrip("+-") in _NOT_FINITE for word in odd)
    if n_numeric and (only_infinite or n_numeric >= _MOSTLY * n_words):
        remedy = (
            "mend it or drop the column"
            if only_infinite
            else f"mend it, add it to missing_words, or list {shown_word(name)} in categorical"
        )
        raise DataError(
            f"{data.origin}, {data.place(row)}: column {shown_word(name)} is "
            f"{shown_word(odd[0])}, not a finite number as elsewhere in the column; {remedy}"
        )
    return True


def check_numbers(data: Spooled, name: str) -> None:
    """Refuse what is neither a finite number nor missing in a column of numbers.

    Raises
    ------
    DataError
        With the place of the first such value.
    """
    column = data.data.column(name)
    if pa.types.is_string(column.type):
        wrong = pc.invert(numeric(column))
        if pc.any(wrong).as_py():
            raise _not_a_number(data, name, column, first_row(wrong))
    infinite = np.isinf(numbers(column))
    if infinite.any():
        raise _not_a_number(data, name, column, int(np.argmax(infinite)))


def fit_numeric(
    data: Spooled, name: str, rows: NDArray[np.bool_], missing: str, scale: str
) -> Numeric:
    """Fit a column of numbers to the training rows.

    Raises
    ------
    DataError
        If they have no value that could stand for missing ones.
    """
    values = numbers(data.data.column(name))[rows]
    known = values[~np.isnan(values)]
    if not len(known):
        raise DataError(
            f"{data.origin}: column {shown_word(name)} has no value in the training part; add it "
            "to drop"
        )
    fill = _fill(known, missing)
    if len(known) < len(values) and fill is not None:
        values = np.where(np.isnan(values), fill, values)
    with np.errstate(over="ignore"):
        fitted = _fit_scale(name, fill, values, scale)
    if not math.isfinite(fitted.width) or (fitted.width == 0 and values.min() != values.max()):
        raise DataError(
            f"{data.origin}: column {shown_word(name)} has values from {values.min():g} to "
            f"{values.max():g} in the training part, which cannot be scaled in double precision; "
            "mend them, add the column to drop, or set scale to 'none'"
        )
    return fitted


def _fit_scale(name: str, fill: float | None, values: NDArray[Any], scale: str) -> Numeric:
    if scale == "standard":
        try:
            mean = math.fsum(values) / len(values)
            deviation = math.sqrt(math.fsum((values - mean) ** 2) / len(values))
        except OverflowError:
            return Numeric(name, fill, 0.0, math.inf)
        # The rounding of the mean gives a constant a deviation of its own.
        constant = values.min() == values.max()
        return Numeric(name, fill, mean, 0.0 if constant else deviation)
    lowest, highest = float(values.min()), float(values.max())
    if scale == "unit":
        return Numeric(name, fill, lowest, highest - lowest)
    if scale == "minmax":
        return Numeric(name, fill, lowest, highest - lowest, gain=2.0, offset=-1.0)
    return Numeric(name, fill)


def fit_categorical(data: Spooled, name: str, rows: NDArray[np.bool_], missing: str) -> Categorical:
    """Fit a column of categories to the training rows.

    Raises
    ------
    DataError
        If there are too many of them, or none.
    """
    words = as_words(data.data.column(name).filter(pa.array(rows)))
    counts = pc.value_counts(pc.drop_null(words).combine_chunks())
    found = {item["values"]: item["counts"] for item in counts.to_pylist()}
    if len(found) > MAX_CATEGORIES:
        every = len(found) == len(words)
        why = "a different one in every row; it looks like an identifier" if every else "too many"
        raise DataError(
            f"{data.origin}: column {shown_word(name)} holds texts, {len(found)} distinct ones in "
            f"the training part ({why}); add it to drop"
        )
    if not found:
        raise DataError(
            f"{data.origin}: column {shown_word(name)} has no value in the training part; add it "
            "to drop"
        )
    numeric_words = all(map(is_number, found))
    categories = tuple(
        sorted(found, key=(lambda word: (float(word), word)) if numeric_words else str)
    )
    # A mean of texts there is none.
    fill = None
    if missing in ("mean", "median", "most_frequent"):
        fill = max(categories, key=lambda word: found[word])
    return Categorical(name, fill, categories)


def as_words(column: Any) -> Any:
    """Texts; numbers in words."""
    if pa.types.is_string(column.type):
        return column
    values = [None if value is None else in_words(value) for value in column.to_pylist()]
    return (
        pa.chunked_array([values], pa.string())
        if hasattr(column, "chunks")
        else pa.array(values, pa.string())
    )


def numbers_rows(data: Spooled, name: str) -> bool:
    """Whether a column of numbers does nothing but number the rows: n, n + 1, ..."""
    values = numbers(data.data.column(name))
    return len(values) > 2 and bool((np.diff(values) == 1).all())


def first_row(which: Any) -> int:
    """The first row at which an Arrow array is true."""
    return int(pc.index(pc.fill_null(which, False), pa.scalar(True)).as_py())


def told(encoders: Sequence[Encoder]) -> str:
    """What became of the columns, in a line."""
    categorical = [each for each in encoders if isinstance(each, Categorical)]
    n_features = sum(each.n_features for each in encoders)
    n_numeric = len(encoders) - len(categorical)
    parts = [f"{n_numeric} of numbers"] if n_numeric else []
    if categorical:
        names = listed([f"{each.name} ({each.n_features})" for each in categorical])
        parts.append(f"{len(categorical)} of categories, one-hot: {names}")
    return f"features: {n_features} from {len(encoders)} columns, {'; '.join(parts)}"


def _fill(known: NDArray[np.float64], missing: str) -> float | None:
    if missing == "mean":
        return math.fsum(known) / len(known)
    if missing == "median":
        return float(np.median(known))
    if missing == "most_frequent":
        values, counts = np.unique(known, return_counts=True)
        return float(values[np.argmax(counts)])
    return None


def _not_a_number(data: Spooled, name: str, column: Any, row: int) -> DataError:
    return DataError(
        f"{data.origin}, {data.place(row)}: column {shown_word(name)} is "
        f"{shown_word(str(column[row].as_py()))}, not a finite number"
    )
