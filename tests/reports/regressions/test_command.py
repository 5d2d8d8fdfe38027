"""``marginbench regressions``, as a user calls it."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from marginbench.reports.formatting import TIMES
from marginbench.reports.regressions.annotations import FILE

from .conftest import Repo, write_results

CELLS = ["SMO rbf dense", "SMO poly dense", "SDCA rbf dense"]
SAME = {"work.Work.track_failed": [0, 0, 0], "work.Work.track_evaluations": [100, 200, 300]}
WORSE = {"work.Work.track_failed": [0, 0, 0], "work.Work.track_evaluations": [200, 200, 300]}
NAN = float("nan")
FAILED = {"work.Work.track_failed": [0, 0, 1], "work.Work.track_evaluations": [200, 200, NAN]}


@pytest.fixture
def run(command, monkeypatch):
    """Calls the command in a folder: exit code, output and errors."""

    def call(folder, *words):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "100")
        return command("regressions", *words)

    return call


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A repository with results of its commits: name of the commit -> hash, and their folder."""
    place = tmp_path_factory.mktemp("history")
    repo = Repo(place / "repo")
    hashes = {name: repo.commit(name) for name in ("same", "again", "worse", "failed")}
    entry = '[[change]]\ncells = "SMO rbf *"\nmeasures = "evaluations"\nwhy = "steadier"\n'
    hashes["known"] = repo.commit("known", {FILE: entry})
    repo.commit("unmeasured")
    values = {"same": SAME, "again": SAME, "worse": WORSE, "failed": FAILED, "known": WORSE}
    by_commit = {hashes[name]: each for name, each in values.items()}
    folder = write_results(place / "results", by_commit, CELLS)
    return SimpleNamespace(repo=repo.folder, folder=folder, **hashes)


@pytest.mark.parametrize(
    ("base", "head", "more", "code", "words"),
    [
        ("same", "again", (), 0, "identical: 0 worse, 3 identical"),
        ("again", "worse", (), 1, "worsening: 1 worse (1 beyond bounds), 2 identical"),
        ("again", "failed", (), 2, "failed: 1 run failed in B that did not in A, 1 worse"),
        ("again", "known", (), 0, "worsening: 1 worse, 2 identical"),
        ("again", "worse", ("--bound", "evaluations=3"), 0, "no difference told: 0 worse"),
    ],
)
def test_the_exit_code_is_the_verdict(run, history, base, head, more, code, words):
    commits = getattr(history, base), getattr(history, head)
    found, out, err = run(history.repo, *commits, "--results", history.folder, *more)
    assert (found, err) == (code, "")
    assert out.startswith(words)
    assert max(map(len, out.splitlines())) <= 100
    if code:
        assert "python -m benchmarks.work 'SMO rbf dense'" in out
        assert f"2.00{TIMES}" in out
    assert ("note: Known change, 1 value: steadier" in out) == (head == "known")
    assert "environments" not in out


def test_the_worst_environment_decides_and_json_says_the_same(run, history, tmp_path):
    both = {history.same: SAME, history.again: SAME}
    write_results(tmp_path, both, CELLS)
    write_results(tmp_path, both | {history.again: WORSE}, CELLS, env="other")
    code, out, _ = run(history.repo, history.same, history.again, "--results", tmp_path)
    assert code == 1
    assert "The worst of 2 environments: other on" in out
    words = [history.again, history.failed, "--results", history.folder, "--json"]
    found = json.loads(run(history.repo, *words)[1])
    assert (found["exit_code"], found["verdict"]) == (2, "failed")
    assert [(each["task"], each["solver"], each["verdict"]) for each in found["cells"]] == [
        ("work.Work rbf dense", "SDCA", "failed"),
        ("work.Work poly dense", "SMO", "identical"),
        ("work.Work rbf dense", "SMO", "worsening"),
    ]
    [change] = [each for each in found["values"] if each["verdict"] == "worsening"]
    assert (change["before"], change["after"], change["mean"]) == (100, 200, pytest.approx(2))
    assert len(found["reproduce"]) == 2


