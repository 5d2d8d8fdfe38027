"""Self-dual cones and their products, by the extreme points of their bases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from ..numeric.matrices import Matrix, as_dense, matmul, squared_norms
from ..numeric.validation import check_whole

# Up to this many rows or columns the spectral norm comes from a dense eigenvalue problem.
_EXACT_UP_TO = 500


class Cone(ABC):
    """A self-dual symmetric cone, by the extreme points of its base ``{x in K : <e, x> = 1}``.

    For every functional p there is a frame of ``rank`` extreme points: p is in the interior of the
    cone exactly if its values at them, the spectral values, are positive. The points with weights
    >= 0 on a frame, summing to 1, over all frames, are the base.
    """

    n: int
    _least_n: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_whole("n", self.n, at_least=self._least_n)

    @property
    def size(self) -> int:
        """Entries of a point."""
        return self.n

    @property
    def rank(self) -> int:
        """Extreme points in a frame."""
        return self.n

    @abstractmethod
    def decompose(self, p: np.ndarray) -> tuple[np.ndarray, Any]:
        """The spectral values of p, shape (rank,), and its frame."""

    @abstractmethod
    def compose(self, weights: np.ndarray, frame: Any) -> np.ndarray:
        """The point with these weights on the frame, shape (size,)."""

    @abstractmethod
    def unit(self, x: np.ndarray) -> float:
        """<e, x>: 1 on the base."""

    @abstractmethod
    def lipschitz(self, A: Matrix) -> float:
        """A bound on ||A x|| over points whose absolute weights sum to 1 or less."""

    def least(self, p: np.ndarray) -> float:
        """The least spectral value: the least of <x, p> over the base."""
        return float(self.decompose(p)[0].min())


@dataclass(frozen=True)
class Orthant(Cone):
    """The non-negative orthant of R^n; e is the vector of ones, the base is the simplex.

    Parameters
    ----------
    n : int >= 1
    """

    n: int

    def decompose(self, p: np.ndarray) -> tuple[np.ndarray, Any]:
        return p, None

    def compose(self, weights: np.ndarray, frame: Any) -> np.ndarray:
        return weights

    def unit(self, x: np.ndarray) -> float:
        return float(x.sum())

    def lipschitz(self, A: Matrix) -> float:
        return math.sqrt(float(squared_norms(A.T).max()))


@dataclass(frozen=True)
class SecondOrder(Cone):
    """The second-order cone ``{(u, t) in R^n : ||u|| <= t}``; e = (0, ..., 0, 1).

    The base is the ball ``||u|| <= 1, t = 1``. A frame is a pair (+-d, 1) with ||d|| = 1.

    Parameters
    ----------
    n : int >= 2
        Entries of a point, t being the last.
    """

    n: int
    _least_n = 2
    rank = 2

    def decompose(self, p: np.ndarray) -> tuple[np.ndarray, Any]:
        u, t = p[:-1], p[-1]
        norm = math.sqrt(float(matmul(u, u)))
        direction = u / norm if norm > 0 else np.zeros_like(u)
        return np.array([t - norm, t + norm]), direction

    def compose(self, weights: np.ndarray, frame: Any) -> np.ndarray:
        return np.append((weights[1] - weights[0]) * frame, weights[0] + weights[1])

    def unit(self, x: np.ndarray) -> float:
        return float(x[-1])

    def lipschitz(self, A: Matrix) -> float:
        # The extreme points are +-(d, 1).
        last = math.sqrt(float(squared_norms(A[:, -1:].T)[0]))
        return spectral_norm(A[:, :-1]) + last


@dataclass(frozen=True)
class PositiveSemidefinite(Cone):
    """The positive semidefinite cone of symmetric n x n matrices; e is the identity.

    A point is its matrix row by row, n * n entries; inner products are those of the matrices.

    Parameters
    ----------
    n : int >= 1
        Order of the matrices.
    """

    n: int

    @property
    def size(self) -> int:
        return self.n * self.n

    def decompose(self, p: np.ndarray) -> tuple[np.ndarray, Any]:
        return np.linalg.eigh(self._symmetric(p))

    def compose(self, weights: np.ndarray, frame: Any) -> np.ndarray:
        return matmul(frame * weights, frame.T).ravel()

    def unit(self, x: np.ndarray) -> float:
        return float(np.trace(x.reshape(self.n, self.n)))

    def least(self, p: np.ndarray) -> float:
        return float(np.linalg.eigvalsh(self._symmetric(p))[0])

    def _symmetric(self, p: np.ndarray) -> np.ndarray:
        matrix = p.reshape(self.n, self.n)
        return (matrix + matrix.T) / 2

    def lipschitz(self, A: Matrix) -> float:
        # The extreme points are +-v v'; |v'A_k v| <= ||A_k v|| for every row A_k of A.
        rows = as_dense(A).reshape(-1, self.n, self.n)
        stacked = ((rows + rows.transpose(0, 2, 1)) / 2).reshape(-1, self.n)
        return math.sqrt(float(np.linalg.eigvalsh(matmul(stacked.T, stacked))[-1]))


class Product(Cone):
    """A product of cones: a point is one vector of pieces, the base has one e for all of them.

    Only so is ``A'y`` in the interior exactly if its least value over the base is positive.
    """

    def __init__(self, cones: Sequence[Cone]) -> None:
        ends = [0, *accumulate(cone.size for cone in cones)]
        self.pieces = [
            (cone, slice(start, end))
            for cone, (start, end) in zip(cones, pairwise(ends), strict=True)
        ]
        self.n = ends[-1]

    @property
    def rank(self) -> int:
        return sum(cone.rank for cone, _ in self.pieces)

    def decompose(self, p: np.ndarray) -> tuple[np.ndarray, Any]:
        values, frames = zip(*(cone.decompose(p[at]) for cone, at in self.pieces), strict=True)
        return np.concatenate(values), frames

    def compose(self, weights: np.ndarray, frame: Any) -> np.ndarray:
        cones = [cone for cone, _ in self.pieces]
        parts = np.split(weights, [*accumulate(cone.rank for cone in cones)][:-1])
        each = zip(cones, parts, frame, strict=True)
        return np.concatenate([cone.compose(part, of) for cone, part, of in each])

    def unit(self, x: np.ndarray) -> float:
        return sum(cone.unit(x[at]) for cone, at in self.pieces)

    def least(self, p: np.ndarray) -> float:
        return min(cone.least(p[at]) for cone, at in self.pieces)

    def lipschitz(self, A: Matrix) -> float:
        return max(cone.lipschitz(A[:, at]) for cone, at in self.pieces)


def spectral_norm(A: Matrix) -> float:
    """The largest singular value of a dense or sparse matrix."""
    if min(A.shape) <= _EXACT_UP_TO:
        flat = A if A.shape[0] <= A.shape[1] else A.T
        small = as_dense(flat @ flat.T) if sparse.issparse(A) else matmul(flat, flat.T)
        return math.sqrt(max(float(np.linalg.eigvalsh(small)[-1]), 0.0))
    start = np.random.default_rng(0).standard_normal(min(A.shape))
    return float(svds(A, k=1, v0=start, return_singular_vectors=False)[0])


def softmax(exponents: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """exp(exponents) divided by its sum; the largest exponent is taken off first."""
    out = np.subtract(exponents, exponents.max(), out=out)
    # Below -700 the weight is next to the smallest number there is, whatever the exponent.
    np.maximum(out, -700.0, out=out)
    np.exp(out, out=out)
    out /= out.sum()
    return out
