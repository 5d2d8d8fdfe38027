"""The three ways to find a violated cut: exact, sampled in linear and in constant time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..kernels.oracle import KernelOracle
from .cut import (
    Cut,
    add_rows,
    average,
    combined,
    cut_scores,
    squared_norm,
    weighted_sums,
)
from .structure import Examples, StructuredProblem, Violations
from .working_set import WorkingSet

# After so many samples that make no violated cut the exact one is taken.
_MAX_REDRAWS = 100
# Entries of a sample with the points of w are kept for the cut up to so many bytes.
_KEPT_BYTES = 256 * 2**20
# Rounding up to this part of the tolerance does not matter.
_NEGLIGIBLE = 0.1


class Found(NamedTuple):
    """A violated cut, its products with those of the working set, ``||g||^2``, the tolerance."""

    cut: Cut
    products: np.ndarray
    squared_norm: float
    tol: float


@dataclass
class CutFinder(ABC):
    """Finds a cut that lies above the working set's model by more than a tolerance.

    With exact cuts the optimum of the model is a lower bound, and C1 times the violation is the
    duality gap.
    """

    oracle: KernelOracle
    structure: StructuredProblem
    examples: Examples
    tol: float
    stopping: str
    rng: np.random.Generator
    n_samples: int = 0
    patience: int = 1
    # The mean margin loss at the last w, over the examples that were looked at
    risk: float = np.inf
    violation: float = np.inf  # The risk less the level of the model there
    allowed: float = 0.0  # The violation at which the run ends

    @abstractmethod
    def find(self, working: WorkingSet) -> Found | None:
        """A violated cut; None if there is none, by this finder's rule."""

    def holds(self, working: WorkingSet) -> bool:
        """Whether the end of a run, by this finder's rule, is one with exact entries as well."""
        return True

    def _violated(self, working: WorkingSet, risk: float) -> bool:
        """Whether a cut of this height at w is violated by more than the tolerance; notes it."""
        self.risk, self.violation = risk, risk - working.level
        self.allowed = self._allowed(risk, working.squared_norm(), working.total)
        return self.violation > self.allowed

    def _allowed(self, risk: float, squared_norm: float, total: float) -> float:
        if self.stopping == "relative":
            return self.tol * (risk + 0.5 * squared_norm / total)
        return self.tol

    def _charge_up_to(self, evals: int) -> None:
        """Bring the count of entries asked for to what a run without tricks asks for."""
        counters = self.oracle.counters
        counters.kernel_evals = max(counters.kernel_evals, evals)


class _FullPass(CutFinder):
    """Looks at all examples, whose scores are kept for each cut."""

    def find(self, working: WorkingSet) -> Found | None:
        violations, risk = self._at(working.scores(), working.explicit())
        if not self._violated(working, risk):
            return None
        cut = self._make(violations, working.level + self.allowed)
        before = self.oracle.counters.kernel_evals
        scores = cut_scores(self.oracle, None, cut)
        self._charge_up_to(before + self.oracle.n * cut.n_drawn)
        products = working.products(cut, scores)
        squared = float((scores[cut.points] * cut.coef).sum() + (cut.explicit**2).sum())
        return Found(working.keep_scores(cut, scores), products, squared, self.allowed)

    def _at(self, scores: np.ndarray, explicit: np.ndarray) -> tuple[Violations, float]:
        """What violates the most at w, which gives these scores, and the risk there."""
        examples = self.examples
        violations = self.structure.most_violating(
            scores, explicit, examples.targets, examples.starts
        )
        return violations, float((examples.shares * violations.values).sum())

    def holds(self, working: WorkingSet) -> bool:
        """See :meth:`CutFinder.holds`; ``violation`` and ``allowed`` become exact.

        Costs float64 entries of all points with those of w, unless rounding cannot matter.
        """
        oracle, w, explicit = self.oracle, working.weights(), working.explicit()
        masses = np.abs(w.coef).sum(axis=0)
        noise = oracle.kernel.entry_noise(oracle.points, oracle.dtype.name)
        error = noise * (2 * masses.max(initial=0.0) + (masses**2).sum() / working.total)
        if error <= _NEGLIGIBLE * self.allowed or (noise == np.inf and oracle.dtype == np.float64):
            return True
        coef = np.zeros((oracle.n, working.n_channels))
        coef[w.points] = w.coef
        columns = [oracle.exact_scores(column, charged=False) for column in coef.T.copy()]
        scores = np.stack(columns, axis=1)
        _, risk = self._at(scores, explicit)
        squared = float((coef * scores).sum() + (explicit**2).sum())
        self.violation += risk - self.risk + (squared - working.squared_norm()) / working.total
        self.risk, self.allowed = risk, self._allowed(risk, squared, working.total)
        slack = 1e-12 * (risk + squared / working.total)
        return self.violation <= 1.001 * self.allowed + slack

    @abstractmethod
    def _make(self, violations: Violations, threshold: float) -> Cut:
        """A cut above the threshold."""

    def _exact(self, violations: Violations) -> Cut:
        examples = self.examples
        sizes = np.diff(examples.starts)
        violating = violations.values > 0
        factors = np.where(violating, examples.shares, 0.0)
        return average(violations, factors, None, sizes, int(sizes[violating].sum()))


