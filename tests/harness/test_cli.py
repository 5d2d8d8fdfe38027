"""The command line: one line for a mistake, the right exit code, and nothing lost on the way."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import marginbench
from marginbench.harness.cli.app import build_app, run_app
from marginbench.harness.environment import version
from marginbench.harness.errors import ReferenceFailure
from marginbench.harness.execution import runner
from marginbench.harness.execution.workbench import InProcess
from marginbench.harness.jobs import Ended, Outcome, Started
from marginbench.harness.results.description import SCHEMA_VERSION, write_description
from marginbench.harness.results.journal import Journal

from ..faults.conftest import wait_for

#: Runs of a good half second each.
STUDY = """
name = "slow"
seeds = 3
[[task]]
dataset = "checkers"
dataset_params = { n_train = 200, n_test = 100 }
gamma = 10.0
C = 1.0
reference = false
[[solver]]
name = "Pegasos"
params = { max_epochs = 1500 }
"""
#: The command, with a page that is never written.
SCRIPT = """
import time
from marginbench.harness.cli.app import build_app, run_app

def write_report(results, command, where="", quiet=False):
    time.sleep(600)

run_app(build_app(write_report))
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "No such command 'rnu'"),
        (["run", "--seedz", "3"], "No such option"),
        (["run", "--seeds", "0"], "the number of seeds must be from 1 to 200000, not 0"),
        (["run", "--seeds", "many"], "Invalid value for '--seeds'"),
        (["run", "--timeout", "-1"], "the timeout must be a number of seconds > 0, not -1"),
        (["run", "--jobs", "0"], "the number of jobs must be from 1 to 1000, not 0"),
        (["run", "--solver", "no.py:X"], "no such file: "),
        (["run", "no.toml"], "no such study file: no.toml"),
        (["report", "nowhere"], "nowhere: no results here"),
        (["data", "fetch"], "name a dataset"),
        (["data", "fetch", "digitz"], "unknown dataset 'digitz' (did you mean 'digits'?)"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"marginbench: {message}")
    assert err.count("\n") == 1


SMALL = """
name = "small"
seeds = 1
[[task]]
dataset = "checkers"
dataset_params = { n_train = 100, n_test = 50 }
gamma = 10.0
C = 1.0
reference = false
[[solver]]
name = "SMO"
seeds = 9
[[solver]]
name = "SBP"
"""


