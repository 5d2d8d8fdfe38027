"""Commands and workers killed at random moments: whatever is lost is done again, the same.

The long form (MARGINBENCH_FAULTS=long) kills 60 times, in studies of twice as many runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from .conftest import LONG, numbers

pytestmark = pytest.mark.slow
KILLS = 60 if LONG else 3
SEEDS = 2 if LONG else 1
SEED = 20
#: Seconds after its start in which a command is killed: while it plans, runs and writes its page.
LATEST = 7.0
#: Seconds in which all that a dead command has started must be gone.
PATIENCE = 10.0
#: What all that these tests start has in its environment.
MARK, TOKEN = "MARGINBENCH_TEST", uuid.uuid4().hex

OWN = """
import os, subprocess, sys, time
from marginbench import SMO

class Own(SMO):
    def _solve(self, problem, monitor):
        if problem.n > 50:
            if os.fork() == 0:
                os.setsid()
                time.sleep(97532)
        return super()._solve(problem, monitor)
"""
STUDY = """
name = "killed"
seeds = SEEDS
[budget]
timeout = 60.0
[[task]]
dataset = "checkers"
dataset_params = { n_train = 300, n_test = 200 }
gamma = 10.0
C = 1.0
[[task]]
label = "linear"
dataset = "checkers"
dataset_params = { n_train = 400, n_test = 200 }
kernel = "linear"
C = 1.0
[[solver]]
name = "SMO"
[[solver]]
name = "SBP"
[[solver]]
name = "own.py:Own"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kills")
    (folder / "own.py").write_text(OWN)
    (folder / "killed.toml").write_text(STUDY.replace("SEEDS", str(SEEDS)))
    return folder


@pytest.fixture(scope="module")
def undisturbed(folder: Path) -> dict[str, dict[str, Any]]:
    done = start(folder, "undisturbed")
    assert done.wait(300) == 0, log_of(folder, "undisturbed")
    return numbers(folder / "undisturbed")


def start(folder: Path, name: str, *more: str) -> subprocess.Popen[bytes]:
    """The command, in a process group of its own."""
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "marginbench", "run", "killed.toml", "--out", name, *more],
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, MARK: TOKEN},
        )


def log_of(folder: Path, name: str) -> str:
    return (folder / f"{name}.log").read_text()


def processes() -> list[psutil.Process]:
    """Every process of the commands here, guardians and what solvers have started included."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == TOKEN and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def gone() -> bool:
    """Whether all of them end in time."""
    deadline = time.monotonic() + PATIENCE
    while processes():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def kill_group(command: subprocess.Popen[bytes], rng: random.Random) -> None:
    os.killpg(command.pid, signal.SIGKILL)


def kill_parent(command: subprocess.Popen[bytes], rng: random.Random) -> None:
    command.kill()


def kill_one_of_the_workers(command: subprocess.Popen[bytes], rng: random.Random) -> None:
    """Workers, guardians, and what solvers have started."""
    family = psutil.Process(command.pid).children(recursive=True)
    with contextlib.suppress(psutil.Error, IndexError):
        rng.choice(family).kill()


WAYS: tuple[Callable[[subprocess.Popen[bytes], random.Random], None], ...] = (
    kill_group,
    kill_parent,
    kill_one_of_the_workers,
)


@pytest.mark.timeout(3600)
def test_a_study_that_is_killed_again_and_again_ends_as_an_undisturbed_one(
    folder: Path, undisturbed: dict[str, dict[str, Any]]
) -> None:
    rng = random.Random(SEED)
    kills = {way.__name__: 0 for way in WAYS}
    rounds = 0
    while sum(kills.values()) < KILLS:
        name = f"results-{rounds}"
        rounds += 1
        for attempt in range(KILLS - sum(kills.values())):
            command = start(folder, name, "--retry-failed")
            way = WAYS[sum(kills.values()) % len(WAYS)]
            # Sooner or later one of them gets to its end.
            with contextlib.suppress(subprocess.TimeoutExpired):
                command.wait(rng.uniform(0.0, LATEST * (1 + attempt / 4)))
            if command.poll() is not None:
                break
            way(command, rng)
            kills[way.__name__] += 1
            code = command.wait(120)
            if way is kill_one_of_the_workers:
                # The others went on: a run that lost its worker is said to have crashed.
                assert code in (0, 1), log_of(folder, name)
            assert gone(), [process.cmdline() for process in processes()]
        last = start(folder, name, "--retry-failed")
        assert last.wait(300) == 0, log_of(folder, name)
        assert "Traceback" not in log_of(folder, name)
        assert numbers(folder / name) == undisturbed
        assert leftovers(folder / name) == []
    assert gone()
    print(f"{kills} in {rounds} studies")  # shown by pytest -s


def leftovers(results: Path) -> list[str]:
    """Whatever does not belong into a results folder."""
    known = {"report.html", "journal", "runs.parquet", "study.json", "sources"}
    return [path.name for path in results.iterdir() if path.name not in known]


def test_commands_at_once_share_the_runs(
    folder: Path, undisturbed: dict[str, dict[str, Any]]
) -> None:
    both = [start(folder, "shared") for _ in range(2)]
    assert [command.wait(300) for command in both] == [0, 0], log_of(folder, "shared")
    assert numbers(folder / "shared") == undisturbed
    assert leftovers(folder / "shared") == []


@pytest.fixture
def no_worker_before() -> None:
    assert gone()


def test_the_page_and_the_plan_are_those_of_the_undisturbed_study(
    folder: Path, undisturbed: dict[str, dict[str, Any]], no_worker_before: None
) -> None:
    assert undisturbed
    plans = [
        json.loads(path.read_text())["planned"] for path in sorted(folder.glob("*/study.json"))
    ]
    assert len(plans) >= 2
    assert all(plan == plans[0] for plan in plans)
