"""The work of studies of SVM solvers, and the parts that it is made of."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

from ..hashing import canonical_json
from ..jobs import Send, Work
from ..results.svm import Record

#: The accuracy of "converged" for an estimator without a parameter tol: scikit-learn's default.
DEFAULT_TOL = 1e-3


@dataclass(frozen=True)
class Fold:
    """One fold of a cross-validation on the training part of a dataset.

    Seed s of n folds tests on fold ``s mod n`` of the permutation number ``s // n``, so that n
    seeds are one cross-validation and further ones repeat it with other folds. The test part of the
    dataset is not used.
    """

    of: int  # the number of folds
    number: int  # the fold that is tested on, from 0
    permutation: int

    @classmethod
    def of_seed(cls, of: int, seed: int) -> Fold:
        """The fold of a seed."""
        return cls(of, seed % of, seed // of)

    def sizes(self, n: int) -> tuple[int, int]:
        """How many of n points it trains and tests on."""
        n_test = len(range(self.number, n, self.of))
        return n - n_test, n_test

    def fingerprint(self, whole: str) -> str:
        """The fingerprint of its data: SHA-256 of the dataset's and of what makes the fold."""
        text = f"{whole} fold {self.number} of {self.of}, permutation {self.permutation}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Problem:
    """One optimisation problem, complete.

    ``folder`` is where the path of the user's data begins, and ``fingerprint`` that of the data
    that were planned with: another process must not take what they have become meanwhile.
    With a ``fold`` its data are those of a fold of the dataset's training part. ``kernel_code`` is
    the hash of the code of a kernel from outside the project.
    """

    dataset: str
    dataset_params: dict[str, Any]
    kernel: dict[str, Any]
    C: float
    fit_intercept: bool
    folder: str | None = None
    fingerprint: str = ""
    fold: Fold | None = None
    kernel_code: str = ""


def shown_kernel(kernel: Mapping[str, Any]) -> dict[str, Any]:
    """A kernel's name, without the folder of a user's file, and its parameters."""
    return {**kernel, "name": str(kernel["name"]).rpartition("/")[2]}


@dataclass(frozen=True)
class StoppingRules:
    """Rules that end a fit early, checked when a checkpoint is due and at the end of an epoch."""

    evaluations: float = math.inf
    iterations: float = math.inf
    primal: float = -math.inf  # the objective that is good enough, in C units

    def spent(self, n_iter: int, evaluations: int | None) -> str:
        """What the run has used up by now, in words; empty if it may go on."""
        if evaluations is not None and evaluations >= self.evaluations:
            return f"used {evaluations} of {self.evaluations:.0f} evaluations"
        if n_iter >= self.iterations:
            return f"used {n_iter} of {self.iterations:.0f} iterations"
        return ""


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
class ReferenceWork(Work):
    """Compute the reference optimum of a task, or read it from the cache.

    ``cache_mb`` bounds the kernel rows that are kept meanwhile; it does not change the result. With
    ``lookup`` nothing is computed: an optimum that is not in the cache is a failure.
    """

    problem: Problem
    tol: float
    cache_mb: float = 200.0
    lookup: bool = False
    result: ClassVar[Any] = ReferenceInfo

    def run(self, send: Send) -> ReferenceInfo:
        from .reference import reference_optimum

        return reference_optimum(self, send)


@dataclass(frozen=True)
class RunWork(Work):
    """Run one solver on one task with one seed, and judge it."""

    problem: Problem
    solver: str  # name of its class, or of the function that makes it
    params: dict[str, Any]
    record: ClassVar[Any] = Record
    _: KW_ONLY
    search: Search | None = None  # what is to be tuned before
    # The solver's parameters that stand for the problem's own; None: all of the same name.
    decided: tuple[str, ...] | None = None
    rules: StoppingRules = StoppingRules()

    def _of_the_problem(self, values: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in values.items() if self.decided is None or k in self.decided}

    def configured(self, values: dict[str, Any]) -> Self:
        """The work with these values of the tuned parameters."""
        problem, decided = self.problem, self._of_the_problem(values)
        kernel = {name: decided.get(name, value) for name, value in problem.kernel.items()}
        problem = replace(problem, kernel=kernel, C=decided.get("C", problem.C))
        return replace(self, problem=problem, params={**self.params, **values}, search=None)

    def columns_of(self, values: dict[str, Any]) -> dict[str, Any]:
        """Columns of the record for a chosen configuration.

        What the task tunes and the solver does not take stays unknown.
        """
        assert self.search is not None
        problem, decided = self.configured(values).problem, self._of_the_problem(values)
        columns: dict[str, Any] = {"params": canonical_json({**self.search.params, **values})}
        if "C" in decided:
            columns["C"] = problem.C
        if decided.keys() & problem.kernel.keys():
            columns["kernel"] = canonical_json(shown_kernel(problem.kernel))
        return columns


