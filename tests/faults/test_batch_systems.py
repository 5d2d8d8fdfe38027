"""Studies through SLURM, as far as a machine without it can tell; long form.

The commands that submit and cancel jobs are stand-ins that start and kill the job's script here.
The scripts, the options and the conversation are those of dask-jobqueue, as for PBS, SGE and LSF.
"""

import os
from importlib.util import find_spec

import pytest

from .conftest import numbers, only_long, running, wait_for

# Not imported to look: it replaces the handler of Ctrl-C.
if find_spec("dask_jobqueue") is None:
    pytest.skip("needs marginbench[dask]", allow_module_level=True)

pytestmark = [pytest.mark.slow, only_long]
OPTIONS = """
[cluster]
jobs = 2
cores = 1
memory = "400MB"
walltime = "00:20"
queue = "QUEUE"
interface = "lo"
local_directory = "FOLDER/scratch"
log_directory = "FOLDER/logs"
"""
# A job's number is that of the process group of its script.
SUBMIT = """#!/bin/sh
script=HERE/script$$
cp "$1" $script
grep -q refused-queue "$script" && { echo "no queue named refused-queue" >&2; exit 7; }
setsid sh "$script" >> "HERE/jobs.log" 2>&1 &
echo $! >> HERE/jobs
echo "Submitted batch job $!"
"""
CANCEL = "#!/bin/sh\nkill -9 -- -$1\n"


@pytest.fixture
def command(place):
    """Runs a study by jobs in a queue; how it ended."""
    programs = place.folder / "programs"
    programs.mkdir()
    for name, text in (("sbatch", SUBMIT), ("scancel", CANCEL)):
        (programs / name).write_text(text.replace("HERE", str(place.folder)))
        (programs / name).chmod(0o755)
    place.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    place.write_study(seeds=12)

    def run(queue):
        text = OPTIONS.replace("QUEUE", queue).replace("FOLDER", str(place.folder))
        (place.folder / "options.toml").write_text(text)
        options = ("--cluster", "slurm", "--cluster-options", "options.toml", "--out", "there")
        return place.command("run", "small.toml", *options)

    return run


@pytest.mark.timeout(600)
def test_a_study_has_the_records_of_a_local_one_and_leaves_no_job(command, place):
    ended = command("short")
    assert ended.code == 0, ended
    jobs = [int(group) for group in (place.folder / "jobs").read_text().split()]
    assert len(jobs) == 2
    script = next(place.folder.glob("script*")).read_text()
    assert "#SBATCH -p short" in script
    assert "#SBATCH -t 00:20" in script
    wait_for(lambda: not running(lambda process: os.getpgid(process.pid) in jobs))
    assert place.command("run", "small.toml", "--out", "here", "--quiet").code == 0
    here, there = (numbers(place.folder / name, "jobs") for name in ("here", "there"))
    assert here == there
    assert len(here) == 12


@pytest.mark.timeout(120)
def test_a_refusal_is_told_in_the_words_of_the_batch_system(command):
    ended = command("refused-queue")
    assert ended.code == 4
    last = ended.err.splitlines()[-1]
    assert last.startswith("marginbench: --cluster slurm: no worker can be started: ")
    assert "no queue named refused-queue" in last
    assert "Exit code: 7" in last
