"""A study's runs in this very process, for tools that bring their own isolation and clocks.

asv and pytest-benchmark time the same tasks as the studies do, with the same parameters and the
same reference optima.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..evaluation.judging import load_task_data
from ..jobs import (
    CheckpointMessage,
    Ended,
    Event,
    Job,
    Message,
    Outcome,
    ResultMessage,
    Started,
    decoded,
    encoded,
)
from ..loading import load_class
from ..planning.plan import Run, kind_named
from ..planning.preflight import preflight
from ..study.select import select
from ..study.svm import Study

if TYPE_CHECKING:
    from ...data_loaders import Dataset
    from ...solvers import Solver


class InProcess:
    """An executor without isolation or limits: what a job raises goes to the caller."""

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs one after the other."""
        for job in jobs:
            yield Started(job)
            result = encoded(ResultMessage(job.work.run(lambda message: None)))
            returned: Any = decoded(result, job.work)
            yield Ended(job, Outcome("done", value=returned.value))

    def close(self) -> None:
        """Nothing is held."""


def planned_runs(study: Study) -> dict[tuple[str, str], Run]:
    """The runs of a study with seed 0, by labels of task and solver."""
    kind, chosen = kind_named(study.kind), select(study, seeds=1)
    facts = preflight(chosen, InProcess(), lambda line: None)
    return {(run.task, run.solver): run for run in kind.plan(chosen, facts)}


def estimator_and_data(run: Run) -> tuple[Solver, Dataset]:
    """The run's estimator, not fitted, and its dataset."""
    work: Any = run.work
    return load_class(work.solver)(**work.params), load_task_data(work.problem)


def watch(run: Run) -> Outcome:
    """Do the run with checkpoints and checks, as a study does; it raises what the solver raises."""
    messages: list[Message] = []
    columns = run.work.run(messages.append)
    trace = [item.checkpoint for item in messages if isinstance(item, CheckpointMessage)]
    return Outcome("done", columns=columns, trace=trace)
