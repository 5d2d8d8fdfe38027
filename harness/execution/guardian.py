"""The parent of one worker: sees to it that nothing which the worker has started outlives it.

A program of its own, run as a file with the standard library only: ``python guardian.py CONTROL
CONNECTION LOG COMMAND...``. It starts the command, and kills every descendant when the command ends
or when the process at the other end of the socket CONTROL sends no more or is gone, however that
ended. On Linux orphans become children of this process, so that none can get away by leaving its
session.

CONNECTION is for the command alone. CONTROL takes a line with the process id of the command, and
one with its wait status.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36
# Seconds between two attempts to kill what is still there, and until this gives up.
_PAUSE = 0.005
_PATIENCE = 30.0


def main(arguments: list[str]) -> None:
    """Start the command, wait, and leave nothing behind."""
    control, connection = map(int, arguments[:2])
    os.set_inheritable(control, False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    adopts = adopt_orphans()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake)
    worker = _start(arguments[3:], log=arguments[2])
    # It is between the worker and the parent, who wait for each other's end.
    os.close(connection)

    def say(number: int) -> None:
        with contextlib.suppress(OSError):
            os.write(control, b"%d\n" % number)

    say(worker)
    ended = reap(worker)
    while ended is None:
        ready, _, _ = select.select([control, woken], [], [])
        if control in ready:
            break  # nobody waits for it any more
        os.read(woken, 4096)
        ended = reap(worker)
    if ended is not None and not adopts:
        say(ended)  # this process is killed with its session
    kill_family(adopts)
    if ended is not None:
        say(ended)


def adopt_orphans() -> bool:
    """Become the parent of all orphans among the descendants, where the system has that."""
    if sys.platform != "linux":
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _start(command: list[str], log: str) -> int:
    """Start the command with its output in the log; its process id."""
    try:
        sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o644)
    except OSError:
        # What solvers print is worth less than what they compute.
        sink = os.open(os.devnull, os.O_WRONLY)
    source = os.open(os.devnull, os.O_RDONLY)
    handled = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD]
    actions = [
        (os.POSIX_SPAWN_DUP2, file, number) for number, file in enumerate((source, sink, sink))
    ]
    worker = os.posix_spawn(
        command[0], command, os.environ, file_actions=actions, setsigdef=handled
    )
    os.close(sink)
    os.close(source)
    return worker


def reap(worker: int) -> int | None:
    """Reap ended children; the wait status of the worker if it is among them.

    ChildProcessError if there is no child any more: on Linux, no descendant either.
    """
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in (0, worker):
            return status if pid else None


def kill_family(adopts: bool) -> None:
    """Kill all descendants, and what they start meanwhile."""
    if not adopts:
        # The worker's session is that of this process.
        os.killpg(0, signal.SIGKILL)
    deadline = time.monotonic() + _PATIENCE
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            reap(-1)
            family = descendants(os.getpid())
            # Stopped first: none of them can start another while the rest is looked for.
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in family:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, number)
            time.sleep(_PAUSE)


def descendants(root: int) -> set[int]:
    """Process ids of all descendants, dead ones among them."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as source:
            # The name of the program, in parentheses, may hold anything.
            parents[int(name)] = int(source.read().rpartition(b")")[2].split()[1])
    family, more = set[int](), {root}
    while more:
        more = {pid for pid, parent in parents.items() if parent in more}
        family |= more
    return family


if __name__ == "__main__":
    main(sys.argv[1:])
