"""The rivals of mirror prox: perceptron, von Neumann's algorithm, and their smooth kin.

Each is a generator of its iterates, in any :class:`ElementSpace`; :func:`run` drives all of them:
their iterations, stopping rules and certificates are the same (MPFP14 Theorem 2, section 5.2).

Perceptron (PCT, KPCT)::

    y_0 = 0;  j = argmin_j A_j'y_k, or the next mistake;  y_{k+1} = (k y_k + A_j) / (k + 1)

Von Neumann, Frank-Wolfe with exact line search on 1/2 ||A x||^2 (VN, KVN)::

    y_k = A x_k;  j = argmin_j A_j'y_k
    theta = (||y_k||^2 - A_j'y_k) / (||y_k||^2 - 2 A_j'y_k + 1)
    x_{k+1} = (1 - theta) x_k + theta e_j,  y_{k+1} = (1 - theta) y_k + theta A_j

Smooth perceptron, Nesterov's excessive gap technique (SPCT, SNKP; SP12 and RP14), with
``x_mu(y) = argmin_x x'A'y + mu d(x)``::

    y_0 = A 1/n, x_0 = x_mu(y_0), theta_k = 2 / (k + 3)
    y_{k+1} = (1 - theta_k) (y_k + theta_k A x_k) + theta_k^2 A x_mu(y_k)
    mu_{k+1} = (1 - theta_k) mu_k,  x_{k+1} = (1 - theta_k) x_k + theta_k x_mu_{k+1}(y_{k+1})

d is the entropy, whose x_mu is a softmax; SPVN, ISPVN and ISNKPVN (SP13) take half the squared
distance from a centre, with a projection onto the simplex, in rounds that start from the last x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from itertools import count
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from ..numeric.compiling import njit
from ..numeric.extremes import largest
from ..numeric.water_level import water_level
from .progress import Progress
from .result import FeasibilityResult
from .spaces import ElementSpace

# Running sums of von Neumann's algorithm are computed afresh after this many iterations.
_REFRESH = 1000
# The greatest eigenvalue is found from below, to this relative accuracy.
_NORM_ACCURACY = 1e-3

# Given an element and mu: overwrite the weights, return the least response and the weights' image.
Smoothing = Callable[[np.ndarray, float, np.ndarray], tuple[float, np.ndarray]]


class Iterate(NamedTuple):
    """Where a method is after some iterations."""

    n_iter: int
    y: np.ndarray  # An element; of any length, for its direction is what counts
    norm: float  # Its length
    least: float  # The least response to it
    x: np.ndarray  # float64, shape (n,): Weights of any positive sum
    up: float  # ||A x|| of the weights when their sum is 1


Iterates = Generator[Iterate, None, None]


def run(space: ElementSpace, progress: Progress, iterates: Iterates) -> FeasibilityResult:
    """Iterate until a certificate or a limit; y is the best of its direction in the unit ball."""
    for at in iterates:

        def unit(y: np.ndarray = at.y) -> np.ndarray:
            return space.coefficients(y) / (space.norm(y) or 1.0)

        low = at.least / at.norm if at.norm > 0 else 0.0
        if progress.ends(at.n_iter, low, at.up, unit):
            break
    return progress.result(unit(), at.x / at.x.sum())


def perceptron(space: ElementSpace, pick: Literal["worst", "cyclic"]) -> Iterates:
    """The normalised perceptron: y is the mean of the columns that were mistakes."""
    visits, j = np.zeros(space.n), 0
    # All responses to y_0 = 0 are 0: the first column is the first mistake.
    visits[0], y = 1, space.column(0)
    for t in count(1):
        s = space.responses(y)
        norm, worst = space.norm(y), int(s.argmin())
        yield Iterate(t, y, norm, float(s[worst]), visits, norm)
        mistakes = np.flatnonzero(s <= 0) if pick == "cyclic" else s[:0]
        if len(mistakes):
            later = mistakes[mistakes > j]
            j = int(later[0] if len(later) else mistakes[0])
        else:
            j = worst
        y *= t / (t + 1)
        y += space.column(j) / (t + 1)
        visits[j] += 1


def von_neumann(space: ElementSpace, start: Literal["centre", "vertex"]) -> Iterates:
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
        norm, j = space.norm(y), int(s.argmin())
        least = float(s[j])
        yield Iterate(t, y, norm, least, x, norm)
        towards, length = norm**2 - least, norm**2 - 2 * least + 1
        # At a vertex both are 0, up to rounding.
        step = min(towards / length, 1.0) if towards > 0 and length > 0 else 0.0
        x *= 1 - step
        x[j] += step
        if start == "centre" and (t + 1) % _REFRESH == 0:
            y[...] = space.image(x)
        else:
            y *= 1 - step
            y += step * space.column(j)


def smooth_perceptron(space: ElementSpace, mu: float) -> Iterates:
    """The entropy as smoothing function."""
    start = space.image(np.full(space.n, 1 / space.n))
    yield from _excessive_gap(space, space.smooth, start, mu, 0, target=-math.inf, limit=None)


def smooth_von_neumann(
    space: ElementSpace,
    progress: Progress,
    *,
    mu0: float | str,
    factor: float,
    max_rounds: int,
    max_inner: int | None,
) -> Iterates:
    """Half the squared distance from a centre as smoothing function, in rounds."""
    if mu0 == "norm":
        mu = 2 * squared_norm_bound(space)
    else:
        mu = 2.0 * space.n if mu0 == "n" else float(mu0)
    centre, n_iter = np.full(space.n, 1 / space.n), 0
    image = space.image(centre)
    for _ in range(max_rounds):
        target = space.norm(image) / factor
        smoothing = _euclidean(space, centre)
        centre, image, n_iter = yield from _excessive_gap(
            space, smoothing, image, mu, n_iter, target, max_inner
        )
        if space.norm(image) > target:
            before = f"a round did not divide ||A x|| by {factor!r} in"
            progress.give_up(f"max_inner={max_inner}", "iterations", before=before)
            return
    progress.give_up(f"max_rounds={max_rounds}", "rounds are done")


def _excessive_gap(
    space: ElementSpace,
    smoothing: Smoothing,
    start: np.ndarray,
    mu: float,
    n_iter: int,
    target: float,
    limit: int | None,
) -> Generator[Iterate, None, tuple[np.ndarray, np.ndarray, int]]:
    """One round, from the element ``start`` to ``||A x|| <= target`` or the limit; x, A x, n_iter.

    The same ``x_mu(y)`` serves the updates of x and of the next y, and A x follows by linearity.
    """
    y, weights = start.copy(), np.empty(space.n)
    low, w_image = smoothing(y, mu, weights)
    x, image = weights.copy(), w_image.copy()
    for k in count(0):
        up = space.norm(image)
        yield Iterate(n_iter, y, space.norm(y), low, x, up)
        if up <= target or k == limit:
            break
        theta = 2 / (k + 3)
        y[...] = (1 - theta) * (y + theta * image) + theta**2 * w_image
        mu *= 1 - theta
        low, w_image = smoothing(y, mu, weights)
        x += theta * (weights - x)
        image += theta * (w_image - image)
        n_iter += 1
    return x, image, n_iter


def _euclidean(space: ElementSpace, centre: np.ndarray) -> Smoothing:
    """The weights nearest to ``centre - A'y / mu``."""

    def smoothing(y: np.ndarray, mu: float, weights: np.ndarray) -> tuple[float, np.ndarray]:
        s = space.responses(y)
        np.divide(s, -mu, out=weights)
        weights += centre
        project_to_simplex(weights)
        return float(s.min()), space.image(weights)

    return smoothing


def squared_norm_bound(space: ElementSpace) -> float:
    """An upper bound on ||A||_2^2, by Lanczos and never above n (unit columns)."""
    if space.size < 3:
        return float(space.n)
    operator = LinearOperator(
        (space.size, space.size), matvec=lambda v: space.normal_product(v.ravel()), dtype=np.float64
    )
    start = np.random.default_rng(0).standard_normal(space.size)
    greatest = eigsh(
        operator, k=1, v0=start, tol=_NORM_ACCURACY, return_eigenvectors=False, which="LA"
    )
    return min(float(greatest[0]) * (1 + 10 * _NORM_ACCURACY), float(space.n))


@njit(error_model="numpy")
def project_to_simplex(point):
    """The nearest point of the simplex, in place.

    What stands above a level is kept, the level at which that is 1 in all: upside down it is that
    of a unit of water. Sorted by NumPy, ISPVN takes 1.4 times as long.
    """
    # Down from the top, so that large entries keep the digits of their differences. The guess is
    # above the answer for sure: all the water over the lowest height alone.
    heights = point[largest(point)] - point
    level = water_level(heights, 1.0, 1.0)
    for i in range(len(point)):
        point[i] = max(level - heights[i], 0.0)