@pytest.fixture
def small(tmp_path, monkeypatch, in_this_process):
    """A folder with a study; runs of its solvers are done in this process."""

    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other limits, and other words")
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", f"{'z' * 300}.toml"],
        ["run", "--solver", f"{'z' * 300}.py:Mine"],
        ["run", "--dataset", "heart", "--solver", "SMO", "--out", "z" * 300],
        ["study", "validate", f"{'z' * 300}.toml"],
        ["new", "solver", "z" * 300],
        ["check", f"{'z' * 300}.py:Mine"],
    ],
    ids=lambda arguments: " ".join(arguments).replace("z" * 300, "z..."),
)
def test_a_path_that_no_file_can_have_is_one_line(run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert (code, out) == (4, "")
    assert err.startswith("marginbench: ")
    assert "cannot be read or written (File name too long)" in err.splitlines()[0]


def test_a_run_tells_what_it_did_and_where(run, small):
    code, out, err = run("run", "small.toml", "--solver", "smo", "--seeds", "2")
    assert code == 0
    assert out.splitlines() == [
        "2 runs: 2 converged",
        "this was a part of the study: 1 of 2 solvers",
        "report: results/small/report.html",
    ]
    assert "[2/2] checkers · SMO · seed " in err
    # The page names the command of the whole study, and this one for the seed that it has not.
    command = (small / "results/small/report.html").read_text()
    assert command.splitlines() == [
        "marginbench run small.toml",
        "marginbench run small.toml --solver smo --seeds 2",
    ]


def test_a_report_that_is_up_to_date_is_left_as_it_is(small, capsys):
    written = []

    def write_report(results, command, where="", quiet=False):
        written.append(command)
        page = results / "report.html"
        page.write_text(f"by marginbench {version()}")
        return page

    def call():
        with pytest.raises(SystemExit):
            run_app(build_app(write_report), ["run", "small.toml", "--solver", "smo"])
        return capsys.readouterr().out.splitlines()

    page = small / "results/small/report.html"
    call()
    lines = call()
    assert (len(written), lines[0].partition(":")[0]) == (1, "nothing new")
    assert lines[-1] == "report: results/small/report.html"
    page.write_text("by marginbench 0.0")
    call()
    page.unlink()
    call()
    (small / "small.toml").write_text(SMALL.replace('"small"', '"small"\ntitle = "Another"'))
    assert not any(line.startswith("nothing new") for line in call())
    assert len(written) == 4


def test_quiet_prints_the_report_and_what_failed(run, small):
    assert run("run", "small.toml", "--solver", "smo", "--quiet") == (
        0,
        "results/small/report.html\n",
        "",
    )
    # SBP takes nu from the reference optimum, of which the task wants none.
    code, out, err = run("run", "small.toml", "--quiet")
    assert (code, out) == (1, "results/small/report.html\n")
    assert err.startswith("marginbench: checkers / SBP / seed 0: failed (nu is to be that of")
    assert err.count("\n") == 1


def test_json_is_one_object_on_the_output(run, small):
    code, out, err = run("run", "small.toml", "--json")
    assert out.count("\n") == 1
    found = json.loads(out)
    (failure,) = found.pop("failures")
    assert failure.startswith("checkers / SBP / seed 0: failed")
    assert found == {
        "results": "results/small",
        "planned": 2,
        "already_recorded": 0,
        "statuses": {"converged": 1, "failed": 1},
        "data_errors": [],
        "part": "",
        "report": "results/small/report.html",
        "exit_code": code,
    }
    assert "[1/1] checkers · SMO · seed 0: converged" in err


def test_a_dry_run_runs_and_writes_nothing(run, small, monkeypatch):
    monkeypatch.setattr("marginbench.harness.execution.local.LocalPool", runner.LocalPool)
    arguments = ("run", "small.toml", "--dry-run", "--seeds", "2", "--timeout", "30")
    code, out, _ = run(*arguments, "--jobs", "4")
    assert (code, out.splitlines()) == (
        0,
        [
            "4 runs: 2 to do, 2 cannot start",
            "  checkers / SMO: 2 to do",
            "  checkers / SBP: 2 cannot start (nu is to be that of the reference optimum, but "
            "there is none: the task has reference = false; give nu a number in params)",
            # Two runs at the same time.
            "at most 30 s of solving by the timeouts; loading, warm-up and evaluation come on top",
        ],
    )
    assert not (small / "results").exists()
    run("run", "small.toml", "--solver", "smo")
    found = json.loads(run(*arguments, "--json")[1])
    assert found["runs"] == {"recorded": 1, "to do": 1, "cannot start": 2}
    assert (found["planned"], found["solving_s"]) == (4, 30.0)


def test_a_dry_run_computes_no_reference_optimum(run, small, monkeypatch):
    monkeypatch.setattr("marginbench.harness.execution.local.LocalPool", runner.LocalPool)
    monkeypatch.setenv("MARGINBENCH_CACHE", str(small / "cache"))
    text = SMALL.replace("reference = false\n", "")
    (small / "small.toml").write_text(text)

    def answer(self, jobs):
        for job in jobs:
            yield Started(job)
            try:
                yield Ended(job, Outcome("done", value=job.work.run(lambda message: None)))
            except ReferenceFailure as error:
                yield Ended(job, Outcome("failed", reason=f"ReferenceFailure: {error}"))

    monkeypatch.setattr(InProcess, "execute", answer)
    code, out, err = run("run", "small.toml", "--dry-run")
    assert (code, err.splitlines()) == (
        0,
        ["the reference optimum of checkers is computed first, in at most 1800 s"],
    )
    assert out.splitlines()[0] == "2 runs: 2 to do"
    assert not (small / "cache" / "references").exists()


def test_a_folder_is_explained(run, small, monkeypatch):
    run("run", "small.toml", "--solver", "smo")
    monkeypatch.setattr("marginbench.harness.execution.local.LocalPool", runner.LocalPool)
    code, out, _ = run("explain", "results/small")
    assert code == 0
    first, *lines = out.splitlines()
    assert first == "2 runs: 1 recorded, 1 missing"
    assert lines == [
        "recorded    checkers / SMO / seed 0: its record is current (converged)",
        "missing     checkers / SBP / seed 0: no record; it cannot start: nu is to be that of the "
        "reference optimum, but there is none: the task has reference = false; give nu a number "
        "in params",
    ]
    code, out, _ = run("explain", "results/small", "checkers/SMO/0", "--json")
    (found,) = json.loads(out)
    assert (code, found["state"], found["differences"]) == (0, "recorded", [])
    code, _, err = run("explain", "results/small", "nothing")
    assert (code, err.count("\n")) == (2, 1)
    assert "no planned run 'nothing'" in err


def test_version_and_help(run):
    assert run("--version")[1].startswith("marginbench 0.")
    code, out, _ = run()
    assert code == 0
    for command in ("run", "report", "solvers", "data"):
        assert f"  {command} " in out


def test_data_are_fetched_and_verified(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path))
    assert run("data", "verify", "digits")[0] == 0
    assert "\ndigits " in run("data", "list")[1]
    code, out, _ = run("data", "fetch", "Digits")
    assert code == 0
    path = Path(out.split(": ", 1)[1].strip())
    assert path.is_file()
    assert run("data", "verify", "digits")[1].startswith("digits: ok")
    path.write_bytes(path.read_bytes()[:1000])
    code, out, _ = run("data", "verify")
    assert code == 3
    assert "digits: damaged" in out


def test_a_bug_is_not_hidden(capsys, tmp_path):
    def write_report(results, command, where="", quiet=False):
        raise RuntimeError("a bug")

    write_description(tmp_path, {"schema_version": SCHEMA_VERSION})
    with pytest.raises(RuntimeError, match="a bug"):
        run_app(build_app(write_report), ["report", str(tmp_path)])


@pytest.fixture
def script(tmp_path):
    """Starts the command in a process of its own, in an empty folder with a study."""
    (tmp_path / "slow.toml").write_text(STUDY)
    (tmp_path / "command.py").write_text(SCRIPT)
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "command.py", *arguments],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Where these tests run in the background of a script, Ctrl-C is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_second_interrupt_ends_the_report_at_once(script, tmp_path):
    process = script("run", "slow.toml")
    wait_for(lambda: Journal(tmp_path / "results" / "slow").entries)
    process.send_signal(signal.SIGINT)
    while "writing the report" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (130, "marginbench: interrupted\n")


def test_every_public_name_is_found():
    names = dir(marginbench)
    assert {"run", "report", "load_study", "load_results", "SMO"}.issubset(names)
    assert all(hasattr(marginbench, name) for name in names)
