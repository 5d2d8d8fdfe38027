"""Commands and workers killed at random moments: whatever is lost is done again, the same.

The long form (MARGINBENCH_FAULTS=long) kills 60 times, in studies of twice as many runs.
"""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import uuid

import psutil
import pytest

from marginbench.data_loaders.atomic import UNFINISHED

from .conftest import LONG, Place, marked, numbers, wait_for

pytestmark = pytest.mark.slow
KILLS = 60 if LONG else 3
SEEDS = 4 if LONG else 1
SEED = 20
#: Seconds after its start in which a command is killed: while it plans, runs and writes its page.
LATEST = 7.0
#: Seconds in which all that a dead command has started must be gone.
PATIENCE = 10.0
#: What all that these tests start has in its environment.
TOKEN = uuid.uuid4().hex

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
[[solver]]
name = "SMO"
[[solver]]
name = "SBP"
[[solver]]
name = "own.py:Own"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("kills"))
    place.environment["MARGINBENCH_TEST"] = TOKEN
    (place.folder / "own.py").write_text(OWN)
    (place.folder / "killed.toml").write_text(STUDY.replace("SEEDS", str(SEEDS)))
    return place


@pytest.fixture(scope="module")
def undisturbed(place):
    """The records of two commands at once, which share the runs; nobody kills them."""
    both = [start(place, "shared") for _ in range(2)]
    assert [command.wait(300) for command in both] == [0, 0], log_of(place, "shared")
    assert leftovers(place.folder / "shared") == []
    return numbers(place.folder / "shared")


def start(place, name, *more):
    with (place.folder / f"{name}.log").open("a") as log:
        return place.start("run", "killed.toml", "--out", name, *more, stdout=log, stderr=log)


def log_of(place, name):
    return (place.folder / f"{name}.log").read_text()


def kill(way, command, rng):
    if way == "group":
        os.killpg(command.pid, signal.SIGKILL)
    elif way == "command":
        command.kill()
    else:  # a worker, a guardian, or what a solver has started
        with contextlib.suppress(psutil.Error, IndexError):
            rng.choice(psutil.Process(command.pid).children(recursive=True)).kill()


@pytest.mark.timeout(3600)
def test_a_study_that_is_killed_again_and_again_ends_as_an_undisturbed_one(place, undisturbed):
    rng = random.Random(SEED)
    kills = rounds = 0
    while kills < KILLS:
        name = f"results-{rounds}"
        rounds += 1
        for attempt in range(KILLS - kills):
            command = start(place, name, "--retry-failed")
            way = ("group", "command", "one of them")[kills % 3]
            # Sooner or later one of them gets to its end.
            with contextlib.suppress(subprocess.TimeoutExpired):
                command.wait(rng.uniform(0.0, LATEST * (1 + attempt / 4)))
            if command.poll() is not None:
                break
            kill(way, command, rng)
            kills += 1
            code = command.wait(120)
            if way == "one of them":
                # The others went on: a run that lost its worker is said to have crashed.
                assert code in (0, 1), log_of(place, name)
            wait_for(lambda: not marked(TOKEN), PATIENCE)
        last = start(place, name, "--retry-failed")
        assert last.wait(300) == 0, log_of(place, name)
        assert "Traceback" not in log_of(place, name)
        assert numbers(place.folder / name) == undisturbed
        assert leftovers(place.folder / name) == []
        assert plan_of(place, name) == plan_of(place, "shared")
    print(f"{kills} kills in {rounds} studies")  # shown by pytest -s


def plan_of(place, name):
    return json.loads((place.folder / name / "study.json").read_text())["planned"]


def leftovers(results):
    """Whatever does not belong into a results folder; a killed process may leave what it wrote."""
    known = {"report.html", "journal", "runs.parquet", "study.json", "facts.json"}
    unfinished = re.compile(rf"{re.escape(UNFINISHED)}\w+-({'|'.join(known)})\.part")
    names = {path.name for path in results.iterdir()}
    return [name for name in names - known if not unfinished.fullmatch(name)]
