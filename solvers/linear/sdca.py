"""Dual coordinate ascent for the linear SVM."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marginbench.solvers.interface.base import WeightedSolver
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.interface.problem import Problem, Solution, SolveStatus
from marginbench.solvers.models import LinearModel
from marginbench.solvers.models.objectives import hinge
from marginbench.solvers.numeric.counters import Counters
from marginbench.solvers.numeric.matrices import Matrix, matmul
from marginbench.solvers.numeric.sample_loops import (
    ACTIVE,
    HIGHEST,
    LOWEST,
    NO_STEP,
    SHRINK_ABOVE,
    SHRINK_BELOW,
    ascent_steps,
    finite_squared_norms,
    margins_of,
    row_arrays,
)
from marginbench.solvers.numeric.validation import check_iteration_limit, flag, one_of, positive


class LinearSDCA(WeightedSolver):
    """Linear soft-margin SVM without bias by dual coordinate ascent.

    Maximises ``sum_i alpha_i - 1/2 ||w||^2``, ``w = sum_i alpha_i y_i x_i``, over ``0 <= alpha_i <=
    C weights_i``, one variable at a time, exactly, and keeps w ([HCL08]_ Algorithm 3; a baseline of
    [SBP12]_). For a bias that is regularised like the weights, give X a constant column.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the summed hinge loss against ``1/2 ||w||^2``.
    fit_intercept : bool, default=False
        Must be False: the method has no unregularised bias.
    order : {"permutation", "iid"}, default="permutation"
        A fresh permutation in each epoch (LIBLINEAR), or independent uniform draws ([SBP12]_),
        which need ``stopping="gap"`` and ``shrinking=False``.
    stopping : {"gradient", "gap"}, default="gradient"
        "gradient" is LIBLINEAR's rule: stop when the projected derivatives of the dual, as they
        were met in an epoch over all points, lie within ``tol`` of each other. "gap" stops when
        the duality gap is at most ``tol``, in units of the weighted mean of the losses; it costs n
        inner products at the end of an epoch that leaves no point out.
    shrinking : bool, default=True
        Whether to leave out points at their bounds whose derivative points outward by more than
        any did in the epoch before; all come back before the end (LIBLINEAR).
    tol : float >= 0, default=1e-3
        See ``stopping``. LIBLINEAR's own default is 0.1.
    max_epochs : int >= 1, default=1000
        Stop after this many epochs.
    class_weight : dict, "balanced" or None, default=None
        Factors of the losses of each class.
    random_state : int, Generator or None, default=None
        Seeds the order of the draws.

    Notes
    -----
    Kernel evaluations: none; one inner product for each draw, n once for ||x_i||^2, and those of
    "gap". Time O(non-zeros of the point) for each draw. Memory: the weights and 5n numbers. Returns
    the last w, with alpha as its certificate.

    References
    ----------
    .. [HCL08] Hsieh, Chang, Lin, Keerthi, Sundararajan: A dual coordinate descent method for
       large-scale linear SVM. ICML 2008. BibTeX key ``hsieh2008dual``.
    .. [SBP12] Cotter, Shalev-Shwartz, Srebro: The kernelized stochastic batch perceptron.
       ICML 2012. BibTeX key ``cotter2012kernelized``.
    """

    scalarization = "C"
    certificate = "dual"
    kernel = "linear"

    def __init__(
        self,
        *,
        C: float = 1.0,
        fit_intercept: bool = False,
        order: str = "permutation",
        stopping: str = "gradient",
        shrinking: bool = True,
        tol: float = 1e-3,
        max_epochs: int = 1000,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.order = order
        self.stopping = stopping
        self.shrinking = shrinking
        self.tol = tol
        self.max_epochs = max_epochs
        self.class_weight = class_weight
        self.random_state = random_state

    def _check_parameters(self) -> None:
        positive("C", self.C)
        one_of("order", self.order, ("permutation", "iid"))
        one_of("stopping", self.stopping, ("gradient", "gap"))
        flag("shrinking", self.shrinking)
        check_iteration_limit(self.max_epochs)
        if self.order == "iid" and (self.stopping != "gap" or self.shrinking):
            raise ValueError(
                "order='iid' does not visit every point in an epoch: set stopping='gap' and "
                "shrinking=False"
            )

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        ascent = DualAscent(
            problem.X,
            problem.y,
            float(self.C) * problem.weights,
            order=self.order,
            shrinking=self.shrinking,
            rng=problem.rng,
            counters=problem.counters,
        )

        def snapshot() -> LinearModel:
            return LinearModel(ascent.w.copy(), dual_coef=ascent.alpha * problem.y)

        def record() -> bool:
            spent = problem.counters.inner_products
            return monitor.due(spent) and monitor.record(ascent.n_iter, snapshot)

        def allowance() -> float:
            return monitor.next_checkpoint - problem.counters.inner_products

        status: SolveStatus = "budget"
        for _ in range(self.max_epochs):
            if ascent.epoch(allowance, record):
                status = "stopped"
                break
            spread = ascent.end_epoch(self.tol)
            if self.stopping == "gap" and ascent.complete:
                spread = ascent.gap()
            if spread <= self.tol:
                status = "converged"
                break
        return Solution(snapshot(), ascent.n_iter, status)


@dataclass
class DualAscent:
    """The state of dual coordinate ascent on one training set.

    Parameters
    ----------
    X : ndarray or csr_matrix, shape (n, n_features)
    y : ndarray of float64, shape (n,)
        Labels, -1 or +1.
    bounds : ndarray of float64, shape (n,)
        Upper bounds of alpha: the factors of the losses.
    order : {"permutation", "iid"}
    shrinking : bool
    rng : numpy.random.Generator
    counters : Counters
        Where inner products are counted.

    Attributes
    ----------
    alpha : ndarray of float64, shape (n,)
    w : ndarray of float64, shape (n_features,)
    n_iter : int
        Draws done.
    """

    X: Matrix
    y: np.ndarray
    bounds: np.ndarray
    order: str
    shrinking: bool
    rng: np.random.Generator
    counters: Counters
    n_iter: int = 0
    alpha: np.ndarray = field(init=False)
    w: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        n, n_features = self.X.shape
        self.alpha, self.w = np.zeros(n), np.zeros(n_features)
        self._rows = row_arrays(self.X)
        self._diag = finite_squared_norms(self.X)
        self.counters.inner_products += n
        # A point without weight has alpha = 0 for good.
        self._order = np.flatnonzero(self.bounds > 0)
        self._state = np.array([len(self._order), 0.0, 0.0, math.inf, -math.inf])

    def epoch(self, allowance: Callable[[], float], pause: Callable[[], bool]) -> bool:
        """One epoch, interrupted by ``pause`` after each allowance of draws.

        Returns
        -------
        bool
            Whether a pause asked to stop.
        """
        active = int(self._state[ACTIVE])
        if self.order == "permutation":
            self._order[:active] = self._order[:active][self.rng.permutation(active)]
            draws = self._order
        else:
            draws = self._order[self.rng.integers(active, size=active)]
        self._state[[HIGHEST, LOWEST]] = -math.inf, math.inf
        position = 0
        while position < self._state[ACTIVE]:
            wanted = math.ceil(min(max(allowance(), 1.0), active))
            position, done = ascent_steps(
                self._rows, self.y, self._diag, self.bounds, draws, position, wanted,
                self.shrinking, self.alpha, self.w, self._state,
            )  # fmt: skip
            self.n_iter += done
            self.counters.inner_products += done
            if pause():
                return True
        return False

    def end_epoch(self, tol: float) -> float:
        """Set the thresholds of shrinking; bring all points back if those left are optimal.

        Returns
        -------
        float
            The largest less the smallest derivative of the epoch; infinite if a point was left out.
        """
        state = self._state
        spread = float(state[HIGHEST] - state[LOWEST])
        whole = self.complete
        if whole or spread > max(tol, NO_STEP):
            state[SHRINK_ABOVE] = state[HIGHEST] if state[HIGHEST] > 0 else math.inf
            state[SHRINK_BELOW] = state[LOWEST] if state[LOWEST] < 0 else -math.inf
        else:
            state[[ACTIVE, SHRINK_ABOVE, SHRINK_BELOW]] = len(self._order), math.inf, -math.inf
        return spread if whole else math.inf

    @property
    def complete(self) -> bool:
        """Whether no point is left out at the moment."""
        return bool(self._state[ACTIVE] == len(self._order))

    def gap(self) -> float:
        """Primal minus dual, over the sum of the bounds. Costs n inner products."""
        margins = margins_of(self._rows, self.y, self.w)
        self.counters.inner_products += len(margins)
        primal = 0.5 * matmul(self.w, self.w) + matmul(self.bounds, hinge(margins))
        dual = self.alpha.sum() - 0.5 * matmul(self.w, self.w)
        return float((primal - dual) / self.bounds.sum())
