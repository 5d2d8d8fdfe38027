"""Self-dual cones, their bases, and the geometry in which mirror prox works on them.

A point of a product of cones is one vector; each cone names its piece of it. The base of a product
K is ``{x in K : <e, x> = 1}`` with one e for all pieces: only then is ``A'y`` in the interior of
the cone exactly if its least value over the base is positive.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from ..numeric.matrices import Matrix, as_dense, matmul, squared_norms
from ..numeric.validation import check_whole

# Up to this many rows or columns the spectral norm comes from a dense eigenvalue problem.
_EXACT_UP_TO = 500


class Cone(ABC):
    """A self-dual symmetric cone, by the extreme points of its base.

    For every functional p there is a frame of ``rank`` extreme points: p is in the interior of the
    cone exactly if its values at them, the spectral values, are positive. The points with weights
    >= 0 on a frame, summing to 1, over all frames, are the base.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Entries of a point."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Extreme points in a frame."""

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

    def validate(self, A: Matrix) -> None:
        """Raise ValueError if a row of A, shape (m, size), is no functional on the cone."""
        return


@dataclass(frozen=True)
class Orthant(Cone):
    """The non-negative orthant of R^n; e is the vector of ones, the base is the simplex.

    Parameters
    ----------
    n : int >= 1
    """

    n: int

    def __post_init__(self) -> None:
        check_whole("n", self.n, at_least=1)

    @property
    def size(self) -> int:
        return self.n

    @property
    def rank(self) -> int:
        return self.n

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

    def __post_init__(self) -> None:
        check_whole("n", self.n, at_least=2)

    @property
    def size(self) -> int:
        return self.n

    @property
    def rank(self) -> int:
        return 2

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

    def __post_init__(self) -> None:
        check_whole("n", self.n, at_least=1)

    @property
    def size(self) -> int:
        return self.n * self.n

    @property
    def rank(self) -> int:
        return self.n

    def decompose(self, p: np.ndarray) -> tuple[np.ndarray, Any]:
        matrix = p.reshape(self.n, self.n)
        return np.linalg.eigh((matrix + matrix.T) / 2)

    def compose(self, weights: np.ndarray, frame: Any) -> np.ndarray:
        return matmul(frame * weights, frame.T).ravel()

    def unit(self, x: np.ndarray) -> float:
        return float(np.trace(x.reshape(self.n, self.n)))

    def least(self, p: np.ndarray) -> float:
        matrix = p.reshape(self.n, self.n)
        return float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[0])

    def validate(self, A: Matrix) -> None:
        matrices = as_dense(A).reshape(-1, self.n, self.n)
        difference = np.abs(matrices - matrices.transpose(0, 2, 1))
        if difference.max() > 1e-12 * np.abs(matrices).max():
            row = int(difference.max(axis=(1, 2)).argmax())
            raise ValueError(
                f"row {row} of A is not symmetric on the positive semidefinite piece of order "
                f"{self.n}; use (M + M') / 2"
            )

    def lipschitz(self, A: Matrix) -> float:
        # The extreme points are +-v v'; (v'A_k v)^2 <= v'A_k^2 v for every row A_k of A.
        stacked = as_dense(A).reshape(-1, self.n)
        return math.sqrt(float(np.linalg.eigvalsh(matmul(stacked.T, stacked))[-1]))


def spectral_norm(A: Matrix) -> float:
    """The largest singular value of a dense or sparse matrix."""
    if min(A.shape) <= _EXACT_UP_TO:
        flat = A if A.shape[0] <= A.shape[1] else A.T
        small = as_dense(flat @ flat.T) if sparse.issparse(A) else matmul(flat, flat.T)
        return math.sqrt(max(float(np.linalg.eigvalsh(small)[-1]), 0.0))
    start = np.random.default_rng(0).standard_normal(min(A.shape))
    return float(svds(A, k=1, v0=start, return_singular_vectors=False)[0])


class SpectralEntropy:
    """How mirror prox moves on the base of a cone: the entropy of all spectral values together.

    On the orthant and the positive semidefinite cone this is the choice of MPFP14 section 6.2. A
    second-order cone is a set of symmetric matrices with two eigenvalues of equal multiplicity (by
    Clifford's matrices), so the function is strongly convex there with the same modulus.

    The state of a point x is log x up to a multiple of e: a prox mapping is one decomposition of
    it, where the paper decomposes X for its logarithm and then H.
    """

    def __init__(self, A: Matrix, cones: Sequence[Cone]) -> None:
        self.cones = cones
        self.pieces = pieces(cones)
        self.rank = sum(cone.rank for cone in cones)
        # Omega_x, the range over the base; and L_xy, the norm of A to the Euclidean norm.
        self.diameter = math.log(max(self.rank, 2))
        self.lipschitz = max(
            cone.lipschitz(A[:, piece]) for cone, piece in zip(cones, self.pieces, strict=True)
        )

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """The state and the point from which mirror prox starts."""
        state = np.zeros(sum(cone.size for cone in self.cones))
        return state, self._point(state)

    def step(self, state: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The prox mapping: the new state and its point."""
        state = state - direction
        return state, self._point(state)

    def _point(self, state: np.ndarray) -> np.ndarray:
        parts = [
            cone.decompose(state[piece])
            for cone, piece in zip(self.cones, self.pieces, strict=True)
        ]
        weights = softmax(np.concatenate([values for values, _ in parts]))
        point = np.empty_like(state)
        first = 0
        for cone, piece, (_, frame) in zip(self.cones, self.pieces, parts, strict=True):
            point[piece] = cone.compose(weights[first : first + cone.rank], frame)
            first += cone.rank
        return point


class Ball:
    """The same for one second-order cone, whose base is a ball: Euclidean (MPFP14 section 6.2)."""

    def __init__(self, A: Matrix) -> None:
        self.size = A.shape[1]
        self.diameter = 0.5
        self.lipschitz = spectral_norm(A[:, :-1])

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        state = np.zeros(self.size)
        state[-1] = 1.0
        return state, state

    def step(self, state: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moved = state - direction
        norm = math.sqrt(float(matmul(moved[:-1], moved[:-1])))
        if norm > 1.0:
            moved /= norm
        moved[-1] = 1.0
        return moved, moved


def softmax(exponents: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """exp(exponents) divided by its sum; the largest exponent is taken off first."""
    out = np.subtract(exponents, exponents.max(), out=out)
    # Below -700 the weight is next to the smallest number there is, whatever the exponent.
    np.maximum(out, -700.0, out=out)
    np.exp(out, out=out)
    out /= out.sum()
    return out


def pieces(cones: Sequence[Cone]) -> list[slice]:
    """Where each cone's piece of a point stands."""
    ends = np.cumsum([cone.size for cone in cones])
    return [slice(int(end) - cone.size, int(end)) for cone, end in zip(cones, ends, strict=True)]


def least_spectral_value(cones: Sequence[Cone], p: np.ndarray) -> float:
    """The least of <x, p> over the base of the product: positive exactly for p in its interior."""
    return min(cone.least(p[piece]) for cone, piece in zip(cones, pieces(cones), strict=True))


def unit_value(cones: Sequence[Cone], x: np.ndarray) -> float:
    """<e, x> for the product of cones, which is 1 on the base."""
    return sum(cone.unit(x[piece]) for cone, piece in zip(cones, pieces(cones), strict=True))
