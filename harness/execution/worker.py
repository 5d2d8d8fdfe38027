"""Worker processes: how the parent starts, reads, watches and kills them, and what they do.

The parent enforces all limits from outside by killing the process; in it nothing is limited but
threads. A worker takes jobs from a socket, one after the other, until the parent is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from ..imports import scientific_imports
from ..jobs import Job, Message, Status, encoded
from . import guardian

#: What the processes of one worker have in their environment, so that they can be found.
MARK = "MARGINBENCH_WORKER"

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
# The modules are looked for where the parent finds them, not in the current folder.
_BOOT = (
    "import json, sys; options = json.loads(sys.argv[1]); sys.path[:] = options.pop('path'); "
    "from marginbench.harness.execution.worker import main; main(**options)"
)
# Seconds that the guardian has to kill all, and between two looks at child processes.
_PATIENCE = 40.0
_POLL_FAMILY = 0.5
_PR_SET_PDEATHSIG = 1
# Seconds in which a worker must take what it is sent, and bytes of a message at most.
_TAKES_S, _MAX_MESSAGE = 5, 2**25


class WorkerProcess:
    """One worker process; nothing that it starts outlives :meth:`kill` or this process.

    ``log`` takes what it prints, and ``closed`` says why no further message comes; it is empty
    while one may. Its numeric libraries have one thread.
    """

    def __init__(self, log: Path) -> None:
        self.log = log
        self.closed = ""
        self._mark = uuid.uuid4().hex
        self._family: list[psutil.Process] = []
        self._family_seen = -_POLL_FAMILY
        self._lines = b""
        connection, child = socket.socketpair()
        self._control, guards = socket.socketpair()
        options = json.dumps({"path": sys.path, "descriptor": child.fileno()})
        command = [sys.executable, "-P", "-c", _BOOT, options]
        thread_variables = dict.fromkeys(_THREAD_VARIABLES, "1")
        try:
            self._guardian = subprocess.Popen(
                [sys.executable, "-I", "-S", guardian.__file__]
                + [str(guards.fileno()), str(child.fileno()), str(log), *command],
                env={**os.environ, **thread_variables, MARK: self._mark},
                pass_fds=(guards.fileno(), child.fileno()),
                # Ctrl-C and the hang-up of a terminal are the parent's business.
                start_new_session=True,
                stdin=subprocess.DEVNULL,
            )
        except BaseException:
            connection.close()
            self._control.close()
            raise
        finally:
            child.close()
            guards.close()
        self._control.setblocking(False)
        # A worker that has stopped must not hold up the others.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _TAKES_S, 0))
        self._connection, self._begun = connection, bytearray()

    def fileno(self) -> int:
        """The connection's descriptor, to wait for messages."""
        return self._connection.fileno()

    @property
    def pid(self) -> int | None:
        lines = self._status_lines()
        return int(lines[0]) if lines else None

    @property
    def alive(self) -> bool:
        """Whether the worker runs, or what it has left behind is still being killed."""
        return self._guardian.poll() is None

    def join(self, seconds: float) -> None:
        """Wait until it has ended, at most so long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guardian.wait(seconds)

    @property
    def exit_words(self) -> str:
        """How it ended."""
        lines = self._status_lines()
        if len(lines) < 2:
            return "the process was killed from outside"
        code = os.waitstatus_to_exitcode(int(lines[1]))
        if code >= 0:
            return f"the process ended with exit code {code}"
        try:
            return f"the process was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"the process was killed by signal {-code}"

    def send(self, body: bytes) -> None:
        """Send bytes; a worker that has just died is noticed otherwise."""
        with contextlib.suppress(OSError):
            self._connection.sendall(body)

    def receive(self, until: float) -> Iterator[bytes]:
        """The messages that are there, a line each; none are read after this time."""
        while not self.closed and time.monotonic() < until:
            try:
                piece = self._connection.recv(2**18, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            self._begun += piece
            if not piece:
                self.closed = "the process closed its connection"
            elif b"\n" in piece:
                *lines, self._begun = self._begun.split(b"\n")
                yield from map(bytes, lines)
            elif len(self._begun) > _MAX_MESSAGE:
                self.closed = "the process sent a message without end"

    def reset_peak(self) -> None:
        """Begin to look for the largest memory anew, where the system keeps a high-water mark."""
        with contextlib.suppress(OSError):
            Path(f"/proc/{self.pid}/clear_refs").write_text("5", encoding="ascii")

    def peak_mb(self) -> float | None:
        """Largest resident memory of the worker itself by the system's account, 10^6 bytes."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text("utf-8", "replace").split("\n"):
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024 / 1e6
        return None

    def resident_mb(self) -> float:
        """Resident memory of the worker and all that it has started, 10^6 bytes."""
        if time.monotonic() - self._family_seen > _POLL_FAMILY:
            self.family()
        total = 0
        for process in self._family:
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        return total / 1e6

    def family(self) -> list[psutil.Process]:
        """The worker and all that it has started."""
        self._family_seen = time.monotonic()
        self._family = []
        for pid in _descendants(self._guardian.pid):
            with contextlib.suppress(psutil.Error):
                self._family.append(psutil.Process(pid))
        return self._family

    def cpu_s(self) -> float:
        """CPU seconds of the worker and of all that it has started, by the system's account.

        Children of the last half second may be missing.
        """
        total = 0.0
        for pid in (self._guardian.pid, *(process.pid for process in self._family)):
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                # Orphans that have ended were the guardian's.
                total += getattr(times, "children_user", 0.0)
                total += getattr(times, "children_system", 0.0)
                total += times.user + times.system if pid != self._guardian.pid else 0.0
        return total

    def kill(self) -> None:
        """Kill the worker and all that it has started."""
        if self._control.fileno() < 0:
            return
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        self.join(_PATIENCE)
        if self._guardian.poll() is None:
            self._guardian.kill()
            self._guardian.wait()
        if not self._status_lines() or self._guardian.returncode != 0:
            kill_marked(self._mark)
        self._connection.close()
        self._control.close()

    def _status_lines(self) -> list[bytes]:
        with contextlib.suppress(OSError):
            while piece := self._control.recv(4096):
                self._lines += piece
        return self._lines.split(b"\n")[:-1]


