"""A command from start to end: plan, skip what is recorded, run the rest, keep each record."""

from __future__ import annotations

import contextlib
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ..environment import environment, version
from ..errors import (
    EXIT_DATA,
    EXIT_OK,
    EXIT_RUNS,
    InterruptedRunError,
    RecordError,
    StorageError,
    UserError,
)
from ..hashing import canonical_json
from ..interrupts import interrupts_deferred
from ..jobs import Ended, Event, Executor, Job, Outcome, Started, Waiting
from ..planning.manifest import Scope, merged
from ..planning.plan import Kind, Run, in_rounds, kind_named, reusable
from ..planning.preflight import (
    Facts,
    keep_facts,
    preflight,
    read_facts,
    sources_of,
)
from ..planning.report import Preview, preview as preview_study
from ..results.description import (
    SCHEMA_VERSION,
    Cell,
    DamagedDescriptionError,
    planned_keys,
    read_description,
    write_description,
)
from ..results.journal import Entry, Journal, failure_line, runs_table
from ..results.records import EXPECTED_STATUSES, RecordBase
from ..results.stores import is_url, local_folder, synced
from ..storage import storing
from ..study.model import StudyBase, StudyFile
from ..study.select import of_its_own, select
from ..study.toml import completed_study, load_study
from ..words import REASON_LIMIT, plural, visible, visible_lines
from .cluster import Engine
from .local import LocalPool, check_can_run, check_jobs, one_worker
from .progress import JsonProgress, PlainProgress, Progress, choose_progress

#: The most seconds between two looks at what other commands have written; a look rests so many
#: times what it takes.
LOOK_S, LOOK_REST = 10.0, 50
#: The same of exchanges with a store, which rest at least so many seconds.
EXCHANGE_S, EXCHANGE_REST = 0.5, 10
# Seconds between two looks while the runs of other commands are waited for.
_WAIT_S = 0.5
#: What is run where no study is named.
_DEFAULT = "quickstart"


@dataclass(frozen=True, repr=False)
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
    part : str
        How much of the study this was, as "1 of 3 tasks"; empty for all of it.
    store : str
        The URL of the results, if they are in a store; ``results`` is then their mirror here.
    changed : bool
        Whether anything was recorded or planned anew.
    """

    results: Path
    planned: int
    already_recorded: int
    statuses: dict[str, int]
    unexpected: tuple[str, ...] = ()
    data_errors: tuple[str, ...] = ()
    part: str = ""
    store: str = ""
    changed: bool = True

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.statuses.items())
        runs = f"{sum(self.statuses.values())} of {self.planned} runs"
        return f"{type(self).__name__}({str(self.results)!r}: {runs}; {counts})"

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON takes it."""
        return {
            "results": self.store or str(self.results),
            "planned": self.planned,
            "already_recorded": self.already_recorded,
            "statuses": dict(self.statuses),
            "failures": list(self.unexpected),
            "data_errors": list(self.data_errors),
            "part": self.part,
        }

    @property
    def exit_code(self) -> int:
        """3 if data could not be loaded, else 1 if a run did not go as planned, else 0."""
        if self.data_errors:
            return EXIT_DATA
        return EXIT_RUNS if self.unexpected else EXIT_OK


