"""A study on a store: its runs are claimed, its records pushed, those of others pulled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...execution.jobs import Event, Executor, Job, Waiting
from ...execution.sharing import Look
from ...planning.plan import Run, in_rounds
from ...words import plural
from ..records import RecordBase
from .leases import Leases
from .mirror import RUNS, Mirror
from .pushing import Pusher

#: What all commands claim before they change more than records of their own.
FOLDER = "folder"
#: Seconds between two looks at what others have recorded: while there are runs to do, and at least
#: so many times what the look takes; while runs of others are waited for.
LOOK_S, LOOK_REST, WAIT_S = 60.0, 50, 3.0
_TICK_S = 0.2


class Shared:
    """The other commands on a store; see :class:`Sharing`.

    Parameters
    ----------
    mirror : Mirror
    leases : Leases
    say : callable
        Takes one line for the user.
    """

    def __init__(self, mirror: Mirror, leases: Leases, say: Callable[[str], None]) -> None:
        self.place = mirror.objects.place
        self._mirror, self._leases, self._say = mirror, leases, say
        self._pusher = Pusher()
        # Name of a record -> its tag when its run was planned.
        self._planned: dict[str, str | None] = {}
        self._has_told = False
        self._put_off: list[Run] = []
        self._owners: set[str] = set()
        self._next_look = 0.0

    @contextlib.contextmanager
    def preparing(self, look: Look) -> Iterator[None]:
        """The plan is merged with those of the other commands, one after the other."""
        with folder_claimed(self._leases, self.place, look, self._say):
            self._mirror.pull()
            self._mirror.verify()
            yield
            self._mirror.push()

    def execute(
        self,
        executor: Executor,
        runs: Sequence[Run],
        job: Callable[[Run], Job],
        is_recorded: Callable[[Run], bool],
        look: Look,
    ) -> Iterator[Event]:
        """Claim and run; what others have claimed is looked at again when all else is done."""
        self._planned = {run.file_name: self._mirror.tag(_name(run)) for run in runs}
        self._next_look = time.monotonic() + LOOK_S
        # Each command in an order of its own: two of them seldom want the same run.
        left = in_rounds(runs, self._leases.id)
        while left:
            self._put_off, self._owners = [], set()
            yield from executor.execute(job(run) for run in self._claimed(left, is_recorded))
            if len(self._put_off) == len(left):
                yield from self._waiting(look)
            left = self._put_off
        self._pusher.check()

    def _claimed(self, runs: Sequence[Run], is_recorded: Callable[[Run], bool]) -> Iterator[Run]:
        """Those that this command is to run now."""
        for run in runs:
            self._pusher.check()
            if time.monotonic() > self._next_look:
                self._look()
            if self._is_of_others(run) and is_recorded(run):
                continue
            owner = self._leases.claim(run.key, _about(run))
            if owner is not None:
                self._put_off.append(run)
                self._owners.add(_words(owner))
                continue
            # Who recorded it has pushed the record before giving up the claim.
            self._mirror.refresh(_name(run))
            if self._is_of_others(run) and is_recorded(run):
                self._leases.release(run.key)
            else:
                yield run

    def _is_of_others(self, run: Run) -> bool:
        """Whether another command has written the record of a run since it was planned."""
        tag = self._mirror.tag(_name(run))
        return tag is not None and tag != self._planned[run.file_name]

    def _look(self) -> None:
        """Fetch what others have recorded."""
        began = time.monotonic()
        self._mirror.pull()
        now = time.monotonic()
        self._next_look = now + max(LOOK_S, LOOK_REST * (now - began))

    def _waiting(self, look: Look) -> Iterator[Event]:
        """Give the others some time, then look at what they have recorded."""
        if not self._has_told:
            self._has_told = True
            runs = plural(len(self._put_off), "run")
            self._say(f"waiting for {runs} of {', '.join(sorted(self._owners))}")
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            look()
            yield Waiting()
            time.sleep(_TICK_S)
        self._look()

    def written(self, record: RecordBase, path: Path) -> None:
        """Push a record; its run is given up when the store has it."""
        self._pusher.add(partial(self._push, f"{RUNS}/{path.name}", record.key))

    def _push(self, name: str, key: str) -> None:
        self._mirror.push_file(name)
        self._leases.release(key)

    def finish(self) -> None:
        """Push all that is left, and fetch what others have recorded.

        Raises
        ------
        StoreError
            If the store does not take it; it stays in the mirror.
        """
        self._pusher.drain()
        self._mirror.pull()
        self._mirror.push()
        if self._leases.claim(FOLDER, {}) is None:
            self._leases.sweep()
            self._leases.release(FOLDER)

    def close(self) -> None:
        """End the threads."""
        self._pusher.close()


@contextlib.contextmanager
def folder_claimed(
    leases: Leases, place: str, look: Look, say: Callable[[str], None]
) -> Iterator[None]:
    """Only this command changes the plan, or gathers records; others are waited for."""
    owner, told = leases.claim(FOLDER, {}), False
    while owner is not None:
        if not told:
            say(f"{place}: waiting for {_words(owner)}, which changes the plan or the files")
            told = True
        look()
        time.sleep(_TICK_S)
        owner = leases.claim(FOLDER, {})
    try:
        yield
    finally:
        leases.release(FOLDER)


def _name(run: Run) -> str:
    return f"{RUNS}/{run.file_name}"


def _about(run: Run) -> Mapping[str, Any]:
    return {"task": run.task, "solver": run.solver, "seed": run.seed}


def _words(owner: Mapping[str, Any]) -> str:
    """A command in words."""
    if "machine" not in owner:
        return "another command"
    return f"process {owner.get('pid')} on {owner['machine']}"
