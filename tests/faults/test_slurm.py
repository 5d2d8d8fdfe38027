"""A study through SLURM on this machine, with jobs that SLURM cancels; only in the long form."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from marginbench.harness.results.journal import Journal

from .conftest import LONG, Place, numbers, wait_for

# Not imported to look: it replaces the handler of Ctrl-C.
if find_spec("dask_jobqueue") is None:
    pytest.skip("needs marginbench[dask]", allow_module_level=True)

from .clusters import lines
from .slurm import Slurm, SlurmError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not LONG, reason="MARGINBENCH_FAULTS=long is not set"),
]
OPTIONS = """
[cluster]
jobs = JOBS
cores = 1
memory = "400MB"
walltime = "00:20:00"
interface = "lo"
local_directory = "FOLDER/scratch"
log_directory = "FOLDER/logs"
"""
STUDY = """
name = "shared"
seeds = 60
[[task]]
dataset = "checkers"
dataset_params = { n_train = 80, n_test = 40 }
gamma = 10.0
C = 1.0
[[solver]]
name = "Pegasos"
params = { max_epochs = 3 }
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    try:
        with Slurm() as slurm:
            yield slurm
    except SlurmError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, slurm: Slurm) -> Place:
    place = Place(tmp_path_factory.mktemp("slurm"))
    place.environment |= slurm.environment
    (place.folder / "shared.toml").write_text(STUDY)
    for jobs in (1, 2):
        text = OPTIONS.replace("JOBS", str(jobs)).replace("FOLDER", str(place.folder))
        (place.folder / f"slurm{jobs}.toml").write_text(text)
    return place


def start(place: Place, log: str, *more: str) -> subprocess.Popen[str]:
    with (place.folder / log).open("w") as stderr:
        options = ("shared.toml", "--cluster", "slurm", "--log-json", *more)
        return place.start("run", *options, stderr=stderr, stdout=subprocess.DEVNULL)


def ended(file: Path) -> int:
    return sum(item["event"] == "ended" for item in lines(file))


@pytest.mark.timeout(1800)
def test_a_study_whose_jobs_are_cancelled_has_the_records_of_a_local_one(
    place: Place, slurm: Slurm
) -> None:
    log = place.folder / "cancelled.log"
    more = ("--cluster-options", "slurm2.toml", "--out", "there")
    command = start(place, log.name, *more)
    wait_for(lambda: ended(log) >= 10, 300)
    first = slurm.says("squeue", "--noheader", "--format=%i").split()[0]
    slurm.says("scancel", first)
    assert command.wait(600) == 0, log.read_text()
    assert ended(log) == 60
    # Nothing is left in the queue.
    wait_for(lambda: not slurm.says("squeue", "--noheader").strip())
    assert place.command("run", "shared.toml", "--out", "here", "--quiet").code == 0
    here, there = numbers(place.folder / "here"), numbers(place.folder / "there")
    assert {row.pop("jobs") for row in here.values()} == {1}
    assert {row.pop("jobs") for row in there.values()} <= {1, 2}
    assert here == there
    # The command again has nothing to do, and starts no cluster.
    assert start(place, log.name, *more).wait(120) == 0
    assert ended(log) == 0


@pytest.mark.timeout(1800)
def test_timing_does_one_run_at_a_time_on_a_machine(place: Place) -> None:
    log = place.folder / "timing.log"
    more = ("--cluster-options", "slurm2.toml", "--out", "timed", "--timing", "--seeds", "6")
    assert start(place, log.name, *more).wait(600) == 0, log.read_text()
    said = [item["text"] for item in lines(log) if item["event"] == "message"]
    assert any(line.startswith("timing on 1 of 1 machine: ") for line in said)
    running = [item["running"] for item in lines(log) if item["event"] == "ended"]
    assert running == [0] * 6
    assert {record.jobs for record in Journal(place.folder / "timed").records()} == {1}


@pytest.mark.timeout(600)
def test_what_slurm_refuses_is_told_in_its_own_words(place: Place) -> None:
    file = place.folder / "refused.toml"
    file.write_text((place.folder / "slurm1.toml").read_text() + 'queue = "nosuch"\n')
    more = ("--cluster-options", file.name, "--out", "refused")
    assert start(place, "refused.log", *more).wait(120) == 4
    said = (place.folder / "refused.log").read_text().splitlines()
    assert said[-1].startswith("marginbench: --cluster slurm: no worker can be started: sbatch")
    assert "invalid partition specified: nosuch" in said[-1]