@dataclass(frozen=True)
class EstimatorWork(RunWork):
    """Run a classifier of another library on one task with one seed, and judge it.

    If its coefficients are not those of a dual point, it is judged by its predictions.
    """

    seed: int  # set where the class has one
    # Whether its coefficients are those of a dual point of the problem; None: if they turn out so.
    solves: bool | None = None
    tol: float = DEFAULT_TOL  # the accuracy that "converged" stands for

    def run(self, send: Send) -> dict[str, Any]:
        from .estimators import measure_estimator

        return measure_estimator(self, send)


@dataclass(frozen=True)
class FitWork(RunWork):
    """Run a solver of the SVM's interface, watched by a monitor."""

    checkpoint_factor: float
    epoch_checkpoints: bool = False

    def run(self, send: Send) -> dict[str, Any]:
        from .measurement import measure

        return measure(self, send)


#: Configurations of one run at most: all of them are in its record.
MAX_CONFIGURATIONS = 1000
# Points of each class that a trial is fitted to at least.
_LEAST = 10


@dataclass(frozen=True)
class Round:
    """Trials of some configurations with the same resource."""

    keep: int  # how many configurations take part: the best of the round before
    points: int  # points that each is fitted to
    evaluations: float = math.inf  # the most that each may ask for


@dataclass(frozen=True)
class Search:
    """The tuning of one run; the last four are limits for all trials together and for each."""

    # Values by parameter of the solver, in the order of the study.
    configurations: tuple[dict[str, Any], ...]
    # Every parameter of the solver by name, with None for what is tuned.
    params: dict[str, Any] = field(default_factory=dict)
    # The study's seed of tuning and the run's seed: all solvers have the same splits.
    seed: tuple[int, int] = (0, 0)
    method: Literal["grid", "halving"] = "grid"
    resource: Literal["points", "kernel_evals"] = "points"  # what halving doubles
    # Fraction of the training part that trials are scored on; unused with folds.
    validation: float = 0.25
    folds: int | None = None
    seconds: float = math.inf
    evaluations: float = math.inf
    trial_seconds: float = math.inf
    trial_evaluations: float = math.inf

    def rounds(self, n_points: int, n_classes: int) -> list[Round]:
        """The rounds of trials with so many training points.

        Of halving (Jamieson and Talwalkar, AISTATS 2016), the first has all configurations and the
        last all of the resource. Where points are the resource there are no more rounds than leave
        the first one points enough.
        """
        n, by_points = len(self.configurations), self.resource == "points"
        steps = int(math.log2(n)) if self.method == "halving" else 0
        if by_points:
            steps = min(steps, int(math.log2(max(1.0, n_points / (_LEAST * n_classes)))))
        rounds = []
        for i in range(steps + 1):
            keep, share = -(-n // 2**i), 2 ** (steps - i)
            points, evaluations = (share, 1) if by_points else (1, share)
            rounds.append(Round(keep, n_points // points, self.trial_evaluations / evaluations))
        return rounds

    @property
    def solving_s(self) -> float:
        """Seconds of solving that all trials may take, whatever they are."""
        trials = sum(each.keep for each in self.rounds(2**62, 1)) * (self.folds or 1)
        return min(self.seconds, trials * self.trial_seconds)


def configurations(values: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Any], ...]:
    """All combinations of the values; the parameter named last varies fastest."""
    return tuple(
        dict(zip(values, combination, strict=True))
        for combination in itertools.product(*values.values())
    )


def fill_in_gap(record: Record) -> None:
    """The gap of a run that was killed; objectives that are not finite become unknown."""
    for name in ("primal", "dual", "gap"):
        if not math.isfinite(getattr(record, name) or 0.0):
            setattr(record, name, None)
    if record.gap is None and record.primal is not None and record.dual is not None:
        record.gap = record.primal - record.dual


def compare_with_reference(record: Record, reference: ReferenceInfo, *, minimises: bool) -> None:
    """Fill in the columns that come from the task's reference optimum."""
    for name in ("primal", "gap", "test_error", "nu", "alpha_sum", "n_free", "hash"):
        setattr(record, f"reference_{name}", getattr(reference, name))
    record.suboptimality = None
    if minimises and record.primal is not None and reference.primal > 0:
        record.suboptimality = (record.primal - reference.primal) / reference.primal
