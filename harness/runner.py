"""Running a study: plan, skip what is recorded, run the rest, write each record as it comes."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from data_loaders.atomic import UNFINISHED, replacing
from harness.environment import environment, version
from harness.errors import (
    EXIT_DATA,
    EXIT_OK,
    EXIT_RUNS,
    BusyError,
    InterruptedRunError,
    UserError,
)
from harness.jobs import Ended, Executor, Job, Limits, Started
from harness.keys import canonical_json
from harness.planning import Facts, PlannedRun, plan
from harness.pool import LocalPool
from harness.preparation import gather_facts, is_foreign, study_limits
from harness.progress import Progress, SilentProgress
from harness.recording import compare_with_reference, now, record_of, record_without_run
from harness.records import EXPECTED_STATUSES, Record, RecordStore
from harness.study import Study

_SCHEMA_VERSION = 1
_TIMEOUTS = ("timeout", "compile_timeout", "data_timeout", "evaluation_timeout")


@dataclass(frozen=True)
class RunSummary:
    """How the runs of a study ended.

    Attributes
    ----------
    results : Path
        The results folder.
    planned : int
        Runs of the study.
    already_recorded : int
        Runs that had been finished before.
    statuses : dict
        Status -> number of planned runs that ended so, whenever they did.
    unexpected : tuple of str
        A line for each run that did not go as planned.
    data_errors : tuple of str
        Datasets that could not be loaded, and why.
    """

    results: Path
    planned: int
    already_recorded: int
    statuses: dict[str, int]
    unexpected: tuple[str, ...] = ()
    data_errors: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """3 if data could not be loaded, else 1 if a run did not go as planned, else 0."""
        if self.data_errors:
            return EXIT_DATA
        return EXIT_RUNS if self.unexpected else EXIT_OK


def run_study(
    study: Study,
    results: Path,
    *,
    jobs: int = 1,
    threads: int = 1,
    retry_failed: bool = False,
    command: str = "",
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> RunSummary:
    """Run a study and record every run; those that are recorded already are not repeated.

    Parameters
    ----------
    study : Study
    results : Path
        The results folder; records go to ``results/runs``.
    jobs : int
        Runs at the same time. More than one disturbs the timings.
    threads : int
        Threads of numeric libraries per run.
    retry_failed : bool
        Run again what did not go as planned.
    command : str
        The command line that reproduces this, for the report.
    progress : Progress, optional
        Shows what happens; nothing by default.
    executor : Executor, optional
        Where to run; worker processes on this machine by default.

    Raises
    ------
    UserError
        If the study, a solver or the results folder is not usable.
    InterruptedRunError
        If the user interrupts; what was recorded stays.
    """
    if jobs < 1:
        raise UserError(f"the number of jobs must be at least 1, not {jobs}")
    progress = progress or SilentProgress()
    with exclusive(results), contextlib.ExitStack() as stack:
        if executor is None:
            executor = stack.enter_context(LocalPool(jobs, results / "logs"))
        session = _Session(study, results, jobs, threads, progress, executor)
        try:
            facts = gather_facts(study, executor, say=progress.say, threads=threads)
            session.prepare(facts, command, retry_failed=retry_failed)
            session.run_pending()
        except KeyboardInterrupt:
            executor.close()
            raise InterruptedRunError(session.interrupted_message(command)) from None
        finally:
            progress.close()
        return session.summary(facts)


@dataclass
class _Session:
    """One call of :func:`run_study`."""

    study: Study
    results: Path
    jobs: int
    threads: int
    progress: Progress
    executor: Executor
    runs: list[PlannedRun] = field(default_factory=list)
    pending: list[PlannedRun] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)
    already_recorded: int = 0
    # Solvers whose warm-up was once cut short: compiling again cannot take as long.
    slow_to_compile: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.store = RecordStore(self.results / "runs")
        self.environment = canonical_json(environment())

    def prepare(self, facts: Facts, command: str, *, retry_failed: bool) -> None:
        """Plan, write study.json, and find out what is recorded already."""
        self.runs = plan(self.study, facts)
        for leftover in self.store.folder.glob(f"{UNFINISHED}*"):
            leftover.unlink(missing_ok=True)
        write_json(self.results / "study.json", self._description(facts, command))
        for run in self.runs:
            record = self.store.recorded(run.file_name, run.key, self.progress.say)
            if record is not None and not self._again(record, retry_failed=retry_failed):
                self.records[run.key] = self._refreshed(record, run)
                self.already_recorded += 1
            elif run.failure or run.skip_reason:
                self._write(run, record_without_run(run, self.study))
            else:
                self.pending.append(run)
        # Neighbours in time must not be neighbours in the plan: machines drift.
        random.Random(self.study.name).shuffle(self.pending)
        if self.already_recorded:
            self.progress.say(
                f"{self.already_recorded} of {len(self.runs)} runs already recorded in "
                f"{self.results}"
            )

    def run_pending(self) -> None:
        """Run what is left; each record is written as soon as its run ends."""
        by_key = {run.key: run for run in self.pending}
        started: dict[str, str] = {}
        self.progress.begin(self.pending)
        for event in self.executor.execute(self._jobs()):
            if isinstance(event, Started):
                started[event.job.tag] = now()
                self.progress.started(by_key[event.job.tag])
            elif isinstance(event, Ended):
                run = by_key[event.job.tag]
                record = record_of(run, event.outcome, self.study)
                record.started_at = started[run.key]
                if event.outcome.status == "timeout" and event.outcome.phase == "compile":
                    self.slow_to_compile.add(run.solver.label)
                self._write(run, record)
                self.progress.ended(record)
            else:
                self.progress.refresh()

    def summary(self, facts: Facts) -> RunSummary:
        """What became of the planned runs."""
        ended = [self.records[run.key] for run in self.runs if run.key in self.records]
        return RunSummary(
            results=self.results,
            planned=len(self.runs),
            already_recorded=self.already_recorded,
            statuses=dict(Counter(record.status for record in ended)),
            unexpected=tuple(
                f"{record.task} / {record.solver} / seed {record.seed}: {record.status}"
                + (f" ({record.reason})" if record.reason else "")
                for record in ended
                if record.status not in EXPECTED_STATUSES
            ),
            data_errors=tuple(
                dict.fromkeys(found for found in facts.datasets.values() if isinstance(found, str))
            ),
        )

    def interrupted_message(self, command: str) -> str:
        """How to continue."""
        if not self.runs:
            return "interrupted before the first run"
        done = f"{len(self.records)} of {len(self.runs)} runs are recorded in {self.results}"
        again = f": {command}" if command else ""
        return f"interrupted; {done}; the same command continues{again}"

    def _jobs(self) -> Iterator[Job]:
        # Made one by one: the limit on warming up depends on what has happened so far.
        for run in self.pending:
            yield Job(
                tag=run.key,
                work=run.job,
                limits=self._limits(run),
                threads=self.threads,
                foreign=is_foreign(run.solver.name),
            )

    def _limits(self, run: PlannedRun) -> Limits:
        limits = study_limits(self.study)
        if run.solver.label not in self.slow_to_compile:
            return limits
        seconds = min(limits.seconds["compile"], limits.seconds["solve"])
        return Limits({**limits.seconds, "compile": seconds}, limits.memory)

    def _write(self, run: PlannedRun, record: Record) -> None:
        record.jobs, record.threads, record.environment = self.jobs, self.threads, self.environment
        self.store.write(record)
        self.records[run.key] = record

    def _again(self, record: Record, *, retry_failed: bool) -> bool:
        """Whether a recorded run is to be run again."""
        if record.status in EXPECTED_STATUSES:
            return False
        if retry_failed:
            return True
        before: dict[str, float] = json.loads(record.budget)
        budget = self.study.budget.model_dump()
        if record.status == "timeout":
            return any(budget[name] > before.get(name, 0.0) for name in _TIMEOUTS)
        return record.status == "memory" and budget["memory"] > before.get("memory", 0.0)

    def _refreshed(self, record: Record, run: PlannedRun) -> Record:
        """The record, compared with the reference optimum if that was not there at the time."""
        if run.reference is not None and record.reference_hash != run.reference.hash:
            record = replace(record)
            compare_with_reference(record, run)
            self.store.write(record)
        return record

    def _description(self, facts: Facts, command: str) -> dict[str, Any]:
        """The content of study.json."""
        study = self.study
        return {
            "schema_version": _SCHEMA_VERSION,
            "marginbench": version(),
            "name": study.name,
            "title": study.title or study.name,
            "description": study.description,
            "seeds": list(range(study.seeds)),
            "budget": study.budget.model_dump(),
            "reference": study.reference.model_dump(),
            "jobs": self.jobs,
            "threads": self.threads,
            "command": command,
            "tasks": [_describe_task(task, facts) for task in study.task],
            "solvers": [_describe_solver(entry, facts) for entry in study.solver],
            "planned": [
                {
                    "key": run.key,
                    "file": run.file_name,
                    "task": run.task.label,
                    "solver": run.solver.label,
                    "seed": run.seed,
                }
                for run in self.runs
            ],
        }


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=repr) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as sink:
            sink.write(text.encode())
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from None


def _describe_task(task: Any, facts: Facts) -> dict[str, Any]:
    info = facts.datasets[task.label]
    return {
        "label": task.label,
        "dataset": task.dataset,
        "dataset_params": dict(task.dataset_params),
        "kernel": task.kernel_description,
        "C": task.C,
        "fit_intercept": task.fit_intercept,
        "citation": "" if isinstance(info, str) else info.citation,
        "licence": "" if isinstance(info, str) else info.licence,
    }


def _describe_solver(entry: Any, facts: Facts) -> dict[str, Any]:
    info = facts.solvers[entry.label]
    return {
        "label": entry.label,
        "class": info.shown,
        "params": dict(entry.params),
        "scalarization": info.scalarization,
        "certificate": info.certificate,
        "instrumented": info.instrumented,
        "summary": info.summary,
    }


@contextlib.contextmanager
def exclusive(results: Path) -> Iterator[None]:
    """Nobody else writes to the results folder meanwhile."""
    if results.exists() and not results.is_dir():
        raise UserError(f"{results}: is not a folder; choose another --out")
    try:
        results.mkdir(parents=True, exist_ok=True)
        lock = FileLock(results / ".lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise BusyError(
            f"{results}: another marginbench run is writing here; wait for it or choose --out"
        ) from None
    except OSError as error:
        raise UserError(f"{results}: cannot be written to ({error.strerror or error})") from None
    try:
        yield
    finally:
        lock.release()
