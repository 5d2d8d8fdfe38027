"""One run, inside a worker: data, warm-up, the timed fit, and the checks of what came back."""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from marginbench.harness.errors import EvaluationError
from marginbench.harness.jobs import PhaseMessage, Send
from marginbench.harness.loading import load_class
from marginbench.harness.svm.evaluation import Evaluation, Evaluator
from marginbench.harness.svm.tracing import TraceMonitor
from marginbench.harness.svm.work import FitWork, Problem
from marginbench.solvers.kernels import kernel_of

if TYPE_CHECKING:
    from marginbench.data_loaders import Dataset
    from marginbench.solvers import Solver

# Points of each class in the problem on which compilation is warmed up.
_WARM_UP_POINTS = 20
# Test points on which an estimator's own scores are compared with recomputed ones.
_COMPARED_POINTS = 200
# The accuracy of "converged" for an estimator without a parameter tol: scikit-learn's default.
_DEFAULT_TOL = 1e-3


def measure(work: FitWork, send: Send) -> dict[str, Any]:
    """Run a solver on a task, watched, and check what it returns.

    Parameters
    ----------
    work : FitWork
    send : callable
        Takes phases and checkpoints as they come.

    Returns
    -------
    dict
        The columns of the record that it found out.

    Raises
    ------
    DataError
        If the data cannot be loaded.
    Exception
        Whatever the solver raises.
    """
    send(PhaseMessage("data"))
    started = time.perf_counter()
    dataset = load_task_data(work.problem)
    data_s = time.perf_counter() - started

    send(PhaseMessage("compile"))
    started = time.perf_counter()
    solver_class = load_class(work.solver)
    estimator = solver_class(**work.params)
    _warm_up(estimator, dataset)
    compile_s = time.perf_counter() - started

    evaluator = build_evaluator(
        work.problem, dataset, certificate=solver_class.certificate == "dual"
    )
    monitor = TraceMonitor(
        evaluator,
        first_checkpoint=dataset.n_train,
        factor=work.checkpoint_factor,
        each_epoch=work.epoch_checkpoints,
        send=send,
    )
    # Before monitor.start the solver checks its input: a hang there must be seen as well.
    send(PhaseMessage("solve"))
    try:
        estimator.fit(dataset.X_train, dataset.y_train, monitor=monitor)
        send(PhaseMessage("evaluate", monitor.clocks.wall_s))
        status, reason = _verdict(estimator, monitor, evaluator, work.problem)
    except EvaluationError as error:
        status, reason = "wrong", str(error)
    return {
        "status": status,
        "reason": reason,
        "data_s": data_s,
        "compile_s": compile_s,
        "epochs": _epochs(estimator),
        **_found(monitor),
    }


def load_task_data(problem: Problem) -> Dataset:
    """The task's dataset. Its arrays are read-only: no solver changes what it is judged by."""
    from marginbench.data_loaders import load

    return load(problem.dataset, problem.dataset_params or None)


def build_evaluator(problem: Problem, dataset: Dataset, *, certificate: bool) -> Evaluator:
    """The evaluator of a task."""
    return Evaluator(
        kernel=kernel_of(problem.kernel),
        C=problem.C,
        fit_intercept=problem.fit_intercept,
        X_train=dataset.X_train,
        y_train=dataset.y_train,
        X_test=dataset.X_test,
        y_test=dataset.y_test,
        dual_certificate=certificate,
    )


def _warm_up(estimator: Solver, dataset: Dataset) -> None:
    """Fit a copy to a few points of the same types, so that compilation is not timed later."""
    rows = np.concatenate(
        [np.flatnonzero(dataset.y_train == label)[:_WARM_UP_POINTS] for label in (-1, 1)]
    )
    X, y = dataset.X_train[rows], dataset.y_train[rows]
    if not sparse.issparse(X):
        # Compiled code distinguishes arrays that may not be written to.
        X.flags.writeable = False
    y.flags.writeable = False
    trial: Solver = clone(estimator)
    if "max_epochs" in trial.get_params():
        trial.set_params(max_epochs=1)
    # Failing on so few points proves nothing; the real fit will tell.
    with suppress(Exception):
        trial.fit(X, y)


