"""Studies on a Dask cluster whose parts are killed: the same records as here, none twice.

The long form (MARGINBENCH_FAULTS=long) has 500 runs.
"""

import random
import signal
import time
from collections import Counter

import pytest

from marginbench.harness.results.journal import Journal

from .conftest import LONG, Place, numbers, only_long, running, wait_for

pytest.importorskip("distributed", reason="needs marginbench[dask]")

from .clusters import DaskCluster

pytestmark = pytest.mark.slow
SEEDS = 499 if LONG else 7
#: Ended runs between two kills.
BETWEEN = (3, 25) if LONG else (2, 4)
KILLS = 25 if LONG else 2
#: Seconds in which what a command has started on a worker must be gone.
GONE = 30.0

OWN_ENTRY = """
[[solver]]
name = "own.py:Own"
seeds = 1
"""
OWN = """
from helper import EPOCHS
from marginbench import Pegasos

class Own(Pegasos):
    def _solve(self, problem, monitor):
        assert EPOCHS == 7
        return super()._solve(problem, monitor)
"""
SLEEP = "sleep 97531"
SLEEPER = f"""
import subprocess
from marginbench import Pegasos

class Sleeper(Pegasos):
    def _solve(self, problem, monitor):
        if problem.n > 50:
            subprocess.run({SLEEP.split()})
        return super()._solve(problem, monitor)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("clusters"))
    place.write_study(seeds=SEEDS, more=OWN_ENTRY)
    (place.folder / "own.py").write_text(OWN)
    (place.folder / "helper.py").write_text("EPOCHS = 7\n")
    (place.folder / "sleeper.py").write_text(SLEEPER)
    return place


@pytest.fixture(scope="module")
def cluster(place):
    with DaskCluster(place.folder / "cluster", place.environment) as cluster:
        cluster.replenish()
        yield cluster


def start(place, cluster, *more):
    """A command on the cluster; what it says is in a log."""
    with (place.folder / "log").open("w") as log:
        words = ("run", "small.toml", "--scheduler", cluster.address, *more)
        return place.start(*words, stdout=log, stderr=log)


@pytest.mark.timeout(3600)
def test_a_study_whose_workers_are_killed_has_the_records_of_a_local_one(place, cluster):
    local = place.start("run", "small.toml", "--out", "local", "--quiet")
    there = place.folder / "there"
    rng, kills, code = random.Random(1), Counter(), 1
    for _ in range(20):
        before = len(Journal(there).entries)
        command = start(place, cluster, "--out", "there", "--retry-failed")
        while command.poll() is None and (LONG or kills.total() < KILLS):
            enough = len(Journal(there).entries) + rng.randint(*BETWEEN)
            while command.poll() is None and len(Journal(there).entries) < enough:
                time.sleep(0.05)
            time.sleep(rng.uniform(0.0, 0.2))
            if command.poll() is not None:
                break
            kills[kill_one(cluster, rng, nanny=kills.total() % 2 == 0)] += 1
            if not LONG:
                # The other one at once, so that both start anew at the same time.
                kills[kill_one(cluster, rng, nanny=False)] += 1
        code = command.wait(3000)
        journal = Journal(there)
        ended = [journal.load(entry) for entry in journal.entries[before:]]
        assert len({record.key for record in ended}) == len(ended)
        if code == 0:
            break
        # Only what lost more workers than Dask allows has crashed; another command repeats it.
        crashed = [record.reason for record in ended if record.status == "crashed"]
        assert all("workers were lost" in reason for reason in crashed), crashed
    assert code == 0, (place.folder / "log").read_text()
    assert kills.total() >= KILLS
    assert local.wait(3000) == 0
    # But for how many workers shared the machine.
    found, here = numbers(there, "jobs"), numbers(place.folder / "local", "jobs")
    assert found == here
    assert len(journal.current) == len(found) == SEEDS + 1
    print(dict(kills))  # shown by pytest -s


def kill_one(cluster, rng, *, nanny):
    """Kill a worker, which its nanny starts anew, or a nanny, for which another one comes."""
    alive = cluster.replenish()
    workers = [worker for worker in map(cluster.worker, alive) if worker is not None]
    if nanny or not workers:
        chosen = rng.choice(alive)
        chosen.kill()
        chosen.wait()
        cluster.replenish()
        return "nanny"
    rng.choice(workers).kill()
    return "worker"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=only_long)])
def test_what_a_command_has_started_elsewhere_ends_with_it(place, cluster, number):
    def asleep():
        """What solvers have started to sleep for them, wherever it runs."""
        return running(lambda process: " ".join(process.cmdline()) == SLEEP)

    nanny = cluster.replenish()[-1]
    more = ("--solver", "sleeper.py:Sleeper", "--seeds", "2", "--out", f"stopped-{number}")
    command = start(place, cluster, *more)
    wait_for(lambda: len(asleep()) == 2, 300)
    before = cluster.worker(nanny)
    command.send_signal(number)
    code = command.wait(120)
    if number == signal.SIGINT:
        assert code == 130
        said = (place.folder / "log").read_text().splitlines()[-1]
        assert said.startswith("marginbench: interrupted; 0 of 2 runs are recorded")
    wait_for(lambda: not asleep(), GONE)
    # The Dask workers themselves go on.
    assert cluster.worker(nanny) == before
