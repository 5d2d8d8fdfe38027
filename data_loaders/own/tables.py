"""Tables as datasets: which column is what, and the blocks of features that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..content import Labels, Matrix, Part
from ..errors import DataError
from . import columns, rows
from .blocks import (
    SparseRows,
    Spooled,
    Table,
    listed,
    row_place,
    shown_word,
)
from .choosing import (
    Chosen,
    check_same_columns,
    choose,
    column_of,
    kept_rows,
)
from .classes import read_target
from .columns import Categorical, Encoder, Numeric
from .numerals import cleaned, is_number, numeric
from .options import Options
from .rows import Role, Source

#: Features of which fewer are not zero are stored as sparse rows.
SPARSE_BELOW = 0.05
#: Features of one dataset.
MAX_FEATURES = 1_000_000
#: Classes that are numbers, of which more are perhaps none.
_MANY_CLASSES = 20
#: Categories of which more, in more than half of the rows, are perhaps none.
_MANY_TEXTS = 20
#: Texts are perhaps numbers if so many of them are plain ones and few words stand between them, or
#: if so many are numbers with signs around them.
_HALF, _FEW_WORDS, _MOST = 0.5, 5, 0.8
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


def with_numbers(source: Table | SparseRows, options: Options) -> Table | SparseRows:
    """The same rows with numbers in place of the texts of numeric columns, null for other texts."""
    if not options.numeric or isinstance(source, SparseRows):
        return source
    numeric = [column_of(source, each, "numeric") for each in options.numeric]

    def batches() -> Iterator[Any]:
        for batch in source.batches:
            for name in numeric:
                column = batch.column(name)
                if pa.types.is_string(column.type):
                    place = batch.schema.get_field_index(name)
                    batch = batch.set_column(place, name, cleaned(column, options.decimal))
            yield batch

    return replace(source, batches=batches())


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
        check_same_columns(first, other)
    chosen = choose(first, options)
    kinds = _kinds(data, chosen, options)
    kept, missing = kept_rows(data, chosen, options)
    targets = [
        read_target(each.data.column(chosen.target), each.origin, chosen.target) for each in data
    ]
    sources, split = rows.divide(data, targets, kept, replace(options, split=chosen.split))
    labels, classes = rows.label(sources, options.positive)
    scale = options.scale or "standard"
    encoders = _fit(sources[0], kinds, options.missing, scale)
    n_features = sum(each.n_features for each in encoders)
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
            *([f"dropped columns: {listed(chosen.dropped)}"] if chosen.dropped else []),
            f"missing values: {missing}",
            f"scale: {scale}{_SCALES[scale]}",
            *_hints(sources[0], encoders, options),
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


def _kinds(data: Sequence[Spooled], chosen: Chosen, options: Options) -> dict[str, bool]:
    """Of each feature's column whether it holds categories."""
    first = data[0]
    listed_columns = [column_of(first, each, "categorical") for each in options.categorical]
    kinds = {name: columns.is_categorical(first, name, listed_columns) for name in chosen.features}
    for table in data:
        for name, categorical in kinds.items():
            if not categorical:
                columns.check_numbers(table, name)
    return kinds


def _fit(source: Source, kinds: Mapping[str, bool], missing: str, scale: str) -> list[Encoder]:
    """The columns fitted to the training rows, which are all of the first source."""
    data, train = source.data, source.train
    encoders: list[Encoder] = [
        columns.fit_categorical(data, name, train, missing)
        if categorical
        else columns.fit_numeric(data, name, train, missing, scale)
        for name, categorical in kinds.items()
    ]
    n_features = sum(each.n_features for each in encoders)
    if n_features > MAX_FEATURES:
        raise DataError(
            f"{data.origin}: the columns make {n_features} features; at most {MAX_FEATURES} are "
            "stored, drop the columns with the most categories"
        )
    return encoders


def _hints(source: Source, encoders: Sequence[Encoder], options: Options) -> Iterator[str]:
    """What is probably not meant."""
    data, target = source.data, source.target
    if not data.named and not data.target:
        yield "header: none; columns are numbered"
    elif data.place is not row_place and all(map(is_number, data.names)):
        yield "hint: the first line is read as names; set header = false if it is a row"
    if len(target.words) > _MANY_CLASSES and all(map(is_number, target.words)):
        yield f"hint: {len(target.words)} classes that are numbers; is it a regression target?"
    listed_columns = {column_of(data, each, "categorical") for each in options.categorical}
    perhaps = {
        each.name: option
        for each in encoders
        if isinstance(each, Categorical) and each.name not in listed_columns | data.nominal
        if (option := _read_as_numbers(data, each.name))
    }
    for option in dict.fromkeys(perhaps.values()):
        names = [name for name, found in perhaps.items() if found == option]
        yield f"hint: texts that look like numbers in {listed(names)}: {option.format(names)}"
    for encoder in encoders:
        name = shown_word(encoder.name)
        if encoder.name in perhaps:
            continue
        if isinstance(encoder, Numeric):
            if columns.numbers_rows(data, encoder.name):
                yield f"hint: column {name} only numbers the rows; add it to drop"
        elif encoder.n_features > max(_MANY_TEXTS, source.train.sum() / 2):
            yield (
                f"hint: column {name} holds {encoder.n_features} distinct texts, such as "
                f"{shown_word(encoder.categories[0])}; are they numbers, dates or identifiers?"
            )


def _read_as_numbers(data: Spooled, name: str) -> str:
    """The options that read a column of texts as numbers; empty if they are none."""
    column = data.data.column(name)
    if not pa.types.is_string(column.type):
        return ""
    texts = pc.drop_null(column)
    odd = pc.unique(texts.filter(pc.invert(numeric(texts)))).to_pylist()
    if len(odd) <= _FEW_WORDS and pc.mean(numeric(texts)).as_py() >= _HALF:
        return f"add {', '.join(map(shown_word, odd))} to missing_words"
    for decimal in ".,":
        # In "1,234" the comma stands between thousands, in "1,5" before the decimals.
        if pc.mean(pc.is_valid(cleaned(texts, decimal))).as_py() < _MOST:
            continue
        other = "." if decimal == "," else ","
        groups = pc.match_substring_regex(texts, rf"\{other}\d{{3}}(\D|$)")
        plain = pc.invert(pc.match_substring(texts, other))
        if pc.all(pc.or_(groups, plain)).as_py():
            return "set numeric = {}" + (", decimal = ','" if decimal == "," else "")
    return ""


def unit_rows(X: Any) -> Any:
    """Rows of Euclidean norm 1; a row of zeros stays one."""
    if isinstance(X, csr_matrix):
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        scaled = X.copy()
        scaled.data /= np.repeat(np.where(norms == 0, 1.0, norms), np.diff(X.indptr))
        return scaled
    norms = np.sqrt((X**2).sum(axis=1, keepdims=True))
    return X / np.where(norms == 0, 1.0, norms)


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
