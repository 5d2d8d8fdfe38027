"""From tables and sparse rows to content: which column is what, and the features that it makes.

All that is estimated comes from the training rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..content import Content, Part, nonfinite
from ..errors import DataError, suggest
from ..transforms import Scale, moments, unit_rows
from .classes import read_target
from .options import Options
from .splitting import MANY_CLASSES, Rows, divide, label
from .tables import SparseRows, Table, row_location
from .words import NUMBER, in_words, is_number, listed, shown_word

#: Names of the column of the classes, the likeliest first; in any case.
TARGET_NAMES = ("target", "class", "label", "y")
#: Categories of a column; more of them are names or numbers of rows.
MAX_CATEGORIES = 1000
#: Features of one dataset.
MAX_FEATURES = 1_000_000
#: Features of which fewer are not zero are stored as sparse rows.
SPARSE_BELOW = 0.05
#: Features of sparse rows that are stored dense because they are scaled: zeros do not stay zeros.
MAX_DENSE = 5000
#: Options that say something of columns, which sparse rows do not have.
_OF_COLUMNS = ("target", "categorical", "numeric", "drop", "split")
#: A column of texts that are numbers in this share of the rows is one of numbers with a mistake.
_MOSTLY = 0.9
_NOT_FINITE = ("inf", "infinity", "nan")
#: Categories of which more, in more than half of the rows, are perhaps none.
_MANY_TEXTS = 20
#: Texts are perhaps numbers if so many of them are plain ones and few words stand between them, or
#: if so many are numbers with signs around them.
_HALF, _FEW_WORDS, _MOST = 0.5, 5, 0.8
_DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}\b")
#: What a scale does to a table, in words.
_SCALES = {
    "standard": " (columns of numbers: mean 0 and standard deviation 1 in the training part)",
    "minmax": " (columns of numbers: from -1 to 1 in the training part)",
    "unit": " (columns of numbers: from 0 to 1 in the training part)",
    "norm": " (rows of Euclidean norm 1)",
    "none": "",
}


def content_of(data: Sequence[Table | SparseRows], options: Options) -> tuple[Content, list[str]]:
    """Decide what the columns are, split, and make float32 features and labels.

    The data are one table or sparse rows, or a training and a test one. The second result is what
    was decided, a line each.
    """
    tables = [each for each in data if isinstance(each, Table)]
    if not tables:
        return _content_of_sparse([each for each in data if isinstance(each, SparseRows)], options)
    if len(tables) < len(data):
        raise DataError(f"{data[1].origin}: one part is a table and the other one sparse rows")
    for each in tables:
        if not each.n_rows:
            raise DataError(f"{each.origin}: there are no rows; is this the right file?")
    # A test table may have them in another order.
    numeric = tuple(_column_of(tables[0], each, "numeric") for each in options.numeric)
    options = replace(options, numeric=numeric)
    tables = [_with_numbers(each, options) for each in tables]
    first = tables[0]
    for other in tables[1:]:
        _check_same_columns(first, other)
    chosen = _choose(first, options)
    for each in tables:
        _check_types(each, [chosen.target, *filter(None, [chosen.split]), *chosen.features])
    kinds = _kinds(tables, chosen.features, options)
    kept, missing = _kept_rows(tables, chosen, options)
    targets = [read_target(each.data[chosen.target], each.origin, chosen.target) for each in tables]
    train, test, split = divide(tables, targets, kept, replace(options, split=chosen.split))
    y_train, y_test, classes = label(train, test, options.positive)
    scale = options.scale or "standard"
    encoders = [
        _fit_categorical(train, name, options.missing)
        if categorical
        else _fit_numeric(train, name, options.missing, scale)
        for name, categorical in kinds.items()
    ]
    n_features = sum(each.n_features for each in encoders)
    if n_features > MAX_FEATURES:
        raise DataError(
            f"{first.origin}: the columns make {n_features} features; at most {MAX_FEATURES} are "
            "stored, drop the columns with the most categories"
        )
    norm = scale == "norm"
    content = Content(
        Part(_features(encoders, train, norm), y_train),
        Part(_features(encoders, test, norm), y_test),
    )
    return content, [
        f"target: column {shown_word(chosen.target)}: {classes}",
        split,
        _describe(encoders),
        *([f"dropped columns: {listed(chosen.dropped)}"] if chosen.dropped else []),
        f"missing values: {missing}",
        f"scale: {scale}{_SCALES[scale]}",
        *_hints(first, train, encoders, options),
    ]


def _content_of_sparse(data: Sequence[SparseRows], options: Options) -> tuple[Content, list[str]]:
    origin = data[0].origin
    for option in _OF_COLUMNS:
        if getattr(options, option) not in ("", ()):
            raise DataError(f"{origin}: sparse rows have no columns; remove {option}")
    for each in data:
        if not each.n_rows:
            raise DataError(f"{each.origin}: there are no rows; is this the right file?")
        if np.isnan(each.X.data).any():
            raise DataError(f"{each.origin}: a feature is NaN; fill in what sparse rows miss")
    targets = [
        read_target(pa.chunked_array([each.words], pa.string()), each.origin, "label")
        for each in data
    ]
    kept = [np.ones(each.n_rows, dtype=bool) for each in data]
    train, test, split = divide(data, targets, kept, options)
    y_train, y_test, classes = label(train, test, options.positive)
    n_features = 1 + max(int(each.X.indices.max(initial=0)) for each in data)
    scale = options.scale or "none"
    sparse = scale in ("none", "norm")
    if not sparse and n_features > MAX_DENSE:
        raise DataError(
            f"{origin}: scale = {scale!r} would make {n_features} sparse features dense (at most "
            f"{MAX_DENSE}); use 'norm' or 'none'"
        )
    rows = (cast(SparseRows, part.data).X[part.rows] for part in (train, test))
    X_train, X_test = (
        csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)) for X in rows
    )
    if scale == "norm":
        X_train, X_test = unit_rows(X_train), unit_rows(X_test)
    elif not sparse:
        fitted = Scale.fit(X_train, scale)
        X_train, X_test = fitted.apply(X_train), fitted.apply(X_test)
    content = Content(
        Part(_as_float32(X_train, train), y_train), Part(_as_float32(X_test, test), y_test)
    )
    return content, [
        f"target: the label: {classes}",
        split,
        f"features: {n_features}, {'sparse' if sparse else 'dense'}",
        f"scale: {scale}",
    ]


def _as_float32(X: Any, part: Rows) -> Any:
    """The features as they are stored; refuses what is then too large."""
    with np.errstate(over="ignore"):
        X = X.astype(np.float32, copy=False)
    position = nonfinite(X)
    if position is not None:
        where = part.data.location(int(part.rows[position[0]]))
        remedy = "; scale or drop it" if isinstance(part.data, Table) else ""
        raise DataError(f"{part.data.origin}, {where}: a feature is too large for float32{remedy}")
    return X


# Which column is what, and which rows are left out


@dataclass(frozen=True)
class _Chosen:
    """The columns of a table by what they are; `split` is empty if there is none."""

    target: str
    split: str
    features: list[str]
    dropped: list[str]


def _with_numbers(table: Table, options: Options) -> Table:
    """The table with numbers in place of the texts of numeric columns, null for other texts."""
    data = table.data
    for name in map(str, options.numeric):
        if name not in table.names:
            continue  # refused with the other columns
        column = data[name]
        if pa.types.is_string(column.type):
            values = cleaned(column, options.decimal)
            if values.null_count == len(values) > column.null_count:
                example = pc.drop_null(column)[0].as_py()
                raise DataError(
                    f"{table.origin}: column {shown_word(name)} is listed in numeric, but none of "
                    f"its texts is a number, such as {shown_word(example)}"
                )
            data = data.set_column(data.schema.get_field_index(name), name, values)
    return replace(table, data=data)


def _choose(table: Table, options: Options) -> _Chosen:
    dropped = [_column_of(table, each, "drop") for each in options.drop]
    split = "" if options.split == "" else _column_of(table, options.split, "split")
    left = [name for name in table.names if name not in (*dropped, split)]
    # An index names the rows, unless a user says that it holds the classes.
    index = [name for name in left if name in table.index]
    if options.target != "":
        target = _column_of(table, options.target, "target")
    else:
        target = _default_target(table, [name for name in left if name not in index])
    if target not in left:
        raise DataError(f"{table.origin}: the target {shown_word(target)} is dropped as well")
    index = [name for name in index if name != target]
    left = [name for name in left if name not in index and name != target]
    # A separator at the end of every line makes such a column.
    empty = [name for name in left if table.data[name].null_count == table.n_rows]
    dropped += [f"{name} (the index of the data frame)" for name in index]
    dropped += [f"{name} (no values)" for name in empty]
    features = [name for name in left if name not in empty]
    if not features:
        raise DataError(
            f"{table.origin}: there is no column beside the target {shown_word(target)}"
        )
    return _Chosen(target, split, features, dropped)


def _default_target(table: Table, names: Sequence[str]) -> str:
    if not names:
        raise DataError(f"{table.origin}: all columns are dropped")
    if table.target:
        return table.target
    folded = {name.casefold(): name for name in reversed(names)}
    return next((folded[name] for name in TARGET_NAMES if name in folded), names[-1])


def _column_of(table: Table, column: str | int, option: str) -> str:
    """The name of a column that is given by name or number, a name that is a number first."""
    names = table.names
    if isinstance(column, int) and str(column) in names:
        return str(column)
    if isinstance(column, int):
        if not 1 <= abs(column) <= len(names):
            raise DataError(
                f"{table.origin}: {option} = {column}, but there are {len(names)} columns"
            )
        return names[column - 1 if column > 0 else column]
    if column not in names:
        raise DataError(
            f"{table.origin}: {option} = {column!r}: there is no such column"
            f"{_nearest(column, names)}"
        )
    return column


def _nearest(column: str, names: Sequence[str]) -> str:
    hint = suggest(column, names)
    return hint if hint.startswith(" (did") else f" (columns: {listed(list(names), 12)})"


def _check_same_columns(train: Table, test: Table) -> None:
    """Refuse a test table without a column of the training table, or of another width.

    A test table with names may have further columns, and they may stand in another order.
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


