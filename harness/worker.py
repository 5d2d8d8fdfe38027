"""The worker process: takes jobs from a pipe, one after the other, until the parent is gone.

The parent enforces all limits from outside by killing this process; here nothing is limited but
threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from marginbench.harness.jobs import Job, Message, PhaseMessage, ResultMessage

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(connection: Connection, parent: int, log: str) -> None:
    """Serve jobs until the pipe closes.

    Parameters
    ----------
    connection : Connection
        Jobs come from it, messages go into it.
    parent : int
        Process id of the parent; when it is gone, so is this process.
    log : str
        File that takes what solvers print; it holds the output of the current job only.
    """
    _ignore_interrupts()
    _die_with_parent(parent)
    _redirect_output(Path(log))
    # The imports of a run, done before the first job's clock starts.
    import marginbench.harness.svm.measurement  # noqa: F401

    connection.send(PhaseMessage("idle"))
    while True:
        try:
            job: Job = connection.recv()
        except (EOFError, OSError):
            return
        os.ftruncate(1, 0)
        result = _serve(job, connection.send)
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            connection.send(result)
        except (BrokenPipeError, OSError):
            return


def _serve(job: Job, send: Callable[[Message], None]) -> ResultMessage:
    """Do the job; whatever it raises becomes part of the result."""
    from threadpoolctl import threadpool_limits

    from marginbench.data_loaders import DataError
    from marginbench.harness.errors import UserError, first_line

    _reset_peak_memory()
    try:
        with threadpool_limits(job.threads):
            value = job.work.run(send)
    except MemoryError as error:
        message = ResultMessage(error=first_line(error), kind="memory")
    except DataError as error:
        message = ResultMessage(error=str(error), kind="data")
    except UserError as error:
        message = ResultMessage(error=str(error), kind="user")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a solver may raise anything
        message = ResultMessage(
            error=first_line(error), kind="failed", traceback=traceback.format_exc()
        )
    else:
        message = ResultMessage(value=value)
    return _with_peak_memory(message)


def _ignore_interrupts() -> None:
    """Ctrl-C is the parent's business: it decides what to keep."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        # The parent blocks it while it starts this process, until it can be ignored.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _die_with_parent(parent: int) -> None:
    """No worker outlives its parent, however that ends."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            # Works even while compiled code holds the interpreter lock.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            # Orphans among its descendants become its own children, so that they can be found.
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="parent-watch").start()


def _redirect_output(log: Path) -> None:
    """What solvers print goes to a file, at the level of the process: C code prints too."""
    log.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)
    # Where it was when it crashed.
    faulthandler.enable(file=2)


def _reset_peak_memory() -> None:
    # Linux keeps a high-water mark per process, and this resets it.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _with_peak_memory(message: ResultMessage) -> ResultMessage:
    from dataclasses import replace

    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return replace(message, peak_memory_mb=int(line.split()[1]) * 1024 / 1e6)
    return message
