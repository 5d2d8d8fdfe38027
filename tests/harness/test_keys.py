"""Run keys change with all that determines a run, and with nothing else."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import marginbench.harness.sources
import marginbench.solvers.sbp.sbp
import marginbench.solvers.smo.smo
import marginbench.solvers.stochastic.pegasos
from marginbench.harness.judging import CELLS, IMAGES, SVM, Judging
from marginbench.harness.keys import run_key, source_hash
from marginbench.harness.sources import closure, project_file
from marginbench.solvers import registry

RUN: dict[str, Any] = {
    "source_hash": "0" * 64,
    "solver_class": "marginbench.solvers.smo.smo:SMO",
    "params": {"C": 1.0, "tol": 1e-3},
    "task": {"fingerprint": "f", "kernel": {"name": "rbf", "gamma": 1.0}, "C": 1.0},
    "seed": 0,
    "checkpoint_factor": 1.19,
    "epoch_checkpoints": False,
    "versions": {"numpy": "2.0"},
}


def file_of(module: Any) -> Path:
    return Path(module.__file__)


@pytest.mark.parametrize(
    "change",
    [
        {"source_hash": "1" * 64},
        {"solver_class": "marginbench.solvers.smo.smo:Other"},
        {"params": {"C": 1.0, "tol": 1e-4}},
        {"params": {"C": 1.0, "tol": 1e-3, "nu": 0.1}},
        {"task": {**RUN["task"], "C": 2.0}},
        {"seed": 1},
        {"checkpoint_factor": 1.2},
        {"epoch_checkpoints": True},
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
    for package, folder in marginbench.harness.sources.project_roots():
        copy = tmp_path / "copy" / package
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
        roots.append((package, copy))
    monkeypatch.setattr(marginbench.harness.sources, "project_roots", lambda: tuple(roots))
    return tmp_path / "copy"


def keys_of_kinds(project: Path) -> dict[str, str]:
    """The hash of a solver or method of each kind."""
    folder = project / "solvers"
    return {
        "svm": source_hash(folder / "smo.py", SVM),
        "cells": source_hash(folder / "feasibility" / "methods.py", CELLS),
        "images": source_hash(folder / "feasibility" / "kernel_methods.py", IMAGES),
    }


def keys_of_solvers(project: Path) -> dict[str, str]:
    """The hash of every reference solver."""
    return {
        name: source_hash(project / f"{cls.__module__.replace('.', '/')}.py", SVM)
        for name, cls in registry().items()
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


@pytest.mark.parametrize(("kind", "judging"), [("svm", SVM), ("cells", CELLS), ("images", IMAGES)])
def test_code_that_judges_changes_the_keys_of_its_kind(
    copied_project: Path, kind: str, judging: Judging
) -> None:
    own = ("feasibility.py", "objectives.py", "one_vs_rest.py")
    for name in (*judging.harness, *judging.followed):
        before = keys_of_kinds(copied_project)
        edit_code(copied_project / name)
        kinds = changed(before, keys_of_kinds(copied_project))
        # What is followed may be a part of methods of another kind as well.
        assert (
            kinds == {kind} if name in judging.harness or Path(name).name in own else kind in kinds
        )
    before = keys_of_kinds(copied_project)
    for name in (*judging.neutral, "harness/session.py", "harness/cli.py", "harness/pool.py"):
        if name.startswith("harness/"):
            edit_code(copied_project / name)
    assert keys_of_kinds(copied_project)[kind] == before[kind]


@pytest.mark.parametrize(
    ("helper", "users"),
    [
        ("sbp_draws.py", {"SBP"}),
        ("voting.py", {"Perceptron"}),
        ("budget/merging.py", {"BSCA", "BSGD"}),
        ("fourier.py", {"RandomFourierFeatures"}),
        ("cuts/loop.py", {"CuttingPlane"}),
        ("oracle.py", set(registry())),
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
from marginbench.harness.jobs import ImagesJob, RunJob, SeparationJob, TaskJob
from marginbench.harness.worker import perform
sizes = {"n_train": 50, "n_test": 20}
task = TaskJob("checkers", sizes, {"name": "rbf", "gamma": 10.0}, 1.0, False)
work = {
    "svm": RunJob(task, "SMO", {"kernel": "rbf", "gamma": 10.0, "C": 1.0}, 2.0),
    "cells": SeparationJob(
        "ldfp", 4, 20, 1.0, 0, "marginbench.solvers.feasibility.methods:MPLFP", {"tol": 0.0}, 5.0
    ),
    "images": ImagesJob(
        "digits", {}, 100, 50, True, (1.0,), 2, (2,), 0,
        "marginbench.solvers.feasibility.kernel_methods:MPKFP", {},
    ),
}[sys.argv[1]]
perform(work, lambda message: None)
print(*(name for name in sys.modules if name.partition(".")[0] == "harness"))
"""


@pytest.mark.parametrize(("kind", "judging"), [("svm", SVM), ("cells", CELLS), ("images", IMAGES)])
def test_every_module_of_a_run_judges_it_or_is_said_to_be_neutral(
    kind: str, judging: Judging
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN_OF_A_KIND, kind], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    imported = {file_name(module) for module in done.stdout.split()}
    assert len(imported) > 4
    for name in judging.harness:
        for node in ast.walk(ast.parse(project_file(name).read_bytes())):
            if isinstance(node, ast.ImportFrom):
                module = (node.module or "").split(".")
                if module[0] in ("harness", "solvers", "data_loaders"):
                    imported.add(file_name(".".join(module)))
    followed = set(closure(map(project_file, judging.followed)))
    assert imported - set(judging.harness) - followed == set(judging.neutral)
    assert all(judging.neutral.values())


def file_name(module: str) -> str:
    """The name of a module's file, from the root of the project."""
    name = module.replace(".", "/")
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


def test_the_hash_does_not_depend_on_the_place(tmp_path: Path) -> None:
    hashes = set()
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "mine.py"
        file.write_text("import helper\n")
        (tmp_path / name / "helper.py").write_text("x = 1\n")
        hashes.add(source_hash(file, SVM, local_folder=file.parent))
    assert len(hashes) == 1
