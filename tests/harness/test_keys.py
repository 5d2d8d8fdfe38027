"""Run keys change with all that determines a run, and with nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import marginbench.harness.sources
import marginbench.solvers.sbp.sbp
import marginbench.solvers.smo.smo
import marginbench.solvers.stochastic.pegasos
from marginbench.harness.keys import run_key, source_hash
from marginbench.harness.sources import closure

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
def copied_solvers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package ``solvers`` that the closure takes for the real one."""
    folder = tmp_path / "solvers"
    shutil.copytree(file_of(marginbench.solvers.smo.smo).parent, folder)
    roots = (("solvers", folder),)
    monkeypatch.setattr(marginbench.harness.sources, "project_roots", lambda: roots)
    return folder


def test_editing_a_helper_changes_the_hash_and_another_solver_does_not(
    copied_solvers: Path,
) -> None:
    before = source_hash(copied_solvers / "smo.py")
    with (copied_solvers / "sbp.py").open("a") as other:
        other.write("\n# edited\n")
    assert source_hash(copied_solvers / "smo.py") == before
    with (copied_solvers / "cache.py").open("a") as helper:
        helper.write("\n# edited\n")
    assert source_hash(copied_solvers / "smo.py") != before


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
        return source_hash(tmp_path / "mine.py", local_folder=tmp_path)

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
    before = source_hash(package / "mine.py", package="their_solvers")
    (package / "parts.py").write_text("step = 2\n")
    assert source_hash(package / "mine.py", package="their_solvers") != before


def test_the_hash_does_not_depend_on_the_place(tmp_path: Path) -> None:
    hashes = set()
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "mine.py"
        file.write_text("import helper\n")
        (tmp_path / name / "helper.py").write_text("x = 1\n")
        hashes.add(source_hash(file, local_folder=file.parent))
    assert len(hashes) == 1
