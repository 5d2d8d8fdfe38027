"""The gaps of bundle methods by iteration, as numbers and as a figure."""

import json

import pandas as pd
import pytest

from marginbench.reports import formatting
from marginbench.reports.drawing.canvas import solver_styles
from marginbench.reports.statistics.curves import bundle_gaps, gap_slopes
from marginbench.reports.views.svm import draw_bundle_gaps


def steps(gaps):
    return json.dumps(
        [
            {"n_iter": t, "gamma": gamma, "epsilon": epsilon, "lower_bound": 0.1}
            for t, (gamma, epsilon) in gaps.items()
        ]
    )


def run(solver, seed, epochs, **changes):
    return {"task": "a", "solver": solver, "seed": seed, "ok": True, "epochs": epochs} | changes


FALLING = {t: (3.0 / t**2, 2.0 / t**2) for t in (1, 10, 20, 40, 80, 160)}
RUNS = pd.DataFrame(
    [
        run("planes", 1, steps({0: (1.0, 1.0), 1: (9.0, 9.0)})),
        run("planes", 0, steps({0: (1.0, 1.0), **FALLING})),
        run("mixture", 0, steps({1: (5.0, 5.0)}), ok=False),
        run("mixture", 1, steps({0: (1.0, 1.0), 1: (0.5, 0.5), 2: (0.6, 0.4), 3: (None, 0.1)})),
        run("SMO", 0, "[]"),
        run("SMO", 1, ""),
        run("BSCA", 0, json.dumps([{"epoch": 1, "n_iter": 200, "maintenance": 3}])),
        run("planes", 0, steps({0: (1.0, 1.0)}), task="b"),
    ]
)


def test_gaps_are_those_of_the_first_run_that_ended():
    gaps = bundle_gaps(RUNS)
    assert set(gaps["task"]) == {"a"}
    planes = gaps[gaps["solver"] == "planes"]
    assert planes["n_iter"].tolist() == list(FALLING)
    assert planes["gamma"].tolist() == [gamma for gamma, _ in FALLING.values()]
    assert planes["epsilon"].tolist() == [epsilon for _, epsilon in FALLING.values()]
    mixture = gaps[gaps["solver"] == "mixture"]
    assert mixture["gamma"].tolist() == [0.5, 0.6]
    assert mixture["epsilon"].tolist() == [0.5, 0.4]
    assert len(gaps) == len(planes) + len(mixture)


def test_what_other_solvers_note_under_these_names_is_not_taken_for_a_gap():
    rubbish = [
        {"n_iter": 1, "gamma": "scale", "epsilon": 0.1, "lower_bound": 0.0},
        {"n_iter": "one", "gamma": 1.0, "epsilon": 0.1, "lower_bound": 0.0},
        {"n_iter": 1, "gamma": True, "epsilon": 0.1, "lower_bound": 0.0},
        {"n_iter": 1, "gamma": 0.5, "epsilon": 0.1},  # the width of a kernel, say
        {"n_iter": 1, "gamma": [1], "epsilon": {}, "lower_bound": None},
    ]
    runs = pd.DataFrame([run("mine", 0, json.dumps([item])) for item in rubbish])
    for seed in range(len(runs)):
        assert bundle_gaps(runs[seed : seed + 1]).empty


def test_slopes_are_powers_of_the_iteration():
    slopes = gap_slopes(bundle_gaps(RUNS))
    # The mixture ended before the slope is taken.
    assert slopes["solver"].tolist() == ["planes"]
    assert slopes["slope"].tolist() == [pytest.approx(-2.0)]
    other_start = dict.fromkeys((1, 2, 3), (10.0, 1.0))
    other = pd.DataFrame([run("planes", 0, steps({**FALLING, **other_start}))])
    assert gap_slopes(bundle_gaps(other))["slope"].tolist() == [pytest.approx(-2.0)]


def test_a_gap_of_zero_has_no_logarithm():
    closed = pd.DataFrame([run("planes", 0, steps({**FALLING, 320: (0.0, 0.0)}))])
    assert gap_slopes(bundle_gaps(closed))["slope"].tolist() == [pytest.approx(-2.0)]
    drawing = draw_bundle_gaps(bundle_gaps(closed), solver_styles(["planes"]), "a")
    svg = drawing.svg("p")
    assert "after 160 iterations" in svg


def test_no_runs_make_empty_frames():
    gaps = bundle_gaps(RUNS.iloc[:0])
    assert gaps.empty
    assert gap_slopes(gaps).empty
    assert draw_bundle_gaps(gaps, {}, "a") is None


def test_the_figure_says_what_it_shows_and_is_left_out_where_there_is_nothing():
    gaps = bundle_gaps(RUNS)
    styles = solver_styles(["planes", "mixture"])
    svg = draw_bundle_gaps(gaps, styles, "a").svg("p")
    assert f"planes ends at {formatting.scientific(3 / 160**2)} after 160 iterations." in svg
    assert "iteration t" in svg
    assert "stroke-dasharray" in svg
    same = gaps.assign(epsilon=gaps["gamma"])
    assert "stroke-dasharray" not in draw_bundle_gaps(same, styles, "a").svg("p")
    assert draw_bundle_gaps(gaps, styles, "b") is None
