"""Run keys change with all that determines a run, and with nothing else."""

import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import metadata

import pytest

from marginbench.harness.errors import SolverError
from marginbench.harness.evaluation.feasibility import FeasibilityWork
from marginbench.harness.evaluation.svm import FitWork, Problem
from marginbench.harness.planning import fingerprint
from marginbench.harness.planning.fingerprint import COMMON_ROOMS, EVALUATION, source_files
from marginbench.solvers.registration import entries

from .conftest import write

COMMON = {f"solvers/{room}" for room in COMMON_ROOMS} | {EVALUATION}


def files_of(name, kind="svm"):
    """The code behind a registered solver."""
    module = entries()[name].module.split(".")[2:]
    path = fingerprint.project_roots()["solvers"].joinpath(*module).with_suffix(".py")
    return source_files(name, path, kind)


def folders(files):
    return {"/".join(name.split("/")[:2]) for name in files}


@pytest.fixture
def copied_project(tmp_path, monkeypatch):
    """A copy of the packages of the project that is taken for the real one."""
    roots = {}
    for package, folder in fingerprint.project_roots().items():
        roots[package] = tmp_path / "copy" / package
        shutil.copytree(folder, roots[package], ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "project_roots", lambda: roots)
    return tmp_path / "copy"


SOLVERS = {"SMO": "svm", "SBP": "svm", "SDCA": "svm", "LowRankSVM": "svm", "MPLFP": "feasibility"}


def test_an_edit_changes_the_keys_of_the_solvers_of_its_folder(copied_project):
    def keyed():
        return {name: files_of(name, kind) for name, kind in SOLVERS.items()}

    before = keyed()
    for name, users in {
        "solvers/sbp/iterations.py": {"SBP"},
        "solvers/feasibility/problem.py": {"MPLFP"},
        "data_loaders/feasibility.py": {"MPLFP"},
        "solvers/linear/sdca.py": set(SOLVERS),
        "solvers/kernels/oracle.py": set(SOLVERS),
        "harness/evaluation/measurement.py": set(SOLVERS),
        "harness/execution/local.py": set(),
        "harness/results/svm.py": set(),
        "harness/loading.py": set(),
        "data_loaders/cache.py": set(),
    }.items():
        file = copied_project / name
        file.write_text(file.read_text() + "\nEDITED = 1\n")
        now = keyed()
        assert {solver for solver in SOLVERS if now[solver] != before[solver]} == users, name
        before = now
    edited = 0
    for file in copied_project.rglob("*.py"):
        # The docstrings of the module and of what follows, and a blank line before everything.
        text = re.sub(r'^( *)"""(?=\w)', r'\1"""Edited: ', file.read_text(), flags=re.M)
        edited += text.count("Edited: ")
        file.write_text(f"# Edited.\n\n{text}\n# The end.\n")
    assert edited > 500
    assert keyed() == before


RBF = {"name": "rbf", "gamma": 10.0}
POINTS = Problem("checkers", {"n_train": 50, "n_test": 20}, RBF, 1.0, fit_intercept=False)
PARAMS = {"kernel": "rbf", "gamma": 10.0, "C": 1.0}
CELL = {"generator": "ldfp", "m": 4, "n": 20, "kappa": 1.0, "tol": 0.0}
IMAGES = {
    "dataset": "digits", "dataset_params": {}, "n_train": 100, "n_validation": 50,
    "unit_norm": True, "gammas": (1.0,), "tuning_iterations": 2, "stages": (2,),
}  # fmt: skip
WORKS = [
    ("svm", FitWork(POINTS, "LowRankSVM", PARAMS, 2.0)),
    ("svm", FitWork(replace(POINTS, fit_intercept=True), "LIBSVM", PARAMS, 2.0)),
    ("feasibility", FeasibilityWork(CELL, 0, "MPLFP", {"tol": 0.0}, 5.0)),
    ("feasibility", FeasibilityWork(IMAGES, 0, "MPKFP", {})),
]
#: Does each work in a process of its own, and prints which modules that has then.
RUNS = """
import os, pickle, sys
# What all need of other packages is imported once.
import numba, numpy, scipy.sparse.linalg, sklearn.svm

for packed in pickle.load(sys.stdin.buffer):
    if os.fork() == 0:
        import marginbench.harness.execution.worker
        found = pickle.loads(packed).run(lambda message: None)
        assert found["status"] in ("converged", "budget"), found
        print(*(name for name in sys.modules if name.startswith("marginbench.")), flush=True)
        os._exit(0)
    os.wait()
"""
#: Modules that a run imports and that cannot change its numbers: they find and read what the key
#: names by hash or fingerprint, carry messages, and store what was measured.
PLUMBING = {"harness/execution", "harness/results", "harness/planning", "data_loaders", "solvers"}
# Of these folders the modules at their top: errors, words, the registry, the cache of data.
TOPS = {"harness", "solvers"}


