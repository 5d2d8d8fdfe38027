"""BSCA and BSGD: dual ascent and subgradient descent with a model on a budget.

BSCA18 Algorithm 1, for w = sum_j beta_j phi(z_j) over the points z_j of a model M; its line 2 and
the draws stand in ``BudgetSolver._solve``, lines 5 to 11 in ``iterate``::

    M <- {}, alpha <- 0                                                                 (line 2)
    for t = 1, 2, ...                                                                   (line 3)
        draw i                                               n of them are an epoch     (line 4)
        f <- sum_{j in M} beta_j k(z_j, x_i)                 |M| kernel evaluations     (line 5)
        BSCA:  delta <- clip(alpha_i + (1 - y_i f) / k(x_i, x_i), 0, C) - alpha_i       (line 6)
               alpha_i <- alpha_i + delta;  add y_i delta phi(x_i) to w            (lines 7 to 9)
        BSGD:  w <- (1 - 1/t) w;  if y_i f < 1: add y_i n C / t phi(x_i) to w           (eq. 4)
        if |M| > B: remove, project or merge a point         (``maintenance.py``; lines 10 and 11)

Where merging finds no partner that it may take, it starts from the next lightest point. BSGD's
model holds ``t w``, which no decay touches: ``1/t`` is the product of all decays since the
first, so it can neither underflow nor lose digits however long the run is. A point that stands in
the model already has its coefficient changed there.
"""

from __future__ import annotations

import math
import platform
import time
from typing import ClassVar, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..interface.base import Solver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import (
    KernelParameters,
    SoftMarginParameters,
    SolverParameters,
    WarmStartParameters,
)
from ..interface.problem import Problem, Solution, SolveStatus
from ..kernels import RBF
from ..models import BudgetExpansion
from ..numeric.ascent import best_value
from ..numeric.validation import (
    check_flag,
    check_iteration_limit,
    check_one_of,
    check_positive,
    check_whole,
)
from ..registration import register
from .epochs import EpochRecord, budget_objectives
from .maintenance import MERGING, PAIRINGS, PROJECTION, STRATEGIES, maintain, rule_of
from .merging import SAME_LABEL
from .model import (
    COUNTS,
    GAUSSIAN,
    ModelState,
    TrainingPoints,
    compiled,
    empty_state,
    kernel_row,
    weighted_sum,
)

ASCENT, DESCENT = range(2)
# More kernel evaluations than any call makes.
_NO_LIMIT = 2**62
# The square of so many non-zero alpha is affordable after each epoch.
_EXACT_UP_TO = 20_000
# Points whose exponent is at most this (their kernel entry at least 1 less this) are one point.
_COINCIDENT = 5e-9
# Other processors refuse the instruction to ordinary programs; there no ticks are measured.
_HAS_TICKS = platform.machine().lower() in ("x86_64", "amd64")


class Method(NamedTuple):
    """What a drawn point adds to a model."""

    kind: int  # {ASCENT, DESCENT}: BSCA or BSGD
    y: np.ndarray  # float64, shape (n,): Labels, -1 or +1
    squares: np.ndarray  # float64, shape (n,): k(x_i, x_i); not read for the Gaussian kernel
    # float64, shape (n,): alpha for ASCENT, numbers of violations for DESCENT; changed in place
    duals: np.ndarray
    size: float  # ASCENT: C, the bound of alpha; DESCENT: n C, the length of the first step


