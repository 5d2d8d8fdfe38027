"""A budget model in compiled code: its state, kernel rows against it, and the training points.

Points stand feature by feature: ``points[f, j]`` is feature f of point j, so that a loop over j
fills whole vector registers. Arrays over j are as wide as a whole number of registers; loops run
over that width, and what stands beyond the model's size has coefficient zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from scipy import sparse

from ..kernels import RBF, Kernel, Linear, Polynomial
from ..kernels.base import check_range
from ..numeric.compiling import Function, njit
from ..numeric.exponential import exponential
from ..numeric.matrices import Matrix, as_dense

# Numbers of float32 in an AVX-512 register.
LANES = 16
# A block of points stays in the second-level cache beside the model.
_BLOCK_BYTES = 256 * 2**10
_LONGEST_BLOCK = 4096

GAUSSIAN, LINEAR, POLYNOMIAL = 0, 1, 2


def compiled(**options: Any) -> Callable[[Function], Function]:
    """``njit`` for functions that change arrays in place and allocate nothing.

    Without numba's runtime for allocations (``_nrt``) no reference is counted: with it, each array
    that goes from one function to the next costs two atomic additions, and here that is as
    much as the arithmetic. The arrays belong to the Python caller all the while.
    """
    return njit(error_model="numpy", _nrt=False, **options)


class KernelCode(NamedTuple):
    """A kernel as compiled code sees it; Gaussian points are scaled so that gamma is 1."""

    kind: int
    degree: int
    gamma: float
    coef0: float


def kernel_code(kernel: Kernel) -> KernelCode:
    """The compiled form of a kernel."""
    # A class derived from one of them may evaluate another kernel.
    if type(kernel) is RBF:
        return KernelCode(GAUSSIAN, 0, 0.0, 0.0)
    if type(kernel) is Linear:
        return KernelCode(LINEAR, 1, 1.0, 0.0)
    if type(kernel) is Polynomial:
        return KernelCode(POLYNOMIAL, kernel.degree, kernel.gamma, kernel.coef0)
    raise ValueError(
        f"a budget model evaluates its kernel in compiled code, at points of its own: {kernel!r} "
        "is not among rbf, linear and poly"
    )


_COUNTED = (
    "n_points",  # of the model, now; all others since the start
    "changes",  # iterations that changed the model
    "coalesced",  # those of them that found their point in it
    "events",  # of maintenance
    "margin_evals",  # kernel evaluations as a textbook run asks for them
    "search_evals",
    "computed",  # kernel evaluations that were done
    "maintenance_ticks",  # of the processor
    "ticks",
)
#: What compiled code counts.
COUNTS = np.dtype([(name, np.int64) for name in _COUNTED])


class ModelState(NamedTuple):
    """w (for BSGD t w) is ``sum_j coef_j phi(z_j)``, j < counts.n_points; changed in place."""

    budget: int  # The most points it may have after an iteration
    points: np.ndarray  # shape (n_features, capacity): z_j in column j, in the kernel's units
    coef: np.ndarray  # float64, shape (capacity,): Zero beyond the size
    roots: np.ndarray  # float64, shape (capacity,): sqrt(k(z_j, z_j))
    owner: np.ndarray  # int64, shape (capacity,): The training point that z_j is; -1 after a merge
    # shape (capacity,) or (0,): The label of the training points that z_j is made of, -1 or +1;
    # kept only where points of the same label are merged
    labels: np.ndarray
    # shape (capacity,): Exponents and kernel entries of the point that was evaluated last
    distances: np.ndarray
    entries: np.ndarray
    near: np.ndarray  # shape (capacity,): The distances as merging counts them
    scratch: np.ndarray  # float64, shape (capacity,)
    partners: np.ndarray  # int64, shape (capacity,): Scratch of the partner search
    buffer: np.ndarray  # shape (n_features,): Holds a point
    # float64, shape (capacity, capacity) or (0, 0): Kernel entries between the points, for
    # projection
    gram: np.ndarray
    # float64, shape (capacity, capacity) or (0, 0): Upper triangular: ``factor' factor`` is the
    # ridged matrix of kernel entries, in the order of ``order``
    factor: np.ndarray
    # int64, shape (capacity,): The position of the point that each row of the factor belongs to
    order: np.ndarray
    carried: np.ndarray  # float64, shape (capacity,): Scratch of projection
    counts: np.void  # record of int64: The size of the model and the counters of :data:`COUNTS`
    # float64, shape (1,): Sum of the squared distances in feature space that w was moved by budget
    # maintenance
    degradation: np.ndarray


def empty_state(
    n_features: int, budget: int, dtype: str, *, gram: bool, labels: bool
) -> ModelState:
    """A model of no points, with room for ``budget`` and one more."""
    capacity = -(-(budget + 1) // LANES) * LANES
    side = capacity if gram else 0
    return ModelState(
        budget=budget,
        points=np.zeros((n_features, capacity), dtype),
        coef=np.zeros(capacity),
        roots=np.zeros(capacity),
        owner=np.full(capacity, -1),
        labels=np.zeros(capacity if labels else 0, dtype),
        distances=np.zeros(capacity, dtype),
        entries=np.zeros(capacity, dtype),
        near=np.zeros(capacity, dtype),
        scratch=np.zeros(capacity),
        partners=np.zeros(capacity, dtype=np.int64),
        buffer=np.zeros(n_features, dtype=dtype),
        gram=np.zeros((side, side)),
        factor=np.zeros((side, side)),
        order=np.zeros(capacity, dtype=np.int64),
        carried=np.zeros(capacity),
        counts=np.zeros(1, dtype=COUNTS)[0],
        degradation=np.zeros(1),
    )


class TrainingPoints:
    """The training points in the kernel's own units, without a copy of the data.

    For the Gaussian kernel they are centred and scaled so that the exponent is the squared
    distance: float32 then holds them as well as it can, whatever the units of the features.
    ``squares`` are k(x_i, x_i), none for the Gaussian kernel, where all are 1.
    """

    def __init__(self, kernel: Kernel, X: Matrix, dtype: str) -> None:
        self.code: KernelCode = kernel_code(kernel)
        self.X, self.dtype = X, dtype
        d = X.shape[1]
        self._scale, self._shift = 1.0, np.zeros(d)
        self.squares = np.empty(0)
        if isinstance(kernel, RBF):
            self._scale = float(np.sqrt(kernel.gamma))
            low, high = (as_dense(end).ravel().astype(float) for end in (X.min(0), X.max(0)))
            self._shift = low / 2 + high / 2
            with np.errstate(over="ignore"):
                largest = np.square(self._scale * (high - low)).sum()
            check_range(kernel, largest, self._shift, dtype)
        else:
            # Checks the range, too.
            self.squares = kernel.diag(kernel.prepare(X, dtype))
            if self.squares.min() < 0:
                raise ValueError(
                    f"k(x, x) is negative at some points: {kernel!r} is not positive semidefinite"
                )
        room = _BLOCK_BYTES // (d * np.dtype(dtype).itemsize)
        self.block_length = min(_LONGEST_BLOCK, max(1, room))

    def gather(self, index: np.ndarray) -> np.ndarray:
        """These points, a fresh array of shape (len(index), n_features)."""
        points = np.empty((len(index), self.X.shape[1]), dtype=self.dtype)
        if sparse.issparse(self.X):
            X = self.X
            _gather_sparse(X.data, X.indices, X.indptr, index, self._shift, self._scale, points)
        else:
            _gather_dense(self.X, index, self._shift, self._scale, points)
        return points

    def points_of(self, model: ModelState) -> np.ndarray:
        """The model's points in the data's units and type, shape (size, n_features).

        Points that are training points come out exactly as they are in the data.
        """
        size = int(model.counts["n_points"])
        points = model.points[:, :size].T / self._scale + self._shift
        points = np.ascontiguousarray(points, dtype=self.X.dtype)
        own = np.flatnonzero(model.owner[:size] >= 0)
        points[own] = as_dense(self.X[model.owner[own]])
        return points


@compiled()
def _gather_dense(X, index, shift, scale, points):
    for p in range(len(index)):
        i = index[p]
        for f in range(len(shift)):
            points[p, f] = (X[i, f] - shift[f]) * scale


@compiled()
def _gather_sparse(data, indices, indptr, index, shift, scale, points):
    for p in range(len(index)):
        for f in range(len(shift)):
            points[p, f] = -shift[f] * scale
        for q in range(indptr[index[p]], indptr[index[p] + 1]):
            f = indices[q]
            points[p, f] = (data[q] - shift[f]) * scale


def exp_negative(x: Any) -> Any:
    """exp(-x) of a number x >= 0, for compiled code: float32 by a polynomial that vectorises."""
    raise NotImplementedError("compiled code only")


@overload(exp_negative)
def _exp_negative(x):
    return (lambda x: exponential(-x)) if x == types.float32 else (lambda x: math.exp(-x))


@compiled()
def kernel_row(kernel, x, points, size, distances, entries):
    """``entries_j = k(x, z_j)``, j < size; ``distances`` get the Gaussian kernel's exponents."""
    width = (size + LANES - 1) // LANES * LANES
    if kernel.kind == GAUSSIAN:
        squared_distances(x, points, size, distances)
        for j in range(width):
            entries[j] = exp_negative(distances[j])
    elif kernel.kind == LINEAR:
        _inner_products(x, points, width, entries)
    else:
        _inner_products(x, points, width, distances)
        for j in range(width):
            distances[j] = kernel.gamma * distances[j] + kernel.coef0
            entries[j] = distances[j]
        for _ in range(1, kernel.degree):
            for j in range(width):
                entries[j] *= distances[j]


