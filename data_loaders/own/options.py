"""Options of custom data: declared, checked and documented once.

`Options` holds every option in plain values, so that its JSON is a part of the name of the cached
file. The path of a test file is the only one that is not: what the file holds is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any

from ..errors import DataError, suggest
from .words import in_words

FORMATS = ("csv", "tsv", "parquet", "npz", "arff", "libsvm")
SCALES = ("standard", "minmax", "unit", "norm", "none")
MISSING = ("error", "drop", "mean", "median", "most_frequent")
#: Words of a text file that stand for a missing value.
MISSING_WORDS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
_SEPARATORS = frozenset(map(chr, range(128))) - frozenset('"\n\r')
#: The version of what is made of the same file with the same options.
VERSION = 2


@dataclass(frozen=True)
class Options:
    """All options, with their defaults; ``docs/your-data.md`` says what they mean.

    An empty text, or None, is decided by the data. Columns are names, or numbers from 1 (from the
    end if negative).
    """

    format: str = ""
    target: str | int = ""
    positive: str = ""
    separator: str = ""
    header: bool | None = None
    missing: str = "error"
    missing_words: tuple[str, ...] = MISSING_WORDS
    categorical: tuple[str | int, ...] = ()
    numeric: tuple[str | int, ...] = ()
    decimal: str = "."
    drop: tuple[str | int, ...] = ()
    scale: str = ""
    test: str = ""
    split: str | int = ""
    test_fraction: float = 0.3
    split_seed: int = 0
    n_train: int = 0
    stratify: bool = True
    version: int = 1

    @classmethod
    def of(cls, values: Mapping[str, object], name: str) -> Options:
        """Check some of the options; messages call the data `name`."""
        names = [item.name for item in fields(cls)]
        for key in values:
            if key not in names:
                raise DataError(f"{name}: unknown option {key!r}{suggest(str(key), names)}")
        checked = {key: _CHECKS[key](name, key, value) for key, value in values.items()}
        options = cls(**checked)
        if options.split != "" and options.test:
            raise DataError(f"{name}: split and test exclude each other; remove one of them")
        if options.last_rows is None and options.test.split(" ")[0] == "last":
            raise DataError(f"{name}: test must be a file or 'last N', got {options.test!r}")
        return options

    @property
    def last_rows(self) -> int | None:
        """How many of the last rows are the test part; None if that is decided otherwise."""
        word, _, number = self.test.partition(" ")
        if word == "last" and number.isascii() and number.isdigit() and 0 < len(number) < 16:
            return int(number) or None
        return None

    @property
    def test_file(self) -> str:
        """The path of the test file; empty if there is none."""
        return "" if self.last_rows is not None else self.test

    def identity(self) -> dict[str, Any]:
        """What enters the cache key: all but where the test file is."""
        values = asdict(self) | {"made_by": VERSION}
        if self.test_file:
            values["test"] = "file"
        return {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}


def option_from_text(text: str) -> tuple[str, Any]:
    """``key=value`` of a command line; the value is read as TOML if it is that, else as a word."""
    import tomllib

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise DataError(f"option {text!r}: write key=value, as in target=y")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value
    return key, parsed


def _checked(convert: Callable[[Any], Any], expected: str) -> Callable[[str, str, object], Any]:
    """A check that gives what `convert` does of a value, and refuses one of which that is None."""

    def check(name: str, key: str, value: object) -> Any:
        converted = convert(value)
        if converted is None:
            raise DataError(f"{name}: {key} must be {expected}, got {value!r}")
        return converted

    return check


def _several(check: Callable[[str, str, object], Any]) -> Callable[[str, str, object], Any]:
    """The same check of each value of a list; one value is a list of its own."""

    def check_all(name: str, key: str, value: object) -> Any:
        values = value if isinstance(value, list | tuple) else (value,)
        return tuple(check(name, key, each) for each in values)

    return check_all


def _one_of(*allowed: str) -> Callable[[str, str, object], Any]:
    expected = f"one of {', '.join(map(repr, allowed))}"
    return _checked(lambda value: value if _text(value) in allowed else None, expected)


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


def _word_of(value: Any) -> str | None:
    # Classes that are numbers are named by them: positive = 1.
    if isinstance(value, bool | Integral):
        return str(value if isinstance(value, bool) else int(value))
    return in_words(float(value)) if isinstance(value, Real) else _text(value)


def _share(value: Any) -> float | None:
    real: Any = value if isinstance(value, Real) else 0
    return float(real) if 0 < real < 1 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_column = _checked(
    lambda value: _whole(value) or _text(value),
    "the name of a column or its number from 1 (-1 is the last)",
)
_class_word = _checked(_word_of, "a text")
_flag = _checked(lambda value: value if isinstance(value, bool) else None, "true or false")
_count = _checked(
    lambda value: None if (n := _whole(value)) is None or not 0 <= n < 2**63 else n,
    "an integer, 0 or more",
)

_CHECKS: Mapping[str, Callable[[str, str, object], Any]] = {
    "format": _one_of(*FORMATS),
    "target": _column,
    "positive": _class_word,
    "separator": _checked(
        lambda value: value if _text(value) in _SEPARATORS else None, "one character, such as ';'"
    ),
    "header": _flag,
    "missing": _one_of(*MISSING),
    "missing_words": _several(_class_word),
    "categorical": _several(_column),
    "numeric": _several(_column),
    "decimal": _one_of(".", ","),
    "drop": _several(_column),
    "scale": _one_of(*SCALES),
    "test": _checked(_text, "a text"),
    "split": _column,
    "test_fraction": _checked(_share, "a number between 0 and 1"),
    "split_seed": _count,
    "n_train": _count,
    "stratify": _flag,
    "version": _count,
}
