"""One run in this process: what comes back of solvers of every kind, and of those that lie."""

import json
import warnings
from pathlib import Path

import pytest

import marginbench
from marginbench.harness.evaluation.svm import FitWork, Problem
from marginbench.harness.execution.runner import run_study
from marginbench.harness.results.journal import Journal

from ..answers import InProcess, carried_out

DATA = {"n_train": 300, "n_test": 200}
LINEAR = Problem("checkers", DATA, {"name": "linear"}, 1.0, False)
GAUSSIAN = Problem("checkers", DATA, {"name": "rbf", "gamma": 3.0}, 1.0, False)
LIARS = Path(__file__).with_name("liars.py")
HOSTILE = Path(__file__).parents[2] / "faults" / "hostile.py"


def run(task, solver, **params):
    given = params if task is LINEAR else {"gamma": 3.0, **params}
    return carried_out(FitWork(task, solver, given, 1.5))[:2]


@pytest.mark.parametrize(
    ("solver", "params"),
    [("LinearSDCA", {"tol": 1e-4, "random_state": 0}), ("BundleClassifier", {"tol": 1e-4})],
)
def test_a_linear_method_is_measured_by_its_inner_products(solver, params):
    result, trace = run(LINEAR, solver, **params)
    assert result["status"] in ("converged", "budget")
    assert (result["counters"]["kernel_evals"], result["n_support"]) == (0, 0)
    assert result["counters"]["inner_products"] >= 600
    assert len(trace) > 3
    spent = [item.counters["inner_products"] for item in trace]
    assert spent == sorted(spent)
    assert 300 <= spent[0] <= 3 * 300
    assert spent[-1] == result["counters"]["inner_products"]
    assert (result["gap"] is not None) == (solver == "LinearSDCA")


def test_a_feasibility_method_that_finds_no_separator_has_a_status_of_its_own():
    result, trace = run(GAUSSIAN, "MPKFP", tol=0.3, max_iter=500)
    assert result["status"] == "no_separator"
    assert "the predictions mean nothing" in result["reason"]
    assert trace[-1].test_error == result["test_error"]


def test_a_vote_is_measured_without_an_objective():
    result, trace = run(GAUSSIAN, "Perceptron", output="voted", random_state=0)
    assert result["status"] in ("converged", "budget")
    assert (result["primal"], result["dual"], result["gap"]) == (None, None, None)
    assert all(item.primal is None for item in trace)
    assert result["test_error"] < 0.2


def test_a_run_that_ends_at_its_limit_says_so_in_its_status_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(GAUSSIAN, "SMO", max_iter=1)[0]["status"] == "budget"


GAP = "the solver says converged (tol = 0.001), but the duality gap is "


@pytest.mark.parametrize(
    ("solver", "how", "reason"),
    [
        # Whether it converges at all depends on its draws.
        (f"{LIARS}:LinearLiar", "withholds", "the solver promises a dual certificate, but its "),
        (f"{LIARS}:LinearLiar", "has other weights", GAP),
        (f"{LIARS}:LinearLiar", "is biased", "the task has no bias, but the model has the interc"),
        (f"{LIARS}:InventsVotes", "voted", "decision_function gives "),
        *((f"{HOSTILE}:Hostile", how, reason) for how, reason in (
            ("returns_weights", "a linear model is no solution of a task with the rbf kernel"),
            ("is_infeasible", "the solver promises a dual certificate, but"),
            ("predicts_otherwise", "decision_function gives "),
            # The zero model: a gap needs no support vector.
            ("says_that_nothing_is_optimal", f"{GAP}1 "),
            ("inflates_n", f"{GAP}1 "),
            ("counts_too_far", "n_iter is 1000000000000000000000000000000, "),
            ("predicts_with_objects", "decision_function returned no numbers"),
            ("has_an_odd_status", "status_ is 'optimal'"),
            ("returns_nan", "the objective of the returned model is not finite"),
            ("forgets_its_counters", "but the solver has already had "),
            ("stops_counting", "the solver says that it counts, but there are no counts"),
            ("says_nothing_of_its_end", "fit did not report its end"),
        )),
    ],
)  # fmt: skip
def test_lies_are_found(solver, how, reason):
    task = LINEAR if solver.endswith("LinearLiar") else GAUSSIAN
    params = {"output": how} if how == "voted" else {"how": how}
    seed = {} if solver == f"{HOSTILE}:Hostile" else {"random_state": 0}
    result, trace = run(task, solver, **params, **seed)
    assert result["status"] == ("diverged" if how == "returns_nan" else "wrong")
    assert reason in result["reason"]
    assert trace


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("returns_few_coefficients", "coef must hold 300 real numbers, one per training"),
        ("changes_its_data", "assignment destination is read-only"),
    ],
)
def test_what_cannot_come_back_is_raised(how, message):
    with pytest.raises(ValueError, match=message):
        run(GAUSSIAN, f"{HOSTILE}:Hostile", how=how)


def test_code_that_is_compiled_in_the_run_is_not_timed_and_what_the_system_spends_is_told_apart():
    result, _ = run(GAUSSIAN, f"{LIARS}:TakesTime", how="compiles")
    assert result["status"] == "converged"
    # Compiling takes tens of milliseconds and more; the solver itself next to nothing.
    assert result["evaluation_s"] > 0.02
    assert max(result["wall_s"], result["cpu_s"]) < 0.02
    result, _ = run(GAUSSIAN, f"{LIARS}:TakesTime", how="touches memory")
    assert 0.045 <= result["system_s"] < 0.2
    assert result["system_s"] <= result["cpu_s"] + 0.02


def test_what_a_solver_notes_as_it_goes_is_kept():
    result, trace = run(
        GAUSSIAN, "BSCA", budget=10, max_epochs=3, record_objectives=True, random_state=0
    )
    epochs = json.loads(result["epochs"])
    assert [(item["epoch"], item["iterations"]) for item in epochs] == [
        (1, 300), (2, 300), (3, 300)
    ]  # fmt: skip
    assert epochs[-1]["objectives"]["primal"] == pytest.approx(trace[-1].primal, rel=1e-4)
    # Objectives are evaluation: the clocks stand still.
    assert result["evaluation_s"] > 0
    assert run(GAUSSIAN, "SDCA")[0]["epochs"] == "[]"
    result, trace = run(LINEAR, "BundleClassifier", tol=1e-4)
    steps = json.loads(result["epochs"])
    assert [steps[place]["n_iter"] for place in (0, 1, -1)] == [0, 1, result["n_iter"]]
    claimed = steps[-1]["lower_bound"] + steps[-1]["epsilon"]
    assert claimed == pytest.approx(trace[-1].primal / 300, rel=1e-6)


@pytest.mark.slow
def test_a_study_of_several_classes(tmp_path, make_study):
    task = {"dataset": "digits", "dataset_params": {"positive": "none"}, "gamma": 0.02, "C": 1.0}
    solvers = [{"name": "SMO"}, {"name": "SBP"}]
    study = make_study(task=[task], solver=solvers, reference={"tol": 1e-4})
    run_study(study, tmp_path, executor=InProcess())
    records = {record.solver: record for record in Journal(tmp_path).records()}
    smo = records["SMO"]
    assert (smo.status, smo.n_classes) == ("converged", 10)
    assert -1e-4 <= smo.suboptimality < 1e-3  # the reference is certified to 1e-4
    assert smo.test_error < 0.07
    assert records["SBP"].status == "skipped"
    assert "10 classes, each against the rest" in marginbench.report(tmp_path).read_text()
