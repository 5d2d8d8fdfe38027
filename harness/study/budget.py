"""What a run may spend, and when it is good enough."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field

from ..execution.jobs import Limits
from .parts import Positive, StudyPart


class Stop(StudyPart):
    """What a run need not go beyond.

    Attributes
    ----------
    suboptimality : float
        Relative to the task's reference optimum, as checkpoints find it.
    """

    suboptimality: Positive


class Budget(StudyPart):
    """Limits of each run.

    Attributes
    ----------
    timeout : float
        Seconds of solving; data, compilation and evaluation do not count.
    cpu_timeout : float or None
        CPU seconds of solving, of all threads and child processes together. It does not depend on
        what else the machine does; ``timeout`` holds as well.
    kernel_evals : float or None
        Evaluations that a run may ask for: kernel entries and what other methods have in their
        place, counted as in :class:`marginbench.Counters`. Looked at when a checkpoint is due.
    iterations : int or None
        Iterations that a run may do. Looked at when a checkpoint is due.
    stop : Stop or None
        Ends a run that is good enough.
    memory : float
        Megabytes (10^6 bytes) that a worker process, its children included, may hold resident.
    checkpoint_factor : float
        Checkpoints come at kernel evaluations that grow by this factor.
    epoch_checkpoints : bool
        And at the end of each epoch, of solvers that say where theirs end (BSGD and BSCA).
    compile_timeout, data_timeout, evaluation_timeout : float
        Seconds for importing a solver and for warming it up, for getting the data, and for one
        evaluation. They are there to catch what hangs.
    total_timeout : float or None
        Seconds that all phases of a run may take together. By default the sum of the other four,
        with ``timeout`` counted twice.
    """

    timeout: Positive = 60.0
    cpu_timeout: Positive | None = None
    kernel_evals: Positive | None = None
    iterations: Annotated[int, Field(ge=1)] | None = None
    stop: Stop | None = None
    memory: Positive = 4096.0
    checkpoint_factor: Annotated[float, Field(ge=1.01, allow_inf_nan=False)] = 1.19
    epoch_checkpoints: bool = False
    compile_timeout: Positive = 60.0
    data_timeout: Positive = 1800.0
    evaluation_timeout: Positive = 600.0
    total_timeout: Positive | None = None

    def limits(self) -> dict[str, Any]:
        """What is set of it by name, with the total limit that holds."""
        total = self.total_timeout
        if total is None:
            fixed = self.compile_timeout + self.data_timeout + self.evaluation_timeout
            total = fixed + 2 * self.timeout
        return {**self.model_dump(exclude_none=True), "total_timeout": total}

    @property
    def rules(self) -> dict[str, Any]:
        """Those that end a run by what it has done, and so decide its result, where there are."""
        return self.model_dump(include={"kernel_evals", "iterations", "stop"}, exclude_none=True)


def run_limits(budget: Budget, grace: float = 0.0) -> Limits:
    """What the parent enforces of a budget.

    Parameters
    ----------
    budget : Budget
    grace : float
        Seconds that a run which ends itself at its timeout is given beyond it.
    """
    return Limits(
        seconds={
            "import": budget.compile_timeout,
            "data": budget.data_timeout,
            "compile": budget.compile_timeout,
            "solve": budget.timeout + grace,
            "evaluate": budget.evaluation_timeout,
        },
        memory=budget.memory,
        total=budget.limits()["total_timeout"] + grace,
        cpu=math.inf if budget.cpu_timeout is None else budget.cpu_timeout,
    )
