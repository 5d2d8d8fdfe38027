"""Curves, and what solvers noted at epochs and iterations, against cases computed by hand."""

import json

import pandas as pd
import pytest

from marginbench.reports import formatting
from marginbench.reports.drawing.canvas import solver_styles
from marginbench.reports.statistics import curves
from marginbench.reports.statistics.curves import (
    bundle_gaps,
    epochs_frame,
    gap_slopes,
    maintenance_curves,
    predicted_fractions,
)
from marginbench.reports.views.svm import draw_bundle_gaps, draw_maintenance


def at(curve, cost, column):
    """The curve's value at a cost: that of the last grid point at or before it."""
    return curve[curve["cost"] <= cost * (1 + 1e-9)][column].iloc[-1]


def drawn(results, kind, cost="evaluations", **options):
    """The rows of a kind of the test error against a cost."""
    found = curves.along(results.runs, results.traces, cost, "test_error", **options)
    return found[found["drawn"] == kind]


def test_curves_are_medians_and_ranges_over_finished_runs_and_failed_ones_are_apart(
    make, results_of
):
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 100, 1000], [0.4, 0.2, 0.1])),
        make.finished("a", "SMO", 1, make.trace([20, 200, 200], [0.5, 0.3, 0.1])),
        make.record("a", "SMO", 2, status="crashed", trace=make.trace([5, 50], [0.6, 0.01])),
    ]
    results = results_of(records)
    curve = drawn(results, "median", n_points=400)
    assert curve["cost"].iloc[0] == 20  # where both runs have a checkpoint
    assert curve["cost"].iloc[-1] == 1000
    for cost, low, high in ((20, 0.4, 0.5), (150, 0.2, 0.5), (500, 0.1, 0.2), (1000, 0.1, 0.1)):
        assert at(curve, cost, "low") == low
        assert at(curve, cost, "high") == high
        assert at(curve, cost, "median") == pytest.approx((low + high) / 2)
    assert set(curve["n_runs"]) == {2}
    assert set(curve["n_planned"]) == {3}
    assert [at(curve, cost, "n_running") for cost in (20, 500, 1000)] == [2, 1, 0]
    failed = drawn(results, "failed run")
    assert failed[["seed", "status", "cost", "value"]].values.tolist() == [
        *([2, "crashed", 5, 0.6], [2, "crashed", 50, 0.01]),
    ]


@pytest.mark.parametrize(
    ("n", "band", "n_singles"), [(1, (0.1, 0.1), 0), (4, (0.1, 0.4), 8), (7, (0.25, 0.55), 0)]
)
def test_bands_are_quartiles_of_five_runs_and_more(make, results_of, n, band, n_singles):
    records = [
        make.finished("a", "SMO", seed, make.trace([10, 20], [0.9, (seed + 1) / 10]))
        for seed in range(n)
    ]
    results = results_of(records)
    curve = drawn(results, "median")
    assert [at(curve, 20, name) for name in ("low", "high")] == pytest.approx(band)
    assert len(drawn(results, "run")) == n_singles


def test_runs_with_one_checkpoint_become_a_point_not_a_curve(make, results_of):
    records = [
        make.finished("a", "LIBSVM", seed, make.trace([None], [error], seconds=[second]))
        for seed, (error, second) in enumerate([(0.1, 3.0), (0.2, 1.0), (0.4, 2.0)])
    ]
    results = results_of(records)
    found = drawn(results, "end", "wall_s")
    columns = ["cost", "cost_low", "cost_high", "median", "low", "high", "n_runs", "n_planned"]
    assert found[columns].values.tolist() == [[2.0, 1.0, 3.0, 0.2, 0.1, 0.4, 3, 3]]
    assert drawn(results, "median", "wall_s").empty
    assert drawn(results, "end").empty


def test_checkpoints_at_no_cost_have_no_place_on_a_logarithmic_axis(make, results_of):
    trace = make.trace([0, 10, 100], [0.5, 0.2, 0.1])
    failed = make.record("a", "SBP", 0, status="crashed", trace=trace[:2])
    results = results_of([make.finished("a", "SMO", 0, trace), failed])
    curve = drawn(results, "median")
    assert (curve["cost"].iloc[0], curve["median"].iloc[0]) == (10, 0.2)
    assert drawn(results, "failed run")["cost"].tolist() == [10]


def run(solver, seed, noted, **changes):
    row = {
        "task": "a", "solver": solver, "seed": seed, "ok": True, "n_train": 200.0, "C": 2.0,
        "reference_alpha_sum": 100.0, "reference_n_free": 10.0, "epochs": json.dumps(noted),
    }  # fmt: skip
    return row | changes


def epoch(number, maintenance):
    return {"epoch": number, "iterations": 200, "maintenance": maintenance, "n_iter": 200 * number}


def budgeted(seed, counts):
    return run("BSCA", seed, [epoch(place, count) for place, count in enumerate(counts, 1)])


def steps(gaps):
    return [
        {"n_iter": t, "gamma": gamma, "epsilon": epsilon, "lower_bound": 0.1}
        for t, (gamma, epsilon) in gaps.items()
    ]


