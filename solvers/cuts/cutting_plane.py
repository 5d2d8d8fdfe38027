"""The kernel SVM by cutting planes, exact and sampled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marginbench.solvers.cuts.labels import TwoClasses
from marginbench.solvers.cuts.loop import add_cuts, check_cut_parameters, make_cuts
from marginbench.solvers.cuts.structure import Examples
from marginbench.solvers.interface.base import WeightedSolver
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.interface.problem import Problem, Solution
from marginbench.solvers.kernels import Kernel
from marginbench.solvers.models import KernelExpansion
from marginbench.solvers.numeric.validation import positive


class CuttingPlane(WeightedSolver):
    """Soft-margin kernel SVM without bias by cutting planes, all of them exact or sampled.

    Minimises ``1/2 ||w||^2 + C1 L(w)`` with ``C1 = C sum_i weights_i`` and L the weighted mean of
    the margin losses, over lower bounds of L that are added one at a time where they are violated
    most ([CUTS08]_). An exact bound has a term for each violating point; a sampled one for r
    points, so that it costs n r or r^2 kernel evaluations rather than n^2.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "precomputed"}, Kernel or callable, default="rbf"
        A callable takes two matrices of points and returns their kernel block.
    gamma : float > 0, "scale" or "auto", default="scale"
        Width of "rbf" (``exp(-gamma ||x - z||^2)``) and scale of "poly".
    degree : int >= 1, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly".
    C : float > 0, default=1.0
        Weight of the summed hinge loss against ``1/2 ||w||^2``: the C of [CUTS08]_ is n times this.
    fit_intercept : bool, default=False
        Must be False: the method has no unregularised bias.
    oracle : {"exact", "linear", "constant"}, default="linear"
        How a cut is found. "exact": of all points. "linear": all points are looked at, r of the
        violating ones make the cut (Algorithm 3). "constant": only r points are looked at, drawn
        from all (Algorithm 2). Points are drawn with replacement, in proportion to their weights.
    n_samples : int >= 1, default=400
        The number r; [CUTS08]_ takes 400, and 1000 for "constant" on large data.
    psi_scale : float > 0, default=0.5
        The joint features are ``psi_scale y phi(x)``, the hinge loss is ``max(0, 1 - 2 psi_scale y
        f(x))``. With 1/2 the problem is that of other solvers; with 1, as [CUTS08]_ writes it, it
        is theirs with 4 C and f is half as large.
    constant_feature : float >= 0, default=0.0
        Value of an additional feature, whose weight makes a regularised intercept; 0 for none.
    patience : int >= 1, default=4
        "constant": end when so many samples in a row make no violated cut.
    max_idle : int >= 1, default=20
        Drop a cut when its multiplier has been 0 for so many iterations in a row.
    tol : float >= 0, default=1e-3
        A cut is violated if it lies above the model by more than this, in units of the weighted
        mean loss.
    max_epochs : int >= 1, default=10000
        Stop after this many cuts; for "exact" and "linear" each is a pass over all points.
    class_weight : dict, "balanced" or None, default=None
        Factors of the losses of each class.
    dtype : {"float32", "float64"}, default="float32"
        Type of the kernel entries. Sums are float64.
    cache_size : float >= 0, default=1000.0
        Bound on the scores of all points that "exact" and "linear" keep for each cut, MB. Cuts that
        find no room have theirs computed anew for each cut, with a warning.
    random_state : int, Generator or None, default=None
        Seeds the samples.

    Attributes
    ----------
    slack_ : float
        xi, the highest of the cuts at the last w.

    Notes
    -----
    Kernel evaluations: for each cut n times the number of violating points ("exact"), n r
    ("linear"), or t r^2 + r (r + 1) / 2 with t cuts in use ("constant"; t r^2 for a sample that
    makes no violated cut). Points drawn twice and points that violate nothing are not computed.
    Memory: n numbers for each cut in use, float32 if n is large; with "constant" the entries of a
    sample, at most 256 MB. And the square of the number of cuts. An iteration is a cut. Returns the
    last w.

    With exact cuts the primal is within C1 tol of the optimum at the end. Sampled cuts are no lower
    bounds of L, and neither is the value of their dual: see [CUTS08]_ for what holds with high
    probability. Deviations: where no more than r points violate, "linear" takes the exact cut; the
    terms of its cut have the factor |violating| / (n r) of Algorithm 3, not the 1 / r of the text.

    References
    ----------
    .. [CUTS08] Yu, Joachims: Training structural SVMs with kernels using sampled cuts. KDD 2008.
       BibTeX key ``yu2008training``.
    """

    scalarization = "C"

    def __init__(
        self,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C: float = 1.0,
        fit_intercept: bool = False,
        oracle: str = "linear",
        n_samples: int = 400,
        psi_scale: float = 0.5,
        constant_feature: float = 0.0,
        patience: int = 4,
        max_idle: int = 20,
        tol: float = 1e-3,
        max_epochs: int = 10_000,
        class_weight: Any = None,
        dtype: str = "float32",
        cache_size: float = 1000.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.fit_intercept = fit_intercept
        self.oracle = oracle
        self.n_samples = n_samples
        self.psi_scale = psi_scale
        self.constant_feature = constant_feature
        self.patience = patience
        self.max_idle = max_idle
        self.tol = tol
        self.max_epochs = max_epochs
        self.class_weight = class_weight
        self.dtype = dtype
        self.cache_size = cache_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_cut_parameters(
            self.C, self.oracle, self.n_samples, self.patience, self.max_idle, self.max_epochs
        )
        positive("psi_scale", self.psi_scale)
        positive("constant_feature", self.constant_feature, zero=True)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        structure = TwoClasses(self.psi_scale, self.constant_feature)
        mass = float(problem.weights.sum())
        finder, working = make_cuts(
            problem.oracle,
            structure,
            Examples(problem.y, np.arange(problem.n + 1), problem.weights / mass),
            problem.rng,
            finder=self.oracle,
            total=float(self.C) * mass,
            tol=float(self.tol),
            n_samples=int(self.n_samples),
            patience=int(self.patience),
            max_idle=int(self.max_idle),
            score_bytes=int(self.cache_size * 2**20),
        )

        def snapshot() -> KernelExpansion:
            intercept = float(working.explicit().sum()) * structure.constant
            w, coef = working.weights(), np.zeros(problem.n)
            coef[w.points] = w.coef[:, 0]
            return problem.expansion(coef, intercept)

        def pause(n_cuts: int) -> bool:
            return monitor.due(problem.kernel_evals) and monitor.record(n_cuts, snapshot)

        n_iter, status = add_cuts(finder, working, self.max_epochs, pause)
        self.slack_ = working.xi
        return Solution(snapshot(), n_iter, status)
