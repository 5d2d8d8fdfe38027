"""The working set: the cuts in use and the optimum over them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from ..kernels.oracle import KernelOracle
from ..numeric.compiling import njit
from ..numeric.matrices import matmul
from ..numeric.simplex_qp import SimplexQP
from .cut import Cut, combined, cut_scores

# Multipliers up to this part of their sum count as zero.
_INACTIVE = 1e-12
# Scores of a cut take float64 up to this many numbers, and float32 beyond if the entries do.
_SMALL_SCORES = 2**17


class WorkingSet:
    """Minimise ``1/2 ||w||^2 + C1 xi`` over ``xi >= offset_k + <w, g_k>`` for the cuts k, and 0.

    The dual is a quadratic program over the simplex: ``w = -sum_k a_k g_k`` with ``a >= 0`` and
    ``sum a = C1``, where the first a belongs to the cut "xi >= 0", which is never removed.

    Attributes
    ----------
    cuts : list of Cut
    xi : float
        The highest of the cuts at w, the w that the multipliers give.
    level : float
        xi less the gap of the dual over C1: w is optimal for a risk that is no higher than this.
    """

    def __init__(
        self,
        oracle: KernelOracle,
        n_channels: int,
        n_explicit: int,
        total: float,
        max_idle: int,
        score_bytes: int = 0,
    ) -> None:
        self.oracle = oracle
        self.n_channels, self.n_explicit = n_channels, n_explicit
        self.total, self.max_idle = total, max_idle
        small = oracle.n * n_channels <= _SMALL_SCORES
        self._score_type = np.dtype(np.float64 if small else oracle.dtype)
        row = oracle.n * n_channels * self._score_type.itemsize
        self._room = score_bytes // max(1, row)
        self._warned = False
        self.qp = SimplexQP(total)
        self.qp.add([], 0.0, 0.0)
        self.cuts: list[Cut] = []
        self._idle: list[int] = []
        self.xi = self.level = 0.0

    @property
    def multipliers(self) -> np.ndarray:
        """One for each cut, float64, shape (len(cuts),)."""
        return self.qp.b[1:]

    @property
    def dual_value(self) -> float:
        """The optimum of the cuts' problem, up to the gap left; never above it."""
        return -self.qp.value

    def squared_norm(self) -> float:
        """||w||^2."""
        return float(matmul(self.qp.b, matmul(self.qp.Q, self.qp.b)))

    def explicit(self) -> np.ndarray:
        """The weights outside of the kernel's space, float64, shape (n_explicit,)."""
        weights = np.zeros(self.n_explicit)
        for a, cut in zip(self.multipliers, self.cuts, strict=True):
            weights -= a * cut.explicit
        return weights

    def weights(self) -> Cut:
        """The part of w under the kernel, as the points and coefficients of a cut."""
        return combined(self.cuts, -self.multipliers, self.n_channels)

    def scores(self) -> np.ndarray:
        """``<w, phi(x_p)>`` of all points, float64, shape (n_points, n_channels)."""
        kept = np.array([cut.scores is not None for cut in self.cuts], dtype=bool)
        rest = combined(self.cuts, np.where(kept, 0.0, -self.multipliers), self.n_channels)
        scores = cut_scores(self.oracle, None, rest)
        for a, cut in zip(self.multipliers, self.cuts, strict=True):
            if cut.scores is not None and a > 0:
                _subtract(scores.ravel(), cut.scores.ravel(), a)
        return scores

    def keep_scores(self, cut: Cut, scores: np.ndarray) -> Cut:
        """The cut with its scores at all points, if there is room for them."""
        if sum(kept.scores is not None for kept in self.cuts) < self._room:
            return replace(cut, scores=scores.astype(self._score_type))
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"the scores of {self._room} cuts fill cache_size: those of further cuts are "
                "computed anew for each cut, which is slow; raise cache_size",
                stacklevel=2,
            )
        return cut

    def products(self, cut: Cut, scores: np.ndarray) -> np.ndarray:
        """``<g_k, g>`` of every cut k with a new one, float64, shape (len(cuts),)."""
        found = [
            (other.coef * scores[other.points]).sum() + (other.explicit * cut.explicit).sum()
            for other in self.cuts
        ]
        return np.array(found, dtype=np.float64)

    def add(self, cut: Cut, products: np.ndarray, squared_norm: float, tol: float) -> None:
        """Take a cut in, find the new optimum, and drop cuts that have long been idle."""
        self.qp.add(np.concatenate(([0.0], products)), max(squared_norm, 0.0), cut.offset)
        self.cuts.append(cut)
        self._idle.append(0)
        self.qp.solve(0.1 * self.total * tol)
        self._drop_idle()
        self.xi = -float(self.qp.gradient.min())
        self.level = self.xi - self.qp.gap / self.total

    def _drop_idle(self) -> None:
        active = self.multipliers > _INACTIVE * self.total
        self._idle = [0 if a else idle + 1 for a, idle in zip(active, self._idle, strict=True)]
        gone = [k for k, idle in enumerate(self._idle) if idle >= self.max_idle]
        if gone:
            self.qp.remove([k + 1 for k in gone])
            for k in reversed(gone):
                del self.cuts[k], self._idle[k]


@njit(error_model="numpy")
def _subtract(sums, values, factor):
    """sums -= factor values, in float64."""
    for i in range(len(sums)):
        sums[i] -= factor * values[i]
