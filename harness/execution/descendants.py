"""The descendants of a process, looked for again and again.

A machine has hundreds of processes, and to read the parent of each takes a millisecond or more. But
none becomes a descendant later: orphans go to an ancestor of theirs. So whatever has once been
found to be no descendant is not read again.
"""

from __future__ import annotations

import os
import sys

import psutil

# A process in /proc: its number, and that of its folder there, which is another one when the number
# is used again.
_Entry = tuple[int, int]


class Descendants:
    """Finds the descendants of a process.

    Parameters
    ----------
    root : int
        Its number; it is to outlive the object.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._strangers: set[_Entry] = set()

    def pids(self) -> list[int]:
        """The numbers of all descendants, also of those that have ended and are not buried."""
        if sys.platform != "linux":
            return _by_psutil(self._root)
        entries = _entries()
        self._strangers &= entries
        unknown = entries - self._strangers
        parents = {pid: _parent(pid) for pid, _ in unknown}
        strangers = {pid for pid, _ in self._strangers}
        found = []
        for entry in unknown:
            pid = entry[0]
            end = _first_known(pid, parents, self._root)
            if end == self._root:
                found.append(pid)
            elif end in strangers or end == 0:
                self._strangers.add(entry)
        return [pid for pid in found if pid != self._root]


def _by_psutil(root: int) -> list[int]:
    try:
        return [process.pid for process in psutil.Process(root).children(recursive=True)]
    except psutil.Error:
        return []


def _first_known(pid: int, parents: dict[int, int | None], root: int) -> int | None:
    """The nearest ancestor that is the root or not among these, 0 beyond the first process.

    None if a process on the way has ended meanwhile.
    """
    at: int | None = pid
    # No more steps than there are processes: numbers that are used again may make a circle.
    for _ in range(len(parents) + 1):
        if at is None or at == root or at not in parents:
            return at
        at = parents[at]
    return None


def _entries() -> set[_Entry]:
    with os.scandir("/proc") as items:
        return {(int(item.name), item.inode()) for item in items if item.name.isdigit()}


def _parent(pid: int) -> int | None:
    """The number of the parent of a process; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as source:
            # The name of the program, in parentheses, may hold anything.
            return int(source.read().rpartition(b")")[2].split()[1])
    except OSError:
        return None
