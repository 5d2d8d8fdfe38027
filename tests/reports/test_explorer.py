"""The data of the explorer against the statistics that it shows."""

import json

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
    wanted = {
        "task": [one["label"] for one in data["tasks"]].index(task),
        "solver": [one["label"] for one in data["solvers"]].index(solver),
        "cost": [axis["name"] for axis in data["costs"]].index(cost),
        "value": [axis["name"] for axis in data["values"]].index(value),
        "kind": kind,
    }
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


def test_a_dual_value_gives_a_certified_gap(make, results_of):
    trace = make.trace([10, 100], [0.4, 0.2], [200.0, 125.0])
    for state, dual in zip(trace, (50.0, 100.0), strict=True):
        object.__setattr__(state, "dual", dual)
    records = [make.finished("a", name, 0, trace) for name in ("SMO", "SBP")]
    solvers = [make.solver("SMO"), make.solver("SBP", scalarization=None)]
    data = explorer_data(results_of(records, [make.task("a")], solvers))
    assert series(data, "a", "SMO", "evaluations", "certified_gap")["y"] == [0.75, 0.2]
    assert series(data, "a", "SBP", "evaluations", "certified_gap") is None


def test_maintenance_is_at_the_checkpoints_that_end_an_epoch(make, results_of):
    noted = [
        {"epoch": epoch, "n_iter": 3 * epoch, "maintenance": 4 * epoch, "iterations": 16}
        for epoch in (1, 2)
    ]
    trace = make.trace([10, 20, 30, 40, 50, 60], [0.4] * 6)
    record = make.finished("a", "BSGD", 0, trace, epochs=json.dumps(noted))
    results = results_of([record])
    found = series(explorer_data(results), "a", "BSGD", "evaluations", "maintenance_fraction")
    assert (found["x"], found["y"]) == ([30, 60], [0.25, 0.5])


def test_a_large_study_has_fewer_points(results, data, monkeypatch):
    monkeypatch.setattr(explorer, "MOST_NUMBERS", 0)
    thinned = explorer_data(load_results(results.folder))
    asked = ("adult", "SBP", "evaluations", "suboptimality")
    few, many = series(thinned, *asked), series(data, *asked)
    assert len(few["x"]) <= explorer.FEWEST_POINTS < len(many["x"])
    for end in (0, -1):
        assert few["y"][end] == many["y"][end]


def test_nothing_to_draw_has_no_section(make, results_of):
    record = make.record("a", "SMO", 0, status="crashed")
    results = results_of([record])
    assert explorer_data(results) is None


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
