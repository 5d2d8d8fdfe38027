"""The spaces that y may belong to: columns of A or the map of a conic problem, and feature space.

A method asks a space for products, which are counted as a textbook run counts them, and for exact
bounds, which are not. Elements of :class:`ColumnSpace` are vectors of m numbers. Feature space is
known by kernel entries alone: its elements are arrays of shape (2, n), the coefficients on the
columns, and the responses of the columns (the Gram matrix times the coefficients).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..kernels.oracle import KernelOracle
from ..numeric.counters import Counters, FeasibilityCounters
from ..numeric.matrices import matmul, scratch
from .certificates import (
    lower_bound,
    opposite_columns,
    proves_inseparable,
    rounding_of_lower_bound,
    upper_bound,
)
from .cones import softmax
from .passes import (
    SimplexSide,
    block_width,
    dot_columns,
    mirror,
    mirror_block,
    smooth,
)
from .problem import FeasibilityProblem

# Errors of the bounds from running sums, which come from products in A's own type.
_NOISE = {"float64": 1e-12, "float32": 1e-6}
# Rows of a Gram matrix are computed in blocks of at most this many bytes. One that is stored is
# computed in a number of blocks, each from the diagonal on, if they are not too small for BLAS.
_BLOCK_BYTES = 32 * 2**20
_BLOCKS = 16
_LEAST_ROWS = 64
_EPS = float(np.finfo(np.float64).eps)


class Iterate(NamedTuple):
    """Where a method is after an iteration; its arrays are those that the method goes on with."""

    n_iter: int
    y: np.ndarray  # An element; what counts is y over its norm
    norm: float  # Its length, or what else keeps it in the ball
    least: float  # The least response to it
    up: float  # ||A x||
    weights: Callable[[], np.ndarray]  # x times a positive factor, float64, shape (n,)


class Space:
    """A problem's products, counted as a textbook run counts them, and its exact bounds.

    Its elements y are arrays that may be added and scaled. ``image(x)`` and ``column(j)`` are the
    elements A x and A_j, fresh arrays; ``responses(y)`` is A'y, ``norm(y)`` is ||y||, and
    ``normal_product(v)`` is A A'v or A'A v, for the spectral norm of A. What proves is not counted.
    """

    n: int  # Entries of x
    size: int  # Length of the vectors that ``normal_product`` takes
    # What the space is of; None for points that are known by kernel entries only
    problem: FeasibilityProblem | None = None
    counters: Counters
    matvecs: int = 0  # Products of a matrix with a vector so far
    noise: float = 1e-12  # What bounds from running sums may be off by

    image: Callable[[np.ndarray], np.ndarray]
    responses: Callable[[np.ndarray], np.ndarray]
    column: Callable[[int], np.ndarray]
    norm: Callable[[np.ndarray], float]
    normal_product: Callable[[np.ndarray], np.ndarray]

    def smooth(self, y: np.ndarray, mu: float, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """weights = softmax(-A'y / mu), in place; the least of A'y, and the element A weights."""
        responses = self.responses(y)
        softmax(responses / -mu, out=weights)
        return float(responses.min()), self.image(weights)

    def unit(self, at: Iterate) -> np.ndarray:
        """The point of the ball that a result shows: coefficients in feature space."""
        return at.y / (at.norm or 1.0)

    def total(self, x: np.ndarray) -> float:
        """<e, x>, which is 1 on the base."""
        return float(x.sum())

    def separates(self, y: np.ndarray, low: float) -> bool:
        """Whether the y of these coefficients separates, by more than rounding."""
        assert self.problem is not None
        return lower_bound(self.problem, y) > rounding_of_lower_bound(self.problem, y)

    def bounds(self, y: np.ndarray, x: np.ndarray, low: float, up: float) -> tuple[float, float]:
        """phi_lo(y) and phi_up(x), recomputed where that is possible."""
        assert self.problem is not None
        return lower_bound(self.problem, y), upper_bound(self.problem, x)

    def rounded_up(self, up: float) -> float:
        """``||A x||`` as it may be where running sums say ``up``, beyond :attr:`noise`."""
        return up

    def inseparability_proof(self, x: np.ndarray) -> np.ndarray | None:
        """A point that proves that nothing separates, x if it does; None if none is known."""
        if self.problem is None:
            return None
        return x if proves_inseparable(self.problem, x) else opposite_columns(self.problem)


class ColumnSpace(Space):
    """Products with A, columns or the map of a conic problem, as it is stored; each is counted."""

    def __init__(self, problem: FeasibilityProblem) -> None:
        self.problem: FeasibilityProblem = problem
        self.A = problem.data
        self.m = self.size = problem.m
        self.n = problem.n
        self.counters = FeasibilityCounters()
        self.noise = _NOISE[self.A.dtype.name]
        self._sparse = sparse.issparse(self.A)
        # Products with dense columns are summed in their own type.
        self._type = np.dtype(np.float64) if self._sparse else self.A.dtype
        if not self._sparse:
            self._width = block_width(self.m, self.A.itemsize, rows=self.A.flags.c_contiguous)

    def image(self, x: np.ndarray) -> np.ndarray:
        self.charge(1)
        return self.product(x)

    def product(self, x: np.ndarray) -> np.ndarray:
        """A x, not counted."""
        if self._sparse:
            return np.asarray(self.A @ x, dtype=np.float64)
        return matmul(self.A, x.astype(self._type, copy=False)).astype(np.float64)

    def responses(self, y: np.ndarray) -> np.ndarray:
        self.charge(1)
        if self._sparse:
            return np.asarray(self.A.T @ y, dtype=np.float64)
        return matmul(y.astype(self._type, copy=False), self.A)

    def column(self, j: int) -> np.ndarray:
        column = self.A[:, [j]].toarray().ravel() if self._sparse else self.A[:, j]
        return column.astype(np.float64)

    def norm(self, y: np.ndarray) -> float:
        return math.sqrt(float(matmul(y, y)))

    def total(self, x: np.ndarray) -> float:
        return self.problem.cone.unit(x)

    def normal_product(self, v: np.ndarray) -> np.ndarray:
        return self.image(self.responses(v))

    def smooth(self, y: np.ndarray, mu: float, weights: np.ndarray) -> tuple[float, np.ndarray]:
        if self._sparse:
            return super().smooth(y, mu, weights)
        self.charge(2)
        images = np.empty((1, self.m))
        ys = y[None].astype(self._type, copy=False)
        return float(smooth(self.A, ys, mu, weights, images, self._width)), images[0]

    def mirror(
        self, ys: np.ndarray, *step: float, side: SimplexSide, images: np.ndarray
    ) -> tuple[float, float, float, float]:
        """Four products in one pass (:func:`.passes.mirror`)."""
        self.charge(4)
        ys = ys.astype(self._type, copy=False)
        if not self._sparse:
            return mirror(self.A, ys, *step, side, images, self._width)
        responses, weights = np.ascontiguousarray((self.A.T @ ys.T).T), np.empty((2, self.n))
        sums = mirror_block(0, self.n, *step, side, *responses, weights, np.empty((2, self.n)))
        images[:] = (self.A @ weights.T).T
        return sums

    def charge(self, matvecs: int) -> None:
        """Count products with A or A'."""
        self.matvecs += matvecs
        self.counters.inner_products += matvecs * self.n


class FeatureSpace(Space):
    """Products with the Gram matrix ``G_ij = factor_i K_ij factor_j``; each is counted."""

    def __init__(
        self,
        oracle: KernelOracle,
        factor: np.ndarray,
        index: np.ndarray,
        gram_bytes: int = 0,
        entry_noise: float = 0.0,
        problem: FeasibilityProblem | None = None,
        stored: dict[str, np.ndarray] | None = None,
    ) -> None:
        self.oracle, self.factor, self.problem = oracle, factor, problem
        # Which of the oracle's points are columns, and their part of a row.
        self.index = index
        self._own: Any = slice(None) if len(index) == oracle.n else index
        self.entry_noise = entry_noise
        self.n = self.size = len(factor)
        self.counters = oracle.counters
        row_bytes = self.n * oracle.dtype.itemsize
        self._fits = self.n * row_bytes <= gram_bytes
        self._rows_per_block = max(1, _BLOCK_BYTES // row_bytes)
        self._stored = {} if stored is None else stored
        self._updates = 0

    @classmethod
    def of_problem(cls, problem: FeasibilityProblem, *, stored: bool) -> FeatureSpace:
        """The space of a given Gram matrix."""
        G, n = problem.data, problem.n
        oracle = KernelOracle("precomputed", G, G.dtype.name, counters=FeasibilityCounters())
        factor = np.ones(n) / problem.lengths
        return cls(oracle, factor, np.arange(n), G.nbytes if stored else 0, problem=problem)

    @classmethod
    def of_points(
        cls,
        oracle: KernelOracle,
        signs: np.ndarray,
        gram_bytes: int,
        stored: dict[str, np.ndarray],
    ) -> FeatureSpace:
        """The space of the points with k(x, x) > 0, times their labels."""
        diag = oracle.diag()
        least, most = float(diag.min()), float(diag.max())
        if least < 0 or most == 0:
            raise ValueError(
                f"the {oracle.kernel.name} kernel of a point with itself is between {least!r} and "
                f"{most!r}: that is no length in feature space; use a positive semidefinite kernel "
                "or scale the features"
            )
        index = np.flatnonzero(diag > 0)
        noise = oracle.kernel.entry_noise(oracle.points, oracle.dtype.name) / most
        if not math.isfinite(noise):
            # Of a black box nothing is known but the type of its entries.
            noise = float(np.finfo(oracle.dtype).eps)
        factor = signs[index] / np.sqrt(diag[index])
        return cls(oracle, factor, index, gram_bytes, noise, stored=stored)

    def on_points(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients of f(x) = sum_i coef_i k(x_i, x) over all points of the oracle."""
        full = np.zeros(self.oracle.n)
        full[self.index] = self.factor * coefficients
        return full

    def load(self) -> None:
        """Compute and store the kernel matrix, once, if it fits. Costs n^2 entries.

        About half of them are computed.
        """
        if self._matrix is not None or not self._fits:
            return
        n, oracle, index = self.n, self.oracle, self.index
        if not oracle.kernel.evaluates:
            gram = oracle.points.values
            self._stored["gram"] = gram if n == oracle.n else gram[np.ix_(index, index)]
            oracle.charge(n * n, 0)
            return
        matrix = scratch((n, n), oracle.dtype)
        step = min(self._rows_per_block, max(_LEAST_ROWS, n // _BLOCKS))
        for lo in range(0, n, step):
            hi = min(lo + step, n)
            part = oracle.block(index[lo:hi], index[lo:])
            matrix[lo:hi, lo:] = part
            matrix[hi:, lo:hi] = part[:, hi - lo :].T
            # A textbook run asks for the entries below the diagonal too.
            oracle.charge((hi - lo) * lo, 0)
        self._stored["gram"] = matrix

    @property
    def _matrix(self) -> np.ndarray | None:
        return self._stored.get("gram")

    def products(self, *xs: np.ndarray) -> np.ndarray:
        """G x for each of one or two vectors x, in one pass over the matrix."""
        self.load()
        self._updates += 1
        self.matvecs += len(xs)
        if self._matrix is not None:
            self.counters.matvec_entries += len(xs) * self.n**2
        else:
            # The second product of a textbook run computes the entries again.
            self.oracle.charge((len(xs) - 1) * self.n**2, 0)
        return self._multiply(self.factor * np.stack(xs))

    def image(self, x: np.ndarray) -> np.ndarray:
        return np.stack((x, *self.products(x)))

    def responses(self, y: np.ndarray) -> np.ndarray:
        return y[1]

    def column(self, j: int) -> np.ndarray:
        """The element of column j, a fresh array. Costs n entries: no method stores them all."""
        self._updates += 1
        element = np.zeros((2, self.n))
        element[0, j] = 1.0
        row = self.oracle.row(int(self.index[j]))
        np.multiply(self.factor, row[self._own], out=element[1])
        element[1] *= self.factor[j]
        return element

    def norm(self, y: np.ndarray) -> float:
        return math.sqrt(max(float(matmul(y[0], y[1])), 0.0))

    def normal_product(self, v: np.ndarray) -> np.ndarray:
        return self.products(v)[0]

    def unit(self, at: Iterate) -> np.ndarray:
        return at.y[0] / (at.norm or 1.0)

    def separates(self, y: np.ndarray, low: float) -> bool:
        # Without the matrix it would cost n^2 entries: running sums must do, if they are positive
        # by more than the rounding of all updates.
        weight = float(np.abs(y).sum())
        noise = self.entry_noise * weight
        if self._matrix is None:
            return low > (self.n + 8 + self._updates) * _EPS * weight + noise
        bound = (self.n + 8) * _EPS * weight + noise
        return low > bound and float(self._multiply((self.factor * y)[None]).min()) > bound

    def rounded_up(self, up: float) -> float:
        # A squared length is known to rounding: of small lengths half the digits are lost.
        return math.sqrt(up**2 + 2 * (self.n + 8 + self._updates) * _EPS)

    def bounds(self, y: np.ndarray, x: np.ndarray, low: float, up: float) -> tuple[float, float]:
        if self.problem is not None:
            # The given matrix costs no entries, whether the method stores it or not.
            return lower_bound(self.problem, y), upper_bound(self.problem, x)
        if self._matrix is None:
            return low, up
        Gy, Gx = self._multiply(self.factor * np.stack((y, x)))
        return float(Gy.min()), math.sqrt(max(float(matmul(x, Gx)), 0.0))

    def _multiply(self, vectors: np.ndarray) -> np.ndarray:
        """factor * (K v) for vectors that carry the factor already, summed in float64."""
        results = np.empty((len(vectors), self.n))
        if self._matrix is not None:
            dot_columns(self._matrix, 0, self.n, vectors, results)
        else:
            for lo in range(0, self.n, self._rows_per_block):
                block = self.oracle.block(self.index[lo : lo + self._rows_per_block], self.index)
                dot_columns(block, 0, len(block), vectors, results[:, lo : lo + len(block)])
        results *= self.factor
        return results
