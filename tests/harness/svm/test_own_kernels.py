"""Kernels in a user's file: judged like those of the project, and known by their code."""

import shutil

import pytest

from marginbench import run
from marginbench.harness.errors import SolverError
from marginbench.harness.evaluation.measurement import measure
from marginbench.harness.evaluation.svm import FitWork, Problem
from marginbench.harness.loading import load_kernel
from marginbench.harness.planning.fingerprint import kernel_code
from marginbench.harness.planning.merging import merge
from marginbench.harness.planning.report import explain
from marginbench.harness.results.journal import Journal

from ..answers import Lenient

KERNELS = """
import numpy as np
from marginbench.solvers.kernels import RBF

NOTHING = 3


class Mine(RBF):
    pass


def quadratic(A, B):
    return np.asarray(A @ B.T) ** 2
"""
STUDY = """
name = "own"
[[task]]
dataset = "checkers"
dataset_params = { n_train = 200, n_test = 100 }
kernel = "mine.py:quadratic"
C = 1.0
[[solver]]
name = "SMO"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(KERNELS)
    return path


def test_a_class_of_ones_own_is_judged_as_that_of_the_project(file):
    data = {"n_train": 200, "n_test": 100}

    def measured(task_kernel, kernel):
        problem = Problem("checkers", data, {"name": task_kernel, "gamma": 10.0}, 1.0, False)
        params = {"kernel": kernel, "gamma": 10.0, "C": 1.0, "random_state": 0}
        return measure(FitWork(problem, "SMO", params, 1.5), lambda message: None)

    expected = measured("rbf", "rbf")
    found = measured(f"{file}:Mine", {"name": "mine.py:Mine", "gamma": 10.0})
    assert found["status"] == "converged"
    for name in ("counters", "primal", "dual", "test_error", "n_support", "n_iter"):
        assert found[name] == expected[name], name


def test_what_is_no_kernel_is_refused(file):
    for kernel in ({"name": "NOTHING"}, {"name": "quadratic", "a": 1.0}, {"name": "Absent"}):
        kernel["name"] = f"{file}:{kernel['name']}"
        with pytest.raises(SolverError, match=r"is no kernel: give a class|no class 'Absent'"):
            load_kernel(kernel)


def test_a_study_with_it_runs_and_runs_again_when_it_changes(file, tmp_path, in_this_process):
    study = tmp_path / "own.toml"
    study.write_text(STUDY)

    def record():
        run(study, out=tmp_path / "results", quiet=True)
        (found,) = Journal(tmp_path / "results").records()
        return found

    first, again = record(), record()
    assert (first.status, first.kernel) == ("converged", '{"name":"mine.py:quadratic"}')
    assert 0 <= first.suboptimality < 1e-2
    assert (again.key, again.started_at) == (first.key, first.started_at)
    assert str(tmp_path) not in (tmp_path / "results/study.json").read_text()
    (item,) = explain(tmp_path / "results", Lenient())
    assert item.state == "recorded"
    copy = shutil.copytree(tmp_path / "results", tmp_path / "deeper/copy")
    shutil.copy(file, tmp_path / "deeper")
    described = (tmp_path / "results/study.json").read_bytes()
    assert merge([tmp_path / "results", copy], tmp_path / "merged").records == 1
    assert (tmp_path / "merged/study.json").read_bytes() == described
    before = kernel_code(f"{file}:Mine")
    file.write_text(KERNELS.replace("** 2", "** 3.0"))
    assert record().key != first.key
    assert kernel_code(f"{file}:Mine") != before
    # The folder does not count, nor do comments.
    (tmp_path / "other").mkdir()
    (tmp_path / "other/mine.py").write_text(f"{KERNELS}\n# a comment\n")
    assert kernel_code(f"{tmp_path}/other/mine.py:Mine") == before
    assert kernel_code("rbf") == ""
