"""States of a run: its monitor takes them while the clocks stand still, and each is judged."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral

# By their own names: a solver that puts others in their place in the module changes nothing here.
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ...data_loaders.errors import DataError
from ...solvers.interface.monitor import Monitor
from ...solvers.models import Model
from ...solvers.numeric.counters import SERVED, Counters, evaluation_counters
from ..errors import EvaluationError
from ..jobs import Send
from ..loading import load_kernel
from ..results.svm import Checkpoint, packed
from .models import Evaluation, Evaluator, PlainModel, plain_model
from .svm import Fold, Problem, StoppingRules

if TYPE_CHECKING:
    from ...data_loaders import Dataset


@dataclass
class Clocks:
    """Wall and CPU seconds of the solver alone.

    CPU time is that of the whole process and of child processes that have ended, so what a solver
    starts counts as well. The part of it that the system's kernel spent in this process, above all
    for new memory, is known to a hundredth of a second.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    system_s: float = 0.0
    _since: tuple[float, float, float] | None = None

    @property
    def running(self) -> bool:
        return self._since is not None

    def resume(self) -> None:
        self._since = _clocks()

    def pause(self) -> None:
        if self._since is not None:
            now, since, self._since = _clocks(), self._since, None
            self.wall_s += now[0] - since[0]
            self.cpu_s += now[1] - since[1]
            self.system_s += now[2] - since[2]


def _clocks() -> tuple[float, float, float]:
    from resource import RUSAGE_CHILDREN, getrusage  # not on Windows, where results are read

    wall_s, cpu_s, children = perf_counter(), process_time(), getrusage(RUSAGE_CHILDREN)
    return wall_s, cpu_s + children.ru_utime + children.ru_stime, os.times().system


class RunMonitor(Monitor):
    """Measures the time of a solver.

    Checkpoints are due at counts of evaluations that grow by the factor, and at the last one.
    """

    def __init__(self, rules: StoppingRules, first_checkpoint: float, factor: float) -> None:
        self.rules, self.factor = rules, factor
        self.clocks = Clocks()
        self.counters: Counters | None = None
        self._on_grid = first_checkpoint
        self.next_checkpoint = min(first_checkpoint, rules.evaluations)

    @property
    def evaluations(self) -> int | None:
        """Evaluations so far; None if the solver does not count."""
        return None if self.counters is None else self.counters.evaluations

    def look_later(self) -> None:
        """Set the next checkpoint."""
        evaluations, limit = self.evaluations or 0, self.rules.evaluations
        while self._on_grid <= evaluations:
            self._on_grid *= self.factor
        # A solver that goes on all the same is not looked at more often than others.
        self.next_checkpoint = self._on_grid if evaluations >= limit else min(self._on_grid, limit)


