"""One run, inside a worker: data, warm-up, the timed fit, and the checks of what it returned.

Each state is judged when it is reached, while the clocks stand still, from its model as plain
arrays.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, is_dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numba.core.event import Listener, install_listener
from sklearn.base import clone

from ...solvers.interface.convergence import without_convergence_warnings
from ..errors import EvaluationError
from ..jobs import Send
from ..loading import load_class, load_kernel
from .judging import (
    Judgement,
    TraceMonitor,
    build_evaluator,
    compared_rows,
    read_only,
)
from .models import mistaken
from .svm import DEFAULT_TOL, FitWork
from .tuning import TrialMonitor, begun

if TYPE_CHECKING:
    from ...data_loaders import Dataset
    from ...solvers import Solver


class _Compiling(Listener):  # type: ignore[misc] # numba has no types
    """Stops the clocks whenever numba compiles, or loads compiled code; some lie within others."""

    def __init__(self, monitor: TraceMonitor) -> None:
        self._monitor, self._depth, self._pause = monitor, 0, ExitStack()

    def on_start(self, event: Any) -> None:
        """Stop the clocks at the first of several beginnings."""
        self._depth += 1
        if self._depth == 1 and self._monitor.clocks.running:
            self._pause.enter_context(self._monitor.paused())

    def on_end(self, event: Any) -> None:
        """Go on after the last of several ends."""
        self._depth -= 1
        if self._depth == 0:
            self._pause.close()


# Points of each class in the problem on which compilation is warmed up, and how many classes.
_WARM_UP_POINTS = 20
_WARM_UP_CLASSES = 10
# Characters of what a solver noted of its epochs.
_EPOCHS_LIMIT = 2**24


def measure(work: FitWork, send: Send) -> dict[str, Any]:
    """Run a solver on a task, watched, and check what it returns: the columns of the record.

    Raises `DataError` if the data cannot be loaded, and whatever the solver raises.
    """
    work, dataset, estimator, columns = begun(
        work, send, _build, _warm_up, partial(try_part, _build)
    )
    judgement = Judgement(
        work.problem,
        dataset,
        certificate=type(estimator).certificate == "dual",
        tol=float(estimator.get_params().get("tol", DEFAULT_TOL)),
        rules=work.rules,
        send=send,
    )
    monitor = TraceMonitor(
        judgement,
        first_checkpoint=dataset.n_train,
        factor=work.checkpoint_factor,
        each_epoch=work.epoch_checkpoints,
    )
    # Before monitor.start the solver checks its input: a hang there must be seen as well.
    send({"phase": "solve"})
    returned, scores = "diverged", None
    try:
        compiling = install_listener("numba:compile", _Compiling(monitor))
        with compiling, without_convergence_warnings():
            estimator.fit(dataset.X_train, dataset.y_train, monitor=monitor)
            send({"phase": "evaluate", "solve_s": monitor.clocks.wall_s})
            fitted = perf_counter()
            if monitor.ended and not monitor.diverged:
                rows = compared_rows(dataset.n_test)
                scores = estimator.decision_function(dataset.X_test[rows])
                returned = str(estimator.status_)
        if monitor.ended and type(estimator).instrumented and monitor.counters is None:
            raise EvaluationError("the solver says that it counts, but there are no counts")
        status, reason = judgement.verdict(returned, scores)
        monitor.evaluation_s += perf_counter() - fitted
    except EvaluationError as error:
        status, reason = "wrong", str(error)
    monitor.clocks.pause()
    return {
        **columns,
        "status": status,
        "reason": reason,
        "wall_s": monitor.clocks.wall_s,
        "cpu_s": monitor.clocks.cpu_s,
        "system_s": monitor.clocks.system_s,
        "evaluation_s": monitor.evaluation_s,
        "epochs": epochs_of(estimator),
        **judgement.columns(),
    }


def _build(work: FitWork) -> Solver:
    kernel, params = work.problem.kernel, work.params
    if "kernel" in params and ":" in kernel["name"]:
        params = {**params, "kernel": load_kernel(kernel)}
    solver: Solver = load_class(work.solver)(**params)
    return solver


def try_part(
    build: Callable[[FitWork], Solver], work: FitWork, part: Dataset, monitor: TrialMonitor
) -> int:
    """Fit a configuration to a part of the data; its mistakes on the rest."""
    with without_convergence_warnings():
        build(work).fit(part.X_train, part.y_train, monitor=monitor)
    monitor.clocks.pause()
    if monitor.model is None:
        raise EvaluationError("fit did not report its end to the monitor (monitor.finish)")
    evaluator = build_evaluator(work.problem, part, certificate=False)
    scores = evaluator.test_scores(monitor.model, np.arange(part.n_test))
    return int(np.count_nonzero(mistaken(scores, part.y_test, np.unique(part.y_train))))


#: What this process was warmed up for: the solver with its parameters, and the types of the data.
_WARM: set[str] = set()


def _warm_up(work: FitWork, estimator: Solver, dataset: Dataset) -> None:
    """Fit a copy to a few points of the same types, so that compilation is not timed later."""
    X, params = dataset.X_train, {**work.params, "random_state": None}
    types = type(X).__name__, X.dtype, getattr(X, "indices", X).dtype, dataset.y_train.dtype
    warm = repr((work.solver, params, work.problem.kernel["name"], types))
    if warm in _WARM:
        return
    _WARM.add(warm)
    rows = warm_up_rows(dataset.y_train)
    # Compiled code distinguishes arrays that may not be written to.
    X, y = read_only(dataset.X_train[rows]), read_only(dataset.y_train[rows])
    trial: Solver = clone(estimator)
    params = trial.get_params()
    for name, most in (("max_epochs", 1), ("max_iter", len(y))):
        if name in params and (params[name] is None or params[name] > most):
            trial.set_params(**{name: most})
    # Failing on so few points proves nothing; the real fit will tell.
    with suppress(Exception), without_convergence_warnings():
        trial.fit(X, y)


def warm_up_rows(y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """A few points of each of a few classes."""
    labels = np.unique(y)[:_WARM_UP_CLASSES]
    return np.concatenate([np.flatnonzero(y == label)[:_WARM_UP_POINTS] for label in labels])


def epochs_of(estimator: Solver) -> str:
    """What the solver noted as it went, as JSON: dataclasses in ``trace_`` or its ``noted()``.

    Another ``trace_`` is the estimator's own affair and is left out.
    """
    kept = getattr(estimator, "trace_", None)
    noted = getattr(kept, "noted", None)
    kept = noted() if callable(noted) else kept
    text = "[]"
    if isinstance(kept, list) and all(map(is_dataclass, kept)):
        with suppress(TypeError, ValueError):
            text = json.dumps([asdict(item) for item in kept])
            # JSON does not know NaN and infinities.
            text = json.dumps(json.loads(text, parse_constant=lambda name: None))
    return text if len(text) <= _EPOCHS_LIMIT else "[]"
