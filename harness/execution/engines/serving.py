"""What a Dask worker does: it owns one slot of local worker processes, and runs jobs in it.

Nothing here runs on the event loop of the Dask worker: its tasks are threads, which look every
twentieth of a second whether the command still wants the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import threading
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from distributed import Worker, WorkerPlugin, get_worker
from distributed.utils import sync

from ...errors import StorageError
from ..jobs import Ended, Event, Job, Outcome
from ..local import LocalPool
from .machines import Machine, this_machine
from .news import Reply
from .parcels import Parcel, UnfitError

#: Name of the plugin that holds the slot.
NAME = "marginbench"
# No name of a module: Dask looks for modules in the scratch folder of a worker.
_FOLDER = ".marginbench"
# States of a task, as the Dask worker sees it, of which the result is still wanted.
_WANTED = ("executing", "long-running")


@dataclass(frozen=True)
class Welcome:
    """What a Dask worker says of itself.

    Attributes
    ----------
    token : str
        Of this very process: one that is started anew at the same address has another.
    machine : Machine
    """

    token: str
    machine: Machine


class Host(WorkerPlugin):  # type: ignore[misc]
    """The slot of a Dask worker; it is closed with it.

    Parameters
    ----------
    folder : Path
        The scratch folder of the Dask worker.
    """

    def __init__(self, folder: Path) -> None:
        self.token = uuid.uuid4().hex
        self._folder = folder / _FOLDER
        self._pool: LocalPool | None = None
        # Two commands may send jobs to one worker; they take turns.
        self._turn = threading.Lock()
        self._closing = threading.Event()
        self._begun: set[str] = set()
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

    def do(self, number: str, parcel: Parcel, is_wanted: Callable[[], bool]) -> Reply:
        """Run a job, and kill it when nobody wants it any more.

        Parameters
        ----------
        number : str
            A name of this attempt. An attempt that was begun is not begun again, whatever the
            scheduler thinks of it.
        parcel : Parcel
        is_wanted : callable
        """
        with self._turn_of(is_wanted) as has_turn:
            if not has_turn or number in self._begun:
                return Reply()
            self._begun.add(number)
            try:
                job = parcel.unpacked(self._folder / "solvers")
                return Reply(self._outcome(job, is_wanted))
            except UnfitError as error:
                return Reply(unfit=str(error))
            except StorageError as error:
                return Reply(Outcome("storage", reason=str(error)))

    def _outcome(self, job: Job, is_wanted: Callable[[], bool]) -> Outcome | None:
        """How a job ended; None if it was killed because nobody wanted it any more."""
        if self._pool is None:
            self._pool = LocalPool(1, self._folder / "logs")
        events = cast("Generator[Event, None, None]", self._pool.execute(iter([job])))
        with contextlib.closing(events):
            for event in events:
                if isinstance(event, Ended):
                    return event.outcome
                if self._closing.is_set() or not is_wanted():
                    break
        return None

    @contextlib.contextmanager
    def _turn_of(self, is_wanted: Callable[[], bool]) -> Iterator[bool]:
        """Wait until no other job runs here; False if this one is not wanted meanwhile."""
        while not self._turn.acquire(timeout=0.1):
            if self._closing.is_set() or not is_wanted():
                yield False
                return
        try:
            yield True
        finally:
            self._turn.release()


def welcome() -> Welcome:
    """A task: prepare this Dask worker for jobs and describe it."""
    worker = get_worker()
    machine = this_machine()
    host = _host(worker)
    if host is None:
        host = Host(Path(worker.local_directory))
        sync(worker.loop, worker.plugin_add, plugin=host, name=NAME)
    return Welcome(host.token, machine)


def serve(token: str, number: str, parcel: bytes) -> bytes:
    """A task: run a job.

    Parameters
    ----------
    token : str
        Of the process that it is meant for.
    number : str
        A name of this attempt.
    parcel : bytes
        A pickled Parcel; only the Dask worker reads it, not the scheduler.

    Returns
    -------
    bytes
        A pickled Reply.
    """
    worker = get_worker()
    host, key = _host(worker), worker.get_current_task()
    if host is None or host.token != token:
        # The scheduler has sent it again by itself, after the process for which it was meant.
        return pickle.dumps(Reply())

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state in _WANTED

    return pickle.dumps(host.do(number, pickle.loads(parcel), is_wanted))


def dismiss(token: str) -> None:
    """A task: end the local worker processes, unless another command uses them."""
    host = _host(get_worker())
    if host is not None and host.token == token:
        host.close()


def _host(worker: Worker) -> Host | None:
    found = worker.plugins.get(NAME)
    return found if isinstance(found, Host) else None
