"""Run keys change with all that determines a run, and with nothing else."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import marginbench.harness.planning.sources
import marginbench.solvers.sbp.sbp
import marginbench.solvers.smo.smo
import marginbench.solvers.stochastic.pegasos
from marginbench.harness.planning.feasibility_judging import CELLS, IMAGES
from marginbench.harness.planning.judging import PLUMBING
from marginbench.harness.planning.keys import hash_json, key_parts, source_hash
from marginbench.harness.planning.questions import SolverInfo
from marginbench.harness.planning.sources import closure, project_file
from marginbench.harness.planning.svm_judging import JUDGING as SVM, OUTSIDE
from marginbench.solvers.registration import entries, solver_names

INFO = SolverInfo("marginbench:SMO", "", {}, (), {}, source_hash="0" * 64)
RUN: dict[str, Any] = {
    "kind": "svm",
    "info": INFO,
    "params": {"C": 1.0, "tol": 1e-3},
    "task": {"fingerprint": "f", "kernel": {"name": "rbf", "gamma": 1.0}, "C": 1.0},
    "seed": 0,
    "labels": ("digits", "SMO"),
    "versions": {"numpy": "2.0"},
}
KINDS = {"svm": SVM, "cells": CELLS, "images": IMAGES}
each_kind = pytest.mark.parametrize("kind", KINDS)


def run_key(**run: Any) -> str:
    return hash_json(key_parts(**run))


def file_of(module: Any) -> Path:
    return Path(module.__file__)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "feasibility"},
        {"info": replace(INFO, source_hash="1" * 64)},
        {"info": replace(INFO, shown="marginbench:Other")},
        {"params": {"C": 1.0, "tol": 1e-4}},
        {"params": {"C": 1.0, "tol": 1e-3, "nu": 0.1}},
        {"task": {**RUN["task"], "C": 2.0}},
        {"seed": 1},
        {"labels": ("digits", "SMO-2")},
        {"labels": ("digits, twice", "SMO")},
        {"versions": {"numpy": "2.1"}},
    ],
)
def test_each_part_of_a_run_changes_the_key(change: dict[str, Any]) -> None:
    assert run_key(**{**RUN, **change}) != run_key(**RUN)


def test_the_key_does_not_depend_on_the_order_of_parameters() -> None:
    reordered = {**RUN, "params": {"tol": 1e-3, "C": 1.0}}
    assert run_key(**reordered) == run_key(**RUN)
    assert len(run_key(**RUN)) == 64


def test_a_solver_depends_on_what_it_imports_and_on_no_other_solver() -> None:
    names = set(closure([file_of(marginbench.solvers.smo.smo)]))
    assert {"solvers/smo/smo.py", "solvers/interface/base.py", "solvers/kernels/oracle.py"} <= names
    assert "solvers/kernels/row_cache.py" in names  # imported by the oracle
    assert not names & {
        "solvers/sbp/sbp.py",
        "solvers/stochastic/pegasos.py",
        "solvers/__init__.py",
    }


def test_a_users_file_depends_on_the_solver_it_names(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from marginbench import SBP\nclass Mine(SBP): pass\n")
    names = set(closure([file], tmp_path))
    assert {"mine.py", "solvers/sbp/sbp.py", "solvers/interface/base.py"} <= names
    assert "solvers/smo/smo.py" not in names


@pytest.fixture
def copied_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the packages of the project that is taken for the real one."""
    roots = []
    for package, folder in marginbench.harness.planning.sources.project_roots():
        copy = tmp_path / "copy" / package.rpartition(".")[2]
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
        roots.append((package, copy))
    monkeypatch.setattr(marginbench.harness.planning.sources, "project_roots", lambda: tuple(roots))
    return tmp_path / "copy"


def keys_of_kinds(project: Path) -> dict[str, str]:
    """The hash of a solver or method of each kind."""
    folder = project / "solvers"
    return {
        "svm": source_hash(folder / "smo" / "smo.py", SVM),
        "cells": source_hash(folder / "feasibility" / "methods.py", CELLS),
        "images": source_hash(folder / "feasibility" / "kernel_methods.py", IMAGES),
    }


def keys_of_solvers(project: Path) -> dict[str, str]:
    """The hash of every reference solver of the SVM."""
    return {
        name: source_hash(project / file_name(entries()[name].module), SVM)
        for name in solver_names("svm")
    }


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def edit_code(file: Path) -> None:
    file.write_text(file.read_text() + "\nEDITED = 1\n")


def test_comments_and_docstrings_change_no_key(copied_project: Path) -> None:
    before = keys_of_kinds(copied_project) | keys_of_solvers(copied_project)
    edited = 0
    for file in copied_project.rglob("*.py"):
        text = file.read_text()
        assert text.startswith('"""'), file
        # The docstrings of the module and of what follows, and a blank line before everything.
        text = re.sub(r'^( *)"""(?=\w)', r'\1"""Edited: ', text, flags=re.M)
        edited += text.count("Edited: ")
        file.write_text(f"# Edited.\n\n{text}\n# The end.\n")
    assert edited > 500
    assert keys_of_kinds(copied_project) | keys_of_solvers(copied_project) == before