@compiled()
def iterate(model, kernel, rule, method, drawn, index, done, start, limit):
    """Iterations on ``index[start:]``, ``done`` before its first; the position where they ended."""
    points, coef, counts = model.points, model.coef, model.counts
    distances, entries, duals = model.distances, model.entries, method.duals
    started, maintenance = ticks(), 0
    evals_before = counts.margin_evals + counts.search_evals
    position = start
    while position < len(index):
        i, x, size = index[position], drawn[position], counts.n_points
        y, square = method.y[i], 1.0 if kernel.kind == GAUSSIAN else method.squares[i]
        kernel_row(kernel, x, points, size, distances, entries)
        score = weighted_sum(coef, entries, size)  # line 5
        counts.margin_evals += size
        counts.computed += size
        before, scale = done + position, 1.0
        if method.kind == ASCENT:
            # Lines 6 and 8: BSCA18 eq. 3 at the score of the model.
            target = best_value(duals[i], 1.0 - y * score, square, method.size)
            coefficient = y * (target - duals[i])
            duals[i] = target
        else:
            # BSCA18 eq. 4: of t w, so that the score is ``before`` times that of w.
            scale, coefficient = 1.0 / (before + 1), 0.0
            if before == 0 or y * score < before:
                coefficient = y * method.size
                duals[i] += 1.0
        if coefficient != 0.0:  # line 7
            counts.changes += 1
            # For the Gaussian kernel a point of the model is known by its distance, for others by
            # its index.
            coincident, lost = -1, 0.0
            if kernel.kind == GAUSSIAN:
                for j in range(size):
                    coincident = max(coincident, j if distances[j] <= _COINCIDENT else -1)
            else:
                for j in range(size):
                    coincident = max(coincident, j if model.owner[j] == i else -1)
            if coincident >= 0:
                counts.coalesced += 1
                coef[coincident] += coefficient
                if kernel.kind == GAUSSIAN:
                    rest = math.expm1(-np.float64(distances[coincident]))
                    lost = -2.0 * coefficient * coefficient * rest
            else:
                # Line 9; the label, which is missing there, is in the coefficient.
                for f in range(len(x)):
                    points[f, size] = x[f]
                coef[size], model.roots[size], model.owner[size] = coefficient, math.sqrt(square), i
                if len(model.labels) > 0:
                    model.labels[size] = y
                counts.n_points += 1
                # Lines 10 and 11; projection takes note of every point.
                if size == model.budget or rule.kind == PROJECTION:
                    began = ticks()
                    lost = maintain(model, kernel, rule)
                    maintenance += ticks() - began
            model.degradation[0] += scale * scale * lost
        position += 1
        if counts.margin_evals + counts.search_evals - evals_before >= limit:
            break
    counts.ticks += ticks() - started
    counts.maintenance_ticks += maintenance
    return position


@intrinsic
def ticks(typingctx):
    """The processor's cycle counter as int64, read without a system call; 0 if there is none."""

    def code(context, builder, signature, args):
        word = ir.IntType(64)
        if not _HAS_TICKS:
            return ir.Constant(word, 0)
        read = builder.module.declare_intrinsic(
            "llvm.readcyclecounter", fnty=ir.FunctionType(word, [])
        )
        return builder.call(read, [])

    return types.int64(), code


