"""One run in this process: what comes back of solvers of every kind, and of those that lie."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from marginbench.harness.evaluation.svm import FitWork, Problem
from marginbench.harness.results.records import EXPECTED_STATUSES

from ..answers import carried_out

DATA = {"n_train": 300, "n_test": 200}
LINEAR = Problem("checkers", DATA, {"name": "linear"}, 1.0, False)
GAUSSIAN = Problem("checkers", DATA, {"name": "rbf", "gamma": 3.0}, 1.0, False)
LIARS = Path(__file__).with_name("liars.py")
HOSTILE = Path(__file__).parents[2] / "faults" / "hostile.py"


def run(task, solver, **params):
    return carried_out(FitWork(task, solver, params, 1.5))[:2]


@pytest.mark.parametrize(
    ("solver", "params"),
    [
        ("LinearSDCA", {"tol": 1e-4, "random_state": 0}),
        ("BundleClassifier", {"tol": 1e-4}),
    ],
)
def test_a_linear_method_is_measured_by_its_inner_products(solver, params):
    result, trace = run(LINEAR, solver, **params)
    assert result["status"] in ("converged", "budget")
    assert result["counters"]["kernel_evals"] == 0
    assert result["counters"]["inner_products"] >= 600
    assert result["n_support"] == 0
    assert len(trace) > 3
    spent = [item.counters["inner_products"] for item in trace]
    assert spent == sorted(spent)
    assert 300 <= spent[0] <= 3 * 300
    assert spent[-1] == result["counters"]["inner_products"]
    assert (result["gap"] is not None) == (solver == "LinearSDCA")


def test_random_features_are_measured_after_an_epoch_and_at_their_end():
    result, trace = run(GAUSSIAN, "RandomFourierFeatures", gamma=3.0, n_pairs=20, random_state=0)
    assert result["status"] == "converged"
    assert (result["counters"]["kernel_evals"], result["counters"]["inner_products"]) == (
        0,
        20 * 300,
    )
    assert [point.n_iter for point in trace] == [300, result["n_iter"]]
    assert result["test_error"] < 0.4


def test_a_feasibility_method_that_finds_no_separator_has_a_status_of_its_own():
    result, trace = run(GAUSSIAN, "MPKFP", gamma=3.0, tol=0.3, max_iter=500)
    assert result["status"] == "no_separator"
    assert result["reason"] == ("no separator has a margin above tol: the predictions mean nothing")
    assert trace[-1].test_error == result["test_error"]
    assert "no_separator" in EXPECTED_STATUSES


def test_a_vote_is_measured_without_an_objective():
    result, trace = run(GAUSSIAN, "Perceptron", gamma=3.0, output="voted", random_state=0)
    assert result["status"] in ("converged", "budget")
    assert (result["primal"], result["dual"], result["gap"]) == (None, None, None)
    assert all(item.primal is None for item in trace)
    assert result["test_error"] < 0.2


def test_a_run_that_ends_at_its_limit_says_so_in_its_status_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(GAUSSIAN, "SMO", gamma=3.0, max_iter=1)[0]["status"] == "budget"


SMALL = replace(GAUSSIAN, dataset_params={"n_train": 50, "n_test": 40})
BAD = "the solver says converged (tol = 0.001), but the duality gap is "


@pytest.mark.parametrize(
    ("solver", "task", "params", "reason"),
    [
        ("OnAnyTask", GAUSSIAN, {}, "a linear model is no solution of a task with the rbf kernel"),
        ("Withholds", LINEAR, {}, "the solver promises a dual certificate, but its coefficients"),
        # Whether this one converges at all depends on its draws.
        ("OtherWeights", LINEAR, {"random_state": 0}, BAD),
        ("Biased", LINEAR, {}, "the task has no bias, but the model has the intercept 0.5"),
        ("PredictsOtherwise", LINEAR, {}, "decision_function gives "),
        ("InventsVotes", SMALL, {"output": "voted", "random_state": 0}, "decision_function gives "),
        ("Bad", GAUSSIAN, {"how": "says converged"}, BAD),
        ("Bad", GAUSSIAN, {"how": "is infeasible"}, "the solver promises a dual certificate, but"),
        ("Bad", GAUSSIAN, {"how": "predicts otherwise"}, "decision_function gives "),
        # The zero model: a gap needs no support vector.
        ("Bad", GAUSSIAN, {"how": "says that nothing is optimal"}, f"{BAD}1 "),
        ("Bad", GAUSSIAN, {"how": "inflates n"}, f"{BAD}1 "),
        ("Bad", GAUSSIAN, {"how": "counts too far"}, "n_iter is 1000000000000000000000000000000, "),
        (
            "Bad",
            GAUSSIAN,
            {"how": "invents points"},
            "the model's support reaches from 1 to 300; there are 300 ",
        ),
    ],
)
def test_liars_are_found(solver, task, params, reason):
    given = params if task is LINEAR else {"gamma": 3.0, **params}
    result, trace = run(task, f"{LIARS}:{solver}", **given)
    assert (result["status"], result["reason"][: len(reason)]) == ("wrong", reason)
    assert trace or solver == "OnAnyTask"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("predicts_with_objects", "decision_function returned no numbers"),
        ("has_an_odd_status", "status_ is 'optimal'"),
        ("returns_nan", "the objective of the returned model is not finite"),
        ("returns_objects", "coefficients have type object, not real"),
        ("returns_no_model", "model_ is a str, no marginbench.Model"),
        ("forgets_its_counters", "but the solver has already had "),
        ("stops_counting", "the solver says that it counts, but there are no counts"),
        ("says_nothing_of_its_end", "fit did not report its end"),
    ],
)
def test_a_solver_that_solves_and_then_lies_is_found(how, reason):
    result, trace = run(GAUSSIAN, f"{HOSTILE}:Hostile", gamma=3.0, how=how)
    assert result["status"] == ("diverged" if how == "returns_nan" else "wrong")
    assert reason in result["reason"]
    assert trace


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("returns few coefficients", "coef must hold 300 real numbers, one per training"),
        ("changes its data", "assignment destination is read-only"),
    ],
)
def test_what_cannot_come_back_is_raised(how, message):
    with pytest.raises(ValueError, match=message):
        run(GAUSSIAN, f"{LIARS}:Bad", gamma=3.0, how=how)


# What is timed, and what is kept


def test_code_that_is_compiled_in_the_run_is_not_timed():
    result, _ = run(GAUSSIAN, f"{LIARS}:CompilesLate", gamma=3.0)
    assert result["status"] == "converged"
    # Compiling takes tens of milliseconds and more; the solver itself next to nothing.
    assert result["evaluation_s"] > 0.02
    assert result["wall_s"] < 0.02
    assert result["cpu_s"] < 0.02


def test_what_the_system_spends_is_told_apart():
    result, _ = run(GAUSSIAN, f"{LIARS}:Touches", gamma=3.0)
    assert 0.045 <= result["system_s"] < 0.2
    assert result["system_s"] <= result["cpu_s"] + 0.02


def test_what_a_solver_notes_at_each_epoch_is_kept():
    result, trace = run(
        GAUSSIAN, "BSCA", gamma=3.0, budget=10, max_epochs=3, record_objectives=True, random_state=0
    )
    epochs = json.loads(result["epochs"])
    assert [item["epoch"] for item in epochs] == [1, 2, 3]
    assert all(item["iterations"] == 300 for item in epochs)
    assert epochs[-1]["objectives"]["primal"] == pytest.approx(trace[-1].primal, rel=1e-4)
    # Objectives are evaluation: the clocks stand still.
    assert result["evaluation_s"] > 0
    assert run(GAUSSIAN, "SDCA", gamma=3.0)[0]["epochs"] == "[]"


def test_what_a_bundle_method_knew_by_iteration_is_kept():
    result, trace = run(LINEAR, "BundleClassifier", tol=1e-4)
    steps = json.loads(result["epochs"])
    assert [step["n_iter"] for step in steps][:2] == [0, 1]
    assert steps[-1]["n_iter"] == result["n_iter"]
    assert all(step["gamma"] >= step["epsilon"] > -1e-15 for step in steps)
    # In units of lambda / 2 ||w||^2 + mean loss, at w = 0: J = 1.
    assert steps[0]["gamma"] == pytest.approx(1.0, rel=1e-14)
    assert steps[-1]["epsilon"] <= 1e-4
    claimed = steps[-1]["lower_bound"] + steps[-1]["epsilon"]
    assert claimed == pytest.approx(trace[-1].primal / 300, rel=1e-6)
