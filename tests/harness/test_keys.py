"""Run keys change with all that determines a run, and with nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from marginbench.harness.errors import SolverError
from marginbench.harness.hashing import hash_json
from marginbench.harness.planning import fingerprint
from marginbench.harness.planning.fingerprint import (
    COMMON_ROOMS,
    EVALUATION,
    GENERATORS,
    source_files,
)
from marginbench.solvers.registration import entries

COMMON = {f"solvers/{room}" for room in COMMON_ROOMS} | {EVALUATION}


def test_the_key_does_not_depend_on_the_order_of_parameters() -> None:
    assert hash_json({"C": 1.0, "tol": 1e-3}) == hash_json({"tol": 1e-3, "C": 1.0})


def files_of(name: str, kind: str = "svm") -> dict[str, str]:
    """The code behind a registered solver."""
    module = entries()[name].module.split(".")[2:]
    path = fingerprint.project_roots()["solvers"].joinpath(*module).with_suffix(".py")
    return source_files(name, path, kind)


def folders(files: dict[str, str]) -> set[str]:
    return {"/".join(name.split("/")[:2]) for name in files}


def test_the_code_of_a_solver_is_its_room_the_common_ones_and_the_evaluation() -> None:
    assert folders(files_of("SMO")) == {"solvers/smo", *COMMON}
    assert folders(files_of("LowRankSVM")) == {"solvers/approximate", *COMMON}
    methods = files_of("MPLFP", "feasibility")
    assert folders(methods) == {"solvers/feasibility", *COMMON, *GENERATORS["feasibility"]}
    assert {"solvers/smo/inner.py", "solvers/kernels/oracle.py"} <= set(files_of("SMO"))


@pytest.fixture
def copied_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the packages of the project that is taken for the real one."""
    roots = {}
    for package, folder in fingerprint.project_roots().items():
        roots[package] = tmp_path / "copy" / package
        shutil.copytree(folder, roots[package], ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "project_roots", lambda: roots)
    return tmp_path / "copy"


SOLVERS = {"SMO": "svm", "SBP": "svm", "SDCA": "svm", "LowRankSVM": "svm", "MPLFP": "feasibility"}


def changed_by(file: Path) -> set[str]:
    """The solvers whose runs get new keys by an edit of a file."""
    before = {name: files_of(name, kind) for name, kind in SOLVERS.items()}
    file.write_text(file.read_text() + "\nEDITED = 1\n")
    return {name for name, kind in SOLVERS.items() if files_of(name, kind) != before[name]}


@pytest.mark.parametrize(
    ("file", "users"),
    [
        ("solvers/sbp/draws.py", {"SBP"}),
        ("solvers/feasibility/problem.py", {"MPLFP"}),
        ("data_loaders/feasibility.py", {"MPLFP"}),
        ("solvers/linear/sdca.py", set(SOLVERS)),
        ("solvers/kernels/oracle.py", set(SOLVERS)),
        ("harness/evaluation/measurement.py", set(SOLVERS)),
        ("harness/execution/local.py", set()),
        ("harness/results/svm.py", set()),
        ("harness/loading.py", set()),
        ("data_loaders/cache.py", set()),
    ],
)
def test_an_edit_changes_the_keys_of_the_solvers_of_its_folder(
    copied_project: Path, file: str, users: set[str]
) -> None:
    assert changed_by(copied_project / file) == users


def test_comments_and_docstrings_change_no_key(copied_project: Path) -> None:
    before = {name: files_of(name, kind) for name, kind in SOLVERS.items()}
    edited = 0
    for file in copied_project.rglob("*.py"):
        # The docstrings of the module and of what follows, and a blank line before everything.
        text = re.sub(r'^( *)"""(?=\w)', r'\1"""Edited: ', file.read_text(), flags=re.M)
        edited += text.count("Edited: ")
        file.write_text(f"# Edited.\n\n{text}\n# The end.\n")
    assert edited > 500
    assert {name: files_of(name, kind) for name, kind in SOLVERS.items()} == before


RUN_OF_A_KIND = """
from dataclasses import replace
import sys
from marginbench.harness.execution import worker
from marginbench.harness.evaluation.feasibility import CellWork, ImagesWork
from marginbench.harness.evaluation.svm import FitWork, Problem
data, rbf = {"n_train": 50, "n_test": 20}, {"kernel": "rbf", "gamma": 10.0, "C": 1.0}
problem = Problem("checkers", data, {"name": "rbf", "gamma": 10.0}, 1.0, False)
linear = Problem("checkers", data, {"name": "linear"}, 1.0, False)
work = {
    "SMO": FitWork(problem, "SMO", rbf, 2.0),
    "SBP": FitWork(problem, "SBP", {"kernel": "rbf", "gamma": 10.0, "nu": 0.1}, 2.0),
    "BSGD": FitWork(problem, "BSGD", rbf, 2.0),
    "LowRankSVM": FitWork(problem, "LowRankSVM", rbf, 2.0),
    "LIBSVM": FitWork(replace(problem, fit_intercept=True), "LIBSVM", rbf, 2.0),
    "SDCA": FitWork(linear, "SDCA", {"kernel": "linear", "C": 1.0}, 2.0),
    "OCAS": FitWork(linear, "OCAS", {"C": 1.0}, 2.0),
    "MPLFP": CellWork("ldfp", 4, 20, 1.0, 0, "MPLFP", {"tol": 0.0}, 5.0),
    "MPKFP": ImagesWork("digits", {}, 100, 50, True, (1.0,), 2, (2,), 0, "MPKFP", {}),
}[sys.argv[1]]
found = work.run(lambda message: None)
assert found["status"] in ("converged", "budget"), found
print(*(name for name in sys.modules if name.startswith("marginbench.")))
"""
#: Modules that a run imports and that cannot change its numbers: they find and read what the key
#: names by hash or fingerprint, carry messages, and store what was measured.
PLUMBING = {"harness/execution", "harness/results", "harness/planning", "data_loaders", "solvers"}
# Of these folders the modules at their top: errors, words, the registry, the cache of data.
TOPS = {"harness", "solvers"}