def _check_types(table: Table, names: Sequence[str]) -> None:
    """Refuse columns that are neither numbers nor texts, such as dates and lists."""
    for name in names:
        kind = table.data[name].type
        if not (pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_float64(kind)):
            raise DataError(
                f"{table.origin}: column {shown_word(name)} is of type {kind}; make it numbers or "
                "texts, or add it to drop"
            )


def _kept_rows(
    data: Sequence[Table], chosen: _Chosen, options: Options
) -> tuple[list[NDArray[np.bool_]], str]:
    """Where rows are that are not left out, and what became of missing values in words."""
    missing = options.missing
    kept = [np.ones(each.n_rows, dtype=bool) for each in data]
    n_missing = 0
    names: dict[str, None] = {}
    for table, rows_kept in zip(data, kept, strict=True):
        for name in (chosen.target, *chosen.features):
            column = table.data[name]
            if not column.null_count:
                continue
            if missing == "error" or (missing != "drop" and name == chosen.target):
                remedies = "'drop'"
                if name != chosen.target:
                    remedies += ", 'mean', 'median' or 'most_frequent'"
                what = "number" if name in options.numeric else "value"
                raise DataError(
                    f"{table.origin}, {table.location(_first_row(pc.is_null(column)))}: column "
                    f"{shown_word(name)} has no {what}; set missing to {remedies}, in "
                    "dataset_params of a study or by --option of 'marginbench data import'"
                )
            n_missing += column.null_count
            names[name] = None
            if missing == "drop":
                rows_kept &= ~pc.is_null(column).to_numpy()
    if not n_missing:
        return kept, "none"
    where = f"{n_missing} in {listed(list(names))}"
    if missing == "drop":
        n_dropped = sum(int((~each).sum()) for each in kept)
        return kept, f"{where}; {n_dropped} rows with them left out"
    words = {
        "mean": "the mean, or the most frequent category,",
        "median": "the median, or the most frequent category,",
        "most_frequent": "the most frequent value",
    }[missing]
    return kept, f"{where}; filled in with {words} of the training part"


