"""The parent of one worker: sees to it that nothing which the worker has started outlives it.

A program of its own, run as a file with the standard library only: ``python guardian.py CONTROL
STATUS CONNECTION LOG COMMAND...``. It starts the command, and kills every descendant when the
command ends or when the process at the other end of CONTROL is gone, however that ended. On Linux
orphans become children of this process, so that none can get away by leaving its session.

CONNECTION is for the command alone. STATUS takes a line with the process id of the command, and one
with its wait status.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Seconds between two attempts to kill what is still there, and until this gives up.
_PAUSE = 0.005
_PATIENCE = 30.0


def main(arguments: list[str]) -> None:
    """Start the command, wait, and leave nothing behind."""
    control, status, connection = map(int, arguments[:3])
    log, command = arguments[3], arguments[4:]
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    adopts = adopt_orphans()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake)
    worker = _start(command, log)
    # It is between the worker and the parent, who wait for each other's end.
    os.close(connection)
    _say(status, worker)
    ended = _wait(worker, control, woken)
    if not adopts:
        # Then this process is the last one that is killed.
        _say_end(status, ended)
    kill_family(adopts)
    _say_end(status, ended)


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
    actions = [
        (os.POSIX_SPAWN_DUP2, source, 0),
        (os.POSIX_SPAWN_DUP2, sink, 1),
        (os.POSIX_SPAWN_DUP2, sink, 2),
    ]
    handled = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD]
    worker = os.posix_spawn(
        command[0], command, os.environ, file_actions=actions, setsigdef=handled
    )
    os.close(sink)
    os.close(source)
    return worker


def _wait(worker: int, control: int, woken: int) -> int | None:
    """The wait status of the worker; None if nobody waits for it any more."""
    while True:
        ended = _reap(worker)
        if ended is not None:
            return ended
        ready, _, _ = select.select([control, woken], [], [])
        if control in ready:
            return None
        os.read(woken, 4096)


def _reap(worker: int) -> int | None:
    """Reap ended children; the wait status of the worker if it is among them."""
    ended = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        if pid == worker:
            ended = status


def _say(descriptor: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.write(descriptor, b"%d\n" % number)


def _say_end(descriptor: int, ended: int | None) -> None:
    if ended is not None:
        _say(descriptor, ended)


def kill_family(adopts: bool) -> None:
    """Kill all descendants, and what they start meanwhile."""
    if not adopts:
        # The worker's session is that of this process.
        os.killpg(0, signal.SIGKILL)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        _reap(-1)
        family = _descendants(os.getpid())
        if not family:
            return
        # Stopped first: none of them can start another while the rest is looked for.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in family:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        time.sleep(_PAUSE)


def _descendants(root: int) -> list[int]:
    """Process ids of all descendants that are not dead yet."""
    children: dict[int, list[int]] = {}
    dead = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as source:
                # The name of the program, in parentheses, may hold anything.
                state, parent = source.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(name))
        if state in (b"Z", b"X"):
            dead.add(int(name))
    family: list[int] = []
    waiting = [root]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            waiting.append(pid)
            family.append(pid)
    return [pid for pid in family if pid not in dead]


if __name__ == "__main__":
    main(sys.argv[1:])
