"""The data of the explorer against the statistics that it shows."""

import json
from dataclasses import replace

import numpy as np
import pytest

from marginbench.reports import analysis
from marginbench.reports.results import load_results
from marginbench.reports.statistics import curves
from marginbench.reports.templating import TEMPLATES
from marginbench.reports.views import explorer
from marginbench.reports.views.explorer import explorer_data, explorer_json

PRECISION = 5e-4  # four significant digits


def series(data, task, solver, cost, value, kind="median"):
    """The numbers of one solver, as the script reads them."""
    wanted = {"kind": kind}
    for key, name, words in (
        ("task", "label", task),
        ("solver", "label", solver),
        ("cost", "name", cost),
        ("value", "name", value),
    ):
        wanted[key] = [one[name] for one in data[f"{key}s"]].index(words)
    found = [one for one in data["series"] if wanted.items() <= one.items()]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.fixture(scope="module")
def results(realistic):
    return load_results(realistic)


@pytest.fixture(scope="module")
def data(results):
    return json.loads(explorer_json(results))


@pytest.mark.parametrize(
    ("cost", "value"),
    [("evaluations", "test_error"), ("cpu_s", "suboptimality"), ("n_iter", "n_support")],
)
def test_medians_and_ends_are_those_of_the_statistics(results, data, cost, value):
    expected = curves.medians_along(
        results.runs, analysis.traces(results), cost, value, explorer.MOST_POINTS
    ).curves
    for (task, solver), curve in expected.groupby(["task", "solver"]):
        found = series(data, task, solver, cost, value)
        assert (found["n"], found["of"]) == tuple(curve[["n_runs", "n_planned"]].iloc[0])
        assert found["x"][-1] == pytest.approx(curve["cost"].iloc[-1], rel=PRECISION)
        # Between the points that are kept nothing changes.
        grid = curve["cost"].to_numpy() * (1 + PRECISION)
        for name, shown in (("median", "y"), ("low", "low"), ("high", "high")):
            drawn = np.array(found["x"]), np.array([found[shown]])
            at = curves.Steps("a", "SMO", np.array([0]), *drawn).at(grid)[0, 0]
            np.testing.assert_allclose(at, curve[name], rtol=PRECISION)
    for row in curves.medians_along(
        results.runs, analysis.traces(results), cost, value
    ).points.to_dict("records"):
        found = series(data, row["task"], row["solver"], cost, value, "end")
        assert found["x_low"][0] <= found["x"][0] <= found["x_high"][0]
        assert found["y"] == [pytest.approx(row["median"], rel=PRECISION)]
    failed = series(data, "digits", "Pegasos", cost, value, "failed")
    assert failed["status"] == ["timeout"]


def test_a_counter_is_offered_once_and_an_unused_one_not(data):
    words = [axis["words"] for axis in data["costs"]]
    assert len(words) == len(set(words))
    assert words[0] == "kernel evaluations"
    assert not {"inner products", "matrix-vector products", "iterations done"} & set(words)
    # No run of these solvers has a dual point, or keeps a budget.
    assert not {"certified_gap", "maintenance_fraction"} & {axis["name"] for axis in data["values"]}


def test_dual_values_give_certified_gaps_and_epochs_fractions_of_maintenance(make, results_of):
    trace = make.trace([10, 100], [0.4, 0.2], [200.0, 125.0])
    trace = [replace(state, dual=dual) for state, dual in zip(trace, (50.0, 100.0), strict=True)]
    noted = [
        {"epoch": epoch, "n_iter": epoch, "maintenance": 4 * epoch, "iterations": 16}
        for epoch in (1, 2)
    ]
    records = [make.finished("a", name, 0, trace) for name in ("SMO", "SBP")]
    records[0] = replace(records[0], epochs=json.dumps(noted))
    solvers = [make.solver("SMO"), make.solver("SBP", scalarization=None)]
    data = explorer_data(results_of(records, [make.task("a")], solvers))
    assert series(data, "a", "SMO", "evaluations", "certified_gap")["y"] == [0.75, 0.2]
    assert series(data, "a", "SBP", "evaluations", "certified_gap") is None
    found = series(data, "a", "SMO", "evaluations", "maintenance_fraction")
    assert (found["x"], found["y"]) == ([10, 100], [0.25, 0.5])


def test_a_large_study_has_fewer_points_and_one_without_any_no_section(
    make, results, results_of, data, monkeypatch
):
    monkeypatch.setattr(explorer, "MOST_NUMBERS", 0)
    thinned = explorer_data(load_results(results.folder))
    asked = ("adult", "SBP", "evaluations", "suboptimality")
    few, many = series(thinned, *asked), series(data, *asked)
    assert len(few["x"]) <= explorer.FEWEST_POINTS < len(many["x"])
    assert (few["y"][0], few["y"][-1]) == (many["y"][0], many["y"][-1])
    assert explorer_data(results_of([make.record("a", "SMO", 0, status="crashed")])) is None


def test_feasibility_methods_have_the_bounds_on_the_margin(make, results_of):
    record = make.method_record("t", "MPLFP", 0, trace=[make.stage(1), make.stage(100)])
    data = explorer_data(results_of([record]))
    assert [axis["name"] for axis in data["values"]] == ["margin_gap", "phi_lo", "phi_up"]
    assert [axis["name"] for axis in data["costs"]] == ["n_iter", "matvecs", "wall_s"]
    gap = series(data, "t", "MPLFP", "n_iter", "margin_gap")
    assert (gap["x"], gap["y"]) == ([1, 100], [2.0, 0.02])


def test_scripts_and_their_comments_are_ascii():
    scripts = [*TEMPLATES.glob("*.js"), *TEMPLATES.glob("scripts/*.js")]
    assert {path.name for path in scripts} >= {"50_explorer.js", "vega.min.js"}
    for path in scripts:
        assert path.read_text(encoding="utf-8").isascii(), path
