"""Smooth perceptron and smooth von Neumann algorithms: Nesterov's excessive gap technique."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from .progress import Progress
from .result import FeasibilityResult
from .simplex import blend, project_to_simplex
from .spaces import ElementSpace

# The greatest eigenvalue is found from below, to this relative accuracy.
_NORM_ACCURACY = 1e-3

# Given an element and mu: overwrite the weights, return the least response and the weights' image.
Smoothing = Callable[[np.ndarray, float, np.ndarray], tuple[float, np.ndarray]]


@dataclass
class _Iterate:
    """Where a run of the smooth loop has arrived."""

    y: np.ndarray  # The element y, and A x
    image: np.ndarray
    x: np.ndarray  # float64, shape (n,)
    n_iter: int  # Iterations of all runs so far
    ended: bool = False  # Whether the whole method ends here
    reached: bool = False  # Whether ||A x|| fell to the run's target


def smooth_perceptron(space: ElementSpace, progress: Progress, mu: float) -> FeasibilityResult:
    """SPCT: the entropy as smoothing function."""
    start = space.image(np.full(space.n, 1 / space.n))
    last = _run(space, progress, space.smooth, start, mu, 0, target=0.0, limit=None)
    return _result(space, progress, last)


def smooth_von_neumann(
    space: ElementSpace,
    progress: Progress,
    *,
    factor: float,
    mu: float | None,
    max_rounds: int,
    max_inner: int | None,
) -> FeasibilityResult:
    """SPVN and ISPVN: half the squared distance from a centre as smoothing function."""
    if mu is None:
        mu = 2 * squared_norm_bound(space)
    centre = np.full(space.n, 1 / space.n)
    image = space.image(centre)
    n_iter = 0
    for _ in range(max_rounds):
        target = space.norm(image) / factor
        last = _run(
            space, progress, _euclidean(space, centre), image, mu, n_iter, target, max_inner
        )
        if last.ended:
            break
        if not last.reached:
            before = f"a round did not divide ||A x|| by {factor!r} in"
            progress.give_up(f"max_inner={max_inner}", "iterations", before=before)
            break
        centre, image, n_iter = last.x, last.image, last.n_iter
    else:
        progress.give_up(f"max_rounds={max_rounds}", "rounds are done")
    return _result(space, progress, last)


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


def _run(
    space: ElementSpace,
    progress: Progress,
    smoothing: Smoothing,
    start: np.ndarray,
    mu: float,
    n_iter: int,
    target: float,
    limit: int | None,
) -> _Iterate:
    """The common loop, from the element ``start`` until a certificate, the target or the limit."""
    y, weights = start.copy(), np.empty(space.n)
    low, w_image = smoothing(y, mu, weights)
    at = _Iterate(y, w_image.copy(), weights.copy(), n_iter)
    k = 0
    while True:
        norm, up = space.norm(at.y), space.norm(at.image)
        at.ended = progress.ends(at.n_iter, low / norm if norm > 0 else 0.0, up, _unit(space, at))
        at.reached = up <= target
        if at.ended or at.reached or k == limit:
            return at
        theta = 2 / (k + 3)
        at.y = (1 - theta) * (at.y + theta * at.image) + theta**2 * w_image
        mu *= 1 - theta
        low, w_image = smoothing(at.y, mu, weights)
        blend(at.x, weights, theta)
        at.image += theta * (w_image - at.image)
        k += 1
        at.n_iter += 1


def _euclidean(space: ElementSpace, centre: np.ndarray) -> Smoothing:
    """The weights nearest to ``centre - A'y / mu``."""

    def smoothing(y: np.ndarray, mu: float, weights: np.ndarray) -> tuple[float, np.ndarray]:
        s = space.responses(y)
        np.divide(s, -mu, out=weights)
        weights += centre
        project_to_simplex(weights)
        return float(s.min()), space.image(weights)

    return smoothing


def _unit(space: ElementSpace, at: _Iterate) -> Callable[[], np.ndarray]:
    return lambda: space.coefficients(at.y) / (space.norm(at.y) or 1.0)


def _result(space: ElementSpace, progress: Progress, last: _Iterate) -> FeasibilityResult:
    return progress.result(_unit(space, last)(), last.x / last.x.sum())