# Numbers and categories


def numeric(texts: Any) -> Any:
    """Which texts of an Arrow array are decimal numbers; null where the text is."""
    return pc.match_substring_regex(texts, f"^{NUMBER}$")


def numbers(column: Any) -> NDArray[np.float64]:
    """The numbers of an Arrow column of decimal numbers as texts, or of numbers; NaN for null.

    What is too large for float64 becomes infinite.
    """
    try:
        values = pc.fill_null(pc.cast(column, pa.float64(), safe=False), math.nan)
        return np.asarray(values.to_numpy())
    except pa.ArrowInvalid:
        # A sign before, a point at the end: forms that Arrow does not know.
        texts = column.to_pylist()
        return np.array([math.nan if text is None else float(text) for text in texts])


def cleaned(texts: Any, decimal: str) -> Any:
    """Texts such as "1,234.5", "45 %" or "$12" as decimal numbers; null for all others.

    `decimal`, "." or ",", is what stands before the decimals; the other one stands between
    thousands, and nowhere else.
    """
    thousands = "," if decimal == "." else "."
    plain = pc.replace_substring_regex(texts, r"[\s\x{a0}\x{202f}%'$€£¥]", "")
    grouped = pc.match_substring_regex(
        plain, rf"^[-+]?[1-9]\d{{0,2}}(\{thousands}\d{{3}})+(\{decimal}\d*)?$"
    )
    plain = pc.if_else(grouped, pc.replace_substring(plain, thousands, ""), plain)
    # What stands elsewhere makes no number.
    plain = pc.replace_substring(pc.replace_substring(plain, thousands, "_"), decimal, ".")
    return pc.if_else(numeric(plain), plain, pa.scalar(None, pa.string()))


