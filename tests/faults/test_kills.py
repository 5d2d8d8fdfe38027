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

# Beside Pegasos: one that is done at once, and one that leaves a process behind.
MORE = """
[[solver]]
name = "SMO"
[[solver]]
name = "own.py:Own"
"""
OWN = """
import os, time
from marginbench import SMO

class Own(SMO):
    def _solve(self, problem, monitor):
        if problem.n > 50 and os.fork() == 0:
            os.setsid()
            time.sleep(97532)
        return super()._solve(problem, monitor)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("kills"))
    place.environment["MARGINBENCH_TEST"] = TOKEN
    (place.folder / "own.py").write_text(OWN)
    place.write_study(seeds=SEEDS, more=MORE)
    return place


@pytest.fixture(scope="module")
def undisturbed(place):
    """The records and the plan of two commands at once, which share the runs; nobody kills them."""
    both = [start(place, "shared") for _ in range(2)]
    assert [command.wait(300) for command in both] == [0, 0], log_of(place, "shared")
    return contents(place.folder / "shared")


def start(place, name, *more):
    with (place.folder / f"{name}.log").open("a") as log:
        return place.start("run", "small.toml", "--out", name, *more, stdout=log, stderr=log)


def log_of(place, name):
    return (place.folder / f"{name}.log").read_text()


def contents(results):
    """What the records and the plan say; nothing may be there that does not belong there."""
    known = {"report.html", "journal", "runs.parquet", "study.json", "facts.json"}
    # A killed process may leave what it wrote.
    unfinished = re.compile(rf"{re.escape(UNFINISHED)}\w+-({'|'.join(known)})\.part")
    others = {path.name for path in results.iterdir()} - known
    assert [name for name in others if not unfinished.fullmatch(name)] == []
    return numbers(results), json.loads((results / "study.json").read_text())["planned"]


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
            if way == "group":
                os.killpg(command.pid, signal.SIGKILL)
            elif way == "command":
                command.kill()
            else:  # a worker, a guardian, or what a solver has started
                with contextlib.suppress(psutil.Error, IndexError):
                    rng.choice(psutil.Process(command.pid).children(recursive=True)).kill()
            kills += 1
            code = command.wait(120)
            if way == "one of them":
                # The others went on: a run that lost its worker is said to have crashed.
                assert code in (0, 1), log_of(place, name)
            wait_for(lambda: not marked(TOKEN), PATIENCE)
        last = start(place, name, "--retry-failed")
        assert last.wait(300) == 0, log_of(place, name)
        assert "Traceback" not in log_of(place, name)
        assert contents(place.folder / name) == undisturbed
    print(f"{kills} kills in {rounds} studies")  # shown by pytest -s