def test_mistakes_are_one_line(run, history, repo, tmp_path):
    cut_short = {history.same: dict.fromkeys(SAME, [None] * 3), history.again: SAME}
    unmeasured = write_results(tmp_path / "results", cut_short, CELLS)
    repo.commit("base")
    repo.commit("known", {FILE: "[[change]"})
    given = ["--results", history.folder]
    for words, said, *folder in (
        (["nope"], "nope: no commit"),
        (["HEAD", ""], ": no commit"),
        (["--", "--output=x"], "--output=x: no commit"),
        (["HEAD"], "git rev-parse: not a git repository", tmp_path),
        (["HEAD~5", "HEAD", *given], "has no results of"),
        (["HEAD~5", "HEAD~4", "--results", unmeasured], "asv got no value of work.Work"),
        (["--results", "nowhere"], "nowhere: no folder of asv's results"),
        ([*given, "--short"], "leave out --suite, --short"),
        (["--suite", "(?i)work"], "no regular expression"),
        (["--text", "--json"], "give one of them"),
        (["HEAD~5", "HEAD~4", *given, "--bound", "evals=2"], "did you mean"),
        (["HEAD~5", "HEAD~4", *given, "--bound", "failed=2"], "no measure 'failed'"),
        ([], f"marginbench: {FILE} of ", repo.folder),  # before anything is measured
    ):
        code, out, err = run(*(folder or [history.repo]), *words)
        assert (code, out) == (2, "")
        assert said in err
        assert len(err.splitlines()) == 1


PACKAGE = """
[build-system]
requires = ["flit_core>=3.9"]
build-backend = "flit_core.buildapi"
[project]
name = "marginbench"
version = "0.0.1"
description = "A module that is measured"
[tool.flit.module]
name = "worked"
"""
SUITE = """
import worked

class Work:
    params = (["SMO rbf", "SDCA rbf"],)

    def track_evaluations(self, cell):
        return worked.evaluations(cell)

    def time_all(self, cell):
        worked.evaluations("SMO rbf")
"""
CONFIG = {
    "version": 1, "project": "example", "repo": ".", "branches": ["HEAD"],
    "environment_type": "virtualenv", "benchmark_dir": "benchmarks",
}  # fmt: skip


FILES = {
    "pyproject.toml": PACKAGE,
    "asv.conf.json": json.dumps(CONFIG),
    "benchmarks/__init__.py": "",
    "benchmarks/work.py": SUITE,
    ".gitignore": ".asv\n",
}


def marginbench(folder, *words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "marginbench", "regressions", *words], cwd=folder,
        env={**os.environ, "COLUMNS": "100", **environment}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_commits_are_measured_by_asv(repo):
    worked = "def evaluations(cell):\n    return {}\n"
    repo.commit("base", FILES | {"worked.py": worked.format("100")})
    worse = worked.format("120 if cell == 'SMO rbf' else 1 / 0")
    head = repo.commit("worse, and one fails", {"worked.py": worse})
    repo.git("switch", "--quiet", "--create", "work")
    (repo.folder / "worked.py").write_text("raise ValueError('not committed')")
    other = repo.folder.parent / "other"
    other.mkdir()
    (other / "worked.py").write_text(worked.format("100"))
    elsewhere = {"PYTHONPATH": str(other), "ASV_PYTHONPATH": str(other)}
    done = marginbench(repo.folder, "HEAD~1", "--suite", "^work", **elsewhere)
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("failed: 1 run failed in B that did not in A, 1 worse")
    assert f"1.20{TIMES}" in done.stdout
    assert "Changes that are not committed were not measured" in done.stdout
    assert f"timing {head[:10]}, turn 3 of 3" in done.stderr
    # Nothing is measured again.
    again = marginbench(repo.folder, "HEAD~1", "--suite", "^work")
    assert (again.returncode, again.stderr) == (2, "")
    assert again.stdout == done.stdout
    assert repo.git("status", "--porcelain") == "M worked.py"


@pytest.mark.slow
def test_an_interrupted_measurement_leaves_no_process_and_no_result(repo):
    waits = "import time\n\n\ndef evaluations(cell):\n    time.sleep(100)\n"
    repo.commit("base", FILES | {"worked.py": waits})
    words = [sys.executable, "-m", "marginbench", "regressions", "HEAD", "HEAD", "--suite", "work"]
    command = subprocess.Popen(
        words, cwd=repo.folder, stderr=subprocess.PIPE, text=True,
        # A shell that started the tests in the background would have it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert any(line.startswith("counting") for line in command.stderr)
    until = time.monotonic() + 30
    while len(started := psutil.Process(command.pid).children(recursive=True)) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    assert command.wait(20) == 130
    psutil.wait_procs(started, 10)
    assert [each for each in started if each.is_running()] == []
    assert list((repo.folder / ".asv" / "regressions").glob("*/*/here/*-*.json")) == []
