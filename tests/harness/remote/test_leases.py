"""Claims: of several commands one has what it claims, also where others were killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from marginbench.harness.results.remote import leases
from marginbench.harness.results.remote.folder_objects import FolderObjects
from marginbench.harness.results.remote.leases import EXPIRE_S, Leases
from marginbench.harness.results.remote.objects import Entry

Begin = Callable[..., Leases]


class Clock(FolderObjects):
    """A store whose clock the test sets; it has nothing to do with that of the machine."""

    def __init__(self, objects: FolderObjects) -> None:
        super().__init__(str(objects.folder), objects.place)
        self.now = 1e6
        self._changed: dict[str, float] = {}

    def put(self, name: str, content: bytes) -> str:
        self._changed[name] = self.now
        return super().put(name, content)

    def list(self, prefix: str) -> dict[str, Entry]:
        found = super().list(prefix)
        return {name: Entry(e.tag, self._changed.get(name, self.now)) for name, e in found.items()}


@pytest.fixture
def clock(objects: FolderObjects) -> Clock:
    return Clock(objects)


@pytest.fixture
def begin(clock: Clock) -> Begin:
    def make() -> Leases:
        found = Leases(clock)
        found._renew()  # no thread: the test decides when there is a sign of life
        return found

    return make


def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each command ran on a machine of its own."""
    monkeypatch.setattr(leases, "_namespace", lambda: "")


def test_what_one_command_has_claimed_no_other_claims(begin: Begin) -> None:
    one, other = begin(), begin()
    assert one.claim("run", {}) is None
    owner = other.claim("run", {})
    assert owner is not None
    assert owner["pid"] == json.loads(one._about)["pid"]
    one.release("run")
    assert other.claim("run", {}) is None


def test_a_command_that_gives_no_sign_of_life_loses_its_claims_by_the_clock_of_the_store(
    begin: Begin, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(monkeypatch)
    one, other, third = begin(), begin(), begin()
    assert one.claim("run", {}) is None
    clock.now += EXPIRE_S - 1
    other._renew()
    assert other.claim("run", {}) is not None
    clock.now += 2
    other._renew()
    third._renew()
    assert other.claim("run", {}) is None
    # Also after the first has come back, it is that of the second.
    assert third.claim("run", {}) is not None
    other.release("run")
    one._renew()
    assert third.claim("run", {}) is not None


@pytest.mark.slow
def test_a_command_of_this_machine_that_was_killed_is_not_waited_for(clock: Clock) -> None:
    script = (
        "import sys, os, signal\n"
        "from marginbench.harness.results.remote.folder_objects import FolderObjects\n"
        "from marginbench.harness.results.remote.leases import Leases\n"
        "leases = Leases(FolderObjects(sys.argv[1], ''))\n"
        "leases.begin(); leases.claim('run', {})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(clock.folder)], check=False)
    assert done.returncode == -9
    assert len(clock.list("claims")) == 1
    mine = Leases(clock)
    mine._renew()
    assert mine.claim("run", {}) is None


@pytest.mark.parametrize("killed", [False, True])
def test_of_many_at_once_one_has_it(
    begin: Begin, clock: Clock, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(monkeypatch)
    if killed:
        assert begin().claim("run", {}) is None
        clock.now += 2 * EXPIRE_S
    commands = [begin() for _ in range(8)]
    together = Barrier(len(commands))

    def claimed(command: Leases) -> bool:
        together.wait()
        return command.claim("run", {}) is None

    with ThreadPoolExecutor(len(commands)) as pool:
        assert sum(pool.map(claimed, commands)) == 1


def test_a_claim_whose_answer_was_lost_is_ones_own(begin: Begin, clock: Clock) -> None:
    create = clock.create

    def lost(name: str, content: bytes) -> bool:
        create(name, content)
        return False

    clock.create = lost  # type: ignore[method-assign]
    one = begin()
    assert one.claim("run", {}) is None
    one.release("run")
    assert clock.list("claims") == {}


def test_what_killed_commands_have_left_goes_when_no_other_is_alive(
    begin: Begin, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(monkeypatch)
    killed = begin()
    assert killed.claim("run", {}) is None
    last = begin()
    last.sweep()
    assert len(clock.list("claims")) == 1
    clock.now += 2 * EXPIRE_S
    last._renew()
    last.sweep()
    assert clock.list("claims") == {}
    last.end()
    assert clock.list("commands") == {}
