"""A solver that hangs as it is warmed up; several classes.

The solvers of liars.py behave on few points: the warm-up passes, and the run itself goes wrong.
What every kind of study does with runs that fail is in test_kinds.py, all other ways of harm are in
tests/faults/test_hostile_solvers.py.
"""

from pathlib import Path

import pytest

import marginbench
from marginbench.harness.evaluation.svm import FitWork, Problem
from marginbench.harness.execution.local import LocalPool
from marginbench.harness.execution.runner import run_study
from marginbench.harness.execution.workbench import InProcess
from marginbench.harness.jobs import Ended, Job, Limits
from marginbench.harness.results.journal import Journal

LIARS = Path(__file__).with_name("liars.py")


def fit_of(solver, how=""):
    """A run on 200 points."""
    data = {"n_train": 200, "n_test": 100}
    problem = Problem("checkers", data, {"name": "rbf", "gamma": 10.0}, 1.0, False)
    return FitWork(problem, solver, {"gamma": 10.0, **({"how": how} if how else {})}, 1.19)


def test_a_solver_that_hangs_as_it_is_warmed_up_is_killed(tmp_path):
    job = Job("loops", fit_of(f"{LIARS}:Bad", "loops at once"), Limits({"compile": 0.5}, 4000.0))
    with LocalPool(1, tmp_path / "logs") as pool:
        (outcome,) = (e.outcome for e in pool.execute(iter([job])) if isinstance(e, Ended))
    assert outcome.status == "timeout"
    assert outcome.reason.startswith("building and warming up the solver took longer than 0.5 s")


@pytest.mark.slow
def test_a_study_of_several_classes(tmp_path, make_study):
    task = {"dataset": "digits", "dataset_params": {"positive": "none"}, "gamma": 0.02, "C": 1.0}
    study = make_study(
        task=[{"label": "ten", **task}],
        solver=[
            {"name": "SMO"},
            {"name": "Pegasos", "params": {"max_epochs": 2}},
            {"name": "SBP"},
            {"name": f"{LIARS}:SwapsClasses"},
        ],
        reference={"tol": 1e-4},
    )
    run_study(study, tmp_path, executor=InProcess())
    records = {record.solver: record for record in Journal(tmp_path).records()}
    smo = records["SMO"]
    assert (smo.status, smo.n_classes) == ("converged", 10)
    assert -1e-4 <= smo.suboptimality < 1e-3  # the reference is certified to 1e-4
    assert smo.test_error < 0.07
    assert records["Pegasos"].test_error < 0.5
    assert records["SBP"].status == "skipped"
    assert records["SwapsClasses"].status == "wrong"
    assert "decision_function gives" in records["SwapsClasses"].reason
    page = marginbench.report(tmp_path).read_text()
    assert "10 classes, each against the rest" in page
    assert "Several classes" in page
