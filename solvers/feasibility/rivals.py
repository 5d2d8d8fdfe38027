"""The rivals of mirror prox (MPFP14 section 7): perceptron, von Neumann's algorithm, smooth kin.

Each yields its iterates, in any :class:`Space`: on columns (PCT, VN, SPCT, ISPVN) and, with a K, in
feature space (KPCT, KVN, SNKP, ISNKPVN), where the iterations are the same. All end by the same
rule, with the same certificates (``base.Progress``; MPFP14 Theorem 2). The steps stand in the
``_iterates`` of the four classes of parameters, those of the smooth ones in ``_excessive_gap``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from inspect import signature
from itertools import count
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from ..interface.declaration import hyperparameters
from ..numeric.compiling import njit
from ..numeric.extremes import largest
from ..numeric.validation import check_one_of, check_positive, check_whole
from ..numeric.water_level import water_level
from ..registration import register
from .base import FeasibilityMethod, GramMethod, Progress, RowMethod
from .spaces import Iterate, Space

# Running sums of von Neumann's algorithm are computed afresh after this many iterations.
_REFRESH = 1000
# The greatest eigenvalue is found from below, to this relative accuracy.
_NORM_ACCURACY = 1e-3
# Where a Krylov space ends, ARPACK goes on with a random vector, from SciPy 1.17 on of this seed.
_SEED = {"rng": 0} if "rng" in signature(eigsh).parameters else {}


@hyperparameters
class PerceptronParameters:
    """The perceptron, in any space::

        y_0 = 0;  j = argmin_j A_j'y_k, or the next mistake;  y_{k+1} = (k y_k + A_j) / (k + 1)

    Parameters
    ----------
    pick : {"worst", "cyclic"}
        The column (or point) that enters: the one with the least response, or the next mistake in
        cyclic order.
    """

    _words: ClassVar[dict[str, tuple[str, ...]]] = {"pick": ("worst", "cyclic")}

    pick: Literal["worst", "cyclic"] = "worst"

    def _iterates(self, space: Space, progress: Progress) -> Iterator[Iterate]:
        visits, j = np.zeros(space.n), 0
        # All responses to y_0 = 0 are 0: the first column is the first mistake.
        visits[0], y = 1, space.column(0)
        for t in count(1):
            s = space.responses(y)
            norm, worst = space.norm(y), int(s.argmin())
            yield Iterate(t, y, norm, float(s[worst]), norm, visits.copy)
            mistakes = np.flatnonzero(s <= 0) if self.pick == "cyclic" else s[:0]
            # j, the column that enters, then the mean with it.
            if len(mistakes):
                later = mistakes[mistakes > j]
                j = int(later[0] if len(later) else mistakes[0])
            else:
                j = worst
            y *= t / (t + 1)
            y += space.column(j) / (t + 1)
            visits[j] += 1


@register("feasibility")
@hyperparameters
class PCT(PerceptronParameters, FeasibilityMethod):
    """The normalised perceptron.

    y is the mean of the columns that were mistakes: the one with the least response enters, or
    the next mistake in cyclic order. Up to its length this is the classical perceptron, so a
    separable problem ends within ``1 / rho^2`` iterations (Novikoff). A baseline of [MPFP14]_.
    Beyond the paper: y is A x for the visit frequencies x, so ``||y|| <= tol`` is a certificate
    that the margin is at most tol, and comes within ``1 / tol^2`` iterations where it exists.

    Notes
    -----
    Kernel evaluations: none. An iteration is 1 product with A'. Memory beyond A: 2 n + 2 m numbers.
    Returns y of unit length.
    """


@register("svm", "feasibility")
@hyperparameters
class KPCT(PerceptronParameters, RowMethod):
    """The normalised kernel perceptron, PCT in feature space.

    With a linear kernel the same as :class:`PCT`; up to its length the classifier is that of
    :class:`BatchPerceptron` on points of unit length. A baseline of [MPFP14]_.

    Notes
    -----
    Kernel evaluations: n in each iteration; the bounds come from running sums and are not
    recomputed. Memory: 8 n numbers and the cache.
    """


@hyperparameters
class VonNeumannParameters:
    """Frank-Wolfe with exact line search on 1/2 ||A x||^2, in any space::

        y_k = A x_k;  j = argmin_j A_j'y_k
        theta = (||y_k||^2 - A_j'y_k) / (||y_k||^2 - 2 A_j'y_k + 1)
        x_{k+1} = (1 - theta) x_k + theta e_j,  y_{k+1} = (1 - theta) y_k + theta A_j

    Parameters
    ----------
    start : {"centre", "vertex"}
        The first x: all columns alike, or the first column alone.
    """

    _words: ClassVar[dict[str, tuple[str, ...]]] = {"start": ("centre", "vertex")}

    start: Literal["centre", "vertex"] = "centre"

    def _iterates(self, space: Space, progress: Progress) -> Iterator[Iterate]:
        if self.start == "centre":
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
            yield Iterate(t, y, norm, least, norm, x.copy)
            towards, length = norm**2 - least, norm**2 - 2 * least + 1
            # At a vertex both are 0, up to rounding.
            theta = min(towards / length, 1.0) if towards > 0 and length > 0 else 0.0
            x *= 1 - theta
            x[j] += theta
            if self.start == "centre" and (t + 1) % _REFRESH == 0:
                y[...] = space.image(x)
            else:
                y *= 1 - theta
                y += theta * space.column(j)


@register("feasibility")
@hyperparameters
class VN(VonNeumannParameters, FeasibilityMethod):
    """Von Neumann's algorithm: the shortest point of the columns' convex hull.

    Frank-Wolfe with exact line search on ``1/2 ||A x||^2`` ([DAN92]_; a baseline of [MPFP14]_).
    ``||A x|| <= 1 / sqrt(t + 1)`` as long as nothing separates.

    Notes
    -----
    Kernel evaluations: none. An iteration is 1 product with A'; A x is computed afresh every 1000
    iterations. Memory beyond A: 2 n + 2 m numbers. Returns ``y = A x`` at unit length.
    """


@register("svm", "feasibility")
@hyperparameters
class KVN(VonNeumannParameters, RowMethod):
    """Von Neumann's algorithm with a kernel, VN in feature space.

    A baseline of [MPFP14]_.

    Parameters
    ----------
    start : {"vertex", "centre"}
        The first x: the first point alone, or all alike, which costs n^2 evaluations, and n^2 again
        every 1000 iterations.

    Notes
    -----
    Kernel evaluations: n in each iteration and n for the first vertex; the bounds come from running
    sums and are not recomputed. Memory: 8 n numbers and the cache.
    """

    start: Literal["vertex", "centre"] = "vertex"


@hyperparameters
class EntropyParameters:
    """Nesterov's excessive gap technique with the entropy as d, in any space.

    Parameters
    ----------
    mu0 : float > 0
        The first smoothing parameter. The method's invariant ``1/2 ||A x||^2 <= phi_mu(y)`` is
        proven for 2 and more; 1, half of that, gives the bound that [MPFP14]_ quotes.
    """

    mu0: float = 2.0

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        check_positive("mu0", self.mu0)

    def _iterates(self, space: Space, progress: Progress) -> Iterator[Iterate]:
        start = space.image(np.full(space.n, 1 / space.n))
        yield from _excessive_gap(space, space.smooth, start, float(self.mu0), 0, -math.inf, None)


@register("feasibility")
@hyperparameters
class SPCT(EntropyParameters, FeasibilityMethod):
    """The smooth perceptron.

    Nesterov's excessive gap technique on ``max_y -1/2 ||y||^2 + min_x y'A x``, the inner minimum
    smoothed by the entropy ([SP12]_; a baseline of [MPFP14]_). With ``mu0 = 2`` a separable problem
    ends within ``sqrt(8 log n) / rho`` iterations.

    Notes
    -----
    Kernel evaluations: none. An iteration is 2 products with A or A', in one pass over A whose
    exponentials are shifted to the least response seen so far, so that nothing overflows. Memory
    beyond A: 2 n + 5 m numbers. Returns the last y, at unit length, and the last x.
    """


@register("svm", "feasibility")
@hyperparameters
class SNKP(EntropyParameters, GramMethod):
    """The smooth normalised kernel perceptron, SPCT in feature space.

    From [RP14]_.

    Notes
    -----
    Kernel evaluations: n^2 once (about half of them computed), then 1 product with the stored
    matrix in an iteration and 2 for the start; n^2 evaluations for each if it does not fit. Memory:
    the matrix and 12 n numbers.
    """


@hyperparameters
class SmoothVonNeumannParameters:
    """The excessive gap technique with d = 1/2 ||x - centre||^2, in rounds, in any space.

    Parameters
    ----------
    mu0 : float > 0, "norm" or "n"
        The first smoothing parameter of each round. "norm" is twice a bound on ``||A||_2^2``, the
        least that the invariant is proven for; "n" is 2 n, which always suffices.
    """

    mu0: float | str = "norm"
    factor, max_rounds, max_inner = math.inf, 1, None

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        if isinstance(self.mu0, str):
            check_one_of("mu0", self.mu0, ("norm", "n"))
        else:
            check_positive("mu0", self.mu0)

    def _iterates(self, space: Space, progress: Progress) -> Iterator[Iterate]:
        if self.mu0 == "norm":
            mu = 2 * squared_norm_bound(space)
        else:
            mu = 2.0 * space.n if self.mu0 == "n" else float(self.mu0)
        centre, n_iter = np.full(space.n, 1 / space.n), 0
        image = space.image(centre)

        def smoothing(y: np.ndarray, mu: float, weights: np.ndarray) -> tuple[float, np.ndarray]:
            """The weights nearest to ``centre - A'y / mu``."""
            s = space.responses(y)
            np.divide(s, -mu, out=weights)
            weights += centre
            project_to_simplex(weights)
            return float(s.min()), space.image(weights)

        for _ in range(self.max_rounds):
            target = space.norm(image) / float(self.factor)
            centre, image, n_iter = yield from _excessive_gap(
                space, smoothing, image, mu, n_iter, target, self.max_inner
            )
            if space.norm(image) > target:
                words = f"a round did not divide ||A x|| by {float(self.factor)!r} in "
                progress.end(words + "{} iterations", f"max_inner={self.max_inner}")
                return
        progress.end("{} rounds are done", f"max_rounds={self.max_rounds}")


