"""Tuning: each configuration is fitted to a part of the training data and scored on the rest.

Test data are never touched. What the trials cost is counted apart from the run, which begins
afterwards with the chosen values on the whole training part.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ...solvers.models import Model
from ...solvers.numeric.counters import Counters
from ..errors import first_line
from ..jobs import Send
from .judging import RunMonitor, load_task_data, split
from .svm import Round, RunWork, Search, StoppingRules

if TYPE_CHECKING:
    from ...data_loaders import Dataset

Rows = npt.NDArray[np.int64]
WorkT = TypeVar("WorkT", bound=RunWork)
#: Fits a configured work to the training part of some data, and counts its mistakes on the other.
Fit = Callable[[WorkT, "Dataset", "TrialMonitor"], int]

# A trial looks at its clock at the training points, times this, times this again, ...
_GROWTH = 1.19


@dataclass
class Trial:
    """One configuration in one round."""

    params: dict[str, Any]
    round: int
    points: int  # points that it was fitted to; of folds the smallest number
    # Fraction of misclassified validation points; None if there is no model to score.
    error: float | None = None
    # Requested evaluations, all folds together; None if the solver does not count.
    kernel_evals: int | None = None
    cpu_s: float = 0.0  # seconds inside the solver
    wall_s: float = 0.0
    # "completed", "cut short" (by its own limits or by what was left of those of the tuning; it is
    # scored all the same), "failed: ..." or "not tried" (nothing was left for it, or not for all
    # folds).
    ended: str = "not tried"


class TrialMonitor(RunMonitor):
    """Measures a trial, and ends it where it has used up what it has: ``seconds`` of solving.

    The clock is first looked at after so many evaluations as ``first_checkpoint`` says.
    """

    def __init__(self, rules: StoppingRules, seconds: float, first_checkpoint: float) -> None:
        super().__init__(rules, first_checkpoint, _GROWTH)
        self.seconds = seconds
        self.model: Model | None = None
        self.cut_short = False

    def start(self, counters: Counters | None) -> None:
        self.counters = counters
        self.clocks.resume()

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        self.look_later()
        return self.epoch_ended(n_iter, snapshot)

    def epoch_ended(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        self.clocks.pause()
        spent = self.rules.spent(n_iter, self.evaluations) or self.clocks.wall_s >= self.seconds
        self.cut_short = self.cut_short or bool(spent)
        self.clocks.resume()
        return self.cut_short

    def finish(self, n_iter: int, model: Model) -> None:
        self.clocks.pause()
        self.model = model


def begun(
    work: WorkT,
    send: Send,
    build: Callable[[WorkT], Any],
    warm_up: Callable[[WorkT, Any, Dataset], None],
    fit: Fit[WorkT],
) -> tuple[WorkT, Dataset, Any, dict[str, Any]]:
    """The work as it is to be done, its data, its estimator, and columns of the record until then.

    Code is warmed up, and if there is a search, a configuration is chosen; it is sent at once.
    """
    send({"phase": "data"})
    started = perf_counter()
    dataset = load_task_data(work.problem)
    columns: dict[str, Any] = {"data_s": perf_counter() - started}
    send({"phase": "compile"})
    started = perf_counter()
    estimator = build(work)
    warm_up(work, estimator, dataset)
    columns["compile_s"] = perf_counter() - started
    if work.search is not None:
        send({"phase": "tune"})
        tuning = Tuning(work, work.search, dataset, fit)
        chosen = work.search.configurations[tuning.choice]
        found = tuning.columns() | work.columns_of(chosen)
        send({"columns": found})
        work, columns = work.configured(chosen), columns | found
        estimator = build(work)
    return work, dataset, estimator, columns


class Tuning(Generic[WorkT]):
    """The trials of the configurations of a run, and the index of the chosen one."""

    def __init__(self, work: WorkT, search: Search, dataset: Dataset, fit: Fit[WorkT]) -> None:
        self.work, self.search, self.dataset, self.fit = work, search, dataset, fit
        self.trials: list[Trial] = []
        rng, y = np.random.default_rng(search.seed), dataset.y_train
        self._splits = [
            (_stratified_order(y[fit], rng, fit), held_out)
            for fit, held_out in _splits(search, y, int(rng.integers(2**31)))
        ]
        self.choice = self._choose()

    def columns(self) -> dict[str, Any]:
        """Columns of the record for the trials."""
        counts = [trial.kernel_evals for trial in self.trials if trial.kernel_evals is not None]
        return {
            "tuning": json.dumps([asdict(trial) for trial in self.trials], default=repr),
            "tuning_wall_s": sum(trial.wall_s for trial in self.trials),
            "tuning_cpu_s": sum(trial.cpu_s for trial in self.trials),
            "tuning_evals": sum(counts) if counts else None,
        }

    def _choose(self) -> int:
        """Try round after round; the best configuration of the last round that was complete."""
        best = list(range(len(self.search.configurations)))
        n_points = min(len(fit) for fit, _ in self._splits)
        n_classes = len(np.unique(self.dataset.y_train))
        for number, each in enumerate(self.search.rounds(n_points, n_classes)):
            trials: dict[int, Trial] = {}
            for index in best[: each.keep]:
                trials[index] = self._try(index, number, each)
                self.trials.append(trials[index])
            complete = all(trial.ended != "not tried" for trial in trials.values())
            scored = any(trial.error is not None for trial in trials.values())
            if number == 0 and not scored:
                why = self.trials[0].ended
                if why == "not tried":
                    why = "the budget of tuning ended before the first was"
                raise RuntimeError(f"no configuration could be scored: {why}")
            if scored and (complete or number == 0):
                # Of equal ones the first of the study.
                errors = {n: math.inf if t.error is None else t.error for n, t in trials.items()}
                best = sorted(trials, key=lambda index: (errors[index], index))
            if not (scored and complete):
                break
        return best[0]

    def _try(self, index: int, number: int, each: Round) -> Trial:
        """Fit one configuration to each part and score it; it may not take more than is left."""
        params = self.search.configurations[index]
        trial = Trial(params, number, each.points)
        wrong = 0
        for order, held_out in self._splits:
            spent = [*self.trials, trial]
            left_s = self.search.seconds - sum(one.wall_s for one in spent)
            left = self.search.evaluations - sum(one.kernel_evals or 0 for one in spent)
            seconds = min(self.search.trial_seconds, left_s)
            evaluations = min(each.evaluations, left)
            if seconds <= 0 or evaluations <= 0:
                # The errors on some of the folds cannot be compared with those on all.
                trial.ended = "not tried"
                return trial
            fit = order[: each.points]
            rules = replace(self.work.rules, evaluations=evaluations, primal=-math.inf)
            monitor = TrialMonitor(rules, seconds, float(len(fit)))
            try:
                part = split(self.dataset, fit, held_out)
                wrong += self.fit(self.work.configured(params), part, monitor)
            except Exception as error:  # noqa: BLE001 - a solver may raise anything
                trial.ended = f"failed: {first_line(error)}"
            monitor.clocks.pause()
            trial.wall_s += monitor.clocks.wall_s
            trial.cpu_s += monitor.clocks.cpu_s
            if monitor.evaluations is not None:
                trial.kernel_evals = (trial.kernel_evals or 0) + monitor.evaluations
            if trial.ended.startswith("failed"):
                return trial
            if trial.ended != "cut short":
                trial.ended = "cut short" if monitor.cut_short else "completed"
        trial.error = wrong / sum(len(held_out) for _, held_out in self._splits)
        return trial


def _splits(search: Search, y: npt.NDArray[Any], seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Rows to fit to and rows to score on, with the classes in proportion."""
    # Imported here: it takes most of a second, and few studies tune.
    from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

    if search.folds is None:
        splitter = StratifiedShuffleSplit(1, test_size=search.validation, random_state=seed)
    else:
        splitter = StratifiedKFold(search.folds, shuffle=True, random_state=seed)
    try:
        yield from splitter.split(np.zeros((len(y), 1)), y)
    except ValueError:
        fewest = np.unique(y, return_counts=True)[1].min()
        raise ValueError(
            f"too few rows to tune on ({len(y)}, of one class {fewest}): rows of every class must "
            "be fitted to, and others scored on"
        ) from None


def _stratified_order(y: npt.NDArray[Any], rng: np.random.Generator, rows: Rows) -> Rows:
    """The rows in an order whose every prefix has the classes in proportion."""
    position = np.empty(len(y))
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        position[members] = (np.arange(len(members)) + rng.random()) / len(members)
    return rows[np.argsort(position, kind="stable")]
