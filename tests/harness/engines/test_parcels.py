"""What travels with a job: the user's file by content; what must be there is compared."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from marginbench.harness.evaluation.outside.commands import parsed_command
from marginbench.harness.evaluation.outside.work import Estimator, OutsideWork, Program
from marginbench.harness.evaluation.svm import FitWork, Problem
from marginbench.harness.execution.engines.parcels import Packer, UnfitError, needs_of
from marginbench.harness.execution.jobs import Job, Limits
from marginbench.harness.loading import load_class

PROBLEM = Problem("checkers", {}, {"name": "rbf", "gamma": 1.0}, 1.0, False)
OWN = """
from inner.helper import SCALE

class Own:
    scale = SCALE
"""


def job(solver: str) -> Job:
    return Job("tag", FitWork(PROBLEM, solver, {}, 2.0), Limits({}, 1.0), foreign=True)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "inner").mkdir(parents=True)
    (folder / "own.py").write_text(OWN)
    (folder / "inner/__init__.py").write_text("PREPARED = True\n")
    (folder / "inner/helper.py").write_text("SCALE = 3\n")
    (folder / "unrelated.py").write_text("SECRET = 1\n")
    return folder / "own.py"


def test_a_users_file_is_imported_from_what_travelled(own: Path, tmp_path: Path) -> None:
    packer = Packer()
    sent = pickle.dumps(packer.packed(job(f"{own}:Own")))
    assert b"SECRET" not in sent
    # Later edits do not count for the runs of a command, nor must the file still be there.
    for file in own.parent.rglob("*.py"):
        file.unlink()
    assert packer.packed(job(f"{own}:Own")).files == pickle.loads(sent).files
    found = pickle.loads(sent).unpacked(tmp_path / "there")
    assert isinstance(found.work, FitWork)
    assert found.work.solver.startswith(str(tmp_path / "there"))
    assert found.work.solver.endswith("/own.py:Own")
    assert load_class(found.work.solver).scale == 3
    assert found.foreign
    names = sorted(path.name for path in (tmp_path / "there").rglob("*.py"))
    assert names == ["__init__.py", "helper.py", "own.py"]


def test_what_a_run_has_changed_is_put_right_before_the_next(own: Path, tmp_path: Path) -> None:
    parcel = Packer().packed(job(f"{own}:Own"))
    parcel.unpacked(tmp_path / "there")
    (file,) = (tmp_path / "there").rglob("helper.py")
    file.write_text("SCALE = 4\n")
    parcel.unpacked(tmp_path / "there")
    assert file.read_text() == "SCALE = 3\n"


def test_a_maker_in_a_file_travels_too(own: Path, tmp_path: Path) -> None:
    work = OutsideWork(PROBLEM, Estimator(f"{own}:Own", {}, 0))
    parcel = Packer().packed(Job("tag", work, Limits({}, 1.0), foreign=True))
    found = parcel.unpacked(tmp_path / "there").work
    assert isinstance(found, OutsideWork)
    assert isinstance(found.fit, Estimator)
    assert Path(found.fit.name.rpartition(":")[0]).read_text() == OWN


def test_a_registered_solver_needs_nothing_but_marginbench(tmp_path: Path) -> None:
    parcel = Packer().packed(job("SMO"))
    assert (parcel.file, parcel.files, parcel.needs) == ("", {}, {})
    assert parcel.unpacked(tmp_path) == parcel.job


@pytest.mark.slow
def test_an_installed_module_must_be_the_same_there(tmp_path: Path) -> None:
    parcel = Packer().packed(job("sklearn.svm:SVC"))
    assert "scikit-learn" in parcel.needs["the module sklearn.svm"]
    assert parcel.unpacked(tmp_path) == parcel.job
    other = type(parcel)(parcel.job, needs={"the module sklearn.svm": "scikit-learn 0.1"})
    with pytest.raises(UnfitError, match=r"the module sklearn\.svm is missing or not that of"):
        other.unpacked(tmp_path)


def test_a_program_must_be_the_same_there(tmp_path: Path) -> None:
    program = tmp_path / "train.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    lines = {"train": f"{program} {{train}} {{model}}", "model": "libsvm"}
    work = OutsideWork(PROBLEM, Program(parsed_command(lines, tmp_path, ""), 0))
    parcel = Packer().packed(Job("tag", work, Limits({}, 1.0), foreign=True))
    assert parcel.unpacked(tmp_path) == parcel.job
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(UnfitError, match=r"the program train\[0\] train\.sh is missing or not"):
        parcel.unpacked(tmp_path)
    assert needs_of(work) != parcel.needs