@hyperparameters
class RoundParameters(SmoothVonNeumannParameters):
    """The rounds of the iterated smooth methods.

    Parameters
    ----------
    max_iter
        Stop after this many iterations of all rounds together.
    factor : float > 1
        What a round divides ``||A x||`` by; called gamma in the papers.
    max_rounds : int >= 1
        Stop after this many rounds.
    max_inner : int >= 1 or None
        Stop if a round takes more iterations; None for no limit but ``max_iter``.
    """

    factor: float = 2.0
    max_rounds: int = 1000
    max_inner: int | None = None  # type: ignore[assignment]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("factor", self.factor)
        if self.factor <= 1:
            raise ValueError(f"factor must be a number > 1, got {self.factor!r}")
        check_whole("max_rounds", self.max_rounds, at_least=1)
        if self.max_inner is not None:
            check_whole("max_inner", self.max_inner, at_least=1)


@register("feasibility")
@hyperparameters
class ISPVN(RoundParameters, FeasibilityMethod):
    """The iterated smooth perceptron - von Neumann algorithm.

    Rounds of the smooth algorithm with half the squared distance from a centre as smoothing
    function; each round divides ``||A x||`` by ``factor`` and centres the next one at its x, unless
    its y separates ([SP13]_; a baseline of [MPFP14]_, which reports runs that never ended: rounds
    and their iterations are limited here).

    Notes
    -----
    Kernel evaluations: none. An iteration is 2 products with A or A'; "norm" costs some ten pairs
    of products more, once. Memory beyond A: 5 n + 5 m numbers. Returns the last y, at unit length,
    and the last x.
    """