@compiled(fastmath={"contract", "reassoc"})
def squared_distances(x, points, size, out):
    """``out_j = ||x - z_j||^2`` for j < size, the differences taken feature by feature."""
    d, width = len(x), (size + LANES - 1) // LANES * LANES
    for j in range(width):
        out[j] = 0
    whole = d - d % 4
    # Four features a pass: one by one, BSGD on adult and BSCA on ijcnn1 take 1.15 times as long.
    for f in range(0, whole, 4):
        x0, x1, x2, x3 = x[f], x[f + 1], x[f + 2], x[f + 3]
        z0, z1, z2, z3 = points[f], points[f + 1], points[f + 2], points[f + 3]
        for j in range(width):
            a, b, c, e = x0 - z0[j], x1 - z1[j], x2 - z2[j], x3 - z3[j]
            out[j] += a * a + b * b + (c * c + e * e)
    for f in range(whole, d):
        x0, z0 = x[f], points[f]
        for j in range(width):
            a = x0 - z0[j]
            out[j] += a * a


@compiled(fastmath={"contract", "reassoc"})
def _inner_products(x, points, width, out):
    """``out_j = <x, z_j>`` for j < width."""
    for j in range(width):
        out[j] = 0
    for f in range(len(x)):
        x0, z0 = x[f], points[f]
        for j in range(width):
            out[j] += x0 * z0[j]