def _kinds(data: Sequence[Table], features: Sequence[str], options: Options) -> Mapping[str, bool]:
    """Of each feature's column whether it holds categories."""
    named = [_column_of(data[0], each, "categorical") for each in options.categorical]
    kinds = {
        name: name in named or name in data[0].nominal or _holds_texts(data[0], name)
        for name in features
    }
    for table in data:
        for name in features:
            if not kinds[name]:
                _check_numbers(table, name)
    return kinds


def _holds_texts(table: Table, name: str) -> bool:
    """Whether a column holds texts; refuses one if nearly all of its texts are numbers."""
    column = table.data[name]
    if not pa.types.is_string(column.type):
        return False
    is_numeric = numeric(column)
    n_numeric = pc.sum(is_numeric).as_py() or 0
    n_words = len(column) - column.null_count
    if n_numeric == n_words:
        return False
    odd = pc.unique(column.filter(pc.fill_null(pc.invert(is_numeric), False))).to_pylist()
    row = _first_row(pc.invert(is_numeric))
    if row == 0 and n_numeric == n_words - 1 > 1:
        raise DataError(
            f"{table.origin}, {table.location(row)}: column {shown_word(name)} is "
            f"{shown_word(odd[0])} above numbers alone; if this line holds names, set header = true"
        )
    only_infinite = all(word.lower().lstrip("+-") in _NOT_FINITE for word in odd)
    if n_numeric and (only_infinite or n_numeric >= _MOSTLY * n_words):
        raise DataError(
            f"{table.origin}, {table.location(row)}: column {shown_word(name)} is "
            f"{shown_word(odd[0])}, not a finite number as elsewhere in the column; mend it, add "
            f"it to missing_words, drop the column, or list {shown_word(name)} in categorical"
        )
    return True


def _check_numbers(table: Table, name: str) -> None:
    """Refuse what is neither a finite number nor missing in a column of numbers."""
    column = table.data[name]
    row = -1
    if pa.types.is_string(column.type):
        row = _first_row(pc.invert(numeric(column)))
    if row < 0:
        infinite = np.isinf(numbers(column))
        row = int(np.argmax(infinite)) if infinite.any() else -1
    if row >= 0:
        raise DataError(
            f"{table.origin}, {table.location(row)}: column {shown_word(name)} is "
            f"{shown_word(str(column[row].as_py()))}, not a finite number"
        )


