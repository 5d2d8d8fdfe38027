"""The descendants of a process, with processes that come and go between two looks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psutil
import pytest

from marginbench.harness.execution import descendants
from marginbench.harness.execution.descendants import Descendants

# Starts a process of its own, says its number, and waits.
_PARENT = ["sh", "-c", "sleep 60 & echo $!; wait"]


@pytest.fixture
def start() -> Iterator[Callable[[], tuple[int, int]]]:
    """Starts a process with a child; the numbers of both."""
    with ExitStack() as stack:

        def started() -> tuple[int, int]:
            parent = subprocess.Popen(_PARENT, stdout=subprocess.PIPE, text=True)
            stack.callback(parent.wait)
            stack.callback(parent.kill)
            assert parent.stdout is not None
            child = int(parent.stdout.readline())
            parent.stdout.close()
            stack.callback(_kill, child)
            return parent.pid, child

        yield started


def _kill(pid: int) -> None:
    if psutil.pid_exists(pid):
        psutil.Process(pid).kill()


def test_processes_that_start_after_a_look_are_found(
    start: Callable[[], tuple[int, int]],
) -> None:
    below = Descendants(os.getpid())
    before = set(below.pids())
    first = start()
    assert set(below.pids()) == before | {*first}
    second = start()
    assert set(below.pids()) == before | {*first, *second}
    assert set(below.pids()) == {
        process.pid for process in psutil.Process().children(recursive=True)
    }


def test_only_what_is_below_the_root_is_found(start: Callable[[], tuple[int, int]]) -> None:
    (first, child), (second, _) = start(), start()
    assert Descendants(first).pids() == [child]
    below = Descendants(second)
    assert first not in below.pids()
    assert first not in below.pids()


def test_an_ended_process_is_gone_with_the_next_look(
    start: Callable[[], tuple[int, int]],
) -> None:
    parent, child = start()
    below = Descendants(parent)
    assert below.pids() == [child]
    psutil.Process(child).kill()
    deadline = time.monotonic() + 30
    while below.pids():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_stranger_is_read_once(
    start: Callable[[], tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, child = start()
    below = Descendants(parent)
    below.pids()
    read = []
    parent_of = descendants._parent
    monkeypatch.setattr(descendants, "_parent", lambda pid: read.append(pid) or parent_of(pid))
    assert below.pids() == [child]
    assert {child, parent} <= set(read)
    assert os.getpid() not in read


@pytest.mark.parametrize(
    ("parents", "end"),
    [
        ({5: 4, 4: 3}, 3),
        ({5: 4, 4: 9}, 9),
        ({5: 4, 4: None}, None),
        ({5: 4, 4: 5}, None),
        ({5: 0}, 0),
    ],
)
def test_the_way_up_ends_where_it_is_known(parents: dict[int, int | None], end: int | None) -> None:
    """Root 3: found, another process, one that ended meanwhile, a circle, the first process."""
    assert descendants._first_known(5, parents, 3) == end
