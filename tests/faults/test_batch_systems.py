"""Studies through SLURM, PBS, SGE and LSF, as far as a machine without them can tell; long form.

The commands that submit and cancel jobs are stand-ins that start and kill the job's script here.
The scripts, the options and the conversation are those of dask-jobqueue.
"""

import os
from importlib.util import find_spec

import pytest

from .conftest import Place, numbers, only_long, wait_for

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
SCRIPT
grep -q refused-queue "$script" && { echo "no queue named refused-queue" >&2; exit 7; }
setsid sh "$script" >> "HERE/jobs.log" 2>&1 &
echo $! >> HERE/jobs
echo "SAYS"
"""
CANCEL = "#!/bin/sh\nkill -9 -- -$1\n"
QSUB, BSUB = 'for last; do :; done; cp "$last" $script', "cat > $script"
# The command that submits and how, what it says, what cancels; and what of a script stands for the
# queue and the time.
SYSTEMS = {
    "slurm": ("sbatch", QSUB, "Submitted batch job $!", "scancel", "#SBATCH -p short\n"
              "#SBATCH -t 00:20"),
    "pbs": ("qsub", QSUB, "$!.here", "qdel", "#PBS -q short\nwalltime=00:20"),
    "sge": ("qsub", QSUB, "Your job $! has been submitted", "qdel", "#$ -q short\nh_rt=00:20"),
    "lsf": ("bsub", BSUB, "Job <$!> is submitted to queue <short>.", "bkill", "#BSUB -q short\n"
            "#BSUB -W 00:20"),
}  # fmt: skip


@pytest.fixture(params=SYSTEMS)
def system(request):
    return request.param


@pytest.fixture
def place(tmp_path, system):
    place = Place(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    submit, how, says, cancel, _ = SYSTEMS[system]
    for name, text in (
        ("lsid", "#!/bin/sh\necho 'IBM Spectrum LSF Standard 10.1.0.10'\n"),
        (submit, SUBMIT.replace("SCRIPT", how).replace("SAYS", says)),
        (cancel, CANCEL),
    ):
        (programs / name).write_text(text.replace("HERE", str(tmp_path)))
        (programs / name).chmod(0o755)
    place.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    place.write_study(seeds=12)
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
def test_a_study_has_the_records_of_a_local_one_and_leaves_no_job(place, system):
    options = ("--cluster", system, "--cluster-options", "short.toml", "--out", "there")
    done = place.command("run", "small.toml", *options)
    assert done.code == 0, done
    assert len((place.folder / "jobs").read_text().split()) == 2
    script = next(place.folder.glob("script*")).read_text()
    assert [line for line in SYSTEMS[system][-1].split("\n") if line not in script] == []
    wait_for(lambda: not jobs_alive(place))
    assert place.command("run", "small.toml", "--out", "here", "--quiet").code == 0
    here, there = numbers(place.folder / "here"), numbers(place.folder / "there")
    for row in [*here.values(), *there.values()]:
        row.pop("jobs")
    assert here == there
    assert len(here) == 12


@pytest.mark.timeout(120)
def test_a_refusal_is_told_in_the_words_of_the_batch_system(place, system):
    options = ("--cluster", system, "--cluster-options", "refused-queue.toml", "--out", "there")
    ended = place.command("run", "small.toml", *options)
    assert ended.code == 4
    last = ended.err.splitlines()[-1]
    assert last.startswith(f"marginbench: --cluster {system}: no worker can be started: ")
    # dask-jobqueue throws away what bsub says when it reads the script from its input.
    assert ("bsub" if system == "lsf" else "no queue named refused-queue") in last
    assert "Exit code: 7" in last
