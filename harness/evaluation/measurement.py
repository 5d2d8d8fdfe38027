"""One run, inside a worker: data, warm-up, the timed fit, and the checks of what came back.

Each state is judged when it is reached, while the clocks stand still, from its model as plain
arrays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, is_dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numba.core.event import Listener, install_listener
from scipy import sparse
from sklearn.base import clone

from ...solvers.interface.convergence import without_convergence_warnings
from ..errors import EvaluationError
from ..jobs import FoundMessage, PhaseMessage, Send
from ..loading import load_class, load_kernel
from .judging import Judge, Judgement, TraceMonitor, build_evaluator, compared_rows, load_task_data
from .svm import DEFAULT_TOL, FitWork, Search
from .tuning import TrialMonitor, misclassified, tune

if TYPE_CHECKING:
    from ...data_loaders import Dataset
    from ...solvers import Solver


@contextmanager
def compiling_untimed(monitor: TraceMonitor) -> Iterator[None]:
    """Inside, the clocks stand still whenever numba compiles, or loads compiled code."""
    with install_listener("numba:compile", _Compiling(monitor)):
        yield


class _Compiling(Listener):  # type: ignore[misc] # numba has no types
    """Told by numba of the beginning and the end of each compilation; some lie within others."""

    def __init__(self, monitor: TraceMonitor) -> None:
        self._monitor = monitor
        self._depth = 0
        self._pause: AbstractContextManager[None] | None = None

    def on_start(self, event: Any) -> None:
        """Stop the clocks at the first of several beginnings."""
        self._depth += 1
        if self._depth == 1 and self._monitor.clocks.running:
            self._pause = self._monitor.paused()
            self._pause.__enter__()

    def on_end(self, event: Any) -> None:
        """Go on after the last of several ends."""
        self._depth -= 1
        if self._depth == 0 and self._pause is not None:
            self._pause.__exit__(None, None, None)
            self._pause = None


# Points of each class in the problem on which compilation is warmed up, and how many classes.
_WARM_UP_POINTS = 20
_WARM_UP_CLASSES = 10
# Characters of what a solver noted of its epochs.
_EPOCHS_LIMIT = 2**24


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
    prepared = Prepared(work, send)
    work, estimator = prepared.work, prepared.estimator
    judgement = Judgement(
        work.problem,
        prepared.dataset,
        certificate=type(estimator).certificate == "dual",
        tol=float(estimator.get_params().get("tol", DEFAULT_TOL)),
        rules=work.rules,
        send=send,
    )
    monitor = prepared.monitor(judgement, send, reached=lambda: judgement.reached)
    try:
        with compiling_untimed(monitor):
            returned, scores = prepared.fit(monitor, send)
        if monitor.ended and type(estimator).instrumented and monitor.counters is None:
            raise EvaluationError("the solver says that it counts, but there are no counts")
        status, reason = judgement.verdict(returned, scores)
    except EvaluationError as error:
        status, reason = "wrong", str(error)
    monitor.clocks.pause()
    return {
        "status": status,
        "reason": reason,
        "data_s": prepared.data_s,
        "compile_s": prepared.compile_s,
        "wall_s": monitor.clocks.wall_s,
        "cpu_s": monitor.clocks.cpu_s,
        "system_s": monitor.clocks.system_s,
        "evaluation_s": monitor.evaluation_s,
        "epochs": epochs_of(estimator),
        **prepared.tuning,
        **judgement.columns(),
    }


class Prepared:
    """A run up to the moment at which its clocks start: data loaded, solver built and warmed up.

    Attributes
    ----------
    dataset : Dataset
    estimator : Solver
    data_s, compile_s : float
        Seconds of loading, and of building and warming up.
    work : FitWork
        With the configuration that was chosen, where the run is tuned.
    tuning : dict
        What the record says of it; empty where nothing is tuned.
    """

    def __init__(self, work: FitWork, send: Send) -> None:
        self.work = work
        send(PhaseMessage("data"))
        started = perf_counter()
        self.dataset = load_task_data(work.problem)
        self.data_s = perf_counter() - started

        send(PhaseMessage("compile"))
        started = perf_counter()
        self.estimator = self._build(work.params)
        _warm_up(self.estimator, self.dataset)
        self.compile_s = perf_counter() - started
        self.tuning: dict[str, Any] = {}
        if work.search is not None:
            self._tune(work.search, send)

    def _build(self, params: dict[str, Any]) -> Solver:
        kernel = self.work.problem.kernel
        if "kernel" in params and ":" in kernel["name"]:
            params = {**params, "kernel": load_kernel(kernel)}
        solver: Solver = load_class(self.work.solver)(**params)
        return solver

    def _tune(self, search: Search, send: Send) -> None:
        """Choose the configuration that the run has; what was found is sent at once."""
        send(PhaseMessage("tune"))
        tuned = tune(self.work, self.dataset, partial(try_part, self._build))
        send(FoundMessage(tuned.columns()))
        self.tuning = self.work.parsed_found(tuned.columns())
        self.work = self.work.configured(search.configurations[tuned.choice])
        self.estimator = self._build(self.work.params)

    def monitor(
        self, judge: Judge, send: Send, reached: Callable[[], bool] = lambda: False
    ) -> TraceMonitor:
        """The monitor of the fit."""
        return TraceMonitor(
            judge,
            first_checkpoint=self.dataset.n_train,
            factor=self.work.checkpoint_factor,
            each_epoch=self.work.epoch_checkpoints,
            rules=self.work.rules,
            reached=reached,
            send=send,
        )

    def fit(self, monitor: TraceMonitor, send: Send) -> tuple[str, Any]:
        """Fit; the estimator's status, and its scores of the compared test points."""
        # Before monitor.start the solver checks its input: a hang there must be seen as well.
        send(PhaseMessage("solve"))
        with without_convergence_warnings():
            self.estimator.fit(self.dataset.X_train, self.dataset.y_train, monitor=monitor)
        send(PhaseMessage("evaluate", monitor.clocks.wall_s))
        if not monitor.ended or monitor.diverged:
            return "diverged", None
        X_test = self.dataset.X_test
        scores = self.estimator.decision_function(X_test[compared_rows(X_test.shape[0])])
        return str(self.estimator.status_), scores