class ExactCuts(_FullPass):
    """The cut of all examples (CUTS08 Algorithm 1)."""

    def _make(self, violations: Violations, threshold: float) -> Cut:
        return self._exact(violations)


class LinearTimeCuts(_FullPass):
    """A cut of r violating examples, with the exact offset and stopping rule (Algorithm 3)."""

    def _make(self, violations: Violations, threshold: float) -> Cut:
        violating = np.flatnonzero(violations.values > 0)
        if len(violating) <= self.n_samples:
            return self._exact(violations)
        examples, sizes = self.examples, np.diff(self.examples.starts)
        shares = examples.shares[violating]
        offset = float((shares * violations.losses[violating]).sum())
        # What a cut is at w, example by example: <w, dPsi_i> = loss_i - value_i.
        fits = violations.losses - violations.values
        for _ in range(_MAX_REDRAWS):
            drawn = violating[examples.draw(self.rng, self.n_samples, violating)]
            factors = np.bincount(drawn, minlength=len(examples)) * (shares.sum() / self.n_samples)
            if offset - float((factors[violating] * fits[violating]).sum()) > threshold:
                n_drawn = int(sizes[drawn].sum())
                return average(violations, factors, None, sizes, n_drawn, offset)
        return self._exact(violations)


class ConstantTimeCuts(CutFinder):
    """A cut of r examples drawn from all, which alone are looked at (Algorithm 2)."""

    def find(self, working: WorkingSet) -> Found | None:
        w, explicit = working.weights(), working.explicit()
        for _ in range(self.patience):
            drawn = self.examples.draw(self.rng, self.n_samples)
            index, counts = np.unique(drawn, return_counts=True)
            points, targets, starts = self.examples.take(index)
            sizes = np.diff(starts)
            n_drawn = int((counts * sizes).sum())
            before = self.oracle.counters.kernel_evals
            block, scores = self._scores(points, w)
            violations = self.structure.most_violating(scores, explicit, targets, starts)
            factors = counts / self.n_samples
            risk = float((factors * violations.values).sum())
            textbook = before + n_drawn * sum(cut.n_drawn for cut in working.cuts)
            if self._violated(working, risk):
                factors = np.where(violations.values > 0, factors, 0.0)
                cut = average(violations, factors, points, sizes, n_drawn)
                slots = np.searchsorted(points, cut.points)
                products = working.products(cut, self._at_cuts(working, cut, w, block, slots))
                self._charge_up_to(textbook)
                return Found(cut, products, self._squared_norm(cut), self.allowed)
            self._charge_up_to(textbook)
        return None

    def _scores(self, points: np.ndarray, w: Cut) -> tuple[np.ndarray | None, np.ndarray]:
        """Scores at w of some points; and their entries with those of w, unless they are many."""
        if len(points) * len(w.points) * self.oracle.dtype.itemsize > _KEPT_BYTES:
            return None, cut_scores(self.oracle, points, w)
        block = self.oracle.fresh_block(points, w.points)
        scores = np.empty((len(points), self.structure.n_channels))
        weighted_sums(block, w.coef, scores)
        return block, scores

    @cached_property
    def _room(self) -> np.ndarray:
        """A place for the scores of all points, of which a cut fills in few."""
        return np.empty((self.oracle.n, self.structure.n_channels))

    def _at_cuts(
        self, working: WorkingSet, cut: Cut, w: Cut, block: np.ndarray | None, slots: np.ndarray
    ) -> np.ndarray:
        """Scores of a new cut at the points of the others; elsewhere they mean nothing.

        ``block`` has the entries of the cut's points with those of w in the rows ``slots``.
        """
        scores = self._room
        if block is None:
            scores[w.points] = cut_scores(self.oracle, w.points, cut)
        else:
            sums = np.zeros((scores.shape[1], len(w.points)))
            add_rows(block, slots, np.ascontiguousarray(cut.coef.T), sums)
            scores[w.points] = sums.T
        # Cuts that are idle have no part in w.
        idle = working.multipliers == 0
        others = combined(working.cuts, idle.astype(float), self.structure.n_channels).points
        others = np.setdiff1d(others, w.points, assume_unique=True)
        scores[others] = cut_scores(self.oracle, others, cut)
        return scores

    def _squared_norm(self, cut: Cut) -> float:
        allowance = cut.n_drawn * (cut.n_drawn + 1) // 2
        before = self.oracle.counters.kernel_evals
        squared = squared_norm(self.oracle, cut, allowance)
        self._charge_up_to(before + allowance)
        return squared + float((cut.explicit**2).sum())


FINDERS: dict[str, type[CutFinder]] = {
    "exact": ExactCuts,
    "linear": LinearTimeCuts,
    "constant": ConstantTimeCuts,
}