@register("svm", "feasibility")
@hyperparameters
class ISNKPVN(RoundParameters, GramMethod):
    """The iterated smooth normalised kernel perceptron - von Neumann algorithm.

    :class:`ISPVN` in feature space ([RP14]_; a baseline of [MPFP14]_).

    Notes
    -----
    Kernel evaluations: n^2 once (about half of them computed), then 1 product with the stored
    matrix in an iteration; n^2 evaluations in each iteration if it does not fit. "norm" costs some
    ten products more, once. Memory: the matrix and 14 n numbers.
    """


@register("feasibility")
@hyperparameters
class SPVN(SmoothVonNeumannParameters, FeasibilityMethod):
    """The smooth perceptron - von Neumann algorithm: one round of ISPVN.

    Ends with ``||A x|| <= tol`` or a separating y, within ``2 sqrt(mu0) / tol`` iterations or so
    ([SP13]_).

    Notes
    -----
    Kernel evaluations: none. An iteration is 2 products with A or A'. Memory beyond A: 5 n + 5 m
    numbers. Returns the last y, at unit length, and the last x.
    """


def _excessive_gap(
    space: Space,
    smoothing: Callable[[np.ndarray, float, np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    mu: float,
    n_iter: int,
    target: float,
    limit: int | None,
) -> Generator[Iterate, None, tuple[np.ndarray, np.ndarray, int]]:
    """One round, from the element ``start`` to ``||A x|| <= target`` or the limit; x, A x, n_iter.

    With ``x_mu(y) = argmin_x x'A'y + mu d(x)``, the smoothing of y (SP12, RP14, SP13)::

        y_0 = start, x_0 = x_mu(y_0), theta_k = 2 / (k + 3)
        y_{k+1} = (1 - theta_k) (y_k + theta_k A x_k) + theta_k^2 A x_mu(y_k)
        mu_{k+1} = (1 - theta_k) mu_k,  x_{k+1} = (1 - theta_k) x_k + theta_k x_mu_{k+1}(y_{k+1})

    The same ``x_mu(y)`` serves the updates of x and of the next y, and A x follows by linearity.
    """
    y, weights = start.copy(), np.empty(space.n)
    low, w_image = smoothing(y, mu, weights)
    x, image = weights.copy(), w_image.copy()
    for k in count(0):
        up = space.norm(image)
        yield Iterate(n_iter, y, space.norm(y), low, up, x.copy)
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


def squared_norm_bound(space: Space) -> float:
    """An upper bound on ||A||_2^2, by Lanczos and never above n (unit columns)."""
    if space.size < 3:
        return float(space.n)
    operator = LinearOperator(
        (space.size, space.size), matvec=lambda v: space.normal_product(v.ravel()), dtype=np.float64
    )
    start = np.random.default_rng(0).standard_normal(space.size)
    greatest = eigsh(
        operator, k=1, v0=start, tol=_NORM_ACCURACY, return_eigenvectors=False, which="LA", **_SEED
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
