"""What workers do for studies of SVM solvers, and what travels with it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from ..execution.jobs import Outcome, Send, Stamp, Work, described
from ..results.records import CheckpointBase, parsed_columns
from ..results.svm import CLAIMED_TUNING, TUNING_COSTS, Checkpoint, Record
from .search import Search
from .timing import agreed_times

#: The accuracy of "converged" for an estimator without a parameter tol: scikit-learn's default.
DEFAULT_TOL = 1e-3


@dataclass(frozen=True)
class Fold:
    """One fold of a cross-validation.

    Attributes
    ----------
    of : int
        The number of folds.
    number : int
        The fold that is tested on, from 0.
    permutation : int
        Which of the ways to deal out the points.
    """

    of: int
    number: int
    permutation: int

    @classmethod
    def of_seed(cls, of: int, seed: int) -> Fold:
        """The fold of a seed: so many seeds as there are folds use each once."""
        return cls(of, seed % of, seed // of)


@dataclass(frozen=True)
class Problem:
    """One optimisation problem, complete.

    ``folder`` is where the path of the user's data begins, and ``fingerprint`` that of the data
    that were planned with: another process must not take what they have become meanwhile.
    With a ``fold`` its data are those of a fold of the dataset's training part.
    """

    dataset: str
    dataset_params: dict[str, Any]
    kernel: dict[str, Any]
    C: float
    fit_intercept: bool
    folder: str | None = None
    fingerprint: str = ""
    fold: Fold | None = None


@dataclass(frozen=True)
class StoppingRules:
    """What ends a fit early: looked at when a checkpoint is due and at the end of an epoch.

    Attributes
    ----------
    evaluations : float
        All that the run may ask for.
    iterations : float
    primal : float
        The objective that is good enough; C units.
    """

    evaluations: float = math.inf
    iterations: float = math.inf
    primal: float = -math.inf

    def spent(self, n_iter: int, evaluations: int | None) -> str:
        """What the run has used up by now, in words; empty if it may go on."""
        if evaluations is not None and evaluations >= self.evaluations:
            return f"used {evaluations} of {self.evaluations:.0f} evaluations"
        if n_iter >= self.iterations:
            return f"used {n_iter} of {self.iterations:.0f} iterations"
        return ""


@dataclass(frozen=True)
class ReferenceWork(Work):
    """Compute the reference optimum of a task, or read it from the cache.

    ``cache_mb`` bounds the kernel rows that are kept meanwhile; it does not change the result. With
    ``lookup`` nothing is computed: an optimum that is not in the cache is a failure.
    """

    problem: Problem
    tol: float
    cache_mb: float = 200.0
    lookup: bool = False

    def run(self, send: Send) -> ReferenceInfo:
        from .reference import reference_optimum

        return reference_optimum(self, send)

    def parsed(self, value: Any) -> ReferenceInfo:
        found: ReferenceInfo = described(ReferenceInfo, value)
        return found


@dataclass(frozen=True)
class ReferenceInfo:
    """The certified optimum of a task, without its coefficients; C units.

    The true optimum lies in [primal - gap, primal]. ``alpha_sum`` is the sum of the dual variables,
    ``n_free`` how many of them are strictly between 0 and C.
    """

    primal: float
    dual: float
    gap: float
    test_error: float
    n_support: int
    nu: float | None
    hash: str
    note: str = ""
    alpha_sum: float | None = None
    n_free: int | None = None


@dataclass(frozen=True)
class FitWork(Work):
    """Run one solver on one task with one seed, and judge it in the same process.

    ``tol`` is the accuracy that "converged" stands for, and ``certificate`` says whether the
    coefficients are to be a dual point, ``instrumented`` whether there are to be counts; a solver
    from outside is not asked again. ``rules`` end the run early,
    and ``search`` is what is to be tuned before.
    """

    problem: Problem
    solver: str
    params: dict[str, Any]
    checkpoint_factor: float
    epoch_checkpoints: bool = False
    tol: float = DEFAULT_TOL
    certificate: bool = False
    instrumented: bool = False
    rules: StoppingRules = StoppingRules()
    search: Search | None = None

    def run(self, send: Send) -> dict[str, Any]:
        from .measurement import measure

        return measure(self, send)

    def parsed(self, value: Any) -> dict[str, Any]:
        return parsed_columns(Record, value)

    def parsed_checkpoint(self, columns: dict[str, Any]) -> CheckpointBase:
        return Checkpoint(**columns)

    def parsed_found(self, columns: dict[str, Any]) -> dict[str, Any]:
        search, choice = self.search, columns.pop("choice")
        if search is None or not set(columns) <= {"tuning", *TUNING_COSTS}:
            raise ValueError("no columns of tuning")
        if type(choice) is not int or not 0 <= choice < len(search.configurations):
            raise ValueError(f"configuration {choice!r:.40}")
        return parsed_columns(Record, columns) | self.columns_of(search.configurations[choice])

    def configured(self, values: dict[str, Any]) -> FitWork:
        """The work with these values in the place of what was to be tuned.

        Parameters
        ----------
        values : dict
            One of the search's configurations.
        """
        problem = self.problem
        kernel = {name: values.get(name, value) for name, value in problem.kernel.items()}
        problem = replace(problem, kernel=kernel, C=values.get("C", problem.C))
        params, tol = {**self.params, **values}, values.get("tol", self.tol)
        return replace(self, problem=problem, params=params, tol=tol, search=None)

    def columns_of(self, values: dict[str, Any]) -> dict[str, Any]:
        """What the record says of a chosen configuration."""
        assert self.search is not None
        problem = self.configured(values).problem
        return {
            "C": problem.C,
            "kernel": _sorted_json(problem.kernel),
            "params": _sorted_json({**self.search.params, **values}),
        }

    def apart(self) -> ApartWork:
        return ApartWork(self)


@dataclass(frozen=True)
class Claims:
    """What a fitted estimator says of itself.

    Attributes
    ----------
    status : str
        Its ``status_``, or "wrong" if what it returned is nothing to judge, with the reason.
    reason : str
    scores : ndarray or None
        Its decision function at the test points that the harness compares.
    epochs : str
        What it noted at the end of each epoch, JSON.
    """

    status: str
    reason: str = ""
    scores: Any = None
    epochs: str = "[]"


@dataclass(frozen=True)
class ApartWork(Work):
    """Run a solver from outside the project; all that is to be judged is sent away."""

    fits: ClassVar[bool] = True

    fit: FitWork

    def run(self, send: Send) -> dict[str, Any]:
        from .apart import fit_apart

        return fit_apart(self, send)

    def parsed(self, value: Any) -> Claims:
        found: Claims = described(Claims, value)
        return found

    def parsed_found(self, columns: dict[str, Any]) -> dict[str, Any]:
        return {**self.fit.parsed_found(columns), "claimed": CLAIMED_TUNING}

    def judged(self, outcome: Outcome) -> JudgeWork | None:
        if self.fit.search is not None and not outcome.found:
            # It did not get as far as the fit.
            return None
        claims = outcome.value if outcome.status == "done" else None
        if claims is None and outcome.snapshots is None:
            return None
        # Without a state the only time is that of the result, which is about nothing.
        seen = outcome.seen[: len(outcome.claimed)]
        times, note = agreed_times(outcome.claimed, seen) if seen else ([], "")
        fit, tuned = self._chosen(outcome), self.fit.search is not None
        return JudgeWork(fit, outcome.snapshots, tuple(times), note, claims, tuned)

    def _chosen(self, outcome: Outcome) -> FitWork:
        """The fit with the configuration that was chosen."""
        if self.fit.search is None:
            return self.fit
        known = ((values, self.fit.columns_of(values)) for values in self.fit.search.configurations)
        chosen = next(
            values for values, columns in known if columns.items() <= outcome.found.items()
        )
        return self.fit.configured(chosen)


@dataclass(frozen=True)
class JudgeWork(Work):
    """Judge what a run sent away.

    Attributes
    ----------
    fit : FitWork
    snapshots : Path or None
        The file with its states.
    times : tuple of Stamp
        When each was reached.
    note : str
        What there is to say about the times.
    claims : Claims or None
        None if the run was cut short.
    tuned : bool
        Whether the solver's own process has tuned it.
    """

    fit: FitWork
    snapshots: Path | None
    times: tuple[Stamp, ...]
    note: str
    claims: Claims | None
    tuned: bool = False

    def run(self, send: Send) -> dict[str, Any]:
        from .apart import judge_apart

        return judge_apart(self, send)

    def parsed(self, value: Any) -> dict[str, Any]:
        return parsed_columns(Record, value)

    def parsed_checkpoint(self, columns: dict[str, Any]) -> CheckpointBase:
        return Checkpoint(**columns)


def _sorted_json(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)
