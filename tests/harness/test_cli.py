"""The command line: one line for a mistake, the right exit code, and nothing lost on the way."""

import json
import shutil
import signal
import sys
from pathlib import Path

import pytest

import marginbench
from marginbench.harness.environment import version
from marginbench.harness.execution import runner
from marginbench.harness.results.description import SCHEMA_VERSION, write_description

#: No file can have this name.
LONG = "z" * 300
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


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        (2, ["xyz"], "No such command 'xyz' (see 'marginbench --help')\n"),
        (2, ["run", "--seeds", "0"], "the number of seeds must be from 1 to 200000, not 0"),
        (2, ["run", "--seeds", "many"], "Invalid value for '--seeds'"),
        (2, ["run", "--timeout", "-1"], "the timeout must be a number of seconds > 0, not -1"),
        (2, ["run", "--jobs", "1000000000"], "the number of jobs must be from 1 to 1000, not 1"),
        (2, ["run", "--solver", "no.py:X"], "no such file: "),
        (2, ["run", "no.toml"], "no such study file: no.toml"),
        (2, ["report", "nowhere"], "nowhere: no results here"),
        (2, ["report", "file:///no/such"], "file:///no/such: no results here (study.json is"),
        (2, ["watch", "file:///no/such"], "file:///no/such: no results here yet"),
        (2, ["watch", ".", "--every", "0"], "--every must be more than 0 seconds, not 0"),
        (2, ["data", "fetch"], "name a dataset"),
        (2, ["data", "fetch", "digitz"], "unknown dataset 'digitz' (did you mean 'digits'?)"),
        (4, ["run", f"{LONG}.toml"], ""),
        (4, ["run", "--solver", f"{LONG}.py:Mine"], ""),
        (4, ["run", "--dataset", "heart", "--solver", "SMO", "--out", LONG], ""),
    ],
    ids=lambda value: " ".join(value).replace(LONG, "z...") if isinstance(value, list) else None,
)
def test_a_mistake_is_one_line(run, tmp_path, monkeypatch, code, arguments, message):
    if any("file://" in argument for argument in arguments):
        pytest.importorskip("obstore", reason="of the extra 'cloud' and the group 'dev'")
    monkeypatch.chdir(tmp_path)
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert err.startswith(f"marginbench: {message}")
    assert err.count("\n") == 1
    assert code == 2 or "cannot be read or written (File name too long)" in err