@each_kind
def test_code_that_judges_changes_the_keys_of_its_kind(copied_project: Path, kind: str) -> None:
    judging = KINDS[kind]
    # What else a file may be a part of: the methods of another kind.
    shared = set(closure([copied_project / "solvers" / "smo" / "smo.py"]))
    for path in ("methods.py", "kernel_methods.py"):
        shared |= set(closure([copied_project / "solvers" / "feasibility" / path]))
    for name in (*judging.harness, *judging.followed):
        before = keys_of_kinds(copied_project)
        edit_code(copied_project / name)
        kinds = changed(before, keys_of_kinds(copied_project))
        assert kind in kinds, name
        assert kinds == {kind} or name in shared, name


@each_kind
def test_code_that_only_conducts_changes_no_key(copied_project: Path, kind: str) -> None:
    before = keys_of_kinds(copied_project)
    for name in (
        *KINDS[kind].neutral,
        "harness/execution/runner.py",
        "harness/cli/app.py",
        "harness/execution/local.py",
    ):
        if name.startswith("harness/"):
            edit_code(copied_project / name)
    assert keys_of_kinds(copied_project) == before


@pytest.mark.parametrize(
    ("helper", "users"),
    [
        ("sbp/draws.py", {"SBP"}),
        ("models/voting.py", {"Perceptron"}),
        ("budget/merging.py", {"BSCA", "BSGD"}),
        ("models/fourier.py", {"RandomFourierFeatures"}),
        ("cuts/loop.py", {"CuttingPlane"}),
        ("kernels/oracle.py", set(solver_names("svm"))),
    ],
)
def test_code_of_a_helper_changes_the_keys_of_the_solvers_that_use_it(
    copied_project: Path, helper: str, users: set[str]
) -> None:
    before = keys_of_solvers(copied_project)
    edit_code(copied_project / "solvers" / helper)
    assert changed(before, keys_of_solvers(copied_project)) == users


def test_a_file_that_is_not_python_counts_by_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    hashes = set()
    for text in ("def f(:\n", "def f(:  # a comment\n", "def f(): pass\n"):
        file.write_text(text)
        hashes.add(source_hash(file, SVM, local_folder=tmp_path))
    assert len(hashes) == 3


RUN_OF_A_KIND = """
import sys
from marginbench.harness.execution import worker
from marginbench.harness.evaluation.feasibility import CellWork, ImagesWork
from marginbench.harness.evaluation.svm import FitWork, Problem
problem = Problem(
    "checkers", {"n_train": 50, "n_test": 20}, {"name": "rbf", "gamma": 10.0}, 1.0, False
)
work = {
    "svm": FitWork(problem, "SMO", {"kernel": "rbf", "gamma": 10.0, "C": 1.0}, 2.0),
    "cells": CellWork("ldfp", 4, 20, 1.0, 0, "MPLFP", {"tol": 0.0}, 5.0),
    "images": ImagesWork("digits", {}, 100, 50, True, (1.0,), 2, (2,), 0, "MPKFP", {}),
}[sys.argv[1]]
found = work.run(lambda message: None)
assert found["status"] in ("converged", "budget"), found
print(*(name for name in sys.modules if name.startswith("marginbench.harness")))
"""


@each_kind
def test_every_module_of_a_run_judges_it_or_is_said_to_be_neutral(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN_OF_A_KIND, kind], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    judging = KINDS[kind]
    # The modules of the harness that a run imports, and what those that judge import of the rest.
    imported = {file_name(module) for module in done.stdout.split()}
    imported -= FOR_THE_SCRIPT[kind]
    for name in judging.harness:
        imported |= direct_imports(project_file(name))
    assert len(imported) > 10
    judged = set(judging.harness) | set(closure(map(project_file, judging.followed)))
    assert imported - judged - set(judging.neutral) == set()
    # Nothing is excused that is not there.
    assert set(judging.neutral) - set(PLUMBING) <= imported
    assert all(project_file(name).is_file() for name in judging.neutral)
    assert all(judging.neutral.values())


