"""The connection to a Dask scheduler: workers that come and go, jobs sent, replies received.

All that Dask does happens on a thread of its own; what happens is put into an inbox, which
:class:`marginbench.harness.execution.engines.dispatch.Dispatch` turns into decisions.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import pickle
import queue
import threading
import uuid
import warnings
from collections.abc import Coroutine
from typing import Any

from distributed import Client, Future
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from ...errors import EngineError, first_line
from . import serving
from .news import Gone, Joined, Left, News, Replied, Reply, Unable
from .parcels import Parcel

# Seconds between two looks at the workers, for an answer of the scheduler, and for a last word.
_LOOK, _ANSWER, _FAREWELL = 0.5, 15.0, 5.0
_BROKEN = (OSError, CommClosedError, asyncio.TimeoutError)
# Also an address of another protocol, and one of TLS without certificates.
_UNREACHABLE = (ValueError, TypeError, *_BROKEN)
_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


class Link:
    """A client of a Dask scheduler.

    Parameters
    ----------
    address : str
        Of the scheduler.
    security : object, optional
        What a cluster that was started here asks of its clients.

    Raises
    ------
    EngineError
        If no scheduler answers there.
    """

    def __init__(self, address: str, security: Any = None) -> None:
        self._inbox: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._futures: dict[str, Future] = {}
        self._tokens: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone = self._closing = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="dask")
        self._thread.start()
        _quieten()
        try:
            self._client: Client = self._now(_connected(address, security))
        except _UNREACHABLE as error:
            self._stop()
            raise _no_answer(address, error) from None
        self._soon(self._look())

    def news(self, seconds: float) -> list[News]:
        """What has happened; waits at most so long for something to happen."""
        found: list[News] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._inbox.get(timeout=seconds))
            while True:
                found.append(self._inbox.get_nowait())
        return found

    def send(self, address: str, number: str, parcel: Parcel) -> None:
        """Have a worker do a job; a reply comes for each, unless the worker is gone."""
        self._soon(self._serve(address, number, pickle.dumps(parcel)))

    def recall(self, number: str) -> None:
        """Have a job killed where it runs."""
        self._soon(self._cancel([number]))

    def close(self) -> None:
        """Have all that still runs killed, and end the connection."""
        self._closing = True
        with contextlib.suppress(TimeoutError, *_BROKEN):
            if not self._gone:
                self._now(asyncio.wait_for(self._leave(), 2 * _FAREWELL))
        self._stop()

    async def _look(self) -> None:
        """Tell of workers that come and go, until the scheduler is gone."""
        known: set[str] = set()
        while True:
            present = await self._present()
            if present is None:
                return
            for address in known - present:
                self._tokens.pop(address, None)
                self._inbox.put(Left(address))
            for address in present - known:
                self._soon(self._welcome(address))
            known = present
            await asyncio.sleep(_LOOK)

    async def _present(self) -> set[str] | None:
        """The addresses of the workers; None if the scheduler is gone, which is told."""
        try:
            return set(await asyncio.wait_for(self._client.scheduler.ncores(), _ANSWER))
        except Exception as error:  # noqa: BLE001 - also what a client raises that has given up
            self._gone = True
            self._inbox.put(Gone(first_line(error)))
            return None

    async def _welcome(self, address: str) -> None:
        number = f"welcome-{uuid.uuid4().hex}"
        try:
            found = await self._done(number, address, serving.welcome)
        except (*_CANCELLED, KilledWorker, *_BROKEN):
            return  # it is gone again
        except Exception as error:  # noqa: BLE001 - whatever another version raises
            self._inbox.put(Unable(address, first_line(error)))
            return
        self._tokens[address] = found.token
        self._inbox.put(Joined(address, found.machine))

    async def _serve(self, address: str, number: str, parcel: bytes) -> None:
        token = self._tokens.get(address, "")
        try:
            found = await self._done(number, address, serving.serve, token, number, parcel)
            reply: Reply = pickle.loads(found)
        except (*_CANCELLED, KilledWorker, *_BROKEN):
            reply = Reply()
        except Exception as error:  # noqa: BLE001 - whatever the worker raises
            reply = Reply(unfit=first_line(error))
        if self._closing:
            return
        # A scheduler that is gone takes all jobs with it; none of them is to blame.
        if reply.outcome is not None or await self._present() is not None:
            self._inbox.put(Replied(number, reply))

    async def _done(self, number: str, address: str, *call: Any) -> Any:
        """The result of a task on one worker; Dask may neither move nor repeat it."""
        future = self._client.submit(
            *call,
            key=f"marginbench-{number}",
            workers=[address],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )
        self._futures[number] = future
        try:
            return await future
        finally:
            del self._futures[number]

    async def _cancel(self, numbers: list[str]) -> None:
        futures = [self._futures[number] for number in numbers if number in self._futures]
        if futures:
            await self._client.cancel(futures, force=True)

    async def _leave(self) -> None:
        await self._cancel(list(self._futures))
        farewells = [
            self._client.submit(
                serving.dismiss, token, workers=[address], allow_other_workers=False, pure=False
            )
            for address, token in self._tokens.items()
        ]
        with contextlib.suppress(asyncio.TimeoutError):
            # One that is busy for another command says nothing for a while.
            await asyncio.wait_for(asyncio.gather(*map(_ended, farewells)), _FAREWELL)
        await self._client.close(timeout=_FAREWELL)

    def _now(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _soon(self, coroutine: Coroutine[Any, Any, None]) -> None:
        def begin() -> None:
            task = self._loop.create_task(coroutine)
            # The loop itself keeps no reference.
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(begin)

    def _stop(self) -> None:
        self._now(self._end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def check_answers(address: str) -> None:
    """Find out whether a scheduler answers; its workers are left alone.

    Parameters
    ----------
    address : str

    Raises
    ------
    EngineError
        If none does.
    """

    async def asked() -> None:
        client = await _connected(address)
        await client.close(timeout=_FAREWELL)

    _quieten()
    try:
        asyncio.run(asked())
    except _UNREACHABLE as error:
        raise _no_answer(address, error) from None


async def _connected(address: str, security: Any = None) -> Client:
    with warnings.catch_warnings():
        # What of the versions matters is compared by marginbench itself.
        warnings.simplefilter("ignore")
        client = Client(
            address,
            asynchronous=True,
            set_as_default=False,
            security=security,
            timeout=_ANSWER,
            name="marginbench",
        )
        try:
            return await client
        except _UNREACHABLE:
            # Left open, it would complain about itself when it is collected.
            with contextlib.suppress(*_UNREACHABLE):
                await client.close(timeout=_FAREWELL)
            raise


def _no_answer(address: str, error: Exception) -> EngineError:
    return EngineError(
        f"{address}: no Dask scheduler answers there ({first_line(error)}); start one with "
        "'dask scheduler', or give the address that it prints"
    )


async def _ended(future: Future) -> None:
    await future


def _quieten() -> None:
    """What Dask logs about lost connections is told in one line by whoever asks for it."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