@hyperparameters
class BudgetSolver(
    Solver, SolverParameters, WarmStartParameters, SoftMarginParameters, KernelParameters
):
    """Base class of the solvers on a budget, :class:`BSCA` and :class:`BSGD`.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"} or Kernel
        Evaluated in compiled code, so no callable and no precomputed matrix.
    dtype
        Type of points and kernel entries. Sums are float64.
    budget : int >= 1
        The most points that the model may have after any iteration.
    maintenance : str
        What becomes of the point with the least ``||beta phi(z)||`` when there is one too many.
        "merge": it and its best partner become one point (only for "rbf"), on the line through both
        where w moves least in feature space, by a table; "merge-golden" and "merge-golden-precise":
        the same by golden section search, to 0.01 and 1e-10. "project": the others take over what
        they can of it, time and memory quadratic in the budget. "remove": it is dropped.
    pairing : {"label", "any", "sign"}
        Which points may be merged: those of the same label, any two, or those whose coefficients
        have the same sign. See docs/budget.md. Projection and removal do not read it.
    order : {"permutation", "iid"}
        A fresh permutation in each epoch (the authors' code), or independent uniform draws
        (as [BSCA18]_ prints it).
    max_epochs : int >= 1
        Stop after this many epochs of n iterations. [BSCA18]_ states no number.
    record_objectives : bool
        Evaluate primal, duals and drift after each epoch, into ``trace_``. That takes time within
        ``fit``, but none of the time in ``trace_``.

    Attributes
    ----------
    alpha_ : ndarray, shape (n,)
        The dual variables whose w the model approximates.
    trace_ : list of EpochRecord
        Maintenance events, degradation, kernel evaluations and times of each epoch.
    """

    supports_callable_kernel: ClassVar[bool] = False

    budget: int = 500
    maintenance: str = "merge"
    pairing: str = "sign"
    order: str = "permutation"
    max_epochs: int = 20
    record_objectives: bool = False

    _kind: ClassVar[int]

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_whole("budget", self.budget, at_least=1)
        check_one_of("maintenance", self.maintenance, tuple(STRATEGIES))
        check_one_of("pairing", self.pairing, tuple(PAIRINGS))
        check_one_of("order", self.order, ("permutation", "iid"))
        check_iteration_limit(self.max_epochs)
        check_flag("record_objectives", self.record_objectives)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        kernel, n = problem.kernel, problem.n
        rule = rule_of(self.maintenance, self.pairing)
        # With room for all points no maintenance ever happens.
        if rule.kind == MERGING and not isinstance(kernel, RBF) and self.budget < n:
            raise ValueError(
                f"merging needs the rbf kernel, got {kernel.name}: set maintenance='project' or "
                f"'remove', or a budget of all {n} points"
            )
        training = TrainingPoints(kernel, problem.X, np.dtype(self.dtype).name)
        problem.counters.charge(len(training.squares), len(training.squares))
        model = empty_state(  # BSCA18 Algorithm 1 line 2
            problem.X.shape[1],
            min(int(self.budget), n),
            training.dtype,
            gram=rule.kind == PROJECTION,
            labels=rule.pairing == SAME_LABEL,
        )
        model, n_iter, duals = problem.state or (model, 0, np.zeros(n))
        size = float(self.C) * (n if self._kind == DESCENT else 1)
        method = Method(self._kind, problem.y, training.squares, duals, size)

        def scale() -> float:
            return 1.0 if self._kind == ASCENT else 1.0 / max(n_iter, 1)

        def snapshot() -> BudgetExpansion:
            coef = model.coef[: int(model.counts["n_points"])] * scale()
            return BudgetExpansion(kernel, training.points_of(model), coef, dtype=training.dtype)

        def run_epoch() -> tuple[bool, float]:
            """One iteration for each draw, block by block; whether the monitor stopped it, and the
            wall time without drawing."""
            nonlocal n_iter
            seconds = 0.0
            permuted = self.order == "permutation"  # Line 4 draws independently.
            draws = problem.rng.permutation(n) if permuted else problem.rng.integers(n, size=n)
            for begin in range(0, n, training.block_length):
                index, position = draws[begin : begin + training.block_length], 0
                started = time.perf_counter()
                drawn = training.gather(index)
                seconds += time.perf_counter() - started
                while position < len(index):
                    ahead = monitor.next_checkpoint - problem.kernel_evals
                    limit = max(1, math.ceil(ahead)) if math.isfinite(ahead) else _NO_LIMIT
                    done, start, before = n_iter - position, position, model.counts.copy()
                    started = time.perf_counter()
                    position = iterate(
                        model, training.code, rule, method, drawn, index, done, start, limit
                    )
                    seconds += time.perf_counter() - started
                    n_iter += position - start
                    spent = _counted_since(model, before)
                    evals = spent["margin_evals"] + spent["search_evals"]
                    problem.counters.charge(evals, spent["computed"])
                    due = monitor.due(problem.kernel_evals)
                    if due and monitor.record(n_iter, snapshot):
                        return True, seconds
            return False, seconds

        self.trace_: list[EpochRecord] = []
        stopped = False
        for epoch in range(1, self.max_epochs + 1):
            first, before, moved = n_iter, model.counts.copy(), float(model.degradation[0])
            stopped, seconds = run_epoch()
            if not stopped and epoch < self.max_epochs:  # the end of the last is that of the fit
                stopped = monitor.epoch_ended(n_iter, snapshot)
            self.alpha_ = method.duals
            if self._kind == DESCENT:
                self.alpha_ = method.duals * (size * scale())
            objectives = None
            if self.record_objectives:
                with monitor.paused():
                    objectives = budget_objectives(
                        snapshot(), problem.X, problem.y, self.alpha_, float(self.C), _EXACT_UP_TO
                    )
            spent = _counted_since(model, before)
            share = spent["maintenance_ticks"] / spent["ticks"] if spent["ticks"] > 0 else math.nan
            self.trace_.append(
                EpochRecord(
                    epoch=epoch,
                    n_iter=n_iter,
                    n_support=int(model.counts["n_points"]),
                    iterations=n_iter - first,
                    changes=spent["changes"],
                    coalesced=spent["coalesced"],
                    maintenance=spent["events"],
                    weight_degradation=float(model.degradation[0]) - moved,
                    margin_evals=spent["margin_evals"],
                    search_evals=spent["search_evals"],
                    seconds=seconds,
                    maintenance_seconds=seconds * share,
                    objectives=objectives,
                )
            )
            if stopped:
                break
        status: SolveStatus = "stopped" if stopped else "budget"
        return Solution(snapshot(), n_iter, status, state=(model, n_iter, method.duals))


