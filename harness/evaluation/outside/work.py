"""What workers do with solvers from outside that return no marginbench model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...execution.jobs import Outcome, Send, Stamp, Work, described
from ...results.records import CheckpointBase, parsed_columns
from ...results.svm import Checkpoint, Record
from ..svm import DEFAULT_TOL, Problem
from ..timing import agreed_times
from .commands import Command


@dataclass(frozen=True)
class Estimator:
    """A classifier of another library, by the name of its class or of the function that makes it.

    ``params`` are those of the class, ``seed`` is set where it has one.
    """

    name: str
    params: dict[str, Any]
    seed: int


@dataclass(frozen=True)
class Program:
    """A program: its command lines, and the seed for those that take one."""

    command: Command
    seed: int


@dataclass(frozen=True)
class OutsideWork(Work):
    """Run such a solver on one task with one seed, and judge it in another process.

    Attributes
    ----------
    problem : Problem
        The one that it solves, if it is one of these.
    fit : Estimator or Program
    solves : bool
        Whether it is to return the coefficients of a dual point; otherwise it is judged by its
        predictions alone.
    tol : float
        The accuracy that "converged" stands for.
    """

    problem: Problem
    fit: Estimator | Program
    solves: bool = False
    tol: float = DEFAULT_TOL

    def parsed(self, value: Any) -> dict[str, Any]:
        return parsed_columns(Record, value)

    def parsed_checkpoint(self, columns: dict[str, Any]) -> CheckpointBase:
        return Checkpoint(**columns)

    def apart(self) -> OutsideFit:
        return OutsideFit(self)


@dataclass(frozen=True)
class OutsideClaims:
    """What came of a fit.

    Attributes
    ----------
    status : {"converged", "budget", "wrong"}
        "budget": it says that it stopped early; "wrong" has a reason.
    reason : str
    n_iter : int or None
        Iterations, where it tells.
    model : mapping or None
        The plain form of its model.
    scores : ndarray or None
        With a model: its scores of the test points that the harness compares, where it gives any.
    train, test : ndarray or None
        Without a model: what it predicts for all points of both parts, by labels or, if
        ``by_score``, by scores of two classes.
    peak_memory_mb : float or None
        Of a program.
    """

    status: Literal["converged", "budget", "wrong"]
    reason: str = ""
    n_iter: int | None = None
    model: Any = None
    scores: Any = None
    train: Any = None
    test: Any = None
    by_score: bool = False
    peak_memory_mb: float | None = None


@dataclass(frozen=True)
class OutsideFit(Work):
    """Run such a solver; all that is to be judged is sent away."""

    fits: ClassVar[bool] = True

    work: OutsideWork

    def run(self, send: Send) -> OutsideClaims:
        from .fitting import fit_outside

        return fit_outside(self.work, send)

    def parsed(self, value: Any) -> OutsideClaims:
        found: OutsideClaims = described(OutsideClaims, value)
        return found

    def judged(self, outcome: Outcome) -> OutsideJudge | None:
        if outcome.status != "done" or not outcome.seen:
            return None
        times = outcome.claimed[:1], outcome.seen[:1]
        if isinstance(self.work.fit, Program):
            # Measured by a process of the harness, whose own start is not the program's time.
            agreed, note = list(times[0]), ""
        else:
            agreed, note = agreed_times(*times) if times[0] else (list(times[1]), "")
        return OutsideJudge(self.work, tuple(agreed), note, outcome.value)


@dataclass(frozen=True)
class OutsideJudge(Work):
    """Judge what a run sent away.

    Attributes
    ----------
    work : OutsideWork
    times : tuple of Stamp
        What the fit took; empty if it did not say that it had ended.
    note : str
        What there is to say about the times.
    claims : OutsideClaims
    """

    work: OutsideWork
    times: tuple[Stamp, ...]
    note: str
    claims: OutsideClaims

    def run(self, send: Send) -> dict[str, Any]:
        from .verdict import judge_outside

        return judge_outside(self, send)

    def parsed(self, value: Any) -> dict[str, Any]:
        return parsed_columns(Record, value)

    def parsed_checkpoint(self, columns: dict[str, Any]) -> CheckpointBase:
        return Checkpoint(**columns)