def try_part(
    build: Callable[[dict[str, Any]], Solver], work: FitWork, part: Dataset, monitor: TrialMonitor
) -> int:
    """Fit a configuration to a part of the data; its mistakes on the rest.

    Raises
    ------
    Exception
        Whatever the solver raises.
    """
    X, y = part.X_train, part.y_train
    # As in the data and in the warm-up: for others, loops would be compiled again.
    for array in (y,) if sparse.issparse(X) else (X, y):
        array.flags.writeable = False
    with without_convergence_warnings():
        build(work.params).fit(X, y, monitor=monitor)
    monitor.clocks.pause()
    if monitor.model is None:
        raise EvaluationError("fit did not report its end to the monitor (monitor.finish)")
    evaluator = build_evaluator(work.problem, part, certificate=False)
    scores = evaluator.test_scores(monitor.model, np.arange(part.n_test))
    return misclassified(scores, part.y_test, np.unique(y))


def _warm_up(estimator: Solver, dataset: Dataset) -> None:
    """Fit a copy to a few points of the same types, so that compilation is not timed later."""
    rows = warm_up_rows(dataset.y_train)
    X, y = dataset.X_train[rows], dataset.y_train[rows]
    # Compiled code distinguishes arrays that may not be written to.
    whole: Any = X
    arrays = (whole.data, whole.indices, whole.indptr) if sparse.issparse(X) else (X,)
    for array in (*arrays, y):
        array.flags.writeable = False
    trial: Solver = clone(estimator)
    known = trial.get_params()
    for name, most in (("max_epochs", 1), ("max_iter", len(y))):
        if name in known and (known[name] is None or known[name] > most):
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
    if not isinstance(kept, list) or not all(is_dataclass(item) for item in kept):
        return "[]"
    try:
        text = json.dumps([_plain(asdict(item)) for item in kept], allow_nan=False)
    except (TypeError, ValueError):
        return "[]"
    return text if len(text) <= _EPOCHS_LIMIT else "[]"


def _plain(value: Any) -> Any:
    """The value with None in the place of numbers that JSON does not know."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
