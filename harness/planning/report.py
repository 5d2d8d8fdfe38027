"""What a study consists of, and what a run of it would do; nothing is run or written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..jobs import Executor
from ..results.journal import Journal
from ..study.grid import short
from ..study.model import StudyBase
from ..words import plural
from .forecast import Pair, span
from .plan import Run, is_repeated, kind_named
from .preflight import preflight, study_solvers

#: What would become of a run; one that "cannot start" is recorded as failed.
Fate = Literal["recorded", "to do", "skipped", "cannot start"]


@dataclass
class Row:
    """The runs of a solver on a task.

    Attributes
    ----------
    task, solver : str
        Labels.
    n_runs : int
    why_skipped : str
        Why they will be skipped, as far as this shows without the data.
    fates : Counter
        How many of them have which fate, once the results are looked at.
    """

    task: str
    solver: str
    n_runs: int = 0
    why_skipped: str = ""
    fates: Counter[Fate] = field(default_factory=Counter)


@dataclass(frozen=True)
class Overview:
    """A study and its runs."""

    study: StudyBase
    rows: Sequence[Row]

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return sum(row.n_runs for row in self.rows)

    @property
    def size(self) -> str:
        """ "3 tasks x 4 solvers x 5 seeds = 60 runs"; without a product where it is none."""
        study, counts = self.study, {row.n_runs for row in self.rows}
        words = f"{plural(len(study.tasks), 'task')} x {plural(len(study.solvers), 'solver')}"
        n_skipped = sum(row.n_runs for row in self.rows if row.why_skipped)
        runs = plural(self.n_runs, "run") + (f", {n_skipped} skipped" if n_skipped else "")
        if len(counts) == 1:
            return f"{words} x {plural(counts.pop(), 'seed')} = {runs}"
        return f"{words}: {runs}"

    @property
    def skips(self) -> list[str]:
        """A line for each solver and task whose runs will be skipped."""
        skipped = (row for row in self.rows if row.why_skipped)
        return [f"skipped: {row.solver} on {row.task}: {row.why_skipped}" for row in skipped]

    def lines(self) -> Iterator[str]:
        """Lines for the terminal: the study, its tasks, its solvers."""
        study = self.study
        yield f"{study.name}: {study.title}" if study.title else study.name
        if study.cost:
            yield f"cost: {study.cost}"
        yield self.size
        limits = study.budget.limits().items()
        yield f"budget: {_listed({name: value for name, value in limits if value is not False})}"
        yield ""
        yield from _table("TASK", {task.label: _listed(task.facets) for task in study.tasks})
        yield ""
        n_runs = self._runs_of_solvers()
        solvers = {}
        for entry in study.solvers:
            words = [plural(n_runs[entry.label], "run")]
            words += [entry.class_name] * (entry.class_name != entry.label)
            words += [_listed(entry.params)] * bool(entry.params)
            solvers[entry.label] = ", ".join(words)
        yield from _table("SOLVER", solvers)
        yield from self.skips

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        study, n_runs = self.study, self._runs_of_solvers()
        return {
            "name": study.name,
            "kind": study.kind,
            "title": study.title,
            "cost": study.cost,
            "budget": study.budget.limits(),
            "tasks": [task.model_dump() for task in study.tasks],
            "solvers": [
                entry.model_dump() | {"n_runs": n_runs[entry.label]} for entry in study.solvers
            ],
            "n_runs": self.n_runs,
            "skipped": [
                {"task": row.task, "solver": row.solver, "why": row.why_skipped}
                for row in self.rows
                if row.why_skipped
            ],
        }

    def _runs_of_solvers(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for row in self.rows:
            counts[row.solver] += row.n_runs
        return counts


@dataclass(frozen=True)
class Preview:
    """What a run of a study would do.

    Attributes
    ----------
    results : Path
        The results folder.
    rows : sequence of Row
    solving_s : float
        Seconds of solving that the runs to do may take: their timeouts, shared by the jobs.
    """

    results: Path
    rows: Sequence[Row]
    solving_s: float

    @property
    def counts(self) -> Counter[Fate]:
        """How many of all runs have which fate."""
        return sum((row.fates for row in self.rows), Counter())

    def lines(self) -> Iterator[str]:
        """Lines for the terminal: all runs, those of each solver and task, the time."""
        yield f"{plural(self.counts.total(), 'run')}: {_counted(self.counts)}"
        for row in self.rows:
            yield f"  {row.task} / {row.solver}: {_counted(row.fates)}"
        if self.counts["to do"]:
            yield (
                f"at most {span(self.solving_s)} of solving by the timeouts; loading, warm-up and "
                "evaluation come on top"
            )

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        return {
            "results": str(self.results),
            "planned": self.counts.total(),
            "runs": dict(self.counts),
            "solving_s": self.solving_s,
            "pairs": [
                {"task": row.task, "solver": row.solver, "runs": dict(row.fates)}
                for row in self.rows
            ],
        }


def overview(study: StudyBase, executor: Executor, say: Callable[[str], None]) -> Overview:
    """Import the solvers of a study, check their parameters and count the runs."""
    kind, solvers = kind_named(study.kind), study_solvers(study, executor, say)
    rows = []
    for task in study.tasks:
        for entry in study.solvers:
            info = solvers[entry.label]
            row = Row(task.label, entry.label, len(kind.seeds(study, task, entry, info)))
            if row.n_runs:
                row.why_skipped = kind.skip_reason(study, task, entry, info)
            rows.append(row)
    return Overview(study, rows)


def preview(
    study: StudyBase,
    results: Path,
    executor: Executor,
    say: Callable[[str], None],
    *,
    jobs: int = 1,
    retry_failed: bool = False,
) -> Preview:
    """Find out what a run of a study would do.

    Solvers are imported and datasets loaded, but no reference optimum is computed.
    """
    facts = preflight(study, executor, say, computes=False)
    rows: dict[tuple[str, str], Row] = {}
    seconds: list[float] = []
    journal = Journal(results)
    for run in kind_named(study.kind).plan(study, facts):
        fate = _fate(study, journal, run, retry_failed=retry_failed)
        row = rows.setdefault((run.task, run.solver), Row(run.task, run.solver))
        row.n_runs += 1
        row.fates[fate] += 1
        if fate == "to do":
            seconds.append(Pair.of(run).limit)
    # No run is spread over several jobs.
    solving_s = max(sum(seconds) / jobs, max(seconds, default=0.0))
    return Preview(results, list(rows.values()), solving_s)


def _fate(study: StudyBase, journal: Journal, run: Run, *, retry_failed: bool) -> Fate:
    record = journal.recorded(run.key)
    if record is not None and not is_repeated(
        kind_named(study.kind), study.budget, record, retry_failed=retry_failed
    ):
        return "recorded"
    if run.failure:
        return "cannot start"
    return "skipped" if run.skip_reason else "to do"


def _counted(counts: Counter[Fate]) -> str:
    return ", ".join(f"{count} {fate}" for fate, count in counts.items())


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={short(value)}" for name, value in values.items())


def _table(heading: str, rows: Mapping[str, str]) -> Iterator[str]:
    width = max(len(heading), *(len(label) for label in rows))
    yield heading
    for label, words in rows.items():
        yield f"{label.ljust(width)}  {words}".rstrip()
