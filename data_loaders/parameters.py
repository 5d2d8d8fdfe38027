"""Parameters of datasets: named numbers and words."""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .errors import DataError, nearest

Value: TypeAlias = int | float | str
Parameters: TypeAlias = Mapping[str, Value]
#: Checks all parameters of a dataset and returns them in plain int, float and str.
Checker: TypeAlias = Callable[[Mapping[str, object]], Parameters]


def check(
    dataset: str,
    allowed: Mapping[str, Sequence[Value]],
    bounds: Mapping[str, tuple[float, ...]],
    params: Mapping[str, object],
) -> dict[str, Value]:
    """All parameters of a dataset in plain int, float and str; raises `DataError`.

    One has the values that are `allowed`, or lies within its `bounds`: whole numbers, perhaps with
    a step, or from a float on any numbers. Others are texts.
    """
    checked: dict[str, Value] = {}
    for key, value in params.items():
        if key in bounds:
            least, most, *step = bounds[key]
            if isinstance(least, int):
                checked[key] = integer(dataset, key, value, least, most, *map(int, step))
            else:
                expected = f"a finite number from {least:g} to {most:g}"
                checked[key] = real(dataset, key, value, expected, lambda x: least <= x <= most)  # noqa: B023
        elif key in allowed:
            checked[key] = chosen(dataset, key, value, allowed[key])
        elif isinstance(value, str):
            checked[key] = value
        else:
            raise DataError(f"{dataset}: {key} must be a text, got {value!r}")
    return checked


def chosen(dataset: str, key: str, value: object, allowed: Sequence[Value]) -> Value:
    """The one of the `allowed` values that is given; raises `DataError`."""
    if isinstance(value, str | numbers.Real) and not isinstance(value, bool):
        for candidate in allowed:
            if value == candidate:
                return candidate
    words = [word for word in allowed if isinstance(word, str)]
    hint = nearest(value, words) if isinstance(value, str) else ""
    raise DataError(
        f"{dataset}: {key} must be one of {', '.join(map(repr, allowed))}, got {value!r}{hint}"
    )


def integer(
    dataset: str, key: str, value: object, least: int, most: float = math.inf, step: int = 1
) -> int:
    """A whole number from `least` to `most`; raises `DataError` for anything else.

    Study files may write it as 1e6. `dataset` and `key` are for the messages.
    """
    # TOML reads 1e6 as a float.
    whole = isinstance(value, numbers.Integral) or (isinstance(value, float) and value.is_integer())
    if not whole or isinstance(value, bool):
        raise DataError(f"{dataset}: {key} must be an integer, got {value!r}")
    number: int = int(value)  # type: ignore[call-overload]
    if not least <= number <= most or number % step:
        bounds = f"{least} or more" if most == math.inf else f"between {least} and {most}"
        even = f", a multiple of {step}" if step > 1 else ""
        raise DataError(f"{dataset}: {key} must be {bounds}{even}, got {number}")
    return number


def real(
    dataset: str, key: str, value: object, expected: str, fits: Callable[[float], bool]
) -> float:
    """A finite number that fits; `expected` says in words which ones do."""
    number: Any = value
    if isinstance(number, numbers.Real) and not isinstance(number, bool):
        with contextlib.suppress(OverflowError):
            if math.isfinite(number) and fits(float(number)):
                return float(number)
    raise DataError(f"{dataset}: {key} must be {expected}, got {value!r}")