def kill_marked(mark: str) -> None:
    """Kill every process with this mark of a worker: what a guardian that was killed has left."""
    for _ in range(100):
        found = False
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == mark:
                    found = True
                    process.kill()
        if not found:
            return
        time.sleep(0.01)


def _descendants(root: int) -> list[int]:
    """The numbers of all descendants of a process."""
    family, waiting = list[int](), [root]
    while waiting:
        # To read the parent of every process of a machine takes milliseconds.
        folder = f"/proc/{waiting.pop()}/task"
        with contextlib.suppress(OSError):
            for task in os.listdir(folder):
                with open(f"{folder}/{task}/children", "rb") as source:
                    children = [int(pid) for pid in source.read().split()]
                waiting += children
                family += children
    if not family:
        with contextlib.suppress(psutil.Error):
            family = [child.pid for child in psutil.Process(root).children(recursive=True)]
    return family


# What the process itself does.


def main(descriptor: int) -> None:
    """Serve jobs until the connection closes: they come from this socket, messages go into it."""
    _die_with_parent(os.getppid())
    # Where it was when it crashed.
    faulthandler.enable(file=2)
    os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=descriptor)
    orders = connection.makefile("rb")
    # The imports of a run, done before the first job's clock starts.
    with scientific_imports():
        from ..evaluation import measurement  # noqa: F401

    connection.sendall(encoded({"phase": "idle"}))
    while True:
        try:
            job: Job = pickle.load(orders)  # from the parent, not from a solver
        except (EOFError, OSError):
            return
        with contextlib.suppress(OSError):
            os.ftruncate(1, 0)
        body = _served(job, lambda message: connection.sendall(encoded(message)))
        with contextlib.suppress(Exception):  # a solver may have replaced them
            sys.stdout.flush()
            sys.stderr.flush()
        try:
            connection.sendall(body)
        except OSError:
            return


def _served(job: Job, send: Callable[[Message], None]) -> bytes:
    """The result of the job as a message; whatever is raised becomes part of it."""
    from ...data_loaders import DataError
    from ...data_loaders.errors import CacheError
    from ..errors import StorageError, UserError, first_line
    from ..words import visible_lines

    kinds: list[tuple[Any, Status]] = [
        (MemoryError, "memory"),
        ((CacheError, StorageError), "storage"),
        (DataError, "data"),
        (UserError, "user"),
    ]
    try:
        return encoded({"value": job.work.run(send)})
    except BaseException as error:  # noqa: BLE001 - a solver may raise anything
        kind = next((kind for cls, kind in kinds if isinstance(error, cls)), None)
        words = str(error) if kind in ("storage", "data", "user") else first_line(error)
        trace = "" if kind else visible_lines(traceback.format_exc())
        return encoded({"error": words, "kind": kind or "failed", "traceback": trace})


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