@dataclass(frozen=True)
class _Encoder:
    """The features of a column: one of numbers, or one for each category of the training rows.

    A feature of a category is 1 where the column is of that one, else 0. ``fill`` stands for
    missing values; ``categories`` are None for numbers.
    """

    name: str
    fill: float | str | None
    scale: Scale | None = None
    categories: tuple[str, ...] | None = None

    @property
    def n_features(self) -> int:
        return 1 if self.categories is None else len(self.categories)

    def entries(self, part: Rows) -> tuple[Any, NDArray[Any]]:
        """Of each row of a part one of the features, and its value; the others are 0."""
        if self.categories is None:
            values = numbers(cast(Table, part.data).data[self.name])[part.rows]
            if self.fill is not None:
                values = np.where(np.isnan(values), self.fill, values)
            # 0.0 added, no zero has a sign.
            scaled = self.scale.apply(values[:, None])[:, 0] if self.scale else values + 0.0
            return 0, scaled
        words = _as_words(part, self.name)
        if self.fill is not None:
            words = pc.fill_null(words, self.fill)
        places = pc.index_in(words, pa.array(self.categories, pa.string()))
        codes = pc.fill_null(places, -1).to_numpy().astype(np.int64)
        return np.maximum(codes, 0), codes >= 0


def _fit_numeric(train: Rows, name: str, missing: str, scale: str) -> _Encoder:
    origin = train.data.origin
    values = numbers(cast(Table, train.data).data[name])[train.rows]
    present = values[~np.isnan(values)]
    if not len(present):
        raise _no_value(origin, name)
    fill = None
    if missing == "mean":
        fill = float(moments(present[:, None])[0][0])
    elif missing == "median":
        fill = float(np.median(present))
    elif missing == "most_frequent":
        distinct, counts = np.unique(present, return_counts=True)
        fill = float(distinct[np.argmax(counts)])
    if scale in ("none", "norm"):
        return _Encoder(name, fill)
    if fill is not None:
        values = np.where(np.isnan(values), fill, values)
    try:
        with np.errstate(over="ignore"):
            fitted = Scale.fit(values[:, None], scale)
        fits = np.isfinite(fitted.width[0]) and (fitted.width[0] > 0 or np.ptp(values) == 0)
    except OverflowError:
        fits = False
    if not fits:
        raise DataError(
            f"{origin}: column {shown_word(name)} has values from {values.min():g} to "
            f"{values.max():g} in the training part, which cannot be scaled in double precision; "
            "mend them, add the column to drop, or set scale to 'none'"
        )
    return _Encoder(name, fill, fitted)


def _fit_categorical(train: Rows, name: str, missing: str) -> _Encoder:
    origin = train.data.origin
    words = _as_words(train, name)
    counts = pc.value_counts(pc.drop_null(words))
    rows_of = {item["values"]: item["counts"] for item in counts.to_pylist()}
    if len(rows_of) > MAX_CATEGORIES:
        every = len(rows_of) == len(words)
        why = "a different one in every row; it looks like an identifier" if every else "too many"
        raise DataError(
            f"{origin}: column {shown_word(name)} holds texts, {len(rows_of)} distinct ones in the "
            f"training part ({why}); add it to drop"
        )
    if not rows_of:
        raise _no_value(origin, name)
    by_number = all(map(is_number, rows_of))
    categories = tuple(
        sorted(rows_of, key=(lambda word: (float(word), word)) if by_number else str)
    )
    # A mean of texts there is none.
    fill = None
    if missing in ("mean", "median", "most_frequent"):
        fill = max(categories, key=lambda word: rows_of[word])
    return _Encoder(name, fill, categories=categories)


def _no_value(origin: str, name: str) -> DataError:
    return DataError(
        f"{origin}: column {shown_word(name)} has no value in the training part; add it to drop"
    )


def _as_words(part: Rows, name: str) -> Any:
    """The texts of a column at the rows of a part; numbers in words."""
    column = cast(Table, part.data).data[name].take(pa.array(part.rows)).combine_chunks()
    if pa.types.is_string(column.type):
        return column
    words = [None if value is None else in_words(value) for value in column.to_pylist()]
    return pa.array(words, pa.string())


