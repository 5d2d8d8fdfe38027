"""The curves against cases computed by hand."""

import numpy as np
import pytest

from marginbench.reports.statistics import curves


def at(curve, cost, column):
    """The curve's value at a cost: that of the last grid point at or before it."""
    return curve[curve["cost"] <= cost * (1 + 1e-9)][column].iloc[-1]


@pytest.fixture(scope="module")
def two_of_three(make, results_of):
    """Two finished runs of different length and one that crashed on the way."""
    crashed = make.trace([5, 50], [0.6, 0.01])
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 100, 1000], [0.4, 0.2, 0.1])),
        make.finished("a", "SMO", 1, make.trace([20, 200], [0.5, 0.1])),
        make.record("a", "SMO", 2, status="crashed", trace=crashed),
    ]
    return results_of(records)


def test_step_values_take_the_last_checkpoint_at_or_before_a_cost():
    costs = np.array([1.0, 2.0, 2.0, 8.0, 3.0])
    values = np.array([[0.9, 0.5, 0.4, 0.1, 0.3], [9.0, 5.0, 4.0, 1.0, 3.0]])
    runs = curves.Steps("a", "SMO", np.array([0, 4]), costs, values)
    found = runs.at(np.array([0.5, 1.0, 1.9, 2.0, 7.9, 8.0, 99.0]))
    first = [np.nan, 0.9, 0.9, 0.4, 0.4, 0.1, 0.1]
    np.testing.assert_array_equal(found[0], [first, 10 * np.array(first)])
    np.testing.assert_array_equal(found[1, 0], [np.nan, np.nan, np.nan, np.nan, 0.3, 0.3, 0.3])


def test_curves_are_medians_and_ranges_over_finished_runs_and_failed_ones_are_apart(two_of_three):
    curve = curves.medians_along(
        two_of_three.runs, two_of_three.traces, "evaluations", "test_error", n_points=400
    ).curves
    assert curve["cost"].iloc[0] == 20  # where both runs have a checkpoint
    assert curve["cost"].iloc[-1] == 1000
    for cost, low, high in ((20, 0.4, 0.5), (150, 0.2, 0.5), (500, 0.1, 0.2), (1000, 0.1, 0.1)):
        assert at(curve, cost, "low") == low
        assert at(curve, cost, "high") == high
        assert at(curve, cost, "median") == pytest.approx((low + high) / 2)
    assert set(curve["n_runs"]) == {2}
    assert set(curve["n_planned"]) == {3}
    assert [at(curve, cost, "n_running") for cost in (20, 500, 1000)] == [2, 1, 0]
    failed = curves.unfinished(two_of_three.traces, "evaluations", "test_error")
    assert failed[["seed", "status"]].drop_duplicates().to_numpy().tolist() == [[2, "crashed"]]
    assert failed["cost"].tolist() == [5, 50]
    assert failed["value"].tolist() == [0.6, 0.01]


@pytest.mark.parametrize("n", [1, 4, 7])
def test_bands_are_quartiles_of_five_runs_and_more(make, results_of, n):
    errors = np.linspace(0.1, 0.7, 7)[:n]
    records = [
        make.finished("a", "SMO", seed, make.trace([10, 20], [0.9, error]))
        for seed, error in enumerate(errors)
    ]
    results = results_of(records)
    curve = curves.medians_along(results.runs, results.traces, "evaluations", "test_error").curves
    low, high = (at(curve, 20, name) for name in ("low", "high"))
    if n < 5:
        assert (low, high) == (errors.min(), errors.max())
    else:
        assert (low, high) == pytest.approx((0.25, 0.55))
    singles = curves.singles(results.traces, "evaluations", "test_error")
    assert len(singles) == (2 * n if 1 < n < 5 else 0)


def test_runs_with_one_checkpoint_become_a_point_not_a_curve(make, results_of):
    records = [
        make.finished("a", "LIBSVM", seed, make.trace([None], [error], seconds=[second]))
        for seed, (error, second) in enumerate([(0.1, 3.0), (0.2, 1.0), (0.4, 2.0)])
    ]
    solver = make.solver("LIBSVM", instrumented=False)
    results = results_of(records, [make.task("a")], [solver])
    found = curves.medians_along(results.runs, results.traces, "wall_s", "test_error")
    assert found.curves.empty
    (point,) = found.points.to_dict("records")
    assert (point["cost"], point["cost_low"], point["cost_high"]) == (2.0, 1.0, 3.0)
    assert (point["median"], point["low"], point["high"]) == (0.2, 0.1, 0.4)
    assert (point["n_runs"], point["n_planned"]) == (3, 3)
    uncounted = curves.medians_along(results.runs, results.traces, "evaluations", "test_error")
    assert uncounted.curves.empty
    assert uncounted.points.empty


def test_checkpoints_at_no_cost_have_no_place_on_a_logarithmic_axis(make, results_of):
    trace = make.trace([0, 10, 100], [0.5, 0.2, 0.1])
    failed = make.record("a", "SBP", 0, status="crashed", trace=trace[:2])
    results = results_of([make.finished("a", "SMO", 0, trace), failed])
    curve = curves.medians_along(results.runs, results.traces, "evaluations", "test_error").curves
    assert (curve["cost"].iloc[0], curve["median"].iloc[0]) == (10, 0.2)
    found = curves.unfinished(results.traces, "evaluations", "test_error")
    assert found["cost"].tolist() == [10]