RUN_FROM_OUTSIDE = """
import sys
from pathlib import Path
from marginbench.harness.execution import worker
from marginbench.harness.execution.jobs import Outcome, SnapshotMessage
from marginbench.harness.evaluation.outside.commands import parsed_command
from marginbench.harness.evaluation.outside.work import Estimator, OutsideWork, Program
from marginbench.harness.evaluation.svm import Problem
data = {"n_train": 50, "n_test": 20}
problem = Problem("checkers", data, {"name": "rbf", "gamma": 10.0}, 1.0, True)
copy = f"{sys.executable} -c 'import shutil, sys; shutil.copy(*sys.argv[1:])'"
cut = "import sys; a, b = map(open, sys.argv[1:], 'rw'); [print(x.split()[0], file=b) for x in a]"
apply = f'{sys.executable} -c "{cut}"'
lines = {"train": copy + " {train} {model}", "predict": apply + " {test} {output}"}
for work in (
    OutsideWork(problem, Estimator("sklearn.svm:SVC", {"gamma": 10.0}, 0), solves=True),
    OutsideWork(problem, Program(parsed_command(lines, Path("/"), ""), 0)),
):
    fit, sent = work.apart(), []
    claims = fit.run(sent.append)
    times = [item.time for item in sent if isinstance(item, SnapshotMessage)]
    found = fit.judged(Outcome("done", claims, claimed=times, seen=times)).run(lambda message: None)
    assert found["status"] == "converged", found
print(*(name for name in sys.modules if name.startswith("marginbench.harness")))
"""


@pytest.mark.slow
def test_every_module_of_a_run_from_outside_judges_it_or_is_said_to_be_neutral() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN_FROM_OUTSIDE], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    imported = {file_name(module) for module in done.stdout.split()}
    assert "harness/evaluation/outside/fitting.py" in imported
    # A program of its own, not a module of the run.
    assert project_file("harness/evaluation/outside/launcher.py").is_file()
    judged = set(OUTSIDE.harness) | set(closure(map(project_file, OUTSIDE.followed)))
    assert imported - judged - set(OUTSIDE.neutral) == set()
    own = {name for name in OUTSIDE.neutral if name not in SVM.neutral}
    assert own <= imported
    assert all(project_file(name).is_file() for name in (*OUTSIDE.harness, *OUTSIDE.neutral))


#: What the script above imports of the other kind.
_OF_SVM = {f"harness/{name}.py" for name in ("results/svm", "evaluation/svm", "evaluation/search")}
FOR_THE_SCRIPT = {
    "svm": {"harness/results/feasibility.py", "harness/evaluation/feasibility.py"},
    "cells": _OF_SVM,
    "images": _OF_SVM,
}


def direct_imports(file: Path) -> set[str]:
    """The files of the project that define what a file imports."""
    found = set()
    root = project_file("harness/__init__.py").parents[1]
    package = ["marginbench", *file.relative_to(root).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            module = import_module(".".join([*above, node.module] if node.module else above))
            for alias in node.names:
                home = getattr(getattr(module, alias.name), "__module__", None) or ""
                found.add(file_name(home if home.startswith("marginbench.") else module.__name__))
    return found


def file_name(module: str) -> str:
    """The name of a module's file, from the root of the project."""
    name = module.removeprefix("marginbench.").replace(".", "/")
    is_package = "/" not in name or project_file(name).is_dir()
    return f"{name}/__init__.py" if is_package else f"{name}.py"


def test_modules_beside_a_users_file_count(tmp_path: Path) -> None:
    package = tmp_path / "parts"
    package.mkdir()
    (tmp_path / "mine.py").write_text(
        "import near\n\ndef late():\n    from parts.deep import value\n    return value\n"
    )
    (tmp_path / "near.py").write_text("x = 1\n")
    (tmp_path / "unrelated.py").write_text("x = 1\n")
    (package / "__init__.py").write_text("")
    (package / "deep.py").write_text("from .deeper import value\n")
    (package / "deeper.py").write_text("value = 1\n")

    def current() -> str:
        return source_hash(tmp_path / "mine.py", SVM, local_folder=tmp_path)

    before = current()
    (tmp_path / "unrelated.py").write_text("x = 2\n")
    assert current() == before
    (package / "deeper.py").write_text("value = 2\n")
    changed = current()
    assert changed != before
    (tmp_path / "near.py").write_text("x = 2\n")
    assert current() not in (before, changed)


def test_modules_of_a_users_package_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "their_solvers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mine.py").write_text("from their_solvers.parts import step\n")
    (package / "parts.py").write_text("step = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = source_hash(package / "mine.py", SVM, package="their_solvers")
    (package / "parts.py").write_text("step = 2\n")
    assert source_hash(package / "mine.py", SVM, package="their_solvers") != before


def test_a_users_single_module_counts_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_module.py").write_text("step = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for package in ("their_module", "no_such_package"):
        found = closure([tmp_path / "their_module.py"], package=package)
        assert set(found) == {"their_module.py"}


def test_the_hash_does_not_depend_on_the_place(tmp_path: Path) -> None:
    hashes = set()
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "mine.py"
        file.write_text("import helper\n")
        (tmp_path / name / "helper.py").write_text("x = 1\n")
        hashes.add(source_hash(file, SVM, local_folder=file.parent))
    assert len(hashes) == 1