def _features(encoders: Sequence[_Encoder], part: Rows, norm: bool) -> Any:
    """The features at the rows of a part, as sparse rows if few of them are not 0."""
    n_rows, n_features = len(part.rows), sum(each.n_features for each in encoders)
    sparse = len(encoders) < SPARSE_BELOW * n_features
    width = len(encoders) if sparse else n_features
    X: Any = np.zeros((n_rows, width), dtype=np.float64 if norm else np.float32)
    indices = np.empty(X.shape if sparse else (0, 0), dtype=np.int64)
    rows, start = np.arange(n_rows), 0
    with np.errstate(over="ignore"):  # looked for below
        for k, encoder in enumerate(encoders):
            features, values = encoder.entries(part)
            if sparse:  # one entry of each column in a row, at most
                indices[:, k], X[:, k] = start + features, values
            else:
                X[rows, start + features] = values
            start += encoder.n_features
    if sparse:
        indptr = np.arange(n_rows + 1) * width
        X = csr_matrix((X.ravel(), indices.ravel(), indptr), shape=(n_rows, n_features))
        X.eliminate_zeros()
    return _as_float32(unit_rows(X) if norm else X, part)


# Lines that describe the import


def _describe(encoders: Sequence[_Encoder]) -> str:
    """A line that describes the features."""
    categorical = [each for each in encoders if each.categories is not None]
    n_features = sum(each.n_features for each in encoders)
    n_numeric = len(encoders) - len(categorical)
    parts = [f"{n_numeric} of numbers"] if n_numeric else []
    if categorical:
        names = listed([f"{each.name} ({each.n_features})" for each in categorical])
        parts.append(f"{len(categorical)} of categories, one-hot: {names}")
    return f"features: {n_features} from {len(encoders)} columns, {'; '.join(parts)}"


def _hints(
    table: Table, train: Rows, encoders: Sequence[_Encoder], options: Options
) -> Iterator[str]:
    """Hints at probable mistakes."""
    if not table.named and not table.target:
        yield "header: none; columns are numbered"
    elif table.location is not row_location and all(map(is_number, table.names)):
        yield "hint: the first line is read as names; set header = false if it is a row"
    words = train.target.words
    if len(words) > MANY_CLASSES and all(map(is_number, words)):
        yield f"hint: {len(words)} classes that are numbers; is it a regression target?"
    named = {_column_of(table, each, "categorical") for each in options.categorical}
    perhaps = {
        each.name: option
        for each in encoders
        if each.categories is not None and each.name not in named | table.nominal
        if (option := _read_as_numbers(table.data[each.name]))
    }
    for option in dict.fromkeys(perhaps.values()):
        names = [name for name, remedy in perhaps.items() if remedy == option]
        yield f"hint: {option.format(listed(names), names)}"
    for encoder in encoders:
        name = shown_word(encoder.name)
        if encoder.categories is None:
            values = numbers(table.data[encoder.name])
            if len(values) > 2 and (np.diff(values) == 1).all():
                yield f"hint: column {name} only numbers the rows; add it to drop"
        elif encoder.name not in perhaps and (
            encoder.n_features > max(_MANY_TEXTS, len(train.rows) / 2)
            or all(map(_DATE.match, encoder.categories))
        ):
            yield (
                f"hint: column {name} holds {encoder.n_features} distinct texts, such as "
                f"{shown_word(encoder.categories[0])}; are they numbers, dates or identifiers?"
            )


def _read_as_numbers(column: Any) -> str:
    """How to read a column of texts as numbers; empty if they are none."""
    if not pa.types.is_string(column.type):
        return ""
    texts = pc.drop_null(column)
    odd = pc.unique(texts.filter(pc.invert(numeric(texts)))).to_pylist()
    if len(odd) <= _FEW_WORDS and pc.mean(numeric(texts)).as_py() >= _HALF:
        words = ", ".join(map(shown_word, odd)).replace("{", "{{").replace("}", "}}")
        return f"numbers beside texts in {{0}}: if {words} means no value, add it to missing_words"
    for decimal in ".,":
        # In "1,234" the comma stands between thousands, in "1,5" before the decimals.
        valid = pc.is_valid(cleaned(texts, decimal))
        plain = pc.invert(pc.match_substring(texts, "." if decimal == "," else ","))
        if pc.mean(valid).as_py() >= _MOST and pc.all(pc.or_(valid, plain)).as_py():
            comma = ", decimal = ','" if decimal == "," else ""
            return f"texts that look like numbers in {{0}}: set numeric = {{1}}{comma}"
    return ""


def _first_row(which: Any) -> int:
    """The first row at which an Arrow array is true; -1 if there is none."""
    return int(pc.index(pc.fill_null(which, False), pa.scalar(True)).as_py())