def _epochs(estimator: Solver) -> str:
    """What the solver noted as it went, as JSON: dataclasses in ``trace_`` or its ``noted()``.

    Another ``trace_`` is the estimator's own affair and is left out.
    """
    kept = getattr(estimator, "trace_", None)
    noted = getattr(kept, "noted", None)
    kept = noted() if callable(noted) else kept
    if not isinstance(kept, list) or not all(is_dataclass(item) for item in kept):
        return "[]"
    try:
        return json.dumps([_plain(asdict(item)) for item in kept], allow_nan=False)
    except (TypeError, ValueError):
        return "[]"


def _plain(value: Any) -> Any:
    """The value with None in the place of numbers that JSON does not know."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _verdict(
    estimator: Solver, monitor: TraceMonitor, evaluator: Evaluator, problem: Problem
) -> tuple[str, str]:
    """The status of a fit that came back, and a reason where there is one to give."""
    if monitor.final is None:
        raise EvaluationError("fit did not report its end to the monitor (monitor.finish)")
    if monitor.diverged:
        return "diverged", "the objective of the returned model is not finite"
    if not problem.fit_intercept and estimator.model_.intercept != 0:
        raise EvaluationError(
            f"the task has no bias, but the model has the intercept {estimator.model_.intercept:g}"
        )
    status = str(estimator.status_)
    if status not in ("converged", "budget", "stopped"):
        raise EvaluationError(f"status_ is {status!r}; expected 'converged', 'budget' or 'stopped'")
    _check_scores(estimator, evaluator)
    if type(estimator).certificate == "dual":
        n_train = len(evaluator.y_train)
        noise = evaluator.score_noise(estimator.model_)
        _check_certificate(estimator, monitor.final, noise, status, problem, n_train)
    return ("converged", "") if status == "converged" else ("budget", "")


def _check_scores(estimator: Solver, evaluator: Evaluator) -> None:
    """The estimator must predict with the model that it returns."""
    n_test = evaluator.X_test.shape[0]
    rows = np.unique(np.linspace(0, n_test - 1, min(n_test, _COMPARED_POINTS)).astype(np.int64))
    claimed = np.asarray(estimator.decision_function(evaluator.X_test[rows]), dtype=np.float64)
    expected = evaluator.test_scores(estimator.model_, rows)
    if claimed.shape != expected.shape:
        raise EvaluationError(
            f"decision_function returned shape {claimed.shape} for {len(rows)} points"
        )
    low, high = evaluator.score_bounds(estimator.model_, rows)
    beyond = np.maximum(low - claimed, claimed - high) - 1e-6 * (1.0 + np.abs(expected))
    if not bool(np.all(beyond <= 0)):
        worst = int(np.argmax(np.where(np.isnan(beyond), np.inf, beyond)))
        raise EvaluationError(
            f"decision_function gives {claimed[worst]:.6g} for test point {rows[worst]}, the "
            f"returned model {expected[worst]:.6g}"
        )


def _check_certificate(
    estimator: Solver, final: Evaluation, noise: float, status: str, problem: Problem, n_train: int
) -> None:
    """A dual certificate must be one, and "converged" must mean a small gap."""
    if final.gap is None:
        raise EvaluationError(
            "the solver promises a dual certificate, but its coefficients are no feasible dual "
            f"point (0 <= y_i coef_i <= C = {problem.C:g})"
        )
    if status != "converged":
        return
    tol = float(estimator.get_params().get("tol", _DEFAULT_TOL))
    # Units of the mean loss. A violation of tol at every point makes a gap of tol; scores that
    # are off by the float32 noise can hide that much more, in the point's own loss and alpha.
    gap = final.gap / (n_train * problem.C)
    allowed = 2.0 * tol + 2.0 * noise
    if gap > allowed:
        raise EvaluationError(
            f"the solver says converged (tol = {tol:g}), but the duality gap is {gap:.3g} in "
            f"units of the mean loss; at most {allowed:.3g} is possible"
        )


def _found(monitor: TraceMonitor) -> dict[str, Any]:
    """Counts, clocks and scores as columns of the record."""
    last, final, clocks = monitor.last, monitor.final, monitor.clocks
    clocks.pause()
    scores = ("n_support", "train_error", "test_error", "primal", "dual", "gap")
    return {
        "n_iter": None if last is None else last.n_iter,
        "counters": None if last is None else last.counters,
        "wall_s": clocks.wall_s,
        "cpu_s": clocks.cpu_s,
        "evaluation_s": monitor.evaluation_s,
        **{name: None if final is None else getattr(final, name) for name in scores},
    }
