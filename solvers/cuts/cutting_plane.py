"""The kernel SVM by cutting planes, exact and sampled, and the parameters of all such methods."""

from __future__ import annotations

import numpy as np

from ..interface.base import WeightedSolver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution
from ..kernels.oracle import KernelOracle
from ..models import KernelExpansion
from ..numeric.validation import check_one_of, check_positive, check_whole
from ..registration import register
from .algorithms import ConstantTimeCuts, CutFinder, FullPassCuts, WorkingSet
from .structure import Examples, StructuredProblem, TwoClasses

# Fewer rows than this part of all would hardly ever hold the one that is wanted.
_FEWEST_ROWS = 0.1


@hyperparameters
class CutParameters(SoftMarginParameters, CachedKernelParameters):
    """How cuts are found and kept.

    Parameters
    ----------
    cache_size
        MB; "exact" and "linear" keep up to half of it in kernel rows of points that cuts are made
        of, if a tenth of all rows finds room there.
    oracle : {"exact", "linear", "constant"}
        How a cut is found; see :class:`CuttingPlane`.
    n_samples : int >= 1
        Number of inputs that a sampled cut is made of.
    patience : int >= 1
        "constant": end when so many samples in a row make no violated cut.
    max_idle : int >= 1
        Drop a cut when its multiplier has been 0 for so many iterations in a row.
    stopping : {"auto", "relative", "violation"}
        When the run ends; the violation is how far the next cut lies above the model, in units of
        the mean loss. "relative": when C1 times the violation is at most ``tol`` times the primal
        objective; for "exact" that is the duality gap. "violation": when the violation is at most
        ``tol``, as in [CUTS08]_, which says little where the optimal mean loss is not much larger.
        "auto": "violation" for "constant", whose samples do not know the objective, otherwise
        "relative".
    tol : float >= 0
        See ``stopping``. 0 runs to ``max_iter``.
    max_iter : int >= 1
        Stop after this many cuts; for "exact" and "linear" each is a pass over all points.

    Attributes
    ----------
    slack_ : float
        xi, the highest of the cuts at the last w.
    violation_ : float
        How far the last cut that was looked for lay above the model, in units of the weighted mean
        loss. With exact cuts C1 times this is the duality gap; with sampled ones there is no bound.
    """

    cache_size: float = 1000.0
    oracle: str = "linear"
    n_samples: int = 400
    patience: int = 4
    max_idle: int = 20
    stopping: str = "auto"
    tol: float = 1e-3
    max_iter: int = 10_000

    def _check_cut_parameters(self) -> None:
        """Raise ValueError for a parameter that is out of range."""
        check_positive("C", self.C)
        check_one_of("oracle", self.oracle, ("exact", "linear", "constant"))
        check_whole("n_samples", self.n_samples, at_least=1)
        check_whole("patience", self.patience, at_least=1)
        check_whole("max_idle", self.max_idle, at_least=1)
        check_one_of("stopping", self.stopping, ("auto", "relative", "violation"))
        if self.stopping == "relative" and self.oracle == "constant":
            raise ValueError(
                "stopping='relative' needs the mean loss of all points, got oracle='constant': set "
                "stopping='violation'"
            )
        check_whole("max_iter", self.max_iter, at_least=1)

    def _finder(
        self,
        oracle: KernelOracle,
        structure: StructuredProblem,
        examples: Examples,
        rng: np.random.Generator,
        mass: float,
    ) -> CutFinder:
        """A run before its first cut, for losses that have the weight C each, ``C mass`` in all."""
        constant = self.oracle == "constant"
        if not constant:
            # Leave the oracle its part for kernel rows.
            all_rows = oracle.n**2 * oracle.dtype.itemsize
            row_bytes = min(int(self.cache_size * 2**20) // 2, all_rows)
            if row_bytes < _FEWEST_ROWS * all_rows or not oracle.kernel.evaluates:
                row_bytes = 0
            oracle.set_aside(oracle.cache_bytes - row_bytes)
        stopping = self.stopping
        if stopping == "auto":
            stopping = "violation" if constant else "relative"
        total = float(self.C) * mass
        channels, explicit = structure.n_channels, structure.n_explicit
        working = WorkingSet(oracle, channels, explicit, total, int(self.max_idle))
        n_samples = oracle.n if self.oracle == "exact" else int(self.n_samples)
        return (ConstantTimeCuts if constant else FullPassCuts)(
            working, structure, examples, float(self.tol), stopping, rng, n_samples,
            int(self.patience),
        )  # fmt: skip


@register("svm")
@hyperparameters
class CuttingPlane(WeightedSolver, SolverParameters, CutParameters):
    """Soft-margin kernel SVM without bias by cutting planes, all of them exact or sampled.

    Minimises ``1/2 ||w||^2 + C1 L(w)`` with ``C1 = C sum_i weights_i`` and L the weighted mean of
    the margin losses, over lower bounds of L that are added one at a time where they are violated
    most ([CUTS08]_). An exact bound has a term for each violating point; a sampled one for r
    points, so that it costs n r or r^2 kernel evaluations rather than n^2.

    Parameters
    ----------
    C
        Weight of the summed hinge loss against ``1/2 ||w||^2``: the C of [CUTS08]_ is n times this.
    oracle
        How a cut is found. "exact": of all points. "linear": all points are looked at, r of the
        violating ones make the cut (Algorithm 3). "constant": only r points are looked at, drawn
        from all (Algorithm 2). Points are drawn with replacement, in proportion to their weights.
    n_samples
        The number r; [CUTS08]_ takes 400, and 1000 for "constant" on large data.
    psi_scale : float > 0
        The joint features are ``psi_scale y phi(x)``, the hinge loss is ``max(0, 1 - 2 psi_scale y
        f(x))``. With 1/2 the problem is that of other solvers; with 1, as [CUTS08]_ writes it, it
        is theirs with 4 C and f is half as large.
    constant_feature : float >= 0
        Value of an additional feature, whose weight makes a regularised intercept; 0 for none.

    Notes
    -----
    Kernel evaluations: for each cut n times the number of violating points ("exact"), n r
    ("linear"), or t r^2 + r (r + 1) / 2 with t cuts in use ("constant"; t r^2 for a sample that
    makes no violated cut). Points drawn twice and points that violate nothing are not computed.
    "exact" and "linear" do not compute a kernel row again while it is cached. Memory: n numbers for
    each cut in use, float32 if n is large, and cached rows, up to half of ``cache_size``; with
    "constant" the entries of a sample, at most 256 MB. And the square of the number of cuts. An
    iteration is a cut. Returns the last w.

    With exact cuts the primal objective at the end is within ``tol`` times itself of the optimum,
    and with ``stopping="violation"`` within C1 tol. Sampled cuts are no lower bounds of L, and
    neither is the value of their dual: see [CUTS08]_ for what holds with high probability.
    Deviations: the rule of [CUTS08]_ for the end is ``stopping="violation"``; Algorithm 2 as
    printed ends at the first sample without a violated cut (``patience=1``), its experiments after
    four (section 6.1); where no more than r points violate, and after 100 samples without a
    violated cut, "linear" takes the exact cut, where the paper draws on; points violate whose
    margin loss is positive, in the paper those whose Delta is (they differ at ties alone); the
    terms of the cut of "linear" have the factor |violating| / (n r) of Algorithm 3, not the 1 / r
    of the text.
    """

    scalarization = "C"

    psi_scale: float = 0.5
    constant_feature: float = 0.0

    def _check_parameters(self) -> None:
        self._check_cut_parameters()
        check_positive("psi_scale", self.psi_scale)
        check_positive("constant_feature", self.constant_feature, zero=True)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        structure = TwoClasses(self.psi_scale, self.constant_feature)
        mass = float(problem.weights.sum())
        examples = Examples(problem.y, np.arange(problem.n + 1), problem.weights / mass)
        finder = self._finder(problem.oracle, structure, examples, problem.rng, mass)
        working = finder.working

        def snapshot() -> KernelExpansion:
            intercept = float(working.explicit().sum()) * structure.constant
            w, coef = working.weights(), np.zeros(problem.n)
            coef[w.points] = w.coef[:, 0]
            return problem.expansion(coef, intercept)

        n_iter, status = finder.run(self.max_iter, monitor, snapshot)
        self.slack_, self.violation_ = working.xi, finder.violation
        ended_at = "" if n_iter == self.max_iter else problem.oracle.rounding_words
        return Solution(snapshot(), n_iter, status, finder.shortfall(), ended_at)
