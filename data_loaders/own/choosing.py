"""Which column of a table is what, and which of its rows are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import DataError, suggest
from . import columns
from .blocks import Spooled, Table, listed, shown_word
from .options import Options

#: Names of the column of the classes, the likeliest first; in any case.
TARGET_NAMES = ("target", "class", "label", "y")


@dataclass(frozen=True)
class Chosen:
    """The columns of a table by what they are.

    Attributes
    ----------
    target : str
    split : str
        The column that says which rows are the test part; empty if there is none.
    features, dropped : list of str
    """

    target: str
    split: str
    features: list[str]
    dropped: list[str]


def choose(data: Spooled, options: Options) -> Chosen:
    """Decide which column is what.

    Raises
    ------
    DataError
        If a column that the options name is not there, or no features are left.
    """
    dropped = [column_of(data, each, "drop") for each in options.drop]
    split = "" if options.split == "" else column_of(data, options.split, "split")
    left = [name for name in data.names if name not in (*dropped, split)]
    # An index names the rows, unless a user says that it holds the classes.
    index = [name for name in left if name in data.index]
    if options.target != "":
        target = column_of(data, options.target, "target")
    else:
        target = _default_target(data, [name for name in left if name not in index])
    if target not in left:
        raise DataError(f"{data.origin}: the target {shown_word(target)} is dropped as well")
    index = [name for name in index if name != target]
    left = [name for name in left if name not in index]
    dropped += [f"{name} (the index of the data frame)" for name in index]
    # A separator at the end of every line makes such a column.
    empty = [name for name in left if name != target and _is_empty(data, name)]
    dropped += [f"{name} (no values)" for name in empty]
    features = [name for name in left if name != target and name not in empty]
    if not features:
        raise DataError(f"{data.origin}: there is no column beside the target {shown_word(target)}")
    return Chosen(target, split, features, dropped)


def column_of(data: Spooled | Table, column: str | int, option: str) -> str:
    """The name of a column that is given by name or number, a name that is a number first.

    Raises
    ------
    DataError
        If there is none.
    """
    names = data.names
    if isinstance(column, int) and str(column) in names:
        return str(column)
    if isinstance(column, int):
        if not 1 <= abs(column) <= len(names):
            raise DataError(
                f"{data.origin}: {option} = {column}, but there are {len(names)} columns"
            )
        return names[column - 1 if column > 0 else column]
    if column not in names:
        raise DataError(
            f"{data.origin}: {option} = {column!r}: there is no such column"
            f"{_nearest(column, names)}"
        )
    return column


def check_same_columns(train: Spooled, test: Spooled) -> None:
    """Refuse a test table without a column of the training table, or of another width.

    A test table with names may have further columns, and they may stand in another order.

    Raises
    ------
    DataError
    """
    if not train.named and not test.named and len(train.names) != len(test.names):
        raise DataError(
            f"{test.origin}: {len(test.names)} columns, but {train.origin} has "
            f"{len(train.names)}; without names they must be the same ones"
        )
    for name in train.names:
        if name not in test.names:
            raise DataError(
                f"{test.origin}: the column {shown_word(name)} of {train.origin} is missing"
                f"{_nearest(name, test.names)}"
            )


def kept_rows(
    data: Sequence[Spooled], chosen: Chosen, options: Options
) -> tuple[list[NDArray[np.bool_]], str]:
    """Where rows are that are not left out, and what became of missing values in words.

    Raises
    ------
    DataError
        If a value is missing that must not be.
    """
    kept = [np.ones(each.n_rows, dtype=bool) for each in data]
    n_missing = 0
    names: list[str] = []
    for table, rows_kept in zip(data, kept, strict=True):
        for name in (chosen.target, *chosen.features):
            column = table.data.column(name)
            if not column.null_count:
                continue
            _check_missing(table, name, chosen.target, options.missing)
            n_missing += column.null_count
            names.append(name)
            if options.missing == "drop":
                rows_kept &= ~pc.is_null(column).to_numpy()
    if not n_missing:
        return kept, "none"
    where = f"{n_missing} in {listed(list(dict.fromkeys(names)))}"
    if options.missing == "drop":
        n_dropped = sum(int((~each).sum()) for each in kept)
        return kept, f"{where}; {n_dropped} rows with them left out"
    words = {
        "mean": "the mean, or the most frequent category,",
        "median": "the median, or the most frequent category,",
        "most_frequent": "the most frequent value",
    }[options.missing]
    return kept, f"{where}; filled in with {words} of the training part"


def _default_target(data: Spooled, names: Sequence[str]) -> str:
    if not names:
        raise DataError(f"{data.origin}: all columns are dropped")
    if data.target:
        return data.target
    folded = {name.casefold(): name for name in reversed(names)}
    return next((folded[name] for name in TARGET_NAMES if name in folded), names[-1])


def _nearest(column: str, names: Sequence[str]) -> str:
    hint = suggest(column, names)
    return hint if hint.startswith(" (did") else f" (columns: {listed(list(names), 12)})"


def _check_missing(data: Spooled, name: str, target: str, missing: str) -> None:
    if missing == "drop" or (missing != "error" and name != target):
        return
    row = columns.first_row(pc.is_null(data.data.column(name)))
    remedies = "'drop'" if name == target else "'drop', 'mean', 'median' or 'most_frequent'"
    raise DataError(
        f"{data.origin}, {data.place(row)}: column {shown_word(name)} has no value; set missing to "
        f"{remedies}, in dataset_params of a study or by --option of 'marginbench data import'"
    )


def _is_empty(data: Spooled, name: str) -> bool:
    return bool(data.data.column(name).null_count == data.n_rows)
