"""``marginbench new solver``: files that work at once, and never in the place of others."""

import subprocess
import sys

import pytest

from marginbench.harness.conformance.scaffold import write_solver
from marginbench.harness.errors import UserError


def test_the_file_has_the_name_of_the_class_and_one_that_would_do_harm_is_refused(tmp_path):
    for name, module in (
        ("MyFastSolver", "my_fast_solver"),
        ("my_solver", "my_solver"),
        ("SVMLight", "svm_light"),
        ("Newton2", "newton2"),
    ):
        (tmp_path / name).mkdir()
        assert write_solver(name, tmp_path / name)[0] == tmp_path / name / f"{module}.py"
    no_names = ("3x", "../x", "np", "__main__", "my-solver", "None")
    for name, message in (
        *((name, f"'{name}' cannot be the name of a class") for name in no_names),
        ("smo", "'smo': marginbench has a solver of this name"),
        ("decimal", "decimal.py would hide the Python module 'decimal'"),
    ):
        with pytest.raises(UserError, match=message):
            write_solver(name, tmp_path / "none")


def test_the_command_names_what_it_wrote_and_replaces_nothing(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("new", "solver", "AbcSolver")
    assert code == 0
    assert out.splitlines() == [
        "wrote abc_solver.py and test_abc_solver.py; next:",
        "  marginbench check abc_solver.py:AbcSolver",
        "  marginbench run --solver abc_solver.py:AbcSolver --solver SMO",
        "  python -m pip install pytest && python -m pytest test_abc_solver.py",
    ]
    names = ("abc_solver.py", "test_abc_solver.py")
    for existing, other in (names, names[::-1]):
        (tmp_path / other).unlink()
        (tmp_path / existing).write_text("mine")
        with pytest.raises(UserError, match=f"{existing} exists; remove it or choose another name"):
            write_solver("AbcSolver", tmp_path)
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {existing: "mine"}


@pytest.mark.slow
def test_the_tests_that_are_written_pass_and_the_files_are_well_formatted(tmp_path):
    written = write_solver("AbcSolver", tmp_path)
    ruff = [sys.executable, "-m", "ruff"]
    line = "line-length = 100"
    for command in (
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", written[1].name],
        [*ruff, "check", "--isolated", "--config", line, "--select", "E,F,I,B,UP,NPY", "."],
        [*ruff, "format", "--isolated", "--config", line, "--check", "."],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
