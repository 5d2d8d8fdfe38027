"""Runs on classes of images: the draw, the choice of the width, and the stages."""

import json
from dataclasses import replace

import numpy as np
import pytest

from marginbench.data_loaders import DataError
from marginbench.harness.evaluation.feasibility import FeasibilityWork
from marginbench.harness.evaluation.separation import draw
from marginbench.solvers import MPKFP
from marginbench.solvers.interface.one_vs_rest import OneVsRest

from ..answers import carried_out as run

IMAGES = {
    "dataset": "digits", "dataset_params": {}, "n_train": 100, "n_validation": 40,
    "unit_norm": True, "gammas": (1e-4, 2.0), "tuning_iterations": 10, "stages": (1, 5, 30),
}  # fmt: skip
WORK = FeasibilityWork(IMAGES, 0, "MPKFP", {"tol": 0.0, "dtype": "float64"})


def changed(change, **more):
    return replace(WORK, problem=IMAGES | change, **more)


@pytest.fixture
def four_classes(monkeypatch):
    """Clusters of four classes in place of a dataset."""
    rng = np.random.default_rng(0)

    class Data:
        y_train, y_test = np.arange(400) % 4, np.arange(80) % 4
        X_train = 0.5 * rng.standard_normal((400, 6)) + np.eye(4, 6)[y_train]
        X_test = 0.5 * rng.standard_normal((80, 6)) + np.eye(4, 6)[y_test]
        # The last feature tells the first class.
        X_train[:, 5] += 4.0 * (y_train == 0)
        X_test[:, 5] += 4.0 * (y_test == 0)

    monkeypatch.setattr(
        "marginbench.harness.evaluation.separation.load", lambda *given, **options: Data
    )
    return Data


def test_points_are_drawn_evenly_and_the_parts_do_not_meet(four_classes):
    points = draw(changed({"unit_norm": False}))
    (X, y), (V, v) = points["train"], points["validation"]
    assert np.bincount(y).tolist() == [25] * 4
    assert np.bincount(v).tolist() == [10] * 4
    rows = {tuple(row) for row in X}
    assert not rows & {tuple(row) for row in V}
    assert rows < {tuple(row) for row in four_classes.X_train}
    assert points["test"][0] is four_classes.X_test
    other = draw(changed({"unit_norm": False}, seed=1))["train"][0]
    assert not np.array_equal(other, X)
    for n in (4, 360):  # one of each class, and all that there are
        assert len(draw(changed({"n_train": n}))["train"][1]) == n
    unit = draw(WORK)["test"][0]
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_train": 364}, "364 training and 40 validation points .* class 0 has only 100 points"),
        ({"n_train": 3}, "3 training and .* evenly from 4 classes, at least one of each"),
    ],
)
def test_too_few_points_are_an_error_of_the_data(four_classes, change, message):
    with pytest.raises(DataError, match=message):
        draw(changed(change))


def test_the_best_width_is_trained_and_scored_at_stages(four_classes):
    found, trace, phases = run(WORK)
    assert phases == ["data", "solve", "evaluate"]
    alone = {gamma: run(changed({"gammas": (gamma,)}))[0] for gamma in IMAGES["gammas"]}
    errors = {gamma: json.loads(each["validation"])[str(gamma)] for gamma, each in alone.items()}
    assert json.loads(found["validation"]) == {str(gamma): e for gamma, e in errors.items()}
    # The first of the best.
    best = min(IMAGES["gammas"], key=errors.__getitem__)
    assert found["gamma"] == best
    assert found["test_error"] == alone[best]["test_error"] == trace[-1].test_error < 0.5
    assert [stage.n_iter for stage in trace] == [1, 5, 30]
    # A stage is a shorter run.
    short, _, _ = run(changed({"stages": (5,), "gammas": (best,)}))
    assert short["test_error"] == trace[1].test_error
    # All classes share one kernel matrix; what the widths cost is not counted.
    assert found["counters"]["kernel_evals"] == 100 * 100
    assert found["tuning_s"] > 0


def test_of_all_classes_costs_are_sums_and_bounds_are_the_extreme_ones(four_classes):
    found, trace, _ = run(changed({"gammas": (2.0,), "stages": (1, 5, 12)}))
    method = MPKFP(kernel="rbf", gamma=2.0, max_iter=12, history=1.0, tol=0.0, dtype="float64")
    fitted = OneVsRest(method).fit(*draw(WORK)["train"])
    results = [one.result_ for one in fitted.estimators_]
    for stage in trace:
        ends = [[p for p in one.history if p.iteration <= stage.n_iter][-1] for one in results]
        assert stage.counters["matvecs"] == sum(end.matvecs for end in ends)
        assert stage.phi_lo == min(end.phi_lo for end in ends)
        assert stage.phi_up == max(end.phi_up for end in ends)
    # One class is separated early, and what it found counts until the end.
    assert sorted(one.n_iter for one in results)[0] < 12 == found["n_iter"]
    assert (found["status"], found["reason"]) == ("budget", "1 of 4 classes separated")
    assert found["counters"]["matvecs"] == sum(one.counters.matvecs for one in results)


def test_the_two_classes_of_a_real_dataset_have_one_predictor():
    found, trace, _ = run(changed({"n_validation": 50, "gammas": (2.0,), "stages": (5, 20)}))
    assert (found["status"], found["found"]) == ("converged", "separable")
    assert found["reason"] == "1 of 1 pair of classes separated"
    assert 0 <= found["train_error"] <= found["test_error"] < 0.5
    assert len(trace) == 2
    # A class that the start separates has the costs of its end.
    small = {"n_train": 60, "n_validation": 20, "gammas": (32.0,), "stages": (1, 50)}
    found, trace, _ = run(changed(small, solver="ISNKPVN", params={"tol": 0.0}))
    assert found["n_iter"] == 1
    assert len(trace) == 2
    assert all(0 <= stage.phi_lo <= stage.phi_up for stage in trace)
