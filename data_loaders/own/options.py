"""What can be said about data of one's own: declared, checked and written down once.

`Options` holds every option in plain values, so that its JSON is a part of the name of the cached
file. The path of a test file is the only one that is not: what the file holds is.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..errors import DataError, suggest

FORMATS = ("csv", "tsv", "parquet", "npz", "arff", "libsvm")
SCALES = ("standard", "minmax", "unit", "norm", "none")
MISSING = ("error", "drop", "mean", "median", "most_frequent")
#: Words of a text file that stand for a missing value.
MISSING_WORDS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
#: The version of what is made of the same file with the same options.
VERSION = 1


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
        known = [item.name for item in fields(cls)]
        for key in values:
            if key not in known:
                raise DataError(f"{name}: unknown option {key!r}{suggest(str(key), known)}")
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
        found: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value
    return key, found


def _word(name: str, key: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise DataError(f"{name}: {key} must be a text, got {value!r}")


def _class_word(name: str, key: str, value: object) -> str:
    # Classes that are numbers are named by them: positive = 1.
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return _word(name, key, value)


def _column(name: str, key: str, value: object) -> str | int:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and value != 0:
        return int(value)
    if isinstance(value, str):
        return value
    raise DataError(
        f"{name}: {key} must be the name of a column or its number from 1 (-1 is the last), got "
        f"{value!r}"
    )


def _several(name: str, key: str, value: object) -> tuple[object, ...]:
    if isinstance(value, list | tuple):
        return tuple(value)
    return (value,)


def _columns(name: str, key: str, value: object) -> tuple[str | int, ...]:
    return tuple(_column(name, key, each) for each in _several(name, key, value))


def _words(name: str, key: str, value: object) -> tuple[str, ...]:
    return tuple(_class_word(name, key, each) for each in _several(name, key, value))


def _one_of(*allowed: str) -> Any:
    def check(name: str, key: str, value: object) -> str:
        if value not in allowed or not isinstance(value, str):
            listed = ", ".join(map(repr, allowed))
            raise DataError(f"{name}: {key} must be one of {listed}, got {value!r}")
        return value

    return check


def _separator(name: str, key: str, value: object) -> str:
    if isinstance(value, str) and len(value) == 1 and value.isascii() and value not in '"\n\r':
        return value
    raise DataError(f"{name}: {key} must be one character, such as ';', got {value!r}")


def _flag(name: str, key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise DataError(f"{name}: {key} must be true or false, got {value!r}")


def _fraction(name: str, key: str, value: object) -> float:
    number: Any = value
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < number < 1:
        return float(number)
    raise DataError(f"{name}: {key} must be a number between 0 and 1, got {value!r}")


def _count(name: str, key: str, value: object) -> int:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        number = int(value)
        if 0 <= number < 2**63:
            return number
    raise DataError(f"{name}: {key} must be an integer, 0 or more, got {value!r}")


_CHECKS: Mapping[str, Any] = {
    "format": _one_of(*FORMATS),
    "target": _column,
    "positive": _class_word,
    "separator": _separator,
    "header": _flag,
    "missing": _one_of(*MISSING),
    "missing_words": _words,
    "categorical": _columns,
    "numeric": _columns,
    "decimal": _one_of(".", ","),
    "drop": _columns,
    "scale": _one_of(*SCALES),
    "test": _word,
    "split": _column,
    "test_fraction": _fraction,
    "split_seed": _count,
    "n_train": _count,
    "stratify": _flag,
    "version": _count,
}
