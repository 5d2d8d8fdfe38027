"""What a run of a study would do: which runs are recorded, and how long the others may take."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..execution.jobs import Executor
from ..execution.local import LocalPool, check_jobs
from ..results.journal import Journal
from ..study.budget import run_limits
from ..study.model import StudyBase
from ..words import plural
from .asking import Ask
from .forecast import Pair, span
from .kinds import Run, kind_named
from .reuse import is_repeated

#: What would become of a run; one that "cannot start" is recorded as failed.
Fate = Literal["recorded", "to do", "skipped", "cannot start"]


@dataclass(frozen=True)
class Preview:
    """What a run of a study would do.

    Attributes
    ----------
    results : Path
        The results folder.
    fates : dict
        (task, solver) -> how many of its runs have which fate.
    solving_s : float
        Seconds of solving that the runs to do may take: their timeouts, shared by the jobs.
    """

    results: Path
    fates: dict[tuple[str, str], Counter[Fate]]
    solving_s: float

    @property
    def counts(self) -> Counter[Fate]:
        """How many of all runs have which fate."""
        return sum(self.fates.values(), Counter())

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON takes it."""
        return {
            "results": str(self.results),
            "planned": self.counts.total(),
            "runs": dict(self.counts),
            "solving_s": self.solving_s,
            "pairs": [
                {"task": task, "solver": solver, "runs": dict(counts)}
                for (task, solver), counts in self.fates.items()
            ],
        }

    def in_words(self) -> Iterator[str]:
        """Lines for the terminal: all runs, those of each pair, the time."""
        yield f"{plural(self.counts.total(), 'run')}: {_listed(self.counts)}"
        for (task, solver), counts in self.fates.items():
            yield f"  {task} / {solver}: {_listed(counts)}"
        if self.counts["to do"]:
            yield (
                f"at most {span(self.solving_s)} of solving by the timeouts; loading, warm-up and "
                "evaluation come on top"
            )


def preview(
    study: StudyBase,
    results: Path,
    *,
    jobs: int = 1,
    retry_failed: bool = False,
    say: Callable[[str], None] = lambda line: None,
    executor: Executor | None = None,
) -> Preview:
    """Find out what a run of a study would do; nothing is run or written.

    Solvers are imported and datasets loaded, but no reference optimum is computed.

    Parameters
    ----------
    study : StudyBase
    results : Path
        The results folder.
    jobs : int
        Runs at the same time.
    retry_failed : bool
        Whether what did not go as planned would be run again.
    say : callable
        Takes one line for the user.
    executor : Executor, optional
        Where solvers are imported and datasets loaded; a worker process by default.

    Raises
    ------
    UserError
        If a solver cannot be imported or does not take its parameters, or for too many jobs.
    """
    check_jobs(jobs)
    limits = run_limits(study.budget)
    if executor is not None:
        runs = _planned(study, Ask(executor, limits, say, computes=False))
    else:
        with tempfile.TemporaryDirectory() as logs, LocalPool(1, Path(logs)) as pool:
            runs = _planned(study, Ask(pool, limits, say, computes=False))
    fates: dict[tuple[str, str], Counter[Fate]] = {}
    seconds: list[float] = []
    journal = Journal(results)
    for run in runs:
        fate = _fate(study, journal, run, retry_failed=retry_failed)
        fates.setdefault((run.task, run.solver), Counter())[fate] += 1
        if fate == "to do":
            seconds.append(Pair.of(run).limit)
    # No run is spread over several jobs.
    return Preview(results, fates, max(sum(seconds) / jobs, max(seconds, default=0.0)))


def _planned(study: StudyBase, ask: Ask) -> list[Run]:
    kind = kind_named(study.kind)
    return kind.plan(study, kind.facts(study, ask))


def _fate(study: StudyBase, journal: Journal, run: Run, *, retry_failed: bool) -> Fate:
    record = journal.recorded(run.key)
    if record is not None and not is_repeated(
        kind_named(study.kind), study.budget, record, retry_failed=retry_failed
    ):
        return "recorded"
    if run.failure:
        return "cannot start"
    return "skipped" if run.skip_reason else "to do"


def _listed(counts: Counter[Fate]) -> str:
    return ", ".join(f"{count} {fate}" for fate, count in counts.items())
