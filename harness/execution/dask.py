"""Runs on the workers of a Dask cluster, one at a time on each.

Planning and recording stay with the command. Each Dask worker that joins describes its machine. If
its code and libraries are those of the command, it gets one run after the other, in a pool of one
slot of its own, with the limits and the judging of a local run. The run of a worker that is lost,
or that lacks something, goes to another one. Jobs and outcomes travel as bytes, with the files of
the user's solver.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import pickle
import platform
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from dask import config
from distributed import Client, Future, Worker, WorkerPlugin, get_worker

from ...data_loaders.atomic import replacing
from ...solvers.registration import entries
from ..environment import environment, version
from ..errors import EngineError, SolverError, StorageError, first_line
from ..hashing import canonical_json
from ..jobs import Ended, Event, Job, Outcome, Started, Waiting
from ..loading import SolverSpec
from ..planning.fingerprint import (
    files_beside,
    kernel_code,
    numeric_versions,
    project_code,
)
from ..storage import storing
from ..words import plural
from .local import LocalPool

# Seconds between two looks at the scheduler, until it must answer, and for a last word.
_POLL, _ANSWER, _FAREWELL = 0.1, 15.0, 5.0
# Seconds without a usable worker until the user is told, and until unfit ones end the command.
_A_MOMENT, _NONE_FITS = 3.0, 10.0
# Seconds without another worker after which those that are there seem to be all: of a cluster that
# runs, and of one whose workers wait in a queue.
_SETTLED, _SETTLED_QUEUE = 5.0, 60.0
# Of the plugin that holds a worker's slot. The folder has no name of a module: Dask looks for them
# in the scratch folder of a worker.
_NAME, _FOLDER = "marginbench", ".marginbench"
# States of a task, as the Dask worker sees it, of which the result is still wanted.
_WANTED = ("executing", "long-running")


# What is the same on both sides.


def program() -> dict[str, str]:
    """What decides the numbers of a run besides its job: versions, and a hash of the code."""
    return {"marginbench": version(), "code": project_code(), **numeric_versions()}


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """How the program of a worker differs, in words; empty if its runs have the same keys."""
    for name, wanted in here.items():
        theirs = there.get(name, "none")
        if theirs != wanted and name == "code":
            return f"has other code of marginbench {here['marginbench']} than the command"
        if theirs != wanted:
            return f"has {name} {theirs}, the command has {wanted}"
    return ""


@dataclass(frozen=True)
class Machine:
    """Where a worker runs: the name of its host, and what is recorded with every run."""

    name: str
    environment: dict[str, Any]

    @property
    def model(self) -> tuple[str, int, int]:
        """Processor, cores and memory in GB: machines of one model are timed together."""
        setting = self.environment
        # What firmware keeps for itself differs by some megabytes.
        return setting["processor"], setting["cores_logical"], round(setting["memory_mb"] / 1000)


@dataclass(frozen=True)
class PackedJob:
    """A job with the user's file of its solver, and the modules beside that.

    Data do not travel: a worker loads them as a local run would, and compares their fingerprint.
    Neither do installed packages nor kernels in files: ``needs`` says what must be the same there,
    in words, and its version.
    """

    job: Job
    file: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)

    def unpacked(self, folder: Path) -> Job:
        """The job as it can be done here; the user's files go to a folder named by their content.

        SolverError if something that it needs is missing or differs.
        """
        work: Any = self.job.work
        here = needs_of(work)
        for what, wanted in self.needs.items():
            if here.get(what) != wanted:
                raise SolverError(f"{what} is missing or not that of the command; install the same")
        if not self.file:
            return self.job
        digest = hashlib.sha256(pickle.dumps(sorted(self.files.items()))).hexdigest()
        target = folder / digest[:32]
        for name, content in self.files.items():
            path = target / name
            with storing(path):
                # A run before may have changed it.
                if not path.is_file() or path.read_bytes() != content:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with replacing(path) as sink:
                        sink.write(content)
        name = f"{target / self.file}:{work.solver.rpartition(':')[2]}"
        return replace(self.job, work=replace(work, solver=name))


def packed(job: Job, files: dict[str, dict[str, bytes]]) -> PackedJob:
    """A job with all that it needs; ``files`` keeps those of each solver, which are read once."""
    work: Any = job.work
    path, needs = SolverSpec.parse(work.solver).path, needs_of(work)
    for what in needs:
        if what.startswith("the kernel "):
            needs[what] = work.problem.kernel_code  # as it was planned with
    if path is None:
        return PackedJob(job, needs=needs)
    if work.solver not in files:
        try:
            content = {name: file.read_bytes() for name, file in files_beside(path).items()}
        except OSError as error:
            raise SolverError(f"{path}: its code cannot be read ({error})") from None
        files[work.solver] = content
    return PackedJob(job, path.name, files[work.solver], needs)


def needs_of(work: Any) -> dict[str, str]:
    """What of this machine enters the key of a run besides the program, with its version."""
    needs, named, spec = dict[str, str](), dict[str, str](), SolverSpec.parse(work.solver)
    problem: Any = getattr(work, "problem", None)
    if getattr(problem, "kernel_code", ""):
        named[f"the kernel {problem.kernel['name']}"] = problem.kernel["name"]
    if spec.module is not None:
        named[f"the module {spec.module}"] = work.solver
    for what, name in named.items():
        needs[what] = ""
        with contextlib.suppress(SolverError):  # there is none here
            needs[what] = kernel_code(name)
    entry = entries().get(spec.registry_name or "")
    if entry is not None and entry.module.startswith("marginbench.solvers.peers."):
        package = getattr(getattr(import_module(entry.module), spec.class_name), "requires", "")
        with contextlib.suppress(metadata.PackageNotFoundError):
            needs |= {f"the package {package}": metadata.version(package)} if package else {}
    return needs


# What a Dask worker does.


class Slot(WorkerPlugin):  # type: ignore[misc]
    """The room for one run in a Dask worker, below its scratch folder; it is closed with it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER
        self._pool: LocalPool | None = None
        # Several commands may meet here.
        self._turn = threading.Lock()
        self._closing = threading.Event()
        # The nanny of a Dask worker sets it for Dask's own sake; it would slow a run's allocations.
        os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)

    async def teardown(self, worker: Worker) -> None:
        """Kill what runs; the Dask worker ends."""
        self._closing.set()
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End the local worker processes once no job needs them."""
        with self._turn:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def do(self, packed_job: PackedJob, is_wanted: Callable[[], bool]) -> Outcome | None:
        """Run a job; None if it was killed because nobody wanted it any more."""
        with self._turn:
            job = packed_job.unpacked(self._folder / "solvers")
            if self._pool is None:
                self._pool = LocalPool(1, self._folder / "logs")
            with contextlib.closing(self._pool.execute(iter([job]))) as events:
                for event in events:
                    if isinstance(event, Ended):
                        return event.outcome
                    if self._closing.is_set() or not is_wanted():
                        break
        return None


async def welcome(ours: dict[str, str], dask_worker: Worker) -> Machine | str:
    """Make a Dask worker ready for runs and describe it, or say how its program differs."""
    machine = Machine(platform.node(), await asyncio.to_thread(environment))
    if differs := difference(ours, await asyncio.to_thread(program)):
        return f"{machine.name} {differs}"
    if _NAME not in dask_worker.plugins:
        await dask_worker.plugin_add(Slot(Path(dask_worker.local_directory)), name=_NAME)
    return machine


def execute(packed_job: bytes) -> bytes:
    """A task: run a pickled PackedJob. It raises nothing; the scheduler unpickles nothing.

    It answers with the outcome, and whether the worker lacks something for the job, so that another
    one may succeed.
    """
    worker = get_worker()
    slot: Slot = worker.plugins[_NAME]
    key, started_at = worker.get_current_task(), datetime.now(UTC).isoformat(timespec="seconds")

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state in _WANTED

    refused = True
    try:
        outcome = slot.do(pickle.loads(packed_job), is_wanted)
        refused = outcome is not None and outcome.status in ("data", "storage")
    except StorageError as error:
        outcome = Outcome("storage", reason=str(error))
    except Exception as error:  # noqa: BLE001 - whatever is wrong with this worker
        outcome = Outcome("failed", reason=f"{platform.node()}: {first_line(error)}")
    outcome = outcome or Outcome("crashed", reason="nobody wanted it any more")
    outcome.setting["started_at"] = started_at
    return pickle.dumps((outcome, refused))


async def dismiss(dask_worker: Worker) -> None:
    """End the local worker processes of a Dask worker, unless another command uses them."""
    slot = dask_worker.plugins.get(_NAME)
    if slot is not None and not dask_worker.state.executing:
        await asyncio.to_thread(slot.close)


# What the command does.


@dataclass(eq=False)
class _Run:
    """A job on its way to an outcome."""

    job: Job
    future: Future | None = None
    lost: list[str] = field(default_factory=list)  # machines whose workers were lost with it


@dataclass(eq=False)
class _Worker:
    """A worker that is there."""

    address: str
    machine: Machine | None = None  # of one that is ready and has the same program
    unused: str = ""  # why it gets no runs
    run: _Run | None = None


class DaskExecutor:
    """Runs jobs on the workers of a Dask cluster, one at a time on each.

    What happens elsewhere comes as functions in a queue, which the caller's thread calls: nothing
    else changes what is kept here. ``security`` is what a cluster that was started here asks of its
    clients, and ``expected`` how many workers are to come, if it is known. With ``timing`` only
    machines of one model are used, each for one run at a time.

    It is an EngineError if no scheduler answers there.
    """

    def __init__(
        self,
        address: str,
        say: Callable[[str], None],
        *,
        security: Any = None,
        timing: bool = False,
        expected: int | None = None,
    ) -> None:
        self._address, self._say = address, say
        self._timing, self._expected = timing, expected
        self._program, self._files = program(), dict[str, dict[str, bytes]]()
        self._workers: dict[str, _Worker] = {}  # by their addresses
        self._model: tuple[Any, ...] | None = None  # with timing, once it is chosen
        self._again: deque[_Run] = deque()  # that wait for another worker
        self._last_came = self._idle_since = time.monotonic()
        self._waits = self._is_gone = False
        self._news: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._events: list[Event] = []
        self._client = _connected(address, security)
        self._client.subscribe_topic("all", self._changed)
        for worker in self._client.ncores():
            self._welcome(worker)

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs; yields what happens. Closing the iterator kills what still runs.

        EngineError if the scheduler is gone, or no worker can be used.
        """
        runs, is_done, exhausted = map(_Run, jobs), False, False
        self._idle_since = time.monotonic()
        try:
            while not is_done:
                self._check_workers()
                # The next job is drawn when there is room for it.
                for worker in [each for each in self._usable() if each.run is None]:
                    run = self._again.popleft() if self._again else next(runs, None)
                    exhausted = exhausted or run is None
                    if run is not None:
                        self._submit(run, worker)
                is_done = exhausted and not self._again and not self._running()
                # Wait a moment for something to happen, and take in all that has.
                with contextlib.suppress(Empty):
                    self._news.get(timeout=0.0 if is_done else _POLL)()
                    while True:
                        self._news.get_nowait()()
                events, self._events = self._events, []
                yield from events
                yield Waiting()
        finally:
            self._cancel(*self._running())
            self._again.clear()
            for worker in self._workers.values():
                worker.run = None

    def _running(self) -> list[_Run]:
        return [worker.run for worker in self._workers.values() if worker.run is not None]

    def close(self) -> None:
        """End the connection; nothing runs any more once the iterator is closed."""
        if self._client.status == "running":
            # One that does not answer must not keep the command.
            self._later(lambda: self._client.run(dismiss, wait=False)).join(_FAREWELL)
        with contextlib.suppress(OSError):
            self._client.close(timeout=_FAREWELL)

    def _later(
        self, do: Callable[[], Any], then: Callable[[Any], None] = lambda answer: None
    ) -> threading.Thread:
        """Do what may take its time in a thread; what it returns or raises is news."""

        def done() -> None:
            try:
                answer = do()
            except Exception as error:  # noqa: BLE001 - passed to the caller
                answer = error
            self._news.put(lambda: then(answer))

        thread = threading.Thread(target=done, daemon=True)
        thread.start()
        return thread

    def _submit(self, run: _Run, worker: _Worker) -> None:
        assert worker.machine is not None
        if run.future is None:
            self._events.append(Started(run.job, worker.machine.name))
        try:
            packed_job = pickle.dumps(packed(run.job, self._files))
        except SolverError as error:  # its file can no longer be read
            self._events.append(Ended(run.job, Outcome("user", reason=str(error))))
            return
        run.future = future = self._client.submit(
            execute,
            packed_job,
            pure=False,
            workers=[worker.address],
            retries=2,  # of what goes wrong before it begins
        )
        worker.run = run
        self._later(future.result, lambda answer: self._settled(worker, future, answer))

    def _settled(self, worker: _Worker, future: Future, answer: Any) -> None:
        """Take in what becomes of a task: what :func:`execute` returns, or what is raised."""
        run, machine = worker.run, worker.machine
        if run is None or run.future is not future or machine is None:
            return
        if isinstance(answer, CancelledError) or self._client.status != "running":
            self._is_gone = True
            return
        worker.run = None
        # Whatever another version raises.
        outcome, refused = Outcome("failed", reason=first_line(answer)), False
        if isinstance(answer, bytes):
            outcome, refused = pickle.loads(answer)
            outcome.setting["environment"] = canonical_json(machine.environment)
            machines = [each.machine for each in self._workers.values() if each.machine]
            beside = [each.name for each in machines].count(machine.name)
            outcome.setting["jobs"] = 1 if self._timing else max(1, beside)
        if refused:
            # It lacks something that a job needs; another one may have it.
            self._reject(worker, f"{outcome.reason} (on {machine.name})")
            self._again.append(run)
        else:
            self._events.append(Ended(run.job, outcome))

    def _reject(self, worker: _Worker, reason: str) -> None:
        """Use a worker no more, as long as it is there."""
        worker.unused = reason
        self._say(f"worker {worker.address} gets no runs: {reason}")

    def _changed(self, event: tuple[float, Any]) -> None:
        """Hear of a worker that comes or goes; whoever uses the cluster may tell other things."""
        news = event[1] if isinstance(event[1], dict) else {}
        do = {"add-worker": self._welcome, "remove-worker": self._left}.get(news.get("action", ""))
        if do is not None:
            self._news.put(lambda: do(news["worker"]))

    def _left(self, address: str) -> None:
        """A worker is gone: its run is begun again on another one."""
        worker = self._workers.pop(address, None)
        if worker is None or worker.run is None or worker.machine is None:
            return
        run, name = worker.run, worker.machine.name
        worker.run = None
        self._cancel(run)
        run.lost.append(name)
        if len(run.lost) > config.get("distributed.scheduler.allowed-failures"):
            reason = f"its workers were lost: {', '.join(run.lost)}"
            self._events.append(Ended(run.job, Outcome("crashed", reason=reason)))
        else:
            self._say(f"worker {name} ({address}) was lost; its run is begun again")
            self._again.append(run)

    def _welcome(self, address: str) -> None:
        worker = self._workers[address] = self._workers.get(address) or _Worker(address)
        self._later(
            lambda: self._client.run(welcome, self._program, workers=[address])[address],
            lambda answer: self._welcomed(worker, answer),
        )

    def _welcomed(self, worker: _Worker, answer: Any) -> None:
        """Take in a worker that is ready, or why it is not."""
        if isinstance(answer, OSError | LookupError):
            self._workers.pop(worker.address, None)  # it is gone again
        elif isinstance(answer, Machine):
            worker.machine, self._last_came = answer, time.monotonic()
        else:
            # It has another program, or no marginbench.
            reason = answer if isinstance(answer, str) else first_line(answer)
            self._reject(worker, f"{reason}; install the same there")

    def _cancel(self, *runs: _Run) -> None:
        if runs and self._client.status == "running":
            self._client.cancel([run.future for run in runs], force=True)

    def _check_workers(self) -> None:
        """EngineError where nothing can go on: no scheduler, or no worker that can be used."""
        if self._is_gone or self._client.status != "running":
            raise EngineError(
                f"{self._address}: the Dask scheduler is gone (or another client has cancelled the "
                "runs); what is recorded stays: run the same command again to resume"
            )
        now = time.monotonic()
        if self._usable():
            self._idle_since, self._waits = now, False
            return
        waited, unused = now - self._idle_since, [each.unused for each in self._workers.values()]
        if unused and all(unused) and waited > _NONE_FITS:
            raise EngineError(f"none of {plural(len(unused), 'worker')} can be used: {unused[0]}")
        if waited > _A_MOMENT and not self._waits:
            self._waits = True
            self._say("waiting for workers (Ctrl-C ends the command; what is recorded stays)")

    def _usable(self) -> list[_Worker]:
        """The workers that get runs."""
        ready = [
            (each, each.machine)
            for each in self._workers.values()
            if each.machine is not None and not each.unused
        ]
        if not self._timing:
            return [worker for worker, _ in ready]
        if self._model is None and ready and self._is_settled():
            models = {machine.name: machine.model for _, machine in ready}
            self._model, most = Counter(models.values()).most_common(1)[0]
            processor, cores, memory = self._model
            self._say(
                f"timing on {most} of {plural(len(models), 'machine')}: {processor}, {cores} "
                f"cores, {memory} GB"
            )
        # One worker of each machine, that which has a run if there is one.
        timed: dict[str, _Worker] = {}
        for worker, machine in sorted(ready, key=lambda pair: pair[0].run is None):
            if machine.model == self._model:
                timed.setdefault(machine.name, worker)
        return [*timed.values()]

    def _is_settled(self) -> bool:
        """Whether all workers are there, as far as one can tell."""
        waited = time.monotonic() - self._last_came
        if self._expected is None:
            return waited > _SETTLED
        ready = sum(each.machine is not None for each in self._workers.values())
        return ready >= self._expected or waited > _SETTLED_QUEUE


def check_answers(address: str) -> None:
    """EngineError if no scheduler answers there; its workers are left alone."""
    _connected(address).close(timeout=_FAREWELL)


def _connected(address: str, security: Any = None) -> Client:
    """A client that runs beside an event loop of the caller's, as in a notebook."""
    # Lost connections are reported in one line by the callers.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        # What of the versions matters is compared by marginbench itself.
        warnings.simplefilter("ignore")
        try:
            return Client(
                address,
                set_as_default=False,
                security=security,
                timeout=_ANSWER,
                name=_NAME,
            )
        # Also an address of another protocol, and one of TLS without certificates.
        except (OSError, ValueError, TypeError) as error:
            raise EngineError(
                f"{address}: no Dask scheduler answers there ({first_line(error)}); start one with "
                "'dask scheduler', or give the address that it prints"
            ) from None
