"""``marginbench warm``: what it compiles, what it says, and what it leaves alone."""

import itertools
import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from marginbench.harness.cli.app import build_app
from marginbench.harness.execution import warming
from marginbench.harness.execution.runner import RunSummary
from marginbench.solvers.registration import registry

from ..faults.conftest import only_long


def warm(*arguments):
    result = CliRunner().invoke(build_app(lambda results, command: results), ["warm", *arguments])
    assert result.exit_code == 0
    return result.output


def test_every_solver_is_run_on_every_type_of_points_with_every_kernel():
    svm, feasibility, quickstart = warming._studies()
    assert {entry.name for entry in svm.solver} == set(registry())
    assert {entry.name for entry in feasibility.method} == set(registry("feasibility"))
    points = itertools.product(("quadric", "checkers", "random-text"), ("rbf", "linear"))
    found = {(task.dataset, task.kernel) for task in svm.task}
    assert found >= set(points)
    assert {kernel for _, kernel in found} == {"rbf", "linear", "poly", "laplacian"}
    # The quickstart's ways of its solvers, but not how long they run.
    ways = [entry.params for entry in svm.solver if entry.name == "SMO"]
    assert [way for way in ({}, {"working_set": "textbook"}) if way not in ways] == []
    assert not any("max_epochs" in entry.params for entry in svm.solver)
    assert (quickstart.name, quickstart.seeds) == ("quickstart", 1)


def test_it_says_what_it_did_and_what_is_left(tmp_path, monkeypatch):
    folder = tmp_path / "code"
    statuses, left = {"converged": 1}, ["warm", "warm-feasibility", "quickstart"]

    def compiles(study, place, **options):
        """Leaves a file of machine code in the folder."""
        if study.name in left:
            (folder / f"{study.name}.nbi").write_text(study.name)
        return RunSummary(place, 1, 0, statuses)

    monkeypatch.setattr(warming, "cache_folder", lambda: folder)
    monkeypatch.setattr(warming, "run_study", compiles)
    assert warm().startswith("compiled 3 of 3 functions of ")
    left.clear()
    assert warm().startswith("nothing to compile, 3 functions of ")
    found = json.loads(warm("--json"))
    assert (found["compiled"], found["kept"], found["folder"]) == (0, 3, str(folder))
    statuses = {"timeout": 1, "failed": 3}
    assert "3 runs ended before everything was compiled; run the command again" in warm()


def test_a_folder_that_cannot_be_written_is_told_and_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(warming, "cache_folder", lambda: tmp_path / "file" / "code")
    said = warm()
    assert "machine code cannot be kept here (Not a directory)" in said
    assert "set NUMBA_CACHE_DIR" in said
    assert said.count("\n") == 1


@pytest.mark.slow
@pytest.mark.posix
@only_long
def test_nothing_is_left_to_compile_afterwards(tmp_path):
    environment = os.environ | {"MARGINBENCH_CACHE": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)

    def marginbench(*arguments):
        command = [sys.executable, "-m", "marginbench", *arguments]
        options = {"cwd": tmp_path, "env": environment, "timeout": 600}
        return subprocess.check_output(command, text=True, **options)

    assert marginbench("warm").startswith("compiled ")
    assert marginbench("warm").startswith("nothing to compile")
    (folder,) = tmp_path.glob("compiled/*")
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("*.nbi")}
    marginbench("run", "quickstart", "--out", "quickstart", "--quiet")
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*.nbi")} == kept
