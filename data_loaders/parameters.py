"""Parameters of datasets: named numbers and words."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from .errors import DataError, suggest

Value: TypeAlias = int | float | str
Parameters: TypeAlias = Mapping[str, Value]
#: Checks all parameters of a dataset and returns them in plain int, float and str.
Checker: TypeAlias = Callable[[Mapping[str, object]], Parameters]


def one_of(dataset: str, **allowed: tuple[Value, ...]) -> Checker:
    """A check that each parameter has one of its `allowed` values; raises `DataError`."""

    def check(params: Mapping[str, object]) -> dict[str, Value]:
        return {key: _chosen(dataset, key, params[key], allowed[key]) for key in allowed}

    return check


def _chosen(dataset: str, key: str, value: object, allowed: tuple[Value, ...]) -> Value:
    if isinstance(value, str | numbers.Real) and not isinstance(value, bool):
        for candidate in allowed:
            if value == candidate:
                return candidate
    words = [word for word in allowed if isinstance(word, str)]
    hint = suggest(value, words) if isinstance(value, str) else ""
    raise DataError(
        f"{dataset}: {key} must be one of {', '.join(map(repr, allowed))}, got {value!r}"
        + (hint if hint.startswith(" (did") else "")
    )


def integer(dataset: str, key: str, value: object, least: int, most: float) -> int:
    """A whole number from `least` to `most`; raises `DataError` for anything else.

    Study files may write it as 1e6. `dataset` and `key` are for the messages.
    """
    # TOML reads 1e6 as a float.
    whole = isinstance(value, numbers.Integral) or (isinstance(value, float) and value.is_integer())
    if not whole or isinstance(value, bool):
        raise DataError(f"{dataset}: {key} must be an integer, got {value!r}")
    number: int = int(value)  # type: ignore[call-overload]
    if not least <= number <= most:
        bounds = f"{least} or more" if most == math.inf else f"between {least} and {most}"
        raise DataError(f"{dataset}: {key} must be {bounds}, got {number}")
    return number


def real(
    dataset: str, key: str, value: object, expected: str, fits: Callable[[float], bool]
) -> float:
    """A number that fits; `expected` says in words which ones do."""
    number: Any = value
    if isinstance(number, numbers.Real) and not isinstance(number, bool) and fits(float(number)):
        return float(number)
    raise DataError(f"{dataset}: {key} must be {expected}, got {value!r}")
