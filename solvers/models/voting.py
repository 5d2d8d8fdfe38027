"""The voted perceptron's predictor: a vote of every predictor that its run went through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..numeric.compiling import njit
from ..numeric.matrices import Matrix
from .expansions import KernelExpansion, Model

# Blocks of kernel entries are at most this large.
_BLOCK_BYTES = 32 * 2**20


@dataclass(frozen=True)
class VotedExpansion(Model):
    """f(x) = sum_k survivals_k sign(f_k(x)) over the predictors f_k of a perceptron's run.

    Mistake k adds one signed kernel function to f_{k-1} and makes f_k, from f_0 = 0 on. So the run
    is the sequence of its mistakes, and one cumulative sum over it gives all f_k(x).

    Attributes
    ----------
    last : KernelExpansion
        The last predictor; its coefficient of a point is the signed number of mistakes there.
    mistakes : ndarray of int64, shape (n_mistakes,)
        The mistakes in their order, as positions among the support vectors of ``last``.
    survivals : ndarray of int64, shape (n_mistakes,)
        Votes of each predictor.
    """

    last: KernelExpansion
    mistakes: np.ndarray
    survivals: np.ndarray
    kind: ClassVar[str] = "voted expansion"

    @property
    def intercept(self) -> float:  # type: ignore[override]
        """0: no predictor of the run has a bias."""
        return self.last.intercept

    @property
    def n_support(self) -> int:
        """Number of support vectors, the kernel evaluations that one prediction costs."""
        return self.last.n_support

    def decision_function(self, Z: Matrix) -> np.ndarray:
        """The votes for the positive class less those against it, float64, shape (len(Z),)."""
        scores = np.zeros(Z.shape[0])
        if self.n_support == 0:
            return scores
        last = self.last
        points = last.prepared()
        signs = np.sign(last.coef)
        step = max(1, _BLOCK_BYTES // (self.n_support * np.dtype(last.dtype).itemsize))
        for start in range(0, len(scores), step):
            rows = slice(start, start + step)
            block = last.kernel.block(last.kernel.prepare(Z[rows], last.dtype, like=points), points)
            votes(block, signs, self.mistakes, self.survivals, 0.0, scores[rows], scores[rows])
        return scores

    def squared_norm(self) -> float:
        """Not defined: a vote is no linear function of the features."""
        raise ValueError("a voted predictor is no vector w, so it has no norm")

    def attributes(self) -> dict[str, Any]:
        """The attributes of the last predictor, with ``mistakes_`` and ``survivals_``."""
        return {
            **self.last.attributes(),
            "mistakes_": self.last.support[self.mistakes],
            "survivals_": self.survivals,
        }


@njit(error_model="numpy")
def votes(block, signs, mistakes, survivals, noise, low, high):
    """Least and greatest votes for each row of a kernel block, into ``low`` and ``high``."""
    for z in range(len(block)):
        score, least, greatest = 0.0, 0, 0
        for k in range(len(mistakes)):
            j = mistakes[k]
            score += signs[j] * block[z, j]
            error = noise * (k + 1)
            if score > error:
                least += survivals[k]
                greatest += survivals[k]
            elif score < -error:
                least -= survivals[k]
                greatest -= survivals[k]
            elif noise > 0.0:
                least -= survivals[k]
                greatest += survivals[k]
        low[z] = least
        high[z] = greatest
