"""The worker process: takes jobs from a socket, one after the other, until the parent is gone.

The parent enforces all limits from outside by killing this process; here nothing is limited but
threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, is_dataclass
from typing import Any

from .jobs import (
    TIMED,
    CheckpointMessage,
    FoundMessage,
    Job,
    Message,
    PhaseMessage,
    ResultMessage,
    SnapshotMessage,
)
from .wire import FrameReader, encode

_PR_SET_PDEATHSIG = 1
_PIECE = 2**20


def main(descriptor: int) -> None:
    """Serve jobs until the connection closes.

    Parameters
    ----------
    descriptor : int
        Of the socket: jobs come from it, messages go into it.
    """
    _die_with_parent(os.getppid())
    # Where it was when it crashed.
    faulthandler.enable(file=2)
    os.set_inheritable(descriptor, False)
    connection = _Connection(socket.socket(fileno=descriptor))
    # The imports of a run, done before the first job's clock starts.
    from ..evaluation import measurement  # noqa: F401

    pools = _ThreadPools()
    connection.send(PhaseMessage("idle"))
    while True:
        job = connection.receive()
        if job is None:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(1, 0)
        # Code from outside is timed by the parent: it waits until the parent has looked.
        send = connection.send_and_wait if job.foreign else _until_timed(connection)
        result = _serve(job, send, pools)
        with contextlib.suppress(Exception):  # a solver may have replaced them
            sys.stdout.flush()
            sys.stderr.flush()
        try:
            connection.send(result)
        except OSError:
            return
        except Exception as error:  # noqa: BLE001 - a solver's values may be anything
            connection.send(ResultMessage(error=f"{type(error).__name__}: {error}", kind="failed"))


class _Connection:
    """Messages out, jobs in."""

    def __init__(self, pipe: socket.socket) -> None:
        self._pipe = pipe
        self._reader = FrameReader()

    def send(self, message: Message) -> None:
        """Send a message."""
        self._pipe.sendall(encode(_plain(message)))

    def send_and_wait(self, message: Message) -> None:
        """Send a message, and go on when the parent says so."""
        self.send(message)
        if not self._pipe.recv(1):
            os._exit(1)

    def receive(self) -> Job | None:
        """The next job; None if the parent is gone."""
        while True:
            for _, data in self._reader.frames():
                job: Job = pickle.loads(data)  # from the parent, not from a solver
                return job
            piece = self._pipe.recv(_PIECE)
            if not piece:
                return None
            self._reader.feed(piece)


def _until_timed(connection: _Connection) -> Callable[[Message], None]:
    """Sends; where a job's clocks are about to start, the parent says when.

    It may still be writing the record of the job before, which is to disturb nothing that is timed.
    """
    began = False

    def send(message: Message) -> None:
        nonlocal began
        begins = not began and isinstance(message, PhaseMessage) and message.phase in TIMED
        if begins:
            began = True
            connection.send_and_wait(message)
        else:
            connection.send(message)

    return send


def _plain(message: Message) -> dict[str, Any]:
    """A message as the parent reads it, see ``messages.py``."""
    if isinstance(message, PhaseMessage):
        return {"type": "phase", "phase": message.phase, "solve_s": message.solve_s}
    if isinstance(message, FoundMessage):
        return {"type": "found", "columns": message.columns}
    if isinstance(message, CheckpointMessage):
        return {"type": "checkpoint", "columns": vars(message.checkpoint)}
    if isinstance(message, SnapshotMessage):
        time = {"wall_s": message.time.wall_s, "cpu_s": message.time.cpu_s}
        return {"type": "snapshot", "state": message.state, **time}
    value = message.value
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    return {
        "type": "result",
        "value": value,
        "error": message.error,
        "kind": message.kind,
        "traceback": message.traceback,
    }


class _ThreadPools:
    """The threads of the numeric libraries that are loaded.

    To find the libraries takes a millisecond, so they are looked for again only after an import:
    that is how one is loaded.
    """

    def __init__(self) -> None:
        self._modules = -1
        self._found: Any = None

    def limited(self, threads: int) -> AbstractContextManager[Any]:
        """No library uses more threads in this block."""
        from threadpoolctl import ThreadpoolController

        if self._modules != len(sys.modules):
            self._found = ThreadpoolController()
            self._modules = len(sys.modules)
        limited: AbstractContextManager[Any] = self._found.limit(limits=threads)
        return limited


def _serve(job: Job, send: Callable[[Message], None], pools: _ThreadPools) -> ResultMessage:
    """Do the job; whatever it raises becomes part of the result."""
    from ...data_loaders import DataError
    from ...data_loaders.errors import CacheError
    from ..errors import StorageError, UserError, first_line
    from ..words import visible_lines

    work = job.work.apart() if job.foreign else job.work
    try:
        with pools.limited(job.threads):
            return ResultMessage(value=work.run(send))
    except MemoryError as error:
        message = ResultMessage(error=first_line(error), kind="memory")
    except (CacheError, StorageError) as error:
        message = ResultMessage(error=str(error), kind="storage")
    except DataError as error:
        message = ResultMessage(error=str(error), kind="data")
    except UserError as error:
        message = ResultMessage(error=str(error), kind="user")
    except BaseException as error:  # noqa: BLE001 - a solver may raise anything
        message = ResultMessage(
            error=first_line(error),
            kind="failed",
            traceback=visible_lines(traceback.format_exc()),
        )
    return message


def _die_with_parent(parent: int) -> None:
    """No worker outlives its parent, however that ends."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            # Works even while compiled code holds the interpreter lock.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="parent-watch").start()