class TraceMonitor(RunMonitor):
    """Takes snapshots at geometrically growing counts of evaluations and, if asked, each epoch.

    An evaluation is one of the kernel, an inner product of a method without a kernel, or the use of
    an entry of a stored kernel matrix in a product with a vector.

    Each is judged as soon as it is there, so that a run that is killed keeps its trace. The
    solver's random stream is not touched: judging draws nothing.
    """

    def __init__(
        self,
        judge: Judgement,
        *,
        first_checkpoint: float,
        factor: float,
        each_epoch: bool = False,
    ) -> None:
        super().__init__(judge.rules, first_checkpoint, factor)
        self.judge, self.each_epoch, self.send = judge, each_epoch, judge.send
        self.evaluation_s = 0.0
        self.diverged = self.ended = False  # whether the solver has reported its end
        self._last_n_iter: int | None = None  # of the last checkpoint, and its counts
        self._least: dict[str, int] = {}
        self._before = served()

    def start(self, counters: Counters | None) -> None:
        """The solve begins: the clocks start at zero."""
        self.counters = counters
        self.clocks = Clocks()
        self._before = served()
        self.send({"phase": "solve"})
        self.clocks.resume()

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """Record a checkpoint while the clocks stand still.

        Asks to stop a model of NaNs, a run that has used up what it had, and one that is good
        enough.
        """
        self.clocks.pause()
        self.send({"phase": "evaluate", "solve_s": self.clocks.wall_s})
        self.look_later()
        self._take(n_iter, snapshot, final=False)
        self.clocks.resume()
        spent = self.rules.spent(n_iter, self.evaluations)
        return self.diverged or self.judge.reached or bool(spent)

    def epoch_ended(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """Record a checkpoint if they are wanted here and there is none yet."""
        if not self.each_epoch or self._last_n_iter == n_iter:
            return self.diverged or bool(self.rules.spent(n_iter, self.evaluations))
        return self.record(n_iter, snapshot)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The clocks stand still: what runs inside counts as evaluation."""
        self.clocks.pause()
        self.send({"phase": "evaluate", "solve_s": self.clocks.wall_s})
        started, before = perf_counter(), served()
        try:
            yield
        finally:
            self.evaluation_s += perf_counter() - started
            self._before += served() - before
            self.send({"phase": "solve", "solve_s": self.clocks.wall_s})
            self.clocks.resume()

    def finish(self, n_iter: int, model: Model) -> None:
        """The solve has ended: the clocks stop, and the final model is judged."""
        self.clocks.pause()
        self.send({"phase": "evaluate", "solve_s": self.clocks.wall_s})
        self._take(n_iter, lambda: model, final=True)

    def _take(self, n_iter: int, snapshot: Callable[[], Model], *, final: bool) -> None:
        started = perf_counter()
        model = plain_model(snapshot())
        self._last_n_iter = check_count("n_iter", n_iter)
        counts = None if self.counters is None else self._counts(self.counters)
        clocks = {"wall_s": self.clocks.wall_s, "cpu_s": self.clocks.cpu_s}
        state = {"n_iter": self._last_n_iter, "counters": counts, **clocks}
        self.diverged, self.ended = not self.judge(model, final=final, **state), final
        self.evaluation_s += perf_counter() - started

    def _counts(self, counters: Counters) -> dict[str, int]:
        """The counts, none of which may have fallen or be less than what was handed out."""
        counts = {name: check_count(name, count) for name, count in counters.as_dict().items()}
        least = {**self._least, **(served() - self._before)}
        for name, count in counts.items():
            if count < least.get(name, 0):
                raise EvaluationError(
                    f"{name} is {count}, but the solver has already had {least[name]}"
                )
        self._least = counts
        return counts


def served() -> Counter[str]:
    """What all oracles of this process have handed out until now: the counters can be no less."""
    return Counter(kernel_evals=SERVED.asked, kernel_evals_computed=SERVED.computed)


def check_count(name: str, value: object) -> int:
    """The count as an int."""
    if isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < 2**63:
        return int(value)
    raise EvaluationError(f"{name} is {value!r:.40}, not a count")


# Test points on which an estimator's own scores are compared with recomputed ones.
_COMPARED_POINTS = 200
_SCORES = ("n_support", "train_error", "test_error", "primal", "dual")
_NO_SEPARATOR = "no separator has a margin above tol: the predictions mean nothing"


@dataclass
class Judgement:
    """Judges the states of one run, and decides what ends it early.

    ``certificate`` says whether coefficients are y_i alpha_i of a dual point; ``tol`` is the
    accuracy that "converged" stands for. ``final`` becomes the evaluation of the returned model.
    """

    problem: Problem
    dataset: Dataset
    certificate: bool
    tol: float
    rules: StoppingRules
    send: Send
    last: Checkpoint | None = None
    final: Evaluation | None = None

    def __post_init__(self) -> None:
        certificate = self.certificate
        self.evaluator = build_evaluator(self.problem, self.dataset, certificate=certificate)
        self._model: Any = None

    def __call__(self, model: PlainModel, *, final: bool, **state: Any) -> bool:
        """Evaluate a state, the last with float64 entries; whether its objective is finite.

        The state has counts, None if the solver does not tell, and the seconds of its own process.
        """
        evaluation = self.evaluator.evaluate(model, "float64" if final else "float32")
        self.last = Checkpoint(**state, **{name: getattr(evaluation, name) for name in _SCORES})
        if final:
            self.final, self._model = evaluation, model
        self.send({"checkpoint": self.last, "goes_on": not final})
        return evaluation.finite

    def verdict(self, status: str, scores: Any) -> tuple[str, str]:
        """The status of a finished fit, and a reason if there is one."""
        if self.final is None:
            raise EvaluationError("fit did not report its end to the monitor (monitor.finish)")
        if not self.final.finite:
            return "diverged", "the objective of the returned model is not finite"
        intercepts = [] if self.problem.fit_intercept else self._model.intercepts
        for intercept in filter(None, intercepts):
            raise EvaluationError(
                f"the task has no bias, but the model has the intercept {intercept:g}"
            )
        if status not in ("converged", "no_separator", "budget", "stopped"):
            raise EvaluationError(
                f"status_ is {status!r:.40}; "
                "expected 'converged', 'no_separator', 'budget' or 'stopped'"
            )
        self._check_scores(scores)
        if self.certificate:
            self._check_certificate(self.final, status)
        if status == "no_separator":
            return "no_separator", _NO_SEPARATOR
        # Whatever the solver says: it is the same for all.
        assert self.last is not None
        counts = self.last.counters
        evaluations = (
            None if counts is None else sum(counts.get(name, 0) for name in evaluation_counters())
        )
        spent = self.rules.spent(self.last.n_iter or 0, evaluations)
        if spent or self.reached:
            return "budget", spent or "reached the suboptimality asked for"
        return ("converged", "") if status == "converged" else ("budget", "")

    @property
    def reached(self) -> bool:
        """Whether the objective of the last state is good enough."""
        primal = None if self.last is None else self.last.primal
        return primal is not None and primal <= self.rules.primal

    def columns(self) -> dict[str, Any]:
        """Counts and scores as columns of the record."""
        final = self.final
        return {
            "n_iter": getattr(self.last, "n_iter", None),
            "counters": getattr(self.last, "counters", None),
            **{name: getattr(final, name, None) for name in (*_SCORES, "gap")},
            "mistakes": "" if final is None else packed(final.mistakes),
        }

    def _check_scores(self, scores: Any) -> None:
        """The estimator must predict with the model that it returns."""
        rows = compared_rows(self.evaluator.n_test)
        try:
            scores = np.asarray(scores, dtype=np.float64)
        except (TypeError, ValueError):
            raise EvaluationError("decision_function returned no numbers") from None
        low, high = self.evaluator.score_bounds(self._model, rows)
        if scores.shape != low.shape:
            raise EvaluationError(
                f"decision_function returned shape {scores.shape} for {len(rows)} points"
            )
        beyond = np.maximum(low - scores, scores - high) - 1e-6 * (1.0 + np.abs(scores))
        if not bool(np.all(beyond <= 0)):
            flat = int(np.argmax(np.where(np.isnan(beyond), np.inf, beyond)))
            worst = np.unravel_index(flat, beyond.shape)
            raise EvaluationError(
                f"decision_function gives {scores[worst]:.6g} for test point {rows[worst[0]]}, "
                f"the returned model {low[worst]:.6g} to {high[worst]:.6g}"
            )

    def _check_certificate(self, final: Evaluation, status: str) -> None:
        """A dual certificate must be one, and "converged" must mean a small gap."""
        C, n_train = self.problem.C, self.evaluator.n_train
        if final.gap is None:
            raise EvaluationError(
                "the solver promises a dual certificate, but its coefficients are no feasible dual "
                f"point (0 <= y_i coef_i <= C = {C:g})"
            )
        if status != "converged":
            return
        # Units of the mean loss. A violation of tol at every point makes a gap of tol; scores that
        # are off by the float32 noise can hide that much more, in the point's own loss and alpha.
        gap = final.gap / (n_train * C)
        tol = self.tol * self.evaluator.n_problems
        allowed = 2.0 * tol + 2.0 * self.evaluator.score_noise(self._model)
        if not gap <= allowed:
            raise EvaluationError(
                f"the solver says converged (tol = {self.tol:g}), but the duality gap is "
                f"{gap:.3g} in units of the mean loss; at most {allowed:.3g} is possible"
            )


def build_evaluator(problem: Problem, dataset: Dataset, *, certificate: bool) -> Evaluator:
    """The evaluator of a task."""
    kernel, bias = load_kernel(problem.kernel), problem.fit_intercept
    return Evaluator(kernel, dataset, problem.C, fit_intercept=bias, certificate=certificate)


#: The datasets that this process has loaded last, by their request; of many bytes only one.
_LOADED: dict[str, Dataset] = {}
_LOADED_BYTES = 2**24


def load_task_data(problem: Problem) -> Dataset:
    """The task's dataset. Its arrays are read-only: no solver changes what it is judged by.

    A worker that goes on with the same planned data does not read them again.
    """
    from ...data_loaders import load

    request = repr((problem.dataset, problem.dataset_params, problem.folder, problem.fingerprint))
    if request not in _LOADED:
        kept = (part for each in _LOADED.values() for part in (each.X_train, each.X_test))
        # Runs of small tasks come in turn.
        if sum(getattr(X, "data", X).nbytes for X in kept) > _LOADED_BYTES:
            _LOADED.clear()
        dataset = load(problem.dataset, problem.dataset_params or None, folder=problem.folder)
        if problem.fingerprint and dataset.fingerprint != problem.fingerprint:
            raise DataError(
                f"{problem.dataset}: has changed since the runs were planned; run it again"
            )
        _LOADED[request] = dataset
    # Without a fingerprint, whether they have changed is unknown.
    dataset = _LOADED[request] if problem.fingerprint else _LOADED.pop(request)
    return dataset if problem.fold is None else fold_data(dataset, problem.fold)


def fold_data(dataset: Dataset, fold: Fold) -> Dataset:
    """The dataset whose training and test part are those of a fold; read-only, as all data are."""
    test = fold_numbers(dataset.name, dataset.y_train, fold) == fold.number
    parts = split(dataset, np.flatnonzero(~test), np.flatnonzero(test))
    return replace(parts, fingerprint=fold.fingerprint(dataset.fingerprint))


def split(dataset: Dataset, train: npt.NDArray[Any], test: npt.NDArray[Any]) -> Dataset:
    """The dataset of some rows of its training part, read-only as all data are."""
    X, y = dataset.X_train, dataset.y_train
    rows = {"X_train": X[train], "y_train": y[train], "X_test": X[test], "y_test": y[test]}
    return replace(dataset, **{name: read_only(values) for name, values in rows.items()})


def fold_numbers(name: str, y: npt.NDArray[Any], fold: Fold) -> npt.NDArray[np.int64]:
    """The fold of each point, shape (n,).

    The numbers of points of the folds differ by at most one, and so do those of each class.
    """
    labels, classes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(y) < fold.of:
        raise DataError(f"{name}: {len(y)} training points do not make {fold.of} folds")
    if counts.min() < 2:
        raise DataError(
            f"{name}: class {labels[counts.argmin()]} has one training point; folds need two, or "
            "one of them trains without it"
        )
    # The raw stream of a bit generator is the same in every release of NumPy.
    keys = np.random.PCG64(fold.permutation).random_raw(len(y))
    numbers = np.empty(len(y), dtype=np.int64)
    numbers[np.lexsort((keys, classes))] = np.arange(len(y)) % fold.of
    return numbers


def read_only(values: Any) -> Any:
    """The same array or CSR matrix, which can no longer be written to."""
    parts = (values.data, values.indices, values.indptr) if sparse.issparse(values) else (values,)
    for part in parts:
        part.flags.writeable = False
    return values


def compared_rows(n_test: int) -> np.ndarray:
    """The test points at which the estimator's own scores are compared with the model's."""
    rows = np.linspace(0, n_test - 1, min(n_test, _COMPARED_POINTS))
    return np.unique(rows.astype(np.int64))