@pytest.mark.posix
def test_a_run_imports_nothing_that_could_change_it_from_other_folders():
    packed = pickle.dumps([pickle.dumps(work) for _, work in WORKS])
    done = subprocess.run([sys.executable, "-c", RUNS], input=packed, stdout=subprocess.PIPE)
    roots = fingerprint.project_roots()
    for (kind, work), modules in zip(WORKS, done.stdout.decode().splitlines(), strict=True):
        counted, judged = set(files_of(work.solver, kind)), set()
        for module in modules.split():
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


def local_files(file):
    """The hashes of a user's own files."""
    files = source_files(f"{file}:Mine", file, "svm")
    return {name: found for name, found in files.items() if not name.startswith(("solv", "harn"))}


def test_a_users_file_counts_with_what_it_imports_wherever_it_is(tmp_path):
    files = {
        "mine.py": "import near, json, pandas.api\ndef late():\n    from parts.deep import value\n",
        "near.py": "from loose import step\n",
        "loose/step.py": "import unrelated_too\n",
        "parts/__init__.py": "",
        "parts/deep.py": "from .deeper import value\n",
        "parts/deeper.py": "value = 1\n",
    }
    for place in ("here", "there"):
        write(tmp_path / place, {**files, "unrelated.py": "x = 1\n"})
    before = local_files(tmp_path / "here" / "mine.py")
    # An installed package counts by its version.
    assert set(before) == {*files, f"pandas {metadata.version('pandas')}"}
    assert local_files(tmp_path / "there" / "mine.py") == before
    for name, text in (("parts/deeper.py", "value = 2\n"), ("mine.py", "def f(:\n")):
        (tmp_path / "here" / name).write_text(text)
        now = local_files(tmp_path / "here" / "mine.py")
        assert now != before
        before = now
    with pytest.raises(SolverError, match="its code cannot be found"):
        local_files(tmp_path / "none.py")


def test_what_builds_on_our_solvers_counts_with_all_of_them(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    write(
        tmp_path,
        {
            "ours.py": "import math\nfrom marginbench.solvers.sbp.iterations import *\n",
            "plain.py": "import math\nclass Mine: pass\n",
            "theirs/__init__.py": "",
            "theirs/mine.py": "from .parts import step\n",
            "theirs/parts.py": "import marginbench\n",
        },
    )

    def counted(name, file):
        return folders(source_files(name, tmp_path / file, "svm"))

    assert {"solvers/sbp", "solvers/smo"} < counted(f"{tmp_path}/ours.py:Mine", "ours.py")
    assert counted(f"{tmp_path}/plain.py:Mine", "plain.py") == {"plain.py", *COMMON}
    assert counted("plain:Mine", "plain.py") == {"plain.py", *COMMON}
    package = counted("theirs.mine:Mine", "theirs/mine.py")
    assert {"theirs/mine.py", "theirs/parts.py", "solvers/smo"} < package
    monkeypatch.setattr(fingerprint, "installed_version", lambda package: f"{package} 1.2")
    installed = counted("ours:Mine", "ours.py")
    assert {"ours 1.2", "solvers/smo"} < installed
    assert "ours.py" not in installed
