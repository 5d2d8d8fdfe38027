"""Perceptron and von Neumann's algorithm: one column enters in each iteration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Literal

import numpy as np

from .progress import Progress
from .result import FeasibilityResult
from .spaces import ElementSpace

# Running sums of von Neumann's algorithm are computed afresh after this many iterations.
_REFRESH = 1000


def perceptron(
    space: ElementSpace, progress: Progress, pick: Literal["worst", "cyclic"]
) -> FeasibilityResult:
    """The normalised perceptron: y is the mean of the columns that were mistakes."""
    visits = np.zeros(space.n)
    # All responses to y_0 = 0 are 0: the first column is the first mistake.
    j = 0
    visits[j] = 1
    y = space.column(j)
    for t in count(1):
        s = space.responses(y)
        norm = space.norm(y)
        unit = _unit(space, y)
        worst = int(s.argmin())
        if progress.ends(t, _over(s[worst], norm), norm, unit):
            break
        j = worst if pick == "worst" else _next_mistake(s, j, worst)
        y *= t / (t + 1)
        y += space.column(j) / (t + 1)
        visits[j] += 1
    return progress.result(unit(), visits / visits.sum())


def von_neumann(
    space: ElementSpace, progress: Progress, start: Literal["centre", "vertex"]
) -> FeasibilityResult:
    """Frank-Wolfe with exact line search on ``1/2 ||A x||^2``."""
    if start == "centre":
        x = np.full(space.n, 1 / space.n)
        y = space.image(x)
    else:
        x = np.zeros(space.n)
        x[0] = 1.0
        y = space.column(0)
    for t in count(0):
        s = space.responses(y)
        norm = space.norm(y)
        unit = _unit(space, y)
        j = int(s.argmin())
        least = float(s[j])
        if progress.ends(t, _over(least, norm), norm, unit):
            break
        # The nearest point to 0 between A x and the unit vector A_j.
        step = (norm**2 - least) / (norm**2 - 2 * least + 1)
        x *= 1 - step
        x[j] += step
        if start == "centre" and (t + 1) % _REFRESH == 0:
            y[...] = space.image(x)
        else:
            y *= 1 - step
            y += step * space.column(j)
    return progress.result(unit(), x / x.sum())


def _unit(space: ElementSpace, y: np.ndarray) -> Callable[[], np.ndarray]:
    """y of unit length, as a result shows it: the best of its direction in the ball."""
    return lambda: space.coefficients(y) / (space.norm(y) or 1.0)


def _over(least: float, norm: float) -> float:
    return float(least) / norm if norm > 0 else 0.0


def _next_mistake(s: np.ndarray, after: int, worst: int) -> int:
    """The first column after this one, in cyclic order, whose response is not positive."""
    mistakes = np.flatnonzero(s <= 0)
    if len(mistakes) == 0:
        return worst
    later = mistakes[mistakes > after]
    return int(later[0] if len(later) else mistakes[0])
