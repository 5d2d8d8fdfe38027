"""Running a study of any kind: skip what is recorded, run the rest, keep each record at once."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ...data_loaders.atomic import UNFINISHED
from ..environment import environment, version
from ..errors import InterruptedRunError
from ..hashing import canonical_json
from ..interrupts import interrupts_deferred
from ..planning.fingerprint import content_version, write_sources
from ..planning.plan import Details, Kind, Run, in_rounds, kind_named
from ..planning.preflight import Facts, preflight
from ..planning.reuse import is_repeated
from ..platforms import check_can_run
from ..results.description import SCHEMA_VERSION, write_description
from ..results.folders.earlier import described_before
from ..results.folders.gathering import put_right, separate
from ..results.folders.resuming import Resumption
from ..results.plans import Scope, merged, planned_run
from ..results.records import RecordBase
from ..results.store import RecordStore
from ..results.superseded import Superseded
from ..storage import storing
from ..study.model import StudyBase
from ..words import REASON_LIMIT, visible, visible_lines
from .cluster import Engine
from .guarding import Guarded, Meanwhile, check_folder_exists, exclusive
from .jobs import Ended, Executor, Job, Outcome, Started
from .local import LocalPool, check_jobs
from .outcomes import Ending, RunSummary
from .progress import Progress, SilentProgress
from .sharing import Alone, Sharing


def run_study(
    study: StudyBase,
    results: Path,
    *,
    jobs: int = 1,
    threads: int = 1,
    retry_failed: bool = False,
    command: str = "",
    whole: StudyBase | None = None,
    whole_command: str = "",
    progress: Progress | None = None,
    executor: Executor | None = None,
    engine: Engine | None = None,
    sharing: Sharing | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> RunSummary:
    """Run a study of any kind and record every run; what is recorded already is not repeated.

    Parameters
    ----------
    study : StudyBase
    results : Path
        The results folder; records go to ``results/runs``.
    jobs : int
        Runs at the same time. More than one disturbs the timings.
    threads : int
        Threads of numeric libraries per run.
    retry_failed : bool
        Run again what did not go as planned.
    command : str
        The command line that runs this.
    whole : StudyBase, optional
        The study of which this is a part; what was planned of its other parts stays planned.
    whole_command : str
        The command line that runs all of it, for the report.
    progress : Progress, optional
        Shows what happens; nothing by default.
    executor : Executor, optional
        Where to plan and run; worker processes on this machine by default.
    engine : Engine, optional
        Where to run what is planned here.
    sharing : Sharing, optional
        The other commands on the results folder; none by default.
    meanwhile : callable
        Done while the first worker starts, as there is nothing else to do.

    Raises
    ------
    UserError
        If the study, a solver or the results folder is not usable.
    StorageError
        If something cannot be written, or the results folder is gone; what was recorded stays.
    InterruptedRunError
        If the user interrupts; what was recorded stays.
    """
    check_jobs(jobs)
    if executor is None:
        # Before there is a results folder.
        check_can_run()
    scope = Scope(whole or study, study)
    session = _Session(scope, results, jobs, threads, progress or SilentProgress())
    session.sharing = sharing or session.sharing
    with (
        interrupts_deferred() as check_interrupt,
        exclusive(results) as check_folder,
        contextlib.ExitStack() as stack,
    ):
        session.looks += [check_interrupt, check_folder]
        known = Resumption(
            scope, results, {"jobs": jobs, "threads": threads, "commands": (command, whole_command)}
        )
        asked = ""
        if executor is None:
            done = known.summary()
            if done is not None and not (retry_failed and done.unexpected):
                session.say_recorded(done.planned, done.planned)
                session.progress.close()
                return done
            asked = known.asked_if_told()
            executor = stack.enter_context(LocalPool(jobs, results / "logs", ahead=sharing is None))
        try:
            if engine is not None:
                engine.check()
            guarded = Guarded(Meanwhile(executor, meanwhile), session.check)
            session.plan(guarded)
            with session.sharing.preparing(session.check):
                session.prepare(command, whole_command or command, retry_failed=retry_failed)
            if engine is not None and session.pending:
                there = stack.enter_context(engine.opened(session.progress.say))
                guarded = Guarded(there, session.check)
            session.run_pending(guarded)
        except KeyboardInterrupt:
            executor.close()
            summary = session.summary() if session.described else None
            again = command if engine is None else ""
            raise InterruptedRunError(session.interrupted_message(again), summary) from None
        finally:
            session.superseded.tell()
            session.progress.close()
        return known.kept(asked, session.runs, session.endings, session.summary())


class _Session:
    """One call of :func:`run_study`."""

    def __init__(
        self, scope: Scope, results: Path, jobs: int, threads: int, progress: Progress
    ) -> None:
        self.scope, self.study = scope, scope.part
        self.results, self.jobs, self.threads = results, jobs, threads
        self.progress = progress
        self.sharing: Sharing = Alone(results)
        self.kind: Kind = kind_named(self.study.kind)
        self.store = RecordStore(results / "runs")
        self.superseded = Superseded(self.store, progress.say)
        self.facts = Facts({})
        self.runs, self.pending = list[Run](), list[Run]()
        self._begun: dict[str, Details] = {}  # of the runs that have begun, by key
        # Of the runs that are recorded, by key.
        self.endings: dict[str, Ending] = {}
        self.already_recorded = 0
        # Whether study.json tells what is planned.
        self.described = False
        # Solvers whose warm-up was once cut short: compiling again cannot take as long.
        self.slow_to_compile: frozenset[str] = frozenset()
        # Why data could not be used, as runs found out that only then looked at them.
        self.data_errors: list[str] = []
        # Each raises what must end the study: a Ctrl-C, a results folder that is gone.
        self.looks: list[Callable[[], None]] = []
        self._environment = ""
        self._budget = canonical_json(self.study.budget.limits())

    def plan(self, executor: Executor) -> None:
        """Find out what the runs are."""
        self._environment = canonical_json(environment())
        self.facts = preflight(self.study, executor, self.progress.say, threads=self.threads)
        self.runs = self.kind.plan(self.study, self.facts)

    def prepare(self, command: str, whole_command: str, *, retry_failed: bool) -> None:
        """Write study.json, and find out what is recorded already."""
        self.check()
        before = described_before(
            self.results, self.study.name, self.store, self.progress.say, self.sharing.place
        )
        with storing(self.store.folder):
            self.store.folder.mkdir(exist_ok=True)
        self.looks.append(partial(check_folder_exists, self.store.folder))
        for folder in (self.results, self.store.folder):
            with storing(folder):
                for leftover in folder.glob(f"{UNFINISHED}*"):
                    leftover.unlink(missing_ok=True)
        now = self._description() | {"command": whole_command}
        write_description(self.results, merged(now, before, self.scope, self.results, command))
        self.described = True
        write_sources(self.results, self.facts.solvers.values())
        put_right(self.store, self.progress.say)
        self.superseded.take_apart(self.runs)
        for run in self.runs:
            self.check()
            self.superseded.restore(run)
            record = self.store.recorded(run.file_name, run.key, self.progress.say)
            if record is not None and not is_repeated(
                self.kind, self.study.budget, record, retry_failed=retry_failed
            ):
                self.endings[run.key] = Ending.of(self._kept(record, run))
                self.already_recorded += 1
            elif run.failure or run.skip_reason:
                self._write(self._record_without_run(run))
            else:
                self.pending.append(run)
        separate(self.store, (run.file_name for run in self.pending))
        self.pending = in_rounds(self.pending, self.study.name)
        if self.already_recorded:
            self.say_recorded(self.already_recorded, len(self.runs))
        self.superseded.tell()

    def say_recorded(self, recorded: int, planned: int) -> None:
        """Say how many runs need not be repeated."""
        self.progress.say(f"{recorded} of {planned} runs already recorded in {self.sharing.place}")

    def _description(self) -> dict[str, Any]:
        """What study.json says of what this command runs."""
        study = self.study
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": study.kind,
            "marginbench": version(),
            "name": study.name,
            "title": study.title or study.name,
            "description": study.description,
            "budget": study.budget.limits(),
            "jobs": self.jobs,
            "threads": self.threads,
            **self.kind.describe(study, self.facts),
            "planned": [planned_run(run) for run in self.runs],
        }

    def _kept(self, record: RecordBase, run: Run) -> RecordBase:
        """A record that was there before, with what was not known then.

        That is the comparison with a reference optimum, and in records of older schemas what the
        key is made of: the same today, as the key is.
        """
        self.superseded.replaced_by(record)
        current = self.kind.is_current(record, run)
        if current and record.version:
            return record
        record = replace(record)
        if not current:
            self.kind.complete(record, run)
        if not record.version:
            record.key_parts = run.known["key_parts"]
            record.version = content_version(run.known["version"])
        self.store.write(record)
        return record

    def run_pending(self, executor: Executor) -> None:
        """Run what is left; each record is written as soon as its run ends."""
        by_key = {run.key: run for run in self.pending}
        started: dict[str, str] = {}
        recorded = [(run, self.endings[run.key]) for run in self.runs if run.key in self.endings]
        self.progress.begin(self.pending, recorded)
        for event in self.sharing.execute(
            executor, self.pending, self._job, self._is_recorded, self.check
        ):
            if isinstance(event, Started):
                started[event.job.tag] = _now()
                self.progress.started(by_key[event.job.tag], event.machine)
            elif isinstance(event, Ended):
                run = by_key[event.job.tag]
                record = self._record_of(run, event.outcome)
                record.started_at = event.outcome.setting.get("started_at", started.pop(run.key))
                self._write(record)
                self.progress.ended(record)
            else:
                self.progress.refresh()

    def _is_recorded(self, run: Run) -> bool:
        """Whether the record that another command has just written of a run will do."""
        record = self.store.recorded(run.file_name, run.key, self.progress.say)
        if record is None or is_repeated(self.kind, self.study.budget, record, retry_failed=False):
            return False
        self.endings[run.key] = Ending.of(record)
        self.already_recorded += 1
        self.progress.recorded(run, record)
        return True

    def _job(self, run: Run) -> Job:
        limits = run.limits
        if run.solver in self.slow_to_compile:
            seconds = min(limits.seconds["compile"], limits.seconds["solve"])
            limits = replace(limits, seconds={**limits.seconds, "compile": seconds})
        details = self._begun[run.key] = run.details
        return Job(run.key, details.work, limits, self.threads, run.foreign)

    def _record_of(self, run: Run, outcome: Outcome) -> RecordBase:
        """The record of a run that was started.

        The scores and counts of a run that was killed are those of its last checkpoint; ``wall_s``
        is the time that the solver had been given by then.
        """
        if outcome.status == "timeout" and outcome.phase == "compile":
            self.slow_to_compile |= {run.solver}
        details = self._begun.pop(run.key)
        record = self._new_record(run, details)
        record.take(outcome.found)
        record.reason, record.traceback = outcome.reason, outcome.traceback
        record.trace = list(outcome.trace)
        record.peak_memory_mb = outcome.peak_memory_mb
        record.data_s, record.compile_s = outcome.data_s, outcome.compile_s
        record.evaluation_s = outcome.evaluation_s
        if outcome.status == "done":
            record.take(outcome.value)
        else:
            if outcome.status in ("timeout", "memory", "crashed"):
                record.status = outcome.status
            elif outcome.status == "data":
                self.data_errors.append(outcome.reason)
            if outcome.phase in ("solve", "evaluate"):
                record.wall_s = outcome.solve_s
            record.take_last_checkpoint()
        self.kind.complete(record, run)
        impossible = record.impossible
        if impossible:
            record = self._new_record(run, details)
            record.status = "wrong"
            record.reason = f"what came back cannot be recorded: {impossible}"
        record.take(outcome.setting)
        return record

    def _record_without_run(self, run: Run) -> RecordBase:
        """The record of a run that is skipped or cannot start."""
        record = self._new_record(run, run.details)
        record.started_at, record.reason = _now(), run.failure or run.skip_reason
        record.status = "failed" if run.failure else "skipped"
        self.kind.complete(record, run)
        return record

    def _new_record(self, run: Run, details: Details) -> RecordBase:
        """A record with all that is known before the run."""
        return self.kind.record(
            key=run.key,
            study=self.study.name,
            task=run.task,
            solver=run.solver,
            seed=run.seed,
            budget=self._budget,
            jobs=self.jobs,
            threads=self.threads,
            environment=self._environment,
            **details.known,
        )

    def _write(self, record: RecordBase) -> None:
        self.check()
        # What a solver raises may be of any length, and hold any characters.
        record.reason = visible(record.reason, REASON_LIMIT)
        record.traceback = visible_lines(record.traceback)
        self.sharing.written(record, self.store.write(record))
        self.superseded.replaced_by(record)
        self.endings[record.key] = Ending.of(record)

    def check(self) -> None:
        """Look for what must end the study, whatever it is doing."""
        for look in self.looks:
            look()

    def summary(self) -> RunSummary:
        """What became of the planned runs."""
        ended = [self.endings[run.key] for run in self.runs if run.key in self.endings]
        unloaded = (found for found in self.facts.datasets.values() if isinstance(found, str))
        return RunSummary(
            results=self.results,
            planned=len(self.runs),
            already_recorded=self.already_recorded,
            statuses=dict(Counter(ending.status for ending in ended)),
            unexpected=tuple(ending.failure for ending in ended if ending.failure),
            data_errors=tuple(dict.fromkeys([*unloaded, *self.data_errors])),
            part=self.scope.words(),
        )

    def interrupted_message(self, command: str) -> str:
        """How to continue."""
        if not self.runs:
            return "interrupted before the first run"
        done = f"{len(self.endings)} of {len(self.runs)} runs are recorded in {self.sharing.place}"
        again = f": {command}" if command else ""
        return f"interrupted; {done}; run the same command again to resume{again}"


def _now() -> str:
    """The time, ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
