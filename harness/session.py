"""Running a study of any kind: skip what is recorded, run the rest, keep each record at once."""

from __future__ import annotations

import contextlib
import json
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from filelock import FileLock, Timeout

from marginbench.data_loaders.atomic import UNFINISHED, replacing
from marginbench.harness.environment import environment, version
from marginbench.harness.errors import (
    EXIT_DATA,
    EXIT_OK,
    EXIT_RUNS,
    BusyError,
    InterruptedRunError,
    UserError,
)
from marginbench.harness.jobs import Ended, Executor, Job, Outcome, Started
from marginbench.harness.keys import canonical_json
from marginbench.harness.pool import LocalPool
from marginbench.harness.progress import Progress, SilentProgress
from marginbench.harness.recording import now
from marginbench.harness.records import EXPECTED_STATUSES, Recorded, RecordError, Store

_SCHEMA_VERSION = 1


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


class RunRecord(Recorded, Protocol):
    """What a session reads and fills in of a record."""

    study: str
    status: Any
    started_at: str
    jobs: int
    threads: int
    environment: str


class Planned(Protocol):
    """A run of a study: what identifies it, and the file of its record."""

    @property
    def key(self) -> str: ...

    @property
    def file_name(self) -> str: ...


class Described(Protocol):
    """What studies of every kind have."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def budget(self) -> Any: ...


RunT = TypeVar("RunT", bound=Planned)
RecordT = TypeVar("RecordT", bound=RunRecord)
StudyT = TypeVar("StudyT", bound=Described)


class Session(ABC, Generic[StudyT, RunT, RecordT]):
    """One call that runs a study.

    Parameters
    ----------
    study : Study or FeasibilityStudy
    store : Store
        Of records in ``results/runs``.
    results : Path
        The results folder.
    jobs : int
        Runs at the same time.
    threads : int
        Threads of numeric libraries per run.
    progress : Progress or None
        Shows what happens; nothing by default.

    Raises
    ------
    UserError
        If ``jobs`` is no positive number.
    """

    def __init__(
        self,
        study: StudyT,
        store: Store[RecordT],
        results: Path,
        *,
        jobs: int,
        threads: int,
        progress: Progress | None,
    ) -> None:
        if jobs < 1:
            raise UserError(f"the number of jobs must be at least 1, not {jobs}")
        self.study, self.store, self.results = study, store, results
        self.jobs, self.threads = jobs, threads
        self.progress = progress or SilentProgress()
        self.runs: list[RunT] = []
        self.pending: list[RunT] = []
        self.records: dict[str, RecordT] = {}
        self.already_recorded = 0
        self._environment = canonical_json(environment())

    def conduct(self, *, executor: Executor | None, command: str, retry_failed: bool) -> RunSummary:
        """Plan, and run what is not recorded already.

        Parameters
        ----------
        executor : Executor or None
            Where to run; None: worker processes on this machine.
        command : str
            The command line that reproduces this, for the report.
        retry_failed : bool
            Run again what did not go as planned.

        Raises
        ------
        UserError
            If the study or the results folder is not usable.
        InterruptedRunError
            If the user interrupts; what was recorded stays.
        """
        with exclusive(self.results), contextlib.ExitStack() as stack:
            if executor is None:
                executor = stack.enter_context(LocalPool(self.jobs, self.results / "logs"))
            try:
                self.runs = self._plan(executor)
                self._prepare(command, retry_failed=retry_failed)
                self._run_pending(executor)
            except KeyboardInterrupt:
                executor.close()
                raise InterruptedRunError(self._interrupted_message(command)) from None
            finally:
                self.progress.close()
            return self._summary()

    @abstractmethod
    def _plan(self, executor: Executor) -> list[RunT]:
        """Every run of the study."""

    @abstractmethod
    def _description(self) -> dict[str, Any]:
        """What study.json says beside what all kinds of studies say."""

    @abstractmethod
    def _again(self, record: RecordT, *, retry_failed: bool) -> bool:
        """Whether a recorded run is to be run again."""

    @abstractmethod
    def _job(self, run: RunT) -> Job:
        """The run as a worker gets it; asked for when its turn comes."""

    @abstractmethod
    def _record_of(self, run: RunT, outcome: Outcome) -> RecordT:
        """The record of a run that was started."""

    @abstractmethod
    def _line(self, record: RecordT) -> str:
        """A finished run in one line."""

    @abstractmethod
    def _data_errors(self) -> Iterable[str]:
        """Why datasets could not be loaded."""

    def _without_run(self, run: RunT) -> RecordT | None:
        """The record of a run that is not to be started; None if it is."""
        return None

    def _kept(self, record: RecordT, run: RunT) -> RecordT:
        """A record that was there before, brought up to date."""
        return record

    def _begin(self, pending: Sequence[RunT]) -> None:
        """Show that these runs are to be run now."""

    def _started(self, run: RunT) -> None:
        """Show that a run has started."""

    def _ended(self, record: RecordT) -> None:
        """Show that a run has ended."""

    def _prepare(self, command: str, *, retry_failed: bool) -> None:
        """Write study.json, and find out what is recorded already."""
        path = self.results / "study.json"
        self._check_same_study(path)
        for leftover in self.store.folder.glob(f"{UNFINISHED}*"):
            leftover.unlink(missing_ok=True)
        study = self.study
        shared = {
            "schema_version": _SCHEMA_VERSION,
            "marginbench": version(),
            "name": study.name,
            "title": study.title or study.name,
            "description": study.description,
            "budget": study.budget.model_dump(),
            "jobs": self.jobs,
            "threads": self.threads,
            "command": command,
        }
        _write_json(path, shared | self._description())
        for run in self.runs:
            record = self.store.recorded(run.file_name, run.key, self.progress.say)
            if record is not None and not self._again(record, retry_failed=retry_failed):
                self.records[run.key] = self._kept(record, run)
                self.already_recorded += 1
            elif (record := self._without_run(run)) is not None:
                self._write(record)
            else:
                self.pending.append(run)
        # Neighbours in time must not be neighbours in the plan: machines drift.
        random.Random(study.name).shuffle(self.pending)
        if self.already_recorded:
            self.progress.say(
                f"{self.already_recorded} of {len(self.runs)} runs already recorded in "
                f"{self.results}"
            )

    def _check_same_study(self, path: Path) -> None:
        """A folder keeps the runs of one study: its page would lose those of another."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))["name"]
        except (OSError, ValueError, KeyError, TypeError):
            # None yet, or a damaged one, which is written anew; then the records tell.
            known = (item.study for item in self.store.scan() if not isinstance(item, RecordError))
            found = next(known, self.study.name)
        if found != self.study.name:
            raise UserError(
                f"{self.results}: holds the study {found!r}; choose another --out for "
                f"{self.study.name!r}"
            )

    def _run_pending(self, executor: Executor) -> None:
        """Run what is left; each record is written as soon as its run ends."""
        by_key = {run.key: run for run in self.pending}
        started: dict[str, str] = {}
        self._begin(self.pending)
        # Jobs are made one by one: their limits may depend on what has happened so far.
        for event in executor.execute(self._job(run) for run in self.pending):
            if isinstance(event, Started):
                started[event.job.tag] = now()
                self._started(by_key[event.job.tag])
            elif isinstance(event, Ended):
                run = by_key[event.job.tag]
                record = self._record_of(run, event.outcome)
                record.started_at = started[run.key]
                self._write(record)
                self._ended(record)
            else:
                self.progress.refresh()

    def _write(self, record: RecordT) -> None:
        record.jobs, record.threads, record.environment = self.jobs, self.threads, self._environment
        self.store.write(record)
        self.records[record.key] = record

    def _summary(self) -> RunSummary:
        """What became of the planned runs."""
        ended = [self.records[run.key] for run in self.runs if run.key in self.records]
        return RunSummary(
            results=self.results,
            planned=len(self.runs),
            already_recorded=self.already_recorded,
            statuses=dict(Counter(record.status for record in ended)),
            unexpected=tuple(
                self._line(record) for record in ended if record.status not in EXPECTED_STATUSES
            ),
            data_errors=tuple(dict.fromkeys(self._data_errors())),
        )

    def _interrupted_message(self, command: str) -> str:
        """How to continue."""
        if not self.runs:
            return "interrupted before the first run"
        done = f"{len(self.records)} of {len(self.runs)} runs are recorded in {self.results}"
        again = f": {command}" if command else ""
        return f"interrupted; {done}; the same command continues{again}"


def _write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=repr) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as sink:
            sink.write(text.encode())
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from None


@contextlib.contextmanager
def exclusive(results: Path) -> Iterator[None]:
    """Nobody else writes to the results folder meanwhile.

    Raises
    ------
    UserError
        If it is no folder, cannot be written to, or another run is writing there.
    """
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