@pytest.mark.parametrize(
    "name",
    [
        *("SMO", "LowRankSVM", "LIBSVM", "MPLFP", "MPKFP"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("SBP", "BSGD", "SDCA", "OCAS")),
    ],
)
def test_a_run_imports_nothing_that_could_change_it_from_other_folders(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN_OF_A_KIND, name], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    kind = "feasibility" if name.startswith("MP") else "svm"
    counted = set(files_of(name, kind))
    roots = fingerprint.project_roots()
    judged = set()
    for module in done.stdout.split():
        package, *parts = module.split(".")[1:]
        if package in roots and (roots[package] / "/".join(parts)).is_dir():
            parts.append("__init__")
        file = "/".join([package, *parts]) + ".py"
        if file in counted:
            judged.add(file)
        elif len(parts) > 1 and package in TOPS:
            assert f"{package}/{parts[0]}" in PLUMBING, file
        else:
            assert package in ("data_loaders", *TOPS), file
    assert len(judged) > 10


def local_files(file: Path) -> dict[str, str]:
    """The hashes of a user's own files."""
    files = source_files(f"{file}:Mine", file, "svm")
    return {name: found for name, found in files.items() if not name.startswith(("solv", "harn"))}


def test_a_users_file_counts_with_all_solvers_if_it_builds_on_them(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    for text in ("import marginbench", "from marginbench.solvers.sbp.draws import *"):
        file.write_text(f"import math\n{text}\nclass Mine: pass\n")
        assert {"solvers/sbp", "solvers/smo"} < folders(source_files(f"{file}:Mine", file, "svm"))
    file.write_text("import math\nclass Mine: pass\n")
    assert folders(source_files(f"{file}:Mine", file, "svm")) == {"mine.py", *COMMON}


def test_modules_beside_a_users_file_count(tmp_path: Path) -> None:
    package = tmp_path / "parts"
    package.mkdir()
    file = tmp_path / "mine.py"
    file.write_text(
        "import near\n\ndef late():\n    from parts.deep import value\n    return value\n"
    )
    (tmp_path / "unrelated.py").write_text("x = 1\n")
    (package / "__init__.py").write_text("")
    (package / "deep.py").write_text("from .deeper import value\n")
    (package / "deeper.py").write_text("value = 1\n")
    (tmp_path / "loose").mkdir()
    (tmp_path / "loose" / "step.py").write_text("import unrelated_too\n")
    (tmp_path / "near.py").write_text("from loose import step\n")
    before = local_files(file)
    own = {
        "loose/step.py",
        "mine.py",
        "near.py",
        "parts/__init__.py",
        "parts/deep.py",
        "parts/deeper.py",
    }
    assert set(before) == own
    (package / "deeper.py").write_text("value = 2\n")
    assert local_files(file) != before


def test_an_imported_package_counts_by_its_version(tmp_path: Path) -> None:
    from importlib import metadata

    file = tmp_path / "mine.py"
    file.write_text("import json, pandas.api\nclass Mine: pass\n")
    assert set(local_files(file)) == {"mine.py", f"pandas {metadata.version('pandas')}"}


def test_a_file_that_is_not_python_counts_by_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    hashes = set()
    for text in ("def f(:\n", "def f(:  # a comment\n", "def f(): pass\n"):
        file.write_text(text)
        hashes.add(local_files(file)["mine.py"])
    assert len(hashes) == 3


def test_modules_of_a_users_package_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "their_solvers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mine.py").write_text("from .parts import step\n")
    (package / "parts.py").write_text("step = 1\n")
    (tmp_path / "their_module.py").write_text("step = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "their_solvers.mine:Mine"
    before = source_files(name, package / "mine.py", "svm")
    assert {"their_solvers/mine.py", "their_solvers/parts.py"} <= set(before)
    (package / "parts.py").write_text("step = 2\n")
    assert source_files(name, package / "mine.py", "svm") != before
    single = source_files("their_module:Mine", tmp_path / "their_module.py", "svm")
    assert folders(single) == {"their_module.py", *COMMON}


def test_an_installed_solver_that_builds_on_ours_counts_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "their_module.py"
    file.write_text("from marginbench import SMO\nclass Mine(SMO): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(fingerprint, "installed_version", lambda package: f"{package} 1.2")
    files = source_files("their_module:Mine", file, "svm")
    assert "their_module 1.2" in files
    assert "solvers/smo" in folders(files)


def test_code_that_is_nowhere_cannot_be_counted(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match="its code cannot be found"):
        source_files(f"{tmp_path}/none.py:Mine", tmp_path / "none.py", "svm")


def test_the_hash_does_not_depend_on_the_place(tmp_path: Path) -> None:
    found = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "mine.py"
        file.write_text("import helper\n")
        (tmp_path / name / "helper.py").write_text("x = 1\n")
        found.append(local_files(file))
    assert found[0] == found[1]
