"""What workers do for studies of feasibility methods."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..execution.jobs import Outcome, Send, Stamp, Work, described
from ..results.feasibility import FeasibilityRecord, Stage
from ..results.records import CheckpointBase, parsed_columns
from .timing import agreed_times

#: What only the method's own process can know: bounds and times on the way, too.
CLAIMED = "n_iter counters trace"


class _Judged(Work):
    """Work whose result is the columns of a record."""

    def parsed(self, value: Any) -> dict[str, Any]:
        return parsed_columns(FeasibilityRecord, value)

    def parsed_checkpoint(self, columns: dict[str, Any]) -> CheckpointBase:
        return Stage(**columns)


@dataclass(frozen=True)
class CellWork(_Judged):
    """Run a method on one generated problem, and check its certificate.

    ``tol`` is what the cell asks for; None: what the method says.
    """

    generator: str
    m: int
    n: int
    kappa: float
    seed: int
    solver: str
    params: dict[str, Any]
    max_seconds: float
    tol: float | None = None

    def run(self, send: Send) -> dict[str, Any]:
        from .cells import judge, separate

        return judge(self, separate(self, send), send)

    def apart(self) -> CellApart:
        return CellApart(self)


@dataclass(frozen=True)
class CellResult:
    """What a method returned, in plain form; see :class:`marginbench.FeasibilityResult`.

    ``history`` has iteration, seconds, matvecs, phi_lo and phi_up of each point.
    """

    status: str
    y: Any
    x: Any
    phi_lo: float
    phi_up: float
    n_iter: int
    converged: bool
    tol: float
    message: str
    counters: dict[str, int]
    history: list[list[float]]
    wall_s: float
    cpu_s: float
    data_s: float
    compile_s: float


@dataclass(frozen=True)
class CellApart(Work):
    """Run a method from outside the project."""

    fits: ClassVar[bool] = True

    cell: CellWork

    def run(self, send: Send) -> CellResult:
        from .cells import separate

        return separate(self.cell, send)

    def parsed(self, value: Any) -> CellResult:
        found: CellResult = described(CellResult, value)
        _check_seconds(found, "wall_s", "cpu_s", "data_s", "compile_s")
        return found

    def judged(self, outcome: Outcome) -> CellJudgement | None:
        if outcome.status != "done":
            return None
        result: CellResult = outcome.value
        times, note = agreed_times([Stamp(result.wall_s, result.cpu_s)], outcome.seen)
        return CellJudgement(self.cell, result, times[0], note)


@dataclass(frozen=True)
class CellJudgement(_Judged):
    """Check what a method returned."""

    cell: CellWork
    result: CellResult
    time: Stamp
    note: str

    def run(self, send: Send) -> dict[str, Any]:
        from .cells import judge, timed

        columns = judge(self.cell, timed(self.result, self.time), send)
        return _noted(columns, self.note, CLAIMED)


@dataclass(frozen=True)
class ImagesWork(_Judged):
    """Train a kernel method on each class against the rest, and score it."""

    dataset: str
    dataset_params: dict[str, Any]
    n_train: int
    n_validation: int
    unit_norm: bool
    gammas: tuple[float, ...]
    tuning_iterations: int
    stages: tuple[int, ...]
    seed: int
    solver: str
    params: dict[str, Any]
    folder: str | None = None
    fingerprint: str = ""

    def run(self, send: Send) -> dict[str, Any]:
        from .images import classify, judge

        return judge(self, classify(self, send), send)

    def apart(self) -> ImagesApart:
        return ImagesApart(self)


@dataclass(frozen=True)
class Votes:
    """Coefficients of the support vectors, shape (..., n_classes, n_support), and which they are.

    ``support`` has positions in the training points, shape (n_support,).
    """

    support: Any
    coef: Any


@dataclass(frozen=True)
class ImagesResult:
    """What was trained, in plain form.

    Attributes
    ----------
    gamma : float
        The width that was chosen.
    widths : list of Votes
        The predictors that it was chosen from, in the order of the study's widths.
    staged : Votes
        The predictors at each stage and at the end.
    stages : list of list
        Seconds, matvecs, phi_lo and phi_up of each stage.
    dtype : str
        Type of the kernel entries.
    """

    gamma: float
    widths: list[Votes]
    staged: Votes
    stages: list[list[float]]
    dtype: str
    separated: int
    converged: bool
    n_iter: int
    counters: dict[str, int]
    wall_s: float
    cpu_s: float
    data_s: float
    tuning_s: float
    tuning_cpu_s: float


@dataclass(frozen=True)
class ImagesApart(Work):
    """Train a method from outside the project."""

    fits: ClassVar[bool] = True

    images: ImagesWork

    def run(self, send: Send) -> ImagesResult:
        from .images import classify

        return classify(self.images, send)

    def parsed(self, value: Any) -> ImagesResult:
        found: ImagesResult = described(ImagesResult, value)
        _check_seconds(found, "wall_s", "cpu_s", "data_s", "tuning_s", "tuning_cpu_s")
        return found

    def judged(self, outcome: Outcome) -> ImagesJudgement | None:
        if outcome.status != "done":
            return None
        result: ImagesResult = outcome.value
        whole = Stamp(result.tuning_s + result.wall_s, result.tuning_cpu_s + result.cpu_s)
        times, note = agreed_times([whole], outcome.seen)
        if times[0].wall_s != whole.wall_s:
            # Nothing tells choosing the width, training and its stages apart.
            stages = [[times[0].wall_s, *stage[1:]] for stage in result.stages]
            result = replace(result, wall_s=times[0].wall_s, cpu_s=times[0].cpu_s, stages=stages)
        return ImagesJudgement(self.images, result, note)


@dataclass(frozen=True)
class ImagesJudgement(_Judged):
    """Score what was trained."""

    images: ImagesWork
    result: ImagesResult
    note: str

    def run(self, send: Send) -> dict[str, Any]:
        from .images import judge

        # Which classes are separated is not recomputed.
        columns = judge(self.images, self.result, send)
        return _noted(columns, self.note, f"{CLAIMED} status found")


def _check_seconds(result: Any, *names: str) -> None:
    """Raises ValueError unless these are numbers of seconds."""
    for name in names:
        if not 0 <= getattr(result, name) < math.inf:
            raise ValueError(f"{name} is {getattr(result, name)!r:.40}")


def _noted(columns: dict[str, Any], note: str, claimed: str) -> dict[str, Any]:
    reason = "; ".join(filter(None, (columns["reason"], note)))
    return {**columns, "reason": reason, "claimed": claimed}
