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
from typing import Any, BinaryIO

from ..jobs import TIMED, Job, Message, PhaseMessage, ResultMessage, encoded

_PR_SET_PDEATHSIG = 1


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
    connection = socket.socket(fileno=descriptor)
    orders = connection.makefile("rb")
    # The imports of a run, done before the first job's clock starts.
    from ..evaluation import measurement  # noqa: F401

    pools = _ThreadPools()
    connection.sendall(encoded(PhaseMessage("idle")))
    while True:
        try:
            job: Job = pickle.load(orders)  # from the parent, not from a solver
        except (EOFError, OSError):
            return
        with contextlib.suppress(OSError):
            os.ftruncate(1, 0)
        result = _serve(job, _until_timed(connection, orders), pools)
        with contextlib.suppress(Exception):  # a solver may have replaced them
            sys.stdout.flush()
            sys.stderr.flush()
        try:
            body = encoded(result)
        except Exception as error:  # noqa: BLE001 - a solver's values may be anything
            body = encoded(ResultMessage(error=f"{type(error).__name__}: {error}", kind="failed"))
        try:
            connection.sendall(body)
        except OSError:
            return


def _until_timed(connection: socket.socket, orders: BinaryIO) -> Callable[[Message], None]:
    """Sends; where a job's clocks are about to start, the parent says when.

    It may still be writing the record of the job before, which is to disturb nothing that is timed.
    """
    began = False

    def send(message: Message) -> None:
        nonlocal began
        begins = not began and isinstance(message, PhaseMessage) and message.phase in TIMED
        connection.sendall(encoded(message))
        if begins:
            began = True
            if not orders.read(1):
                os._exit(1)

    return send


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

    try:
        with pools.limited(job.threads):
            return ResultMessage(value=job.work.run(send))
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
