"""From tables to content: which column is what, and the features that it makes.

A training and a test table become one, whose first rows are the training file's. All that is
estimated comes from the training rows.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from ..content import Content, Part, nonfinite
from ..errors import DataError, nearest
from ..transforms import Scale, moments, unit_rows
from .classes import label, read_target
from .options import Options
from .splitting import divide, said_by
from .tables import Table, row_location
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
#: A column of texts that are numbers in this share of the rows is one of numbers with a mistake.
_MOSTLY = 0.9
_NOT_FINITE = ("inf", "infinity", "nan")
#: Of classes or categories, more are perhaps none.
_MANY = 20
#: Texts are perhaps numbers if so many distinct ones are plain ones and few words stand between
#: them, or if so many are numbers with signs around them.
_HALF, _FEW_WORDS, _MOST = 0.5, 5, 0.8
_DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}\b")
_NO_VALUE = "has no value in the training part; add it to drop"
#: What a scale does to a table, in words.
_SCALES = {
    "standard": " (columns of numbers: mean 0 and standard deviation 1 in the training part)",
    "minmax": " (columns of numbers: from -1 to 1 in the training part)",
    "unit": " (columns of numbers: from 0 to 1 in the training part)",
    "norm": " (rows of Euclidean norm 1)",
    "none": "",
}


@dataclass(frozen=True, eq=False)
class _Columns:
    """The columns of both tables by what they are; `split` is empty if there is none."""

    target: str
    split: str
    features: list[str]
    numeric: list[str]  # texts that are read as numbers
    declared: frozenset[str]  # what holds categories, whether texts or numbers
    dropped: list[str]
    data: Any  # a table of Arrow: the rows of the training file, then those of the test file
    origin: str
    n_first: int  # rows of the training file
    where: Callable[[int], str]  # "people.csv, line 7"

    def of_training_file(self, name: str) -> Any:
        """A column without the rows of the test file."""
        return self.data[name].slice(0, self.n_first)

    def refusal(self, name: str, what: str, row: int | None = None) -> DataError:
        """What is wrong with a column, or with its value in a row."""
        where = self.origin if row is None else self.where(row)
        return DataError(f"{where}: column {shown_word(name)} {what}")


def content_of(tables: Sequence[Table], options: Options) -> tuple[Content, list[str]]:
    """Decide what the columns are, split, and make float32 features and labels.

    The tables are one, or a training and a test one. The second result is what was decided, a line
    each.
    """
    first = tables[0]
    for each in tables:
        if not each.n_rows:
            raise DataError(f"{each.origin}: there are no rows; is this the right file?")
        if (each.X is None) != (first.X is None):
            raise DataError(f"{each.origin}: one part is a table and the other one sparse rows")
    columns = _choose(tables, options)
    categorical = [n for n in columns.features if n in columns.declared or _holds_texts(columns, n)]
    for name in columns.features:
        if name not in categorical:
            _check_numbers(columns, name)
    kept, missing = _kept_rows(columns, options)
    target = read_target(columns.data[columns.target], first.origin, columns.target)
    by = None
    if len(tables) > 1:
        by = np.arange(columns.data.num_rows) >= columns.n_first
    elif columns.split:
        by = said_by(columns.data[columns.split], columns.split, columns.where)
    train, test, split = divide(kept, target.codes, by, first.n_rows, options, first.origin)
    y_train, y_test, classes = label(target, train, test, options.positive, first.origin)
    rows, n_train = np.concatenate([train, test]), len(train)
    scale = options.scale or ("standard" if first.X is None else "none")
    hints: list[str] = []
    if first.X is None:
        categories = {name: _categories(columns, name, train) for name in categorical}
        X = _features(columns, categories, rows, n_train, options.missing, scale)
        features = _describe(columns.features, categories)
        hints = [*_hints(first, columns, target.words, categories)]
    else:
        X = _scaled_rows([each.X for each in tables], rows, n_train, scale, first.origin)
        features = f"{X.shape[1]}, {'dense' if isinstance(X, np.ndarray) else 'sparse'}"
    with np.errstate(over="ignore"):
        X = X.astype(np.float32, copy=False)
    if (position := nonfinite(X)) is not None:
        where = columns.where(int(rows[position[0]]))
        raise DataError(f"{where}: a feature is too large for float32; scale or drop it")
    content = Content(Part(X[:n_train], y_train), Part(X[n_train:], y_test))
    return content, [
        f"target: column {shown_word(columns.target)}: {classes}",
        split,
        f"features: {features}",
        *([f"dropped columns: {listed(columns.dropped)}"] if columns.dropped else []),
        f"missing values: {missing}",
        f"scale: {scale}{_SCALES[scale] if first.X is None else ''}",
        *hints,
    ]


# Which column is what, and which rows are left out


def _choose(tables: Sequence[Table], options: Options) -> _Columns:
    table = tables[0]
    given = {
        option: [_column_of(table, each, option) for each in getattr(options, option)]
        for option in ("drop", "numeric", "categorical")
    }
    dropped, numeric, categorical = given.values()
    split = "" if options.split == "" else _column_of(table, options.split, "split")
    for one, other in itertools.combinations(given, 2):
        if given[other] and table.X is not None:
            raise DataError(f"{table.origin}: sparse rows hold numbers alone; remove {other}")
        if both := set(given[one]).intersection(given[other]):
            raise DataError(
                f"{table.origin}: column {shown_word(min(both))} is in {one} and in {other}"
            )
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
    if not features and table.X is None:
        raise DataError(
            f"{table.origin}: there is no column beside the target {shown_word(target)}"
        )

    def where(row: int) -> str:
        of_test = row >= table.n_rows
        each = tables[of_test]
        return f"{each.origin}, {each.location(row - table.n_rows * of_test)}"

    # By name: a test table may have them in another order.
    data = {name: _joined(tables, name) for name in [target, *filter(None, [split]), *features]}
    for name in data.keys() & numeric:
        data[name] = _with_numbers(table.origin, name, data[name], options.decimal)
    declared = table.nominal.difference(numeric).union(categorical)
    return _Columns(
        *(target, split, features, numeric, declared, dropped, pa.table(data)),
        *(table.origin, table.n_rows, where),
    )


def _default_target(table: Table, names: Sequence[str]) -> str:
    if not names:
        raise DataError(f"{table.origin}: all columns are dropped")
    if table.target:
        return table.target
    folded = {name.casefold(): name for name in reversed(names)}
    return next((folded[name] for name in TARGET_NAMES if name in folded), names[-1])


def _column_of(table: Table, column: str | int, option: str) -> str:
    """The name of a column that is given by name or number, a name that is a number first."""
    names, why = table.names, f"{table.origin}: {option} = {column!r}"
    if str(column) in names:
        return str(column)
    if isinstance(column, str):
        raise DataError(f"{why}: there is no such column{_nearest(column, names)}")
    if abs(column) > len(names):
        raise DataError(f"{why}, but there are {len(names)} columns")
    return names[column - 1 if column > 0 else column]


def _nearest(column: str, names: Sequence[str]) -> str:
    return nearest(column, names) or f" (columns: {listed(list(names), 12)})"


def _joined(tables: Sequence[Table], name: str) -> Any:
    """A column of both tables; refuses one that is neither of numbers nor of texts, as dates are.

    A test table with names may have further columns, and they may stand in another order.
    """
    first, pieces = tables[0], []
    for each in tables:
        if not first.named and not each.named and len(first.names) != len(each.names):
            raise DataError(
                f"{each.origin}: {len(each.names)} columns, but {first.origin} has "
                f"{len(first.names)}; without names they must be the same ones"
            )
        if name not in each.names:
            raise DataError(
                f"{each.origin}: the column {shown_word(name)} of {first.origin} is missing"
                f"{_nearest(name, each.names)}"
            )
        piece = each.data[name]
        kind = piece.type
        if not (pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_float64(kind)):
            raise DataError(
                f"{each.origin}: column {shown_word(name)} is of type {kind}; make it numbers or "
                "texts, or add it to drop"
            )
        pieces.append(piece)
    if len({piece.type for piece in pieces}) > 1:
        pieces = [_as_words(piece) for piece in pieces]
    return pa.chunked_array([chunk for piece in pieces for chunk in piece.chunks], pieces[0].type)


def _with_numbers(origin: str, name: str, column: Any, decimal: str) -> Any:
    """Numbers in place of the texts of a column, null for other texts."""
    if not pa.types.is_string(column.type):
        return column
    values = cleaned(column, decimal)
    if values.null_count == len(values) > column.null_count:
        raise DataError(
            f"{origin}: column {shown_word(name)} is listed in numeric, but none of its texts is a "
            f"number, such as {shown_word(pc.drop_null(column)[0].as_py())}"
        )
    return values


def _kept_rows(columns: _Columns, options: Options) -> tuple[NDArray[np.intp], str]:
    """The rows that are not left out, and what became of missing values in words."""
    missing, target = options.missing, columns.target
    kept = np.ones(columns.data.num_rows, dtype=bool)
    n_missing, names = 0, []
    for name in (target, *columns.features):
        column = columns.data[name]
        if not column.null_count:
            continue
        if missing == "error" or (missing != "drop" and name == target):
            others = "" if name == target else ", 'mean', 'median' or 'most_frequent'"
            what = (
                f"has no {'number' if name in columns.numeric else 'value'}; set missing to 'drop'"
                f"{others}, in dataset_params of a study or by --option of 'marginbench data "
                "import'"
            )
            raise columns.refusal(name, what, first_row(pc.is_null(column)))
        n_missing += column.null_count
        names.append(name)
        if missing == "drop":
            kept &= ~pc.is_null(column).to_numpy()
    if not kept.any():
        raise DataError(
            f"{columns.origin}: no rows are left: each has a missing value; "
            "set missing to 'mean' or drop the columns without values"
        )
    if not n_missing:
        return np.flatnonzero(kept), "none"
    where = f"{n_missing} in {listed(names)}"
    if missing == "drop":
        return np.flatnonzero(kept), f"{where}; {int((~kept).sum())} rows with them left out"
    words = "the most frequent value"
    if missing != "most_frequent":
        words = f"the {missing}, or the most frequent category,"
    return np.flatnonzero(kept), f"{where}; filled in with {words} of the training part"


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


def _holds_texts(columns: _Columns, name: str) -> bool:
    """Whether a column holds texts; refuses one if nearly all of its texts are numbers."""
    column = columns.of_training_file(name)
    if not pa.types.is_string(column.type):
        return False
    is_numeric = numeric(column)
    n_numeric = pc.sum(is_numeric).as_py() or 0
    n_words = len(column) - column.null_count
    if n_numeric == n_words:
        return False
    row = first_row(pc.invert(is_numeric))
    if row == 0 and n_numeric == n_words - 1 > 1:
        _refuse(columns, name, 0, "above numbers alone; if it holds names, set header = true")
    odd = pc.unique(column.filter(pc.fill_null(pc.invert(is_numeric), False))).to_pylist()
    only_infinite = all(word.lower().lstrip("+-") in _NOT_FINITE for word in odd)
    if n_numeric and (only_infinite or n_numeric >= _MOSTLY * n_words):
        _refuse(
            *(columns, name, row),
            "not a finite number as elsewhere in the column; mend it, add it to missing_words, "
            f"drop the column, or list {shown_word(name)} in categorical",
        )
    return True


def _check_numbers(columns: _Columns, name: str) -> None:
    """Refuse what is neither a finite number nor missing in a column of numbers."""
    column = columns.data[name]
    if pa.types.is_string(column.type) and (row := first_row(pc.invert(numeric(column)))) >= 0:
        _refuse(columns, name, row, "not a finite number")
    infinite = np.isinf(numbers(column))
    if infinite.any():
        _refuse(columns, name, int(np.argmax(infinite)), "not a finite number")


def _refuse(columns: _Columns, name: str, row: int, why: str) -> NoReturn:
    value = shown_word(str(columns.data[name][row].as_py()))
    raise columns.refusal(name, f"is {value}, {why}", row)


def _as_words(column: Any) -> Any:
    """The texts of a column; numbers in words."""
    if pa.types.is_string(column.type):
        return column
    words = [None if value is None else in_words(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(words, pa.string())])


# Features


def _categories(columns: _Columns, name: str, train: NDArray[np.intp]) -> dict[str, int]:
    """How many training rows are of each category of a column; the categories ascend."""
    words = _as_words(columns.data[name].take(pa.array(train)))
    counts = {each["values"]: each["counts"] for each in pc.value_counts(words).to_pylist()}
    counts.pop(None, None)
    if len(counts) > MAX_CATEGORIES:
        every = len(counts) == len(words)
        why = "a different one in every row; it looks like an identifier" if every else "too many"
        distinct = f"{len(counts)} distinct ones in the training part ({why})"
        raise columns.refusal(name, f"holds texts, {distinct}; add it to drop")
    if not counts:
        raise columns.refusal(name, _NO_VALUE)
    by_number = all(map(is_number, counts))
    key = (lambda word: (float(word), word)) if by_number else str
    return {word: counts[word] for word in sorted(counts, key=key)}


def _features(
    columns: _Columns,
    categories: dict[str, dict[str, int]],
    rows: NDArray[np.intp],
    n_train: int,
    missing: str,
    scale: str,
) -> Any:
    """The features at some rows, the training rows first; as sparse rows if few are not 0.

    A column of numbers makes one, a column of categories one for each, which is 1 in the rows of
    that category, else 0.
    """
    widths = [len(categories.get(name, "1")) for name in columns.features]
    n_features = sum(widths)
    if n_features > MAX_FEATURES:
        raise DataError(
            f"{columns.origin}: the columns make {n_features} features; at most {MAX_FEATURES} are "
            "stored, drop the columns with the most categories"
        )
    sparse = len(widths) < SPARSE_BELOW * n_features
    width = len(widths) if sparse else n_features
    X: Any = np.zeros((len(rows), width), dtype=np.float64 if scale == "norm" else np.float32)
    indices = np.empty(X.shape if sparse else (0, 0), dtype=np.int64)
    every, start = np.arange(len(rows)), 0
    with np.errstate(over="ignore"):  # looked for later
        for k, name in enumerate(columns.features):
            place: Any = 0
            column = columns.data[name]
            if name in categories:
                words = _as_words(column.take(pa.array(rows)))
                place, values = _encoded(words, categories[name], missing)
            else:
                values = _scaled(columns, name, numbers(column)[rows], n_train, missing, scale)
            if sparse:  # one entry of each column in a row, at most
                indices[:, k], X[:, k] = start + place, values
            else:
                X[every, start + place] = values
            start += widths[k]
    if sparse:
        indptr = np.arange(len(rows) + 1) * width
        X = csr_matrix((X.ravel(), indices.ravel(), indptr), shape=(len(rows), n_features))
        X.eliminate_zeros()
    return unit_rows(X) if scale == "norm" else X


def _encoded(words: Any, categories: dict[str, int], missing: str) -> tuple[Any, NDArray[Any]]:
    """Of each row one of the categories, and whether it is of that one, or of none."""
    if missing in ("mean", "median", "most_frequent"):  # a mean of texts there is none
        words = pc.fill_null(words, max(categories, key=lambda word: categories[word]))
    places = pc.index_in(words, pa.array(categories, pa.string()))
    codes = pc.fill_null(places, -1).to_numpy().astype(np.int64)
    return np.maximum(codes, 0), codes >= 0


def _scaled(
    columns: _Columns,
    name: str,
    values: NDArray[np.float64],
    n_train: int,
    missing: str,
    scale: str,
) -> NDArray[Any]:
    """The numbers of a column, those that are missing filled in, in a scale."""
    present = values[:n_train][~np.isnan(values[:n_train])]
    if not len(present):
        raise columns.refusal(name, _NO_VALUE)
    if missing in ("mean", "median", "most_frequent"):
        if missing == "mean":
            fill = moments(present[:, None])[0][0]
        elif missing == "median":
            fill = np.median(present)
        else:
            distinct, counts = np.unique(present, return_counts=True)
            fill = distinct[np.argmax(counts)]
        values = np.where(np.isnan(values), fill, values)
    if scale in ("none", "norm"):
        return values + 0.0  # so that no zero has a sign
    of_training = values[:n_train, None]
    spread = np.ptp(of_training)
    if np.abs(of_training).max() > 1e150 or 0 < spread < 1e-150:
        limits = f"{of_training.min():g} to {of_training.max():g}"
        what = f"has values from {limits}, which cannot be scaled in double precision; mend them"
        raise columns.refusal(name, f"{what}, add the column to drop, or set scale to 'none'")
    return Scale.fit(of_training, scale).apply(values[:, None])[:, 0]


def _scaled_rows(
    parts: Sequence[Any], rows: NDArray[np.intp], n_train: int, scale: str, origin: str
) -> Any:
    """Some of the sparse rows of one file or of both, in a scale."""
    if any(np.isnan(X.data).any() for X in parts):
        raise DataError(f"{origin}: a feature is NaN; fill in what sparse rows miss")
    width = max(X.shape[1] for X in parts)
    X: Any = vstack(
        [csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width)) for X in parts],
        format="csr",
    )[rows]
    if scale in ("none", "norm"):
        return unit_rows(X) if scale == "norm" else X
    if width > MAX_DENSE:
        raise DataError(
            f"{origin}: scale = {scale!r} would make {width} sparse features dense (at most "
            f"{MAX_DENSE}); use 'norm' or 'none'"
        )
    return Scale.fit(X[:n_train], scale).apply(X)


# Lines that describe the import


def _describe(features: Sequence[str], categories: dict[str, dict[str, int]]) -> str:
    """The number of features, and of the columns that make them."""
    n_numeric = len(features) - len(categories)
    n_features = n_numeric + sum(map(len, categories.values()))
    parts = [f"{n_numeric} of numbers"] if n_numeric else []
    if categories:
        names = listed([f"{name} ({len(words)})" for name, words in categories.items()])
        parts.append(f"{len(categories)} of categories, one-hot: {names}")
    return f"{n_features} from {len(features)} columns, {'; '.join(parts)}"


def _hints(
    table: Table,
    columns: _Columns,
    classes: Sequence[str],
    categories: dict[str, dict[str, int]],
) -> Iterator[str]:
    """Hints at probable mistakes."""
    if not table.named and not table.target:
        yield "header: none; columns are numbered"
    elif table.location is not row_location and all(map(is_number, table.names)):
        yield "hint: the first line is read as names; set header = false if it is a row"
    if len(classes) > _MANY and all(map(is_number, classes)):
        yield f"hint: {len(classes)} classes that are numbers; is it a regression target?"
    for name in columns.features:
        if name not in categories:
            values = numbers(columns.of_training_file(name))
            if len(values) > 2 and (np.diff(values) == 1).all():
                yield f"hint: column {shown_word(name)} only numbers the rows; add it to drop"
        elif what := _perhaps(categories[name], name in columns.declared):
            yield f"hint: column {shown_word(name)} holds {what}"


def _perhaps(categories: dict[str, int], declared: bool) -> str:
    """What a column of texts perhaps holds, and what to do; empty if nothing is to be said."""
    words = pa.array(categories, pa.string())
    if not declared:
        plain = numeric(words)
        odd = words.filter(pc.invert(plain)).to_pylist()
        if len(odd) <= _FEW_WORDS and pc.mean(plain).as_py() >= _HALF:
            return (
                f"numbers beside {listed([*map(shown_word, odd)])}: if that means no value, add it "
                "to missing_words"
            )
        if max(pc.mean(pc.is_valid(cleaned(words, each))).as_py() for each in ".,") >= _MOST:
            return (
                f"texts that look like numbers, such as {shown_word(words[0].as_py())}: list it in "
                "numeric, and set decimal"
            )
    n_rows = sum(categories.values())
    if len(words) > max(_MANY, n_rows / 2) or all(map(_DATE.match, categories)):
        return (
            f"{len(words)} distinct texts, such as {shown_word(words[0].as_py())}; are they "
            "numbers, dates or identifiers?"
        )
    return ""


def first_row(which: Any) -> int:
    """The first row at which an Arrow array is true; -1 if there is none."""
    return int(pc.index(pc.fill_null(which, False), pa.scalar(True)).as_py())
