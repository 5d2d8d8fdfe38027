"""Parameters of datasets: named numbers and words."""

from __future__ import annotations

import math
import numbers
import re
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


# The parameters of each dataset that has some; here, so that a study is checked without the imports
# that reading data takes.

#: Cells of the checkers; each part has a point in each at least.
N_CELLS = 16
_MAX_POINTS = 10**8
_SEED = (0, math.inf)


def _integers(
    dataset: str, params: Mapping[str, object], **bounds: tuple[int, float]
) -> dict[str, int | float]:
    return {key: integer(dataset, key, params[key], *bounds[key]) for key in bounds}


def check_checkers(params: Mapping[str, object]) -> dict[str, int | float]:
    """All parameters in plain int and float; raises `DataError`.

    There are at least 16 points in each part (the counts of the 16 cells differ by at most one);
    ``noise`` is a standard deviation in cell widths.
    """
    sizes = (N_CELLS, _MAX_POINTS)
    checked = _integers("checkers", params, n_train=sizes, n_test=sizes, seed=_SEED)
    expected = "a finite number, 0 or more"
    noise = real("checkers", "noise", params["noise"], expected, lambda x: 0 <= x < math.inf)
    return {**checked, "noise": noise}


def check_quadric(params: Mapping[str, object]) -> dict[str, int | float]:
    """All parameters in plain int and float; raises `DataError`.

    ``n_features`` is even; ``flipped`` is the share of wrong labels, less than 0.5.
    """
    sizes = (2, _MAX_POINTS)
    checked = _integers(
        "quadric", params, n_train=sizes, n_test=sizes, n_features=(2, 10**5), seed=_SEED
    )
    if checked["n_features"] % 2:
        raise DataError(f"quadric: n_features must be even, got {checked['n_features']}")
    expected = "a number, at least 0 and less than 0.5"
    flipped = real("quadric", "flipped", params["flipped"], expected, lambda x: 0 <= x < 0.5)
    return {**checked, "flipped": flipped}


def check_random_text(params: Mapping[str, object]) -> dict[str, int | float]:
    """All parameters in plain int and float; raises `DataError`.

    ``density`` is the expected share of the entries that are stored, at most 0.5 and enough for a
    feature in each point.
    """
    sizes = (2, _MAX_POINTS)
    checked = _integers(
        "random-text", params, n_train=sizes, n_test=sizes, n_features=(10, 2**31 - 1), seed=_SEED
    )
    least = 1.0 / checked["n_features"]
    expected = f"a number between 1 / n_features = {least:.3g} and 0.5"
    density = real(
        "random-text", "density", params["density"], expected, lambda share: least <= share <= 0.5
    )
    return {**checked, "density": density}


_check_rcv1_split = one_of("rcv1", split=("published", "swapped"))


def check_rcv1(params: Mapping[str, object]) -> Parameters:
    """A topic is a code such as "CCAT"; raises `DataError`."""
    topic = params["topic"]
    if not isinstance(topic, str) or not re.fullmatch(r"[A-Z0-9]+", topic):
        raise DataError(f"rcv1: topic must be a code like 'CCAT' or 'C11', got {topic!r}")
    return {"topic": topic, **_check_rcv1_split(params)}
