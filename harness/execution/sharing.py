"""What a study asks of those that work on the same results folder; alone in it, nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from ..planning.plan import Run
from ..results.records import RecordBase
from .jobs import Event, Executor, Job

Look = Callable[[], None]


class Sharing(Protocol):
    """The other commands on a results folder."""

    #: How messages name the folder.
    place: str

    def preparing(self, look: Look) -> AbstractContextManager[None]:
        """While the plan of the folder is changed, no other command changes it.

        Parameters
        ----------
        look : callable
            Raises what must end the study while others are waited for.
        """
        ...

    def execute(
        self,
        executor: Executor,
        runs: Sequence[Run],
        job: Callable[[Run], Job],
        is_recorded: Callable[[Run], bool],
        look: Look,
    ) -> Iterator[Event]:
        """Run what no other command runs or has recorded.

        Parameters
        ----------
        executor : Executor
        runs : sequence of Run
        job : callable
            Makes the job of a run.
        is_recorded : callable
            Whether the record that another command has written of a run will do.
        look : callable
            Raises what must end the study.
        """
        ...

    def written(self, record: RecordBase, path: Path) -> None:
        """A record has been written to this file."""
        ...


class Alone:
    """No other command works on the folder.

    Parameters
    ----------
    results : Path
    """

    def __init__(self, results: Path) -> None:
        self.place = str(results)

    def preparing(self, look: Look) -> AbstractContextManager[None]:
        """Nobody is waited for."""
        return contextlib.nullcontext()

    def execute(
        self,
        executor: Executor,
        runs: Sequence[Run],
        job: Callable[[Run], Job],
        is_recorded: Callable[[Run], bool],
        look: Look,
    ) -> Iterator[Event]:
        """Run all of them."""
        # Jobs are made one by one: their limits may depend on what has happened so far.
        yield from executor.execute(job(run) for run in runs)

    def written(self, record: RecordBase, path: Path) -> None:
        """Nobody else is told."""