START = {0: (1.0, 1.0)}
FALLING = {t: (3.0 / t**2, 2.0 / t**2) for t in (1, 10, 20, 40, 80, 160)}
RUNS = pd.DataFrame(
    [
        budgeted(0, [100, 40]),
        budgeted(1, [120, 20]),
        budgeted(2, [80, 30]),
        run("BSGD", 0, [epoch(1, 7)], ok=False),
        run("planes", 1, steps(START | {1: (9.0, 9.0)})),
        run("planes", 0, steps(START | FALLING)),
        run("mixture", 0, steps({1: (5.0, 5.0)}), ok=False),
        run("mixture", 1, steps(START | {1: (0.5, 0.5), 2: (0.6, 0.4), 3: (None, 0.1)})),
        run("SMO", 0, []),
        run("SMO", 1, [], epochs=""),
        run("other", 0, [{"epoch": 1}]),
        run("planes", 0, steps(START), task="b", reference_alpha_sum=None),
    ]
)


def test_fractions_of_maintenance_have_their_spread_and_their_prediction():
    curves, predicted = maintenance_curves(epochs_frame(RUNS)), predicted_fractions(RUNS)
    columns = ["solver", "epoch", "median", "low", "high", "n_runs"]
    assert curves[columns].values.tolist() == [
        ["BSCA", 1, 0.5, 0.4, 0.6, 3],
        ["BSCA", 2, 0.15, 0.1, 0.2, 3],
    ]
    assert predicted[["task", "primal_steps", "dual_steps"]].values.tolist() == [
        ["a", pytest.approx(100 / 400), pytest.approx(10 / 200)]
    ]
    styles = solver_styles(["BSCA"])
    svg = draw_maintenance(curves, predicted, styles, "a").svg("p")
    assert "to 15.00\N{NARROW NO-BREAK SPACE}% at 2." in svg
    assert "predicted for subgradient steps, 0.25" in svg
    assert "predicted for coordinate steps, 0.05" in svg
    assert draw_maintenance(curves, predicted, styles, "b") is None
    alone = draw_maintenance(curves, predicted, styles, "a", {"BSCA", "SMO"}).svg("p")
    assert "coordinate steps" in alone
    assert "subgradient steps" not in alone


def test_objectives_come_along_and_what_others_note_under_these_names_does_not():
    def frame(noted):
        return epochs_frame(pd.DataFrame([run("mine", 0, [noted])]))

    good = epoch(1, 3)
    found = frame(good | {"objectives": {"primal": 5.0, "dual_mixed": None}})
    assert found["primal"].tolist() == [5.0]
    assert found["dual_mixed"].isna().all()
    assert found["maintenance_fraction"].tolist() == [0.015]
    for change in ({"maintenance": "often"}, {"epoch": None}, {"iterations": 0}, {"epoch": True}):
        assert frame(good | change).empty
    odd = frame(good | {"seconds": "many", "objectives": ["none"]})
    assert odd["maintenance"].tolist() == [3.0]
    assert odd["seconds"].isna().all()


def test_gaps_are_those_of_the_first_run_that_ended_and_nothing_else_of_these_names():
    gaps = bundle_gaps(RUNS)
    assert gaps[["task", "solver", "n_iter", "gamma", "epsilon"]].values.tolist() == [
        *(["a", "planes", t, *FALLING[t]] for t in FALLING),
        *(["a", "mixture", 1, 0.5, 0.5], ["a", "mixture", 2, 0.6, 0.4]),
    ]
    (item,) = steps({1: (0.5, 0.1)})
    for change in ({"gamma": "scale"}, {"n_iter": "one"}, {"gamma": True}, {"lower_bound": None}):
        assert bundle_gaps(pd.DataFrame([run("mine", 0, [item | change])])).empty
    assert bundle_gaps(RUNS.iloc[:0]).empty


def test_slopes_are_powers_of_the_iteration():
    # The mixture ended before the slope is taken. Neither another start nor a gap of zero, which
    # has no logarithm, changes it.
    noted = [steps(START | FALLING | dict.fromkeys((1, 2, 3), (10.0, 1.0)))]
    noted.append(steps(FALLING | {320: (0.0, 0.0)}))
    for runs in (RUNS, *(pd.DataFrame([run("planes", 0, each)]) for each in noted)):
        (slope,) = gap_slopes(bundle_gaps(runs))[["solver", "slope"]].values.tolist()
        assert slope == ["planes", pytest.approx(-2.0)]
    assert gap_slopes(bundle_gaps(RUNS).iloc[:0]).empty


def test_the_figure_of_gaps_says_what_it_shows_and_is_left_out_where_there_is_nothing():
    gaps, styles = bundle_gaps(RUNS), solver_styles(["planes", "mixture"])
    svg = draw_bundle_gaps(gaps, styles, "a").svg("p")
    for words in (f"to {formatting.scientific(3 / 160**2)} at 160.", "iteration t", "dasharray"):
        assert words in svg
    same = gaps.assign(epsilon=gaps["gamma"])
    assert "stroke-dasharray" not in draw_bundle_gaps(same, styles, "a").svg("p")
    zero = bundle_gaps(pd.DataFrame([run("planes", 0, steps(FALLING | {320: (0.0, 0.0)}))]))
    assert " at 160." in draw_bundle_gaps(zero, styles, "a").description
    for nothing in (gaps.assign(task="b"), gaps.iloc[:0]):
        assert draw_bundle_gaps(nothing, styles, "a") is None