def _counted_since(model: ModelState, before: np.void) -> dict[str, int]:
    """What compiled code has counted since then."""
    assert COUNTS.names is not None
    return {name: int(model.counts[name] - before[name]) for name in COUNTS.names}


@register("svm")
@hyperparameters
class BSCA(BudgetSolver):
    """Soft-margin kernel SVM without bias by dual coordinate ascent on a budget of points.

    Goes through the variables of ``max sum_i alpha_i - 1/2 alpha' Q alpha, 0 <= alpha_i <= C`` like
    :class:`SDCA`, but scores each drawn point with an approximate w of at most ``budget`` points;
    a step ``delta`` on alpha_i adds the point x_i with coefficient ``y_i delta``, and one point too
    many is merged with another, projected onto the others, or removed ([BSCA18]_ Algorithm 1).

    Parameters
    ----------
    pairing : {"label", "any", "sign"}
        Which points may be merged: those of the same label, any two, or those whose coefficients
        have the same sign. "any" is the most accurate; see docs/budget.md.

    Attributes
    ----------
    alpha_ : ndarray of float64, shape (n,)
        The dual variables, feasible. The model is not ``sum_i alpha_i y_i phi(x_i)``, but what
        maintenance has made of it.

    Notes
    -----
    Kernel evaluations: the model's size in each iteration, and its size less one for each event of
    merging; none for removal and projection. For kernels with a diagonal other than 1, n more,
    once. Memory: the model, n numbers, and a block of rows; the data are not copied.

    The model is a :class:`BudgetExpansion`: ``support_vectors_`` are points of its own, and
    ``dual_coef_`` their signed coefficients. There is no certificate: alpha belongs to another w.

    Deviations from [BSCA18]_: the default order is a permutation, not independent draws; a table
    ([GQ18]_) chooses whom to merge with and Newton's method where, not golden section search
    (``maintenance="merge-golden"``); any two points may be merged, where the paper considers only
    those of one class (``pairing="label"``), and a point without partners gives way to the next
    lightest; the paper prints the new coefficient without the label; a point that stands in the
    model already has its coefficient changed there. See docs/budget.md.
    """

    scalarization = "C"
    _kind = ASCENT

    pairing: str = "any"


@register("svm")
@hyperparameters
class BSGD(BudgetSolver):
    """Soft-margin kernel SVM without bias by subgradient steps on a budget of points.

    Minimises ``lambda/2 ||w||^2 + (1/n) sum_i hinge_i``, ``lambda = 1 / (n C)``, like
    :class:`Pegasos`: iteration t multiplies w by ``1 - 1/t``, and adds ``y_i n C / t phi(x_i)`` if
    the drawn point had margin below 1 ([BSCA18]_ eq. 4). One point too many for the budget is
    merged with another, projected onto the others, or removed ([WCV12]_).

    Attributes
    ----------
    alpha_ : ndarray of float64, shape (n,)
        ``n C / t`` times the number of violations of each point: the w that the model approximates
        is ``sum_i alpha_i y_i phi(x_i)``. Entries may exceed C, so that the "dual values" of BSGD
        are only diagnostics.

    Notes
    -----
    Kernel evaluations: the model's size in each iteration, and its size less one for each event of
    merging; none for removal and projection. For kernels with a diagonal other than 1, n more,
    once. Memory: the model, n numbers, and a block of rows; the data are not copied.

    The model is a :class:`BudgetExpansion`: ``support_vectors_`` are points of its own, and
    ``dual_coef_`` their signed coefficients.

    Deviations: the default order is a permutation; a table ([GQ18]_) chooses whom to merge with
    and Newton's method where, not golden section search (``maintenance="merge-golden"``); the first
    step has length n C, as eq. 4 says (the authors' code takes 1); a point that stands in the model
    already has its coefficient changed there. See docs/budget.md.
    """

    scalarization = "R"
    _kind = DESCENT
