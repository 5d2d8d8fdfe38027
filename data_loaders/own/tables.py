"""Tables as datasets: which column is what, and the blocks of features that follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from marginbench.data_loaders.content import Labels, Matrix, Part
from marginbench.data_loaders.errors import DataError, suggest
from marginbench.data_loaders.own import columns, rows
from marginbench.data_loaders.own.blocks import Spooled, listed, shown_word
from marginbench.data_loaders.own.classes import read_target
from marginbench.data_loaders.own.columns import Categorical, Encoder, Numeric
from marginbench.data_loaders.own.numerals import is_number
from marginbench.data_loaders.own.options import Options
from marginbench.data_loaders.own.rows import Role, Source

#: Names of the column of the classes, the likeliest first; in any case.
TARGET_NAMES = ("target", "class", "label", "y")
#: Features of which fewer are not zero are stored as sparse rows.
SPARSE_BELOW = 0.05
#: Features of one dataset.
MAX_FEATURES = 1_000_000
#: Classes that are numbers, of which more are perhaps none.
_MANY_CLASSES = 20
#: Numbers of a block of features.
_BLOCK_NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that is needed to write a dataset.

    Attributes
    ----------
    n_features : int
    sparse : bool
    decided : list of str
    """

    sources: list[Source]
    labels: list[dict[Role, Labels]]
    encoders: list[Encoder]
    n_features: int
    sparse: bool
    norm: bool
    decided: list[str]

    def parts(self, role: Role) -> Iterator[Part]:
        """The rows of a part, block by block, float32.

        Raises
        ------
        DataError
            If a feature is too large for float32.
        """
        for source, labels in zip(self.sources, self.labels, strict=True):
            done = 0
            for batch, numbers in source.blocks(role):
                step = max(1, _BLOCK_NUMBERS // self.n_features)
                for start in range(0, len(numbers), step):
                    piece = batch.slice(start, step)
                    y = labels[role][done : done + len(piece)]
                    done += len(piece)
                    yield Part(self._features(piece, source, numbers[start:]), y)

    def _features(self, batch: Any, source: Source, numbers: NDArray[np.intp]) -> Matrix:
        X = _sparse(self.encoders, batch) if self.sparse else _dense(self.encoders, batch)
        if self.norm:
            X = unit_rows(X)
        with np.errstate(over="ignore"):  # looked for below
            found = X.astype(np.float32)
        values = found.data if self.sparse else found
        if not np.isfinite(values).all():
            where = f"{source.data.origin}, {source.data.place(int(numbers[0]))} or below"
            raise DataError(f"{where}: a feature is too large for float32; scale or drop it")
        return found


def prepare(data: Sequence[Spooled], options: Options) -> Prepared:
    """Decide what the columns are and fit them to the training rows.

    Parameters
    ----------
    data : sequence of Spooled
        One table, or a training and a test table of the same columns.
    options : Options

    Raises
    ------
    DataError
    """
    first = data[0]
    for other in data[1:]:
        _check_same_columns(first, other)
    chosen = _chosen_columns(first, options)
    listed_columns = [column_of(first, each, "categorical") for each in options.categorical]
    kinds = {name: columns.is_categorical(first, name, listed_columns) for name in chosen.features}
    for table in data:
        for name in (name for name, categorical in kinds.items() if not categorical):
            columns.check_numbers(table, name)
    used = [chosen.target, *chosen.features]
    kept, missing = _kept_rows(data, used, chosen.target, options)
    targets = [
        read_target(each.data.column(chosen.target), each.origin, chosen.target) for each in data
    ]
    sources, split = rows.divide(data, targets, kept, replace(options, split=chosen.split))
    labels, classes = rows.label(sources, options.positive)
    scale = options.scale or "standard"
    train = sources[0].train
    encoders: list[Encoder] = [
        columns.fit_categorical(first, name, train, options.missing)
        if categorical
        else columns.fit_numeric(first, name, train, options.missing, scale)
        for name, categorical in kinds.items()
    ]
    n_features = sum(each.n_features for each in encoders)
    if n_features > MAX_FEATURES:
        raise DataError(
            f"{first.origin}: the columns make {n_features} features; at most {MAX_FEATURES} are "
            "stored, drop the columns with the most categories"
        )
    hints = [] if first.named else ["header: none; columns are numbered"]
    n_classes = len(targets[0].words)
    if n_classes > _MANY_CLASSES and all(map(is_number, targets[0].words)):
        hints.append(f"hint: {n_classes} classes that are numbers; is it a regression target?")
    hints += [
        f"hint: column {shown_word(name)} only numbers the rows; add it to drop"
        for name, categorical in kinds.items()
        if not categorical and columns.numbers_rows(first, name)
    ]
    dropped = [f"dropped columns: {listed(chosen.dropped)}"] if chosen.dropped else []
    return Prepared(
        sources=sources,
        labels=labels,
        encoders=encoders,
        n_features=n_features,
        sparse=len(encoders) < SPARSE_BELOW * n_features,
        norm=scale == "norm",
        decided=[
            f"target: column {shown_word(chosen.target)}: {classes}",
            split,
            columns.told(encoders),
            *dropped,
            f"missing values: {missing}",
            f"scale: {scale}{_SCALES[scale]}",
            *hints,
        ],
    )


#: What a scale does, in words.
_SCALES = {
    "standard": " (columns of numbers: mean 0 and standard deviation 1 in the training part)",
    "minmax": " (columns of numbers: from -1 to 1 in the training part)",
    "unit": " (columns of numbers: from 0 to 1 in the training part)",
    "norm": " (rows of Euclidean norm 1)",
    "none": "",
}


@dataclass(frozen=True)
class _Chosen:
    """The columns by what they are."""

    target: str
    split: str
    features: list[str]
    dropped: list[str]


def column_of(data: Spooled, column: str | int, option: str) -> str:
    """The name of a column that is given by name or number.

    Raises
    ------
    DataError
        If there is none.
    """
    names = data.names
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


def unit_rows(X: Any) -> Any:
    """Rows of Euclidean norm 1; a row of zeros stays one."""
    if isinstance(X, csr_matrix):
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        scaled = X.copy()
        scaled.data /= np.repeat(np.where(norms == 0, 1.0, norms), np.diff(X.indptr))
        return scaled
    norms = np.sqrt((X**2).sum(axis=1, keepdims=True))
    return X / np.where(norms == 0, 1.0, norms)


def _nearest(column: str, names: Sequence[str]) -> str:
    hint = suggest(column, names)
    return hint if hint.startswith(" (did") else f" (columns: {listed(list(names), 12)})"


def _chosen_columns(data: Spooled, options: Options) -> _Chosen:
    dropped = [column_of(data, each, "drop") for each in options.drop]
    split = "" if options.split == "" else column_of(data, options.split, "split")
    left = [name for name in data.names if name not in dropped and name != split]
    if options.target != "":
        target = column_of(data, options.target, "target")
    else:
        target = _default_target(data, left)
    if target not in left:
        raise DataError(f"{data.origin}: the target {shown_word(target)} is dropped as well")
    features = [name for name in left if name != target]
    if not features:
        raise DataError(f"{data.origin}: there is no column beside the target {shown_word(target)}")
    return _Chosen(target, split, features, dropped)


def _default_target(data: Spooled, names: Sequence[str]) -> str:
    if not names:
        raise DataError(f"{data.origin}: all columns are dropped")
    if data.target:
        return data.target
    folded = {name.casefold(): name for name in reversed(names)}
    return next((folded[name] for name in TARGET_NAMES if name in folded), names[-1])


def _check_same_columns(train: Spooled, test: Spooled) -> None:
    for name in train.names:
        if name not in test.names:
            raise DataError(
                f"{test.origin}: the column {shown_word(name)} of {train.origin} is missing"
                f"{_nearest(name, test.names)}"
            )


def _kept_rows(
    data: Sequence[Spooled], used: Sequence[str], target: str, options: Options
) -> tuple[list[NDArray[np.bool_]], str]:
    """Where rows are that are not left out, and what became of missing values in words."""
    kept = [np.ones(each.n_rows, dtype=bool) for each in data]
    n_missing = 0
    names: list[str] = []
    for table, rows_kept in zip(data, kept, strict=True):
        for name in used:
            column = table.data.column(name)
            if not column.null_count:
                continue
            _check_missing(table, name, target, options.missing)
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


def _check_missing(data: Spooled, name: str, target: str, missing: str) -> None:
    if missing == "drop" or (missing != "error" and name != target):
        return
    row = columns.first_row(pc.is_null(data.data.column(name)))
    remedies = "'drop'" if name == target else "'drop', 'mean', 'median' or 'most_frequent'"
    raise DataError(
        f"{data.origin}, {data.place(row)}: column {shown_word(name)} has no value; set missing to "
        f"{remedies}"
    )


def _dense(encoders: Sequence[Encoder], batch: Any) -> NDArray[np.float64]:
    X = np.zeros((len(batch), sum(each.n_features for each in encoders)))
    start = 0
    for encoder in encoders:
        column = batch.column(encoder.name)
        if isinstance(encoder, Numeric):
            X[:, start] = encoder.values(column)
        else:
            codes = encoder.codes(column)
            known = np.flatnonzero(codes >= 0)
            X[known, start + codes[known]] = 1.0
        start += encoder.n_features
    return X


def _sparse(encoders: Sequence[Encoder], batch: Any) -> csr_matrix:
    """The same as sparse rows: one entry of each column in a row, at most."""
    n_rows = len(batch)
    indices = np.empty((n_rows, len(encoders)), dtype=np.int64)
    values = np.empty((n_rows, len(encoders)))
    start = 0
    for k, encoder in enumerate(encoders):
        column = batch.column(encoder.name)
        if isinstance(encoder, Categorical):
            codes = encoder.codes(column)
            indices[:, k], values[:, k] = start + np.maximum(codes, 0), codes >= 0
        else:
            indices[:, k], values[:, k] = start, encoder.values(column)
        start += encoder.n_features
    indptr = np.arange(n_rows + 1) * len(encoders)
    X = csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(n_rows, start))
    X.eliminate_zeros()
    return X
