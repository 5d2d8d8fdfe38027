"""What a run is worth: its states judged one by one, and its claims about the last one checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...solvers.numeric.counters import evaluation_counters
from ..errors import EvaluationError
from ..execution.jobs import CheckpointMessage, Send
from ..loading import load_kernel
from ..results.mistakes import packed
from ..results.svm import Checkpoint
from .folds import fold_data
from .models import Evaluation, Evaluator
from .multiclass import ClassesEvaluator
from .predictors import TaskPoints
from .svm import Problem, StoppingRules
from .tracing import Snapshot

if TYPE_CHECKING:
    from ...data_loaders import Dataset

# Test points on which an estimator's own scores are compared with recomputed ones.
_COMPARED_POINTS = 200
_NO_SEPARATOR = "no separator has a margin above tol: the predictions mean nothing"


class Judgement:
    """Judges the states of one run.

    Parameters
    ----------
    problem : Problem
    dataset : Dataset
        The problem's.
    certificate : bool
        Whether coefficients are y_i alpha_i of a dual point.
    tol : float
        The accuracy that "converged" stands for.
    rules : StoppingRules
        What ends the run early.
    send : callable
        Takes each checkpoint.

    Attributes
    ----------
    last : Checkpoint or None
    final : Evaluation or None
        Of the returned model.
    """

    def __init__(
        self,
        problem: Problem,
        dataset: Dataset,
        *,
        certificate: bool,
        tol: float,
        rules: StoppingRules,
        send: Send,
    ) -> None:
        self.problem, self.rules = problem, rules
        self.certificate, self.tol = certificate, tol
        self.evaluator = build_evaluator(problem, dataset, certificate=certificate)
        self.send = send
        self.last: Checkpoint | None = None
        self.final: Evaluation | None = None
        self._model: Any = None

    def __call__(self, snapshot: Snapshot) -> bool:
        """Evaluate a state, the returned one with float64 entries; whether its objective is finite.

        Raises
        ------
        EvaluationError
            If the model is not well-formed or not one of this task.
        """
        dtype = "float64" if snapshot.final else "float32"
        evaluation = self.evaluator.evaluate(snapshot.model, dtype)
        self.last = Checkpoint(
            n_iter=snapshot.n_iter,
            counters=snapshot.counters,
            wall_s=snapshot.wall_s,
            cpu_s=snapshot.cpu_s,
            n_support=evaluation.n_support,
            train_error=evaluation.train_error,
            test_error=evaluation.test_error,
            primal=evaluation.primal,
            dual=evaluation.dual,
        )
        if snapshot.final:
            self.final, self._model = evaluation, snapshot.model
        self.send(CheckpointMessage(self.last))
        return evaluation.finite

    def verdict(self, status: str, scores: Any) -> tuple[str, str]:
        """The status of a fit that came back, and a reason where there is one to give.

        Parameters
        ----------
        status : str
            The estimator's ``status_``.
        scores : array-like
            Its decision function at the test points of :func:`compared_rows`.

        Raises
        ------
        EvaluationError
            If a claim does not hold: the status is "wrong".
        """
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
        if spent := self._spent():
            # Whatever the solver says: it is the same for all.
            return "budget", spent
        return ("converged", "") if status == "converged" else ("budget", "")

    @property
    def reached(self) -> bool:
        """Whether the objective of the last state is good enough."""
        primal = None if self.last is None else self.last.primal
        return primal is not None and primal <= self.rules.primal

    def _spent(self) -> str:
        """Why the run was to end where it did; empty if no rule ended it."""
        assert self.last is not None
        counts = self.last.counters
        names = evaluation_counters()
        asked = None if counts is None else sum(counts.get(name, 0) for name in names)
        spent = self.rules.spent(self.last.n_iter or 0, asked)
        return spent or ("reached the suboptimality asked for" if self.reached else "")

    def columns(self) -> dict[str, Any]:
        """Counts and scores as columns of the record."""
        last, final = self.last, self.final
        scores = ("n_support", "train_error", "test_error", "primal", "dual", "gap")
        return {
            "n_iter": None if last is None else last.n_iter,
            "counters": None if last is None else last.counters,
            **{name: None if final is None else getattr(final, name) for name in scores},
            "mistakes": "" if final is None else packed(final.mistakes),
        }

    def _check_scores(self, scores: Any) -> None:
        """The estimator must predict with the model that it returns."""
        rows = compared_rows(self.evaluator.n_test)
        try:
            given = np.asarray(scores, dtype=np.float64)
        except (TypeError, ValueError):
            raise EvaluationError("decision_function returned no numbers") from None
        expected = self.evaluator.test_scores(self._model, rows)
        if given.shape != expected.shape:
            raise EvaluationError(
                f"decision_function returned shape {given.shape} for {len(rows)} points"
            )
        low, high = self.evaluator.score_bounds(self._model, rows)
        beyond = np.maximum(low - given, given - high) - 1e-6 * (1.0 + np.abs(expected))
        if not bool(np.all(beyond <= 0)):
            flat = int(np.argmax(np.where(np.isnan(beyond), np.inf, beyond)))
            worst = np.unravel_index(flat, beyond.shape)
            raise EvaluationError(
                f"decision_function gives {given[worst]:.6g} for test point {rows[worst[0]]}, "
                f"the returned model {expected[worst]:.6g}"
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


def build_evaluator(
    problem: Problem, dataset: Dataset, *, certificate: bool
) -> Evaluator | ClassesEvaluator:
    """The evaluator of a task."""
    points = TaskPoints(load_kernel(problem.kernel), dataset.X_train, dataset.X_test)

    def evaluator_of(y_train: npt.NDArray[Any], y_test: npt.NDArray[Any]) -> Evaluator:
        return Evaluator(
            points,
            C=problem.C,
            fit_intercept=problem.fit_intercept,
            y_train=y_train,
            y_test=y_test,
            dual_certificate=certificate,
        )

    if len(np.unique(dataset.y_train)) > 2:
        return ClassesEvaluator(evaluator_of, dataset.y_train, dataset.y_test)
    return evaluator_of(dataset.y_train, dataset.y_test)


def load_task_data(problem: Problem) -> Dataset:
    """The task's dataset. Its arrays are read-only: no solver changes what it is judged by.

    Raises
    ------
    DataError
        If it cannot be loaded, or is not the one that was planned with.
    """
    from ...data_loaders import DataError, load

    dataset = load(problem.dataset, problem.dataset_params or None, folder=problem.folder)
    if problem.fingerprint and dataset.fingerprint != problem.fingerprint:
        raise DataError(f"{problem.dataset}: has changed since the runs were planned; run it again")
    return dataset if problem.fold is None else fold_data(dataset, problem.fold)


def compared_rows(n_test: int) -> np.ndarray:
    """The test points at which the estimator's own scores are compared with the model's."""
    rows = np.linspace(0, n_test - 1, min(n_test, _COMPARED_POINTS))
    return np.unique(rows.astype(np.int64))
