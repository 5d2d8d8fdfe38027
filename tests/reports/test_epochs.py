"""What solvers noted at each epoch, as numbers and as a figure."""

import json

import pandas as pd
import pytest

from marginbench.reports.drawing.canvas import solver_styles
from marginbench.reports.statistics.curves import (
    epochs_frame,
    maintenance_curves,
    predicted_fractions,
)
from marginbench.reports.views.svm import draw_maintenance


def noted(epoch, maintenance):
    return {"epoch": epoch, "iterations": 200, "maintenance": maintenance, "n_iter": 200 * epoch}


def run(seed, events, **changes):
    row = {
        "task": "a", "solver": "BSCA", "seed": seed, "ok": True, "n_train": 200.0, "C": 2.0,
        "reference_alpha_sum": 100.0, "reference_n_free": 10.0,
        "epochs": json.dumps([noted(place, count) for place, count in enumerate(events, 1)]),
    }  # fmt: skip
    return row | changes


RUNS = pd.DataFrame(
    [
        run(0, [100, 40]),
        run(1, [120, 20]),
        run(2, [80, 30]),
        run(0, [7, 7], ok=False, solver="BSGD"),
        run(0, [], solver="SMO", epochs=""),
        run(0, [], solver="other", epochs='[{"epoch": 1}]'),
        run(0, [], task="b", reference_alpha_sum=None),
    ]
)


def test_fractions_are_events_by_iterations_with_their_spread():
    curves = maintenance_curves(epochs_frame(RUNS))
    assert curves["solver"].unique().tolist() == ["BSCA"]
    assert curves["epoch"].tolist() == [1, 2]
    assert curves["median"].tolist() == [0.5, 0.15]
    assert curves["low"].tolist() == [0.4, 0.1]
    assert curves["high"].tolist() == [0.6, 0.2]
    assert curves["n_runs"].tolist() == [3, 3]


def test_objectives_come_along_where_they_were_noted():
    with_objectives = noted(1, 3) | {"objectives": {"primal": 5.0, "drift": None}}
    frame = epochs_frame(pd.DataFrame([run(0, [], epochs=json.dumps([with_objectives]))]))
    assert frame["primal"].tolist() == [5.0]
    assert frame["drift"].isna().all()
    assert frame["maintenance_fraction"].tolist() == [0.015]


def test_what_other_solvers_note_under_these_names_is_left_out():
    good = noted(1, 3)
    for change in ({"maintenance": "often"}, {"epoch": None}, {"iterations": 0}, {"epoch": True}):
        frame = epochs_frame(pd.DataFrame([run(0, [], epochs=json.dumps([good | change]))]))
        assert frame.empty
    odd = good | {"n_support": "many", "objectives": ["none"]}
    frame = epochs_frame(pd.DataFrame([run(0, [], epochs=json.dumps([odd]))]))
    assert frame["maintenance"].tolist() == [3.0]
    assert frame["n_support"].isna().all()


def test_predictions_are_those_of_the_reference_optimum():
    found = predicted_fractions(RUNS)
    assert found["task"].tolist() == ["a"]
    assert found["primal_steps"].tolist() == [pytest.approx(100 / 400)]
    assert found["dual_steps"].tolist() == [pytest.approx(10 / 200)]


def test_the_figure_says_what_it_shows_and_is_left_out_where_there_is_nothing():
    curves = maintenance_curves(epochs_frame(RUNS))
    styles = solver_styles(["BSCA"])
    svg = draw_maintenance(curves, predicted_fractions(RUNS), styles, "a").svg("p")
    assert "BSCA ends at 15" in svg
    assert "predicted for subgradient steps, 0.25" in svg
    assert "predicted for coordinate steps, 0.05" in svg
    assert draw_maintenance(curves, predicted_fractions(RUNS), styles, "b") is None
    alone = draw_maintenance(curves, predicted_fractions(RUNS), styles, "a", {"BSCA", "SMO"}).svg(
        "p"
    )
    assert "coordinate steps" in alone
    assert "subgradient steps" not in alone
