"""Checks of solver parameters; each message names the parameter, the value and the range."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np


def check_positive(name: str, value: Any, *, zero: bool = False) -> None:
    """Raise ValueError unless ``value`` is a finite number > 0 (or >= 0)."""
    number = isinstance(value, int | float | np.integer | np.floating)
    # Not by numpy: it takes no whole number of more than 64 bits, and rounds the bound to float32.
    plain = value.item() if isinstance(value, np.generic) else value
    finite = number and not isinstance(value, bool) and abs(plain) <= sys.float_info.max
    if not (finite and (value > 0 or (zero and value == 0))):
        raise ValueError(f"{name} must be a number {'>=' if zero else '>'} 0, got {value!r}")


def check_whole(name: str, value: Any, *, at_least: int) -> None:
    """Raise ValueError unless ``value`` is a whole number >= ``at_least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name} must be a whole number >= {at_least}, got {value!r}")


def check_one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise ValueError unless ``value`` is one of the allowed ones."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_iteration_limit(max_epochs: int) -> None:
    """Raise ValueError unless ``max_epochs`` is a whole number >= 1."""
    check_whole("max_epochs", max_epochs, at_least=1)