@compiled(fastmath={"contract", "reassoc"})
def weighted_sum(coef, entries, size):
    """``sum_j coef_j entries_j`` in float64, whole registers of it."""
    total = 0.0
    for j in range((size + LANES - 1) // LANES * LANES):
        total += coef[j] * entries[j]
    return total


@compiled(fastmath={"nnan", "nsz", "reassoc"})
def smallest(values, size):
    """The last position of the smallest among the first ``size`` values."""
    # Four at a time: compilers would take floats one after the other, and ``extremes`` looks at the
    # bits through a view, which needs the runtime.
    a = b = c = least = values[0]
    for j in range(3, size, 4):
        a, b = min(a, values[j - 3]), min(b, values[j - 2])
        c, least = min(c, values[j - 1]), min(least, values[j])
    for j in range(size - size % 4, size):
        least = min(least, values[j])
    least = min(min(a, b), min(c, least))
    position = -1
    for j in range(size):
        position = max(position, j if values[j] == least else -1)
    return position


@compiled(inline="always")
def drop(model, j):
    """Take point j out; the last one moves to its place."""
    points, coef, roots, owner = model.points, model.coef, model.roots, model.owner
    labels = model.labels
    last = model.counts.n_points - 1
    if j != last:
        for f in range(len(points)):
            points[f, j] = points[f, last]
        coef[j], roots[j], owner[j] = coef[last], roots[last], owner[last]
        if len(labels) > 0:
            labels[j] = labels[last]
    coef[last] = 0.0
    owner[last] = -1
    model.counts.n_points = last