@pytest.fixture
def small(tmp_path, monkeypatch, in_this_process):
    """A folder with a study; runs of its solvers are done in this process."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path


def test_a_run_tells_what_it_did_and_where(run, small):
    words = ("--seeds", "2", "--jobs", "2", "--timeout", "12345.678")
    code, out, err = run("run", "small.toml", "--solver", "smo", *words)
    assert code == 0
    assert out.splitlines() == [
        "tables",
        "2 runs: 2 converged",
        "this was a part of the study: 1 of 2 solvers",
        "report: results/small/report.html",
    ]
    assert "[2/2] checkers · SMO · seed " in err
    # The page names the commands that made it.
    command = (small / "results/small/report.html").read_text()
    assert command == (
        "marginbench run small.toml --solver smo --seeds 2 --timeout 12345.678 --jobs 2"
    )
    # Quiet: the report, and what failed. SBP takes nu from the optimum, and there is none.
    quiet = run("run", "small.toml", "--solver", "smo", "--quiet")
    assert quiet == (0, "results/small/report.html\n", "")
    code, out, err = run("run", "small.toml", "--quiet")
    assert (code, out) == (1, "results/small/report.html\n")
    assert err.startswith("marginbench: checkers / SBP / seed 0: failed (nu is to be that of")
    assert err.count("\n") == 1
    # With --json one object, and what happens on the other stream.
    shutil.rmtree(small / "results")
    code, out, err = run("run", "small.toml", "--json")
    assert (code, out.count("\n")) == (1, 1)
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
        "exit_code": 1,
    }
    assert "[1/1] checkers · SMO · seed 0: converged" in err
    # With --log-json an object for each event.
    _, _, err = run("run", "small.toml", "--solver", "smo", "--seeds", "2", "--log-json")
    events = [json.loads(line)["event"] for line in err.splitlines()]
    assert events == ["message", "begin", "started", "ended", "end"]


def test_a_report_that_is_up_to_date_is_left_as_it_is(command, small):
    written = []

    def write_report(results, command, where="", quiet=False):
        written.append(command)
        page = results / "report.html"
        page.write_text(f"by marginbench {version()}")
        return page

    def call():
        words = ("run", "small.toml", "--solver", "smo")
        return command(*words, page=write_report)[1].splitlines()

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


def test_a_dry_run_solves_and_writes_nothing(run, small, monkeypatch):
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
    # Nor is the reference optimum computed.
    monkeypatch.setenv("MARGINBENCH_CACHE", str(small / "cache"))
    (small / "small.toml").write_text(SMALL.replace("reference = false\n", ""))
    code, out, err = run("run", "small.toml", "--dry-run")
    assert (code, out.splitlines()[0]) == (0, "2 runs: 1 recorded, 1 to do")
    assert err == "the reference optimum of checkers is computed first, in at most 1800 s\n"
    assert not (small / "cache" / "references").exists()


def test_a_folder_is_explained(run, small, monkeypatch):
    run("run", "small.toml", "--solver", "smo")
    monkeypatch.setattr("marginbench.harness.execution.local.LocalPool", runner.LocalPool)
    code, out, _ = run("explain", "results/small")
    first, recorded, missing = out.splitlines()
    assert (code, first) == (0, "2 runs: 1 recorded, 1 missing")
    assert recorded == "recorded    checkers / SMO / seed 0: its record is current (converged)"
    assert missing.startswith("missing     checkers / SBP / seed 0: no record; it cannot start: nu")
    code, out, _ = run("explain", "results/small", "checkers/SMO/0", "--json")
    (found,) = json.loads(out)
    assert (code, found["state"], found["differences"]) == (0, "recorded", [])
    code, _, err = run("explain", "results/small", "nothing")
    assert (code, err.count("\n"), "no planned run 'nothing'" in err) == (2, 1, True)


def test_data_are_fetched_and_verified(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path))
    assert run("data", "verify", "digits")[0] == 0
    assert "\ndigits " in run("data", "list")[1]
    path = Path(run("data", "fetch", "Digits")[1].split(": ", 1)[1].strip())
    assert run("data", "verify", "digits")[1].startswith("digits: ok")
    path.write_bytes(path.read_bytes()[:1000])
    code, out, _ = run("data", "verify")
    assert (code, "digits: damaged" in out) == (3, True)


def test_a_bug_is_not_hidden(command, tmp_path):
    write_description(tmp_path, {"schema_version": SCHEMA_VERSION})
    with pytest.raises(ZeroDivisionError):
        command("report", tmp_path, page=lambda *_, **more: 1 / 0)


def test_an_interrupt_of_the_report_says_how_to_write_it(command, small):
    words = ("run", "small.toml", "--solver", "smo", "--json")
    code, out, err = command(*words, page=lambda *_, **more: signal.raise_signal(signal.SIGINT))
    assert code == 130
    assert err.splitlines()[-1] == (
        "marginbench: interrupted; the results are kept; to write the report: marginbench report "
        "results/small"
    )
    found = json.loads(out)
    assert (found["statuses"], found["report"], found["exit_code"]) == ({"converged": 1}, None, 130)


@pytest.mark.parametrize("arguments", [["solvers"], ["study", "show", "small.toml"]])
def test_a_terminal_gets_lines_that_fit(run, small, monkeypatch, arguments):
    whole = run(*arguments)[1].splitlines()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(*arguments)[1].splitlines()
    assert max(map(len, lines)) <= 80 < max(map(len, whole))
    # What goes on stands below the last column, or a little to the right.
    margin = min(60, whole[0].index("SUMMARY")) if arguments == ["solvers"] else 4
    assert margin in {len(line) - len(line.lstrip()) for line in lines}
    assert "".join(lines).replace(" ", "") == "".join(whole).replace(" ", "")


def test_every_public_name_is_found_and_the_version_is_told(run):
    assert run("--version")[1] == f"marginbench {version()}\n"
    names = dir(marginbench)
    assert {"run", "report", "load_study", "load_results", "SMO"}.issubset(names)
    assert all(hasattr(marginbench, name) for name in names)
