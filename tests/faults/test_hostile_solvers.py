"""Solvers that go wrong in every way: each kind of them gets the status that it deserves.

``marginbench`` runs them as a user would. No status may depend on how busy the machine is: the long
form (MARGINBENCH_FAULTS=long) runs all of them again beside processes that burn every core.
"""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from marginbench.harness.results.journal import Journal

from .conftest import LONG, Place, marked, running

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
#: What all that these tests start has in its environment.
TOKEN = uuid.uuid4().hex
TIMEOUT = 4.0
TOO_LONG = "solving took longer than"
#: Has a study of its own, with a short limit of what the others may need.
HANGS = "hangs_as_it_is_warmed_up"

#: How any code goes wrong -> the status of its run, and what the reason contains.
HARM = {
    "raises": ("failed", "ArithmeticError: step size is zero"),
    "raises_an_interrupt": ("failed", "KeyboardInterrupt"),
    "raises_without_text": ("failed", "Cruel"),
    "raises_a_long_text_of_controls": ("failed", r"a\x00b\x1b[31mc\u202ed\u2066e\x07xxx"),
    "raises_out_of_memory": ("memory", "out of memory while solving"),
    "blames_the_data": ("failed", "adult: cannot be fetched"),
    "blames_the_disk": ("failed", "No space left on device"),
    "exits": ("failed", "SystemExit"),
    "exits_at_once": ("crashed", "the process ended with exit code 0 while solving"),
    "segfaults": ("crashed", "killed by SIGSEGV while solving"),
    "kills_its_guardian": ("crashed", "while solving"),
    "loops": ("timeout", TOO_LONG),
    "ignores_signals_and_hangs": ("timeout", TOO_LONG),
    "leaves_a_daemon": ("", ""),
    "leaves_a_child_and_crashes": ("crashed", "killed by SIGABRT while solving"),
    "leaves_many": ("", ""),
    "prints_much_and_leaves_threads": ("", ""),
    "stops_within_a_message": ("timeout", "solving took longer than 4 s"),
    "closes_everything": ("crashed", "the process closed its connection"),
}
#: Of each kind of solvers what is tried: how it goes wrong besides, too. What lies of the SVM are
#: found by is in tests/harness/svm/test_measurement.py.
TRIED = {
    "solver": {
        **HARM,
        "hangs_in_one_pause": ("timeout", "evaluating the model took longer than 6 s"),
        "hangs_in_its_predictions": ("timeout", "evaluating the model took longer than 6 s"),
        "changes_its_labels": ("", ""),
    },
    "estimator": HARM if LONG else {how: HARM[how] for how in ("raises", "leaves_a_daemon")},
    "method": {
        # A method that loops is killed a minute after its limit.
        **(HARM if LONG else {how: HARM[how] for how in ("raises", "segfaults")}),
        # So much time it may take where the machine is busy.
        "eats": ("memory", "more than 700 MB resident while solving"),
        "has_a_child_that_eats": ("memory", "more than 700 MB resident while solving"),
        HANGS: ("timeout", "warming up the solver took longer than 20 s"),
        "returns_a_long_point": ("wrong", "x is no vector of 100 real numbers"),
        "has_an_endless_history": ("", ""),
        "counts_too_far_in_its_history": ("wrong", "a point that no run can have"),
        "takes_less_than_no_time": ("", ""),
    },
}
if LONG:
    # Methods end by themselves in that time, and are killed a minute later.
    TRIED["method"]["stops_within_a_message"] = ("timeout", "solving took longer than 64 s")
CASES = [(kind, how) for kind, tried in TRIED.items() for how in tried]

STUDY = f"""
name = "hostile"
seeds = 1
[budget]
timeout = {TIMEOUT}
evaluation_timeout = 6.0
compile_timeout = 300.0
memory = 700.0
[[task]]
dataset = "checkers"
dataset_params = {{ n_train = 200, n_test = 100 }}
gamma = 10.0
C = 1.0
fit_intercept = true
[[solver]]
name = "SMO"
label = "before"
"""
FEASIBILITY = f"""
name = "hostile-methods"
kind = "feasibility"
[budget]
timeout = {TIMEOUT if LONG else 60.0}
compile_timeout = 300.0
memory = 700.0
[[cell]]
label = "easy"
generator = "ldfp"
m = 8
n = 100
kappa = 1.5
instances = 1
tol = 0.0
"""


def entries(table, cls, tried, params=""):
    return "".join(
        f'[[{table}]]\nname = "{HERE}/hostile.py:{cls}"\nlabel = "{cls} {how}"\n'
        f'params = {{ how = "{how}"{params} }}\n'
        for how in tried
    )


