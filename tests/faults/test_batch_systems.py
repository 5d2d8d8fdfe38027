"""Studies through SLURM, PBS, SGE and LSF, as far as a machine without them
can tell; long form only.

The commands that submit and cancel jobs are stand-ins that start and kill the job's script here.
The scripts, the options and the conversation are those of dask-jobqueue.
"""

import os
import subprocess
from importlib.util import find_spec

import pytest

from .conftest import Place, numbers, only_long, wait_for

# Not imported to look: it replaces the handler of Ctrl-C.
if find_spec("dask_jobqueue") is None:
    pytest.skip("needs marginbench[dask]", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,
    only_long,
]
STUDY = """
name = "batch"
seeds = 12
[[task]]
dataset = "checkers"
dataset_params = { n_train = 80, n_test = 40 }
gamma = 10.0
C = 1.0
[[solver]]
name = "Pegasos"
params = { max_epochs = 3 }
"""
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
SCRIPT
grep -q refused-queue "$script" && { echo "no queue named refused-queue" >&2; exit 7; }
setsid sh "$script" >> "HERE/jobs.log" 2>&1 &
echo $! >> HERE/jobs
echo "SAYS"
"""
CANCEL = "#!/bin/sh\nkill -9 -- -$1\n"
QSUB, BSUB = 'for last; do :; done; cp "$last" $script', "cat > $script"
COMMANDS = {
    "slurm": {"sbatch": (QSUB, "Submitted batch job $!"), "scancel": None},
    "pbs": {"qsub": (QSUB, "$!.here"), "qdel": None},
    "sge": {"qsub": (QSUB, "Your job $! has been submitted"), "qdel": None},
    "lsf": {"bsub": (BSUB, "Job <$!> is submitted to queue <short>."), "bkill": None},
}
# Of the scripts: what stands for the queue and for the time.
DIRECTIVES = {
    "slurm": ["#SBATCH -p short", "#SBATCH -t 00:20"],
    "pbs": ["#PBS -q short", "walltime=00:20"],
    "sge": ["#$ -q short", "h_rt=00:20"],
    "lsf": ["#BSUB -q short", "#BSUB -W 00:20"],
}


@pytest.fixture
def place(tmp_path, request):
    place = Place(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    scripts = {"lsid": "#!/bin/sh\necho 'IBM Spectrum LSF Standard 10.1.0.10'\n"}
    for name, how in COMMANDS[request.getfixturevalue("system")].items():
        scripts[name] = CANCEL
        if how is not None:
            scripts[name] = SUBMIT.replace("SCRIPT", how[0]).replace("SAYS", how[1])
    for name, text in scripts.items():
        (programs / name).write_text(text.replace("HERE", str(tmp_path)))
        (programs / name).chmod(0o755)
    place.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    (tmp_path / "batch.toml").write_text(STUDY)
    for queue in ("short", "refused-queue"):
        text = OPTIONS.replace("QUEUE", queue).replace("FOLDER", str(tmp_path))
        (tmp_path / f"{queue}.toml").write_text(text)
    return place


def jobs_alive(place):
    found = []
    for group in map(int, (place.folder / "jobs").read_text().split()):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            continue
        found.append(group)
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("system", COMMANDS)
def test_a_study_has_the_records_of_a_local_one_and_leaves_no_job(place, system):
    options = ("--cluster", system, "--cluster-options", "short.toml", "--out", "there")
    done = place.command("run", "batch.toml", *options)
    assert done.code == 0, done
    assert len((place.folder / "jobs").read_text().split()) == 2
    script = next(place.folder.glob("script*")).read_text()
    assert [line for line in DIRECTIVES[system] if line not in script] == []
    wait_for(lambda: not jobs_alive(place))
    assert place.command("run", "batch.toml", "--out", "here", "--quiet").code == 0
    here, there = numbers(place.folder / "here"), numbers(place.folder / "there")
    for row in [*here.values(), *there.values()]:
        row.pop("jobs")
    assert here == there
    assert len(here) == 12


@pytest.mark.timeout(120)
@pytest.mark.parametrize("system", COMMANDS)
def test_a_refusal_is_told_in_the_words_of_the_batch_system(place, system):
    options = ("--cluster", system, "--cluster-options", "refused-queue.toml", "--out", "there")
    with (place.folder / "log").open("w") as log:
        command = place.start("run", "batch.toml", *options, stderr=log, stdout=subprocess.DEVNULL)
    assert command.wait(100) == 4
    last = (place.folder / "log").read_text().splitlines()[-1]
    assert last.startswith(f"marginbench: --cluster {system}: no worker can be started: ")
    # dask-jobqueue throws away what bsub says when it reads the script from its input.
    words = "bsub" if system == "lsf" else "no queue named refused-queue"
    assert words in last
    assert "Exit code: 7" in last
