"""A study's runs in this very process, for tools that bring their own isolation and clocks.

asv and pytest-benchmark time the same tasks as the studies do, with the same parameters and the
same reference optima.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marginbench.harness.jobs import (
    CheckpointMessage,
    Ended,
    Event,
    Job,
    Message,
    Outcome,
    RunResult,
    Started,
)
from marginbench.harness.loading import load_class
from marginbench.harness.svm.measurement import load_task_data, measure
from marginbench.harness.svm.planning import PlannedRun, plan
from marginbench.harness.asking import gather_facts
from marginbench.harness.records import Checkpoint
from marginbench.harness.selection import select
from marginbench.harness.study import Study
from marginbench.harness.worker import perform

if TYPE_CHECKING:
    from marginbench.data_loaders import Dataset
    from marginbench.solvers import Solver


class InProcess:
    """An executor without isolation or limits: what a job raises goes to the caller."""

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs one after the other."""
        for job in jobs:
            yield Started(job)
            yield Ended(job, Outcome("done", value=perform(job.work, _ignore)))

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class Watched:
    """A run with its trace."""

    result: RunResult
    trace: tuple[Checkpoint, ...]


def planned_runs(study: Study) -> dict[tuple[str, str], PlannedRun]:
    """The runs of a study with seed 0, by labels of task and solver.

    Parameters
    ----------
    study : Study

    Raises
    ------
    UserError, DataError
        If a solver or dataset cannot be had.
    """
    facts = gather_facts(study, InProcess(), say=_silent)
    runs = plan(select(study, seeds=1), facts)
    return {(run.task.label, run.solver.label): run for run in runs}


def estimator_and_data(run: PlannedRun) -> tuple[Solver, Dataset]:
    """The run's estimator, not fitted, and its dataset."""
    return load_class(run.job.solver)(**run.job.params), load_task_data(run.job.task)


def watch(run: PlannedRun) -> Watched:
    """Do the run with checkpoints and checks, as a study does.

    Raises
    ------
    Exception
        Whatever the solver raises.
    """
    messages: list[Message] = []
    result = measure(run.job, messages.append)
    return Watched(
        result, tuple(item.checkpoint for item in messages if isinstance(item, CheckpointMessage))
    )


def _ignore(message: Message) -> None:
    """Nobody watches."""


def _silent(line: str) -> None:
    """Nobody reads."""