def begin(study, folder):
    """Start a command that runs the study in this folder."""
    folder.mkdir()
    (folder / "hostile.toml").write_text(study)
    words = ("run", "hostile.toml", "--out", "results", "--jobs", "3")
    with (folder / "log").open("w") as log:
        started = {"stdout": log, "stderr": log, "env": {"MARGINBENCH_TEST": TOKEN}}
        return Place(folder).start(*words, **started)


def records(command, folder):
    """The records by class and harm, as soon as the command has ended."""
    code, said = command.wait(1200), (folder / "log").read_text()
    assert code == 1, said
    assert "Traceback" not in said
    assert len(said) < 200_000
    found = {}
    for record in Journal(folder / "results").records():
        cls, _, how = record.solver.rpartition(" ")
        found.setdefault(cls, {})[how] = record
    return found


@pytest.fixture(scope="module", params=["idle", "busy"] if LONG else ["idle"])
def folder(request, tmp_path_factory):
    """Beside processes that burn every core, if it is to be busy."""
    cores = (os.cpu_count() or 1) + 1 if request.param == "busy" else 0
    command = [sys.executable, "-c", "while True: pass"]
    burning = [subprocess.Popen(command) for _ in range(cores)]
    yield tmp_path_factory.mktemp(f"hostile-{request.param}")
    for process in burning:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def ended(folder):
    """How each ended, by kind; all at once, as most of them wait for their limits."""
    solvers = entries("solver", "Hostile", TRIED["solver"])
    solvers += entries("solver", "HostileClassifier", TRIED["estimator"], ", gamma = 10.0")
    others = [how for how in TRIED["method"] if how != HANGS]
    studies = {
        "svm": STUDY + solvers,
        "feasibility": FEASIBILITY + entries("method", "HostileMethod", others),
        "hanging": FEASIBILITY.replace("compile_timeout = 300.0", "compile_timeout = 20.0")
        + entries("method", "HostileMethod", [HANGS]),
    }
    commands = [(begin(study, folder / name), folder / name) for name, study in studies.items()]
    svm, feasibility, hanging = (records(*each) for each in commands)
    return {
        "solver": svm["Hostile"] | svm[""],
        "estimator": svm["HostileClassifier"],
        "method": feasibility["HostileMethod"] | hanging["HostileMethod"],
    }


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_each_gets_the_status_it_deserves(kind, how, ended):
    status, reason = TRIED[kind][how]
    found = ended[kind][how]
    expected = {status} if status else {"converged", "budget"}
    assert found.status in expected, found.reason
    assert reason in found.reason
    assert "\n" not in found.reason
    assert len(found.reason) < 1000


def test_no_process_or_file_is_left(ended, folder):
    assert ended
    assert running(lambda process: "97531" in " ".join(process.cmdline())) == []
    assert marked(TOKEN) == []
    assert {path.name for path in (folder / "svm" / "results").iterdir()} == {
        "facts.json", "journal", "report.html", "runs.parquet", "study.json",
    }  # fmt: skip


@pytest.mark.parametrize("how", ["changes_its_labels", "prints_much_and_leaves_threads"])
def test_what_a_solver_does_besides_changes_no_result(how, ended):
    honest, record = ended["solver"]["before"], ended["solver"][how]
    for name in ("test_error", "train_error", "primal", "dual", "n_support", "counters"):
        assert getattr(record, name) == getattr(honest, name)
    assert [item.primal for item in record.trace] == [item.primal for item in honest.trace]


def test_runs_that_are_cut_short_keep_their_trace(ended):
    honest = [item.primal for item in ended["solver"]["before"].trace][:-1]
    assert honest
    cut_short = ["ignores_signals_and_hangs", "closes_everything", "loops", "exits_at_once"]
    for how in (*cut_short, "raises", "segfaults"):
        assert [item.primal for item in ended["solver"][how].trace] == honest


def test_limits_hold_failures_have_their_place_and_pages_and_records_stay_small(ended, folder):
    found = ended["solver"]
    assert found["loops"].wall_s >= TIMEOUT
    assert 700 < ended["method"]["eats"].peak_memory_mb < 1600
    # Of a crash, from the fault handler.
    for how in ("raises", "segfaults"):
        assert f"in {how}" in found[how].traceback
    assert len(ended["method"]["has_an_endless_history"].trace) <= 5000
    results = folder / "svm" / "results"
    assert (results / "report.html").stat().st_size < 2_000_000
    assert max(entry.size for entry in Journal(results).entries) < 400_000
    assert json.loads((results / "study.json").read_text())
