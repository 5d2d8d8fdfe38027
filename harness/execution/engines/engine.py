"""An engine: runs the jobs of a study somewhere else than on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import EngineError
from ..jobs import Event, Executor, Job, Outcome, Waiting
from .dispatch import Dispatch
from .machines import this_program
from .news import Joined, Left, News, Replied, Unable
from .parcels import Packer

if TYPE_CHECKING:
    from .link import Link

# Seconds between two looks for Ctrl-C, and for what the display shows.
_POLL = 0.1


class Engine(Protocol):
    """Where the runs of a study take place; planning is done on this machine."""

    def check(self) -> None:
        """Raise what is known to keep it from opening, before time is spent on planning."""
        ...

    def opened(self, say: Callable[[str], None]) -> contextlib.AbstractContextManager[Executor]:
        """An executor, until the end of the block; ``say`` takes one line for the user."""
        ...


@dataclass(frozen=True)
class DaskEngine:
    """Workers of a Dask cluster.

    Attributes
    ----------
    scheduler : str
        Address of a scheduler that runs; empty to start a cluster.
    cluster : str
        What starts one: see :data:`marginbench.harness.execution.engines.choosing.CLUSTERS`.
    workers : int
        How many jobs of it to start, each with one worker unless its options say otherwise.
    options : mapping
        Keyword arguments of its class.
    timing : bool
        Whether only machines of one model are used, each for one run at a time.
    """

    scheduler: str = ""
    cluster: str = ""
    workers: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    timing: bool = False

    def check_options(self) -> None:
        """Find mistakes in the options of a cluster; nothing is connected or started.

        Raises
        ------
        UserError
            If the class of the cluster does not take them.
        """
        if self.cluster:
            from .clusters import check_options

            check_options(self.cluster, self.options)

    def check(self) -> None:
        """Check the options, and that a scheduler answers if one is to run already.

        Raises
        ------
        UserError
            As :meth:`check_options`.
        EngineError
            If there is no scheduler.
        """
        self.check_options()
        if self.scheduler:
            from .link import check_answers

            check_answers(self.scheduler)

    @contextlib.contextmanager
    def opened(self, say: Callable[[str], None]) -> Iterator[Executor]:
        """An executor on the cluster.

        Raises
        ------
        EngineError
            If there is no scheduler, or the cluster cannot be started.
        """
        from .clusters import started
        from .link import Link

        with contextlib.ExitStack() as stack:
            address, security, expected = self.scheduler, None, None
            if self.cluster:
                cluster = stack.enter_context(started(self.cluster, self.workers, self.options))
                address, security = cluster.scheduler_address, cluster.security
                expected = self.workers * int(self.options.get("processes", 1))
            link = Link(address, security)
            stack.callback(link.close)
            yield DaskExecutor(link, address, say, timing=self.timing, expected=expected)


class DaskExecutor:
    """Runs jobs on the workers of a Dask cluster, one at a time on each.

    Parameters
    ----------
    link : Link
        Whoever has made it closes it.
    address : str
        Of the scheduler, for messages.
    say : callable
        Takes one line for the user.
    timing : bool
        As for :class:`DaskEngine`.
    expected : int, optional
        How many workers are to come, where that is known.
    """

    def __init__(
        self,
        link: Link,
        address: str,
        say: Callable[[str], None],
        *,
        timing: bool = False,
        expected: int | None = None,
    ) -> None:
        self._link, self._address, self._say = link, address, say
        self._timing, self._expected = timing, expected
        # Workers are told of once; they are known to later calls, too.
        self._desk: Dispatch | None = None

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs; yields what happens. Closing the iterator kills what still runs.

        Raises
        ------
        EngineError
            If the scheduler is gone, or no worker can be used.
        """
        packer, running = Packer(), set[str]()
        if self._desk is None:
            self._desk = Dispatch(
                jobs, this_program(), self._say, timing=self._timing, expected=self._expected
            )
        else:
            self._desk.begin(jobs)
        desk = self._desk
        try:
            while not desk.is_done:
                for order in desk.orders():
                    if order.started is not None:
                        yield order.started
                    try:
                        parcel = packer.packed(order.job)
                    except OSError as error:
                        failed = Outcome("failed", reason=f"its code cannot be read ({error})")
                        yield from desk.replied(order.number, failed)
                        continue
                    running.add(order.number)
                    self._link.send(order.address, order.number, parcel)
                for item in self._link.news(_POLL):
                    yield from self._taken(item, desk, running)
                yield from desk.given_up()
                desk.check()
                yield Waiting()
        finally:
            for number in running:
                self._link.recall(number)

    def close(self) -> None:
        """Nothing runs any more once the iterator is closed."""

    def _taken(self, item: News, desk: Dispatch, running: set[str]) -> Iterator[Event]:
        if isinstance(item, Joined):
            desk.joined(item.address, item.machine)
        elif isinstance(item, Unable):
            desk.unable(item.address, item.reason)
        elif isinstance(item, Left):
            yield from desk.left(item.address)
        elif isinstance(item, Replied):
            running.discard(item.number)
            yield from desk.replied(item.number, item.reply.outcome, item.reply.unfit)
        else:
            raise EngineError(
                f"{self._address}: the Dask scheduler is gone ({item.reason}); what is recorded "
                "stays: run the same command again to resume"
            )
