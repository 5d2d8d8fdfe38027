"""Options of custom data: declared, checked and documented once.

`Options` holds every option in plain values, so that its JSON is a part of the name of the cached
file. The path of a test file is the only one that is not: what the file holds is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any

from ..errors import DataError, suggest
from ..parameters import chosen, integer, real
from .words import in_words

_ALLOWED = {
    "format": ("csv", "tsv", "parquet", "npz", "arff", "libsvm"),
    "missing": ("error", "drop", "mean", "median", "most_frequent"),
    "decimal": (".", ","),
    "scale": ("standard", "minmax", "unit", "norm", "none"),
}
#: Words of a text file that stand for a missing value.
MISSING_WORDS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
_SEPARATORS = frozenset(map(chr, range(128))) - frozenset('"\n\r')
#: The version of what is made of the same file with the same options.
VERSION = 4


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
        checked = {key: _checked(name, key, value) for key, value in values.items()}
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
        if word == "last" and number.isascii() and number.isdigit() and len(number) < 16:
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


def _checked(name: str, key: str, value: Any) -> Any:
    """The value of an option, by the type of its field; of several, one is a list of its own."""
    kind = str(Options.__annotations__[key])
    if kind.startswith("tuple"):
        values = value if isinstance(value, list | tuple) else (value,)
        return tuple(_value(name, key, kind, each) for each in values)
    return _value(name, key, kind, value)


def _value(name: str, key: str, kind: str, value: Any) -> Any:
    if key in _ALLOWED:
        return chosen(name, key, value, _ALLOWED[key])
    if kind == "int":
        return integer(name, key, value, 0, 2**63 - 1)
    if kind == "float":
        return real(name, key, value, "a number between 0 and 1", lambda share: 0 < share < 1)
    truth, whole = isinstance(value, bool), isinstance(value, Integral)
    expected, fits = "a text", isinstance(value, str)
    if kind.startswith("bool"):
        expected, fits = "true or false", truth
    elif "str | int" in kind:
        expected = "the name of a column or its number from 1 (-1 is the last)"
        if whole and not truth and value:
            return int(value)
    elif key == "separator":
        expected, fits = "one character, such as ';'", fits and value in _SEPARATORS
    elif key in ("positive", "missing_words") and isinstance(value, Real):
        # Classes that are numbers are named by them: positive = 1.
        return str(value) if truth else in_words(int(value) if whole else float(value))  # type: ignore[call-overload]
    if not fits:
        raise DataError(f"{name}: {key} must be {expected}, got {value!r}")
    return value