def run(
    study: str | Path | StudyBase | None = None,
    out: str | Path | None = None,
    *,
    datasets: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
    seeds: int | None = None,
    timeout: float | None = None,
    where: str | None = None,
    jobs: int = 1,
    retry_failed: bool = False,
    command: str = "",
    quiet: bool = False,
    log_json: bool = False,
    engine: Engine | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> RunSummary:
    """Run a study and record every run; what is recorded already is not repeated.

    Several commands may run a study in one folder or store at the same time: they share the work.

    Parameters
    ----------
    study : str, Path or StudyBase, optional
        A study that ships with marginbench, a TOML file, or a study as an object. By default the
        quickstart; with other ``datasets`` than its own, a study of these alone, with a name of its
        own and with all defaults.
    out : str or Path, optional
        The results folder or the URL of one; ``results/NAME`` by default.
    datasets, solvers : sequence of str, optional
        Only these tasks and solvers, or known others in their place.
    seeds : int, optional
        Number of seeds.
    timeout : float, optional
        Seconds of solving that each run may take.
    where : str, optional
        Only runs for which this expression holds, such as ``C == 10 and solver != "SBP"``.
    jobs : int
        Runs at the same time. More than one disturbs the timings.
    retry_failed : bool
        Run again what did not go as planned.
    command : str
        The command line that runs this.
    quiet : bool
        Show nothing while it runs.
    log_json : bool
        Write what happens to the error stream, one JSON object an event, instead of showing it.
    engine : Engine, optional
        Where to run: :func:`.cluster.chosen_engine` makes one; worker
        processes on this machine by default.
    meanwhile : callable
        Done while the first worker starts, as there is nothing else to do, unless something is
        recorded already.

    Returns
    -------
    RunSummary
        How the runs ended, and ``results``, the folder; for a URL the mirror on this machine.

    Raises
    ------
    UserError
        If the study, a solver or the results folder is not usable.
    StorageError
        If a file or a store cannot be written to; what was recorded stays on this machine.
    InterruptedRunError
        If the user interrupts; what was recorded stays.
    """
    whole, chosen = _chosen(study, datasets, solvers, seeds, timeout, where)
    progress = Progress() if quiet else choose_progress(jobs)
    if log_json:
        progress = JsonProgress(jobs, sys.stderr)
    folder = Path("results") / chosen.name if out is None else out
    store, here = (str(folder) if is_url(folder) else ""), (Path(folder), None)
    mirror = synced(store, progress.say) if store else contextlib.nullcontext(here)
    with mirror as (results, exchange):
        summary = run_study(
            chosen,
            results,
            jobs=jobs,
            retry_failed=retry_failed,
            command=command,
            whole=whole,
            progress=progress,
            engine=engine,
            exchange=exchange,
            shown=store,
            meanwhile=meanwhile,
        )
    return replace(summary, store=store)


def preview(
    study: str | Path | StudyBase | None = None,
    out: str | Path | None = None,
    *,
    jobs: int = 1,
    retry_failed: bool = False,
    quiet: bool = False,
    **selection: Any,
) -> Preview:
    """Find out what :func:`run` would do with the same arguments; nothing is run or written."""
    _, chosen = _chosen(study, **selection)
    progress = Progress() if quiet else PlainProgress(jobs, sys.stderr)
    check_jobs(jobs)
    results = local_folder(out or Path("results") / chosen.name, is_new=True)
    with one_worker() as worker:
        return preview_study(
            chosen, results, worker, progress.say, jobs=jobs, retry_failed=retry_failed
        )


def _chosen(
    study: str | Path | StudyBase | None,
    datasets: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
    seeds: int | None = None,
    timeout: float | None = None,
    where: str | None = None,
) -> tuple[StudyBase, StudyBase]:
    """The whole study, and what is run of it."""
    if not isinstance(study, StudyBase):
        loaded = load_study(_DEFAULT if study is None else study)
    else:
        loaded = completed_study(study, StudyFile("study"))
    whole = select(loaded, timeout=timeout)
    labels = {task.label for task in whole.tasks}
    tasks = select(whole, datasets=datasets).tasks
    if study is None and not labels.issuperset(task.label for task in tasks):
        whole = of_its_own(whole, tasks, solvers)
        whole = select(whole, seeds=seeds, timeout=timeout)
        return whole, select(whole, where=where)
    return whole, select(whole, datasets=datasets, solvers=solvers, seeds=seeds, where=where)


def run_study(study: StudyBase, results: Path, **options: Any) -> RunSummary:
    """Run a study as an object in a folder, as :func:`run` does, with the fields of a StudyRun."""
    return StudyRun(study, results, **options).run()


@dataclass
class StudyRun:
    """A study that is run in a folder; also the executor with which it plans.

    ``whole`` is the study of which this is a part: what was planned of its other parts stays
    planned. ``executor`` plans and runs, by default worker processes on this machine. ``exchange``
    fetches what commands on other machines have written to the journal, and passes on what this one
    has: it is called before planning, at most every ten seconds while runs go on, and at the end.
    ``shown`` is the results folder in messages.
    """

    study: StudyBase
    results: Path
    jobs: int = 1
    retry_failed: bool = False
    command: str = ""
    whole: StudyBase | None = None
    progress: Progress = field(default_factory=Progress)
    executor: Executor | None = None
    engine: Engine | None = None
    exchange: Callable[[], None] | None = None
    shown: str = ""
    meanwhile: Callable[[], None] | None = None

    def run(self) -> RunSummary:
        """Plan it, do what is left, and say what became of it."""
        check_jobs(self.jobs)
        if self.executor is None:
            check_can_run()  # before there is a results folder
        if self.results.exists() and not self.results.is_dir():
            raise UserError(f"{self.results}: is not a folder; choose another --out")
        with storing(self.results, "allow writing there or choose another --out"):
            self.results.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            self._check_interrupt = stack.enter_context(interrupts_deferred())
            if self.executor is None:
                logs = stack.enter_context(tempfile.TemporaryDirectory(prefix="marginbench-"))
                self.executor = stack.enter_context(LocalPool(self.jobs, Path(logs)))
            self._begin()
            stack.callback(self.journal.close, quietly=True)
            stack.callback(self.progress.close)
            try:
                if self.engine is not None:
                    self.engine.check()
                self._plan()
                self._prepare()
                if self.engine is not None and self.pending:
                    self.executor = stack.enter_context(self.engine.opened(self.progress.say))
                self._run_pending()
                self._refresh_journal(now=True)
                summary = self._summary()
                self.journal.close()
                if summary.changed:
                    runs_table(self.results, self.kind.record, write=True)
                self._check_interrupt()
                return summary
            except KeyboardInterrupt:
                self.close()
                message = "interrupted before the first run"
                if self.runs:
                    done = f"{len(self.recorded)} of {len(self.runs)} runs are recorded"
                    message = f"interrupted; {done} in {self.shown}; run the same command again"
                    message += " to resume"
                    if self.command and self.engine is None:
                        message += f": {self.command}"
                until_then = self._summary() if self.described else None
                raise InterruptedRunError(message, until_then) from None

    def _begin(self) -> None:
        self.scope = Scope(self.whole or self.study, self.study)
        self.kind: Kind = kind_named(self.study.kind)
        self.journal, self.shown = Journal(self.results), self.shown or str(self.results)
        self.facts = Facts({})
        self.runs, self.pending = list[Run](), list[Run]()
        # The records that count, by key, and those that are to be replaced.
        self.recorded, self._repeated = dict[str, Entry](), dict[str, Entry]()
        self.already_recorded = 0
        self.described = False  # whether study.json tells what is planned
        self._is_planned_anew = False
        self._budget = canonical_json(self.study.budget.limits())
        self._running_elsewhere = frozenset[str]()
        # When runs began, by key; of those at work.
        self._begun = dict[str, str]()
        self._next_look = self._next_exchange = 0.0
        # Why runs could not use their data, where only they read them.
        self._data_errors = list[str]()

    @cached_property
    def _environment(self) -> str:
        return canonical_json(environment())

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run jobs; raises whatever must end the study."""
        self.check()
        assert self.executor is not None
        for event in self.executor.execute(jobs):
            self.check()
            if isinstance(event, Ended) and event.outcome.status == "storage":
                raise StorageError(event.outcome.reason)  # not about the job
            if isinstance(event, Waiting):
                self.progress.refresh(event.phases)
                # Not when the first job starts: others may be about to.
                if self.meanwhile is not None and not self.journal.entries:
                    meanwhile, self.meanwhile = self.meanwhile, None
                    meanwhile()
            yield event
        self.check()

    def close(self) -> None:
        """Stop what runs."""
        if self.executor is not None:
            self.executor.close()

    def check(self) -> None:
        """Raise if the study must end: after Ctrl-C, or if the results folder is gone."""
        self._check_interrupt()
        self.journal.check_exists()

    def _plan(self) -> None:
        """Set the runs and the facts of the study that they are made from."""
        self.check()
        sources = sources_of(self.study)
        # Not to plan twice where runs are left.
        kept = read_facts(self.results, sources) if self.journal.is_complete else None
        if kept is not None:
            self.facts, self.runs = kept, self.kind.plan(self.study, kept)
            if all(
                (entry := self._reusable(run, retry_failed=self.retry_failed)) is not None
                and self.kind.is_current(entry, run)
                for run in self.runs
            ):
                return
        self.facts = preflight(self.study, self, self.progress.say)
        self.runs = self.kind.plan(self.study, self.facts)
        keep_facts(self.results, sources, self.facts)

    def _reusable(self, run: Run, *, retry_failed: bool = False) -> Entry | None:
        entry = self.journal.recorded(run.key)
        return reusable(self.study.budget, entry, retry_failed=retry_failed)

    def _prepare(self) -> None:
        """Write study.json, which has the plan, and read what is recorded already."""
        with self.journal.planning():
            self._refresh_journal(now=True)
            described = self._described()
            not_run, incomplete = list[Run](), list[tuple[Run, RecordBase]]()
            for run in self.runs:
                self.check()
                entry = self._reusable(run, retry_failed=self.retry_failed)
                if entry is None and (repeated := self.journal.recorded(run.key)) is not None:
                    self._repeated[run.key] = repeated
                record = None
                if entry is not None and not self.kind.is_current(entry, run):
                    with contextlib.suppress(RecordError):
                        record = self.journal.load(entry)
                        incomplete.append((run, record))
                    entry = entry if record else None
                if entry is not None:
                    self.recorded[run.key] = entry
                    self.already_recorded += 1
                else:
                    waits = not (run.failure or run.skip_reason)
                    (self.pending if waits else not_run).append(run)
            self._report_changes(planned_keys(described))
            if self.pending or not_run:
                self.journal.begin()
                for info in self.facts.solvers.values():
                    self.journal.append_source(info.source_hash, info.files)
            self._is_planned_anew = write_description(self.results, described)
            self.described = True
        for run, record in incomplete:
            # Only the comparison with a reference optimum is missing.
            self.kind.complete(record, run)
            self._write(record)
        for run in not_run:
            self._write(self._record_without_run(run))
        # A command that is alone has the same order each time, others each their own. On a store
        # it cannot know.
        is_alone = self.exchange is None and not self.journal.others()
        order = self.study.name if is_alone else secrets.token_hex()
        self.pending = in_rounds(self.pending, order)
        if self.already_recorded:
            self.progress.say(
                f"{self.already_recorded} of {len(self.runs)} runs already recorded in {self.shown}"
            )

    def _described(self) -> dict[str, Any]:
        """The content of study.json: this command's runs and those that were planned before."""
        study, before = self.study, None
        try:
            before = read_description(self.results)
        except DamagedDescriptionError as error:
            self.progress.say(str(error))
        name = study.name if before is None else before["name"]
        if name != study.name:
            raise UserError(
                f"{self.results}: holds the study {name!r}; choose another --out for {study.name!r}"
            )
        now = {
            "schema_version": SCHEMA_VERSION,
            "kind": study.kind,
            "marginbench": version(),
            "name": study.name,
            "title": study.title or study.name,
            "description": study.description,
            "budget": study.budget.limits(),
            "jobs": self.jobs,
            "threads": 1,
            **self.kind.describe(study, self.facts),
            "planned": [
                {"key": run.key, "task": run.task, "solver": run.solver, "seed": run.seed}
                | ({"failed": True} if run.failure else {})
                for run in self.runs
            ],
            "command": self.command,
        }
        content = self.scope.content(self.results)
        return merged(now, before, self.scope.whole, content)

    def _report_changes(self, plan: dict[Cell, str]) -> None:
        """Say which lines are damaged, and whether records of another version count now."""
        for damage in self.journal.damages:
            remedy = "the run is done again" if damage.key else "what it held is done again"
            if self.journal.recorded(damage.key):
                remedy = "another line has its run"
            self.progress.say(f"{damage}; {remedy}")
        changed = [
            (before, plan[cell])
            for cell, before in self.journal.plan.items()
            if plan.get(cell, before) != before
        ]
        for keys, words in (
            ([before for before, _ in changed], "of other versions or settings no longer count"),
            ([now for _, now in changed], "of this version count again"),
        ):
            count = sum(self.journal.recorded(key) is not None for key in keys)
            if count:
                self.progress.say(f"{plural(count, 'record')} {words}")

    def _run_pending(self) -> None:
        """Run what is left; each record is written as soon as its run ends."""
        by_key = {run.key: run for run in self.pending}
        recorded = [(run, self.recorded[run.key]) for run in self.runs if run.key in self.recorded]
        self.progress.begin(self.pending, recorded)
        left, announced = self.pending, False
        while left:
            others: list[Run] = []
            for event in self.execute(self._jobs(left, others)):
                self._refresh_journal()
                if isinstance(event, Started):
                    self.progress.started(by_key[event.job.tag], event.machine)
                elif isinstance(event, Ended):
                    run = by_key[event.job.tag]
                    record = self._record_of(run, event.outcome)
                    self._write(record)
                    self.progress.ended(record)
            if others and len(others) == len(left):
                if not announced:
                    self.progress.say(f"waiting for {plural(len(others), 'run')} of other commands")
                announced = True
                time.sleep(_WAIT_S)
                self.check()
                self.progress.refresh()
                self._next_look = 0.0
            left = others

    def _jobs(self, runs: Sequence[Run], others: list[Run]) -> Iterator[Job]:
        """The jobs of runs that no other command has recorded; those begun there go to others."""
        # One by one: what is left to do, and limits, depend on what has happened so far.
        for run in runs:
            self._refresh_journal()
            if self._recorded_elsewhere(run):
                continue
            if run.key in self._running_elsewhere:
                others.append(run)
                continue
            self.journal.append_start(run.key, run.cell)
            self._begun[run.key] = _now()
            yield Job(run.key, run.work, run.limits, run.foreign)

    def _refresh_journal(self, *, now: bool = False) -> None:
        """Exchange and read what other commands have written, if it is time."""
        began = time.monotonic()
        if self.exchange is not None and (now or began >= self._next_exchange):
            self.exchange()
            ended = time.monotonic()
            rest = max(EXCHANGE_S, EXCHANGE_REST * (ended - began))
            self._next_exchange = ended + min(LOOK_S, rest)
        if now or began >= self._next_look:
            began = time.monotonic()
            self.journal.refresh()
            self._running_elsewhere = frozenset(s.key for s in self.journal.running())
            ended = time.monotonic()
            self._next_look = ended + min(LOOK_S, LOOK_REST * (ended - began))

    def _recorded_elsewhere(self, run: Run) -> bool:
        """Whether another command has recorded a run since it was planned."""
        entry = self._reusable(run)
        if entry is None or entry == self._repeated.get(run.key):
            return False
        self.recorded[run.key] = entry
        self.already_recorded += 1
        self.progress.recorded(run, entry)
        return True

    def _record_of(self, run: Run, outcome: Outcome) -> RecordBase:
        """The record of a run that was started.

        The scores and counts of a run that was killed are those of its last checkpoint; ``wall_s``
        is the solver's time until then.
        """
        setting = {"started_at": self._begun.pop(run.key), **outcome.setting}
        told = {"reason": outcome.reason, "traceback": outcome.traceback, "trace": outcome.trace}
        record = self._new_record(run, **setting, **told)
        record.take(outcome.columns)
        if outcome.status == "done":
            record.take(outcome.value)
        else:
            if outcome.status in ("timeout", "memory", "crashed"):
                record.status = outcome.status
            elif outcome.status == "data":
                self._data_errors.append(outcome.reason)
            if outcome.phase in ("solve", "evaluate"):
                record.wall_s = outcome.solve_s
            record.take_last_checkpoint()
        self.kind.complete(record, run)
        if impossible := record.impossible:
            reason = f"what came back cannot be recorded: {impossible}"
            record = self._new_record(run, **setting, status="wrong", reason=reason)
        return record

    def _record_without_run(self, run: Run) -> RecordBase:
        """The record of a run that is skipped or cannot start."""
        status, reason = ("failed", run.failure) if run.failure else ("skipped", run.skip_reason)
        record = self._new_record(run, started_at=_now(), status=status, reason=reason)
        self.kind.complete(record, run)
        return record

    def _new_record(self, run: Run, **values: Any) -> RecordBase:
        """A record with these columns and those that are decided before the run."""
        here = {"jobs": self.jobs, "environment": self._environment}
        return self.kind.record(
            key=run.key,
            study=self.study.name,
            task=run.task,
            solver=run.solver,
            seed=run.seed,
            budget=self._budget,
            **{**here, **run.columns, **values},
        )

    def _write(self, record: RecordBase) -> None:
        self.check()
        # What a solver raises may be of any length, and hold any characters.
        record.reason = visible(record.reason, REASON_LIMIT)
        record.traceback = visible_lines(record.traceback)
        self.recorded[record.key] = self.journal.append_record(record)

    def _summary(self) -> RunSummary:
        """What became of the planned runs."""
        ended = [self.recorded[run.key] for run in self.runs if run.key in self.recorded]
        unloaded = (reason for reason in self.facts.datasets.values() if isinstance(reason, str))
        return RunSummary(
            results=self.results,
            planned=len(self.runs),
            already_recorded=self.already_recorded,
            statuses=dict(Counter(entry.status for entry in ended)),
            unexpected=tuple(
                failure_line(entry) for entry in ended if entry.status not in EXPECTED_STATUSES
            ),
            data_errors=tuple(dict.fromkeys([*unloaded, *self._data_errors])),
            part=self.scope.words(),
            changed=self.journal.has_grown or self._is_planned_anew,
        )


def _now() -> str:
    """The time, ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
