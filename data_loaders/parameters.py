"""What a dataset can be asked for by: named numbers and words."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from typing import TypeAlias

from marginbench.data_loaders.errors import DataError, suggest

Value: TypeAlias = int | float | str
Parameters: TypeAlias = Mapping[str, Value]
#: Checks all parameters of a dataset and returns them in plain int, float and str.
Checker: TypeAlias = Callable[[Mapping[str, object]], Parameters]

#: The values of ``positive`` for ten classes: one of them against the rest, or all as they are.
TEN_CLASSES: tuple[Value, ...] = (*range(10), "none")


def one_of(dataset: str, **allowed: tuple[Value, ...]) -> Checker:
    """A check that each parameter has one of a few values.

    Parameters
    ----------
    dataset : str
        Its name, for the messages.
    **allowed : tuple of int, float or str
        By parameter, every value that it may have.

    Returns
    -------
    callable
        ``params -> dict``; raises `DataError` for a value that is not allowed.
    """

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
