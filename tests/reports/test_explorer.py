"""The data of the explorer against the checkpoints that it is made from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import marginbench.reports
from marginbench.reports import explorer
from marginbench.reports.analysis import Analysis
from marginbench.reports.explorer import (
    MOST_POINTS,
    explorer_data,
    explorer_json,
    kept_places,
)
from marginbench.reports.results import load_results
from marginbench.reports.sections import sections_of
from marginbench.reports.statistics.targets import Target, costs_to_target


def column(data, run, name, kind):
    """A column of a run of the data, as the script reads it."""
    (axis,) = (axis for axis in data[kind] if axis["name"] == name)
    found = run["columns"][axis["column"]]
    return run["columns"][found] if isinstance(found, int) else found


def run_of(data, task, solver, seed):
    for run in data["runs"]:
        labels = data["tasks"][run["task"]]["label"], data["solvers"][run["solver"]]["label"]
        if (*labels, run["seed"]) == (task, solver, seed):
            return run
    raise AssertionError(f"no run {task}, {solver}, {seed}")


@pytest.fixture(scope="module")
def analysis(realistic):
    return Analysis(load_results(realistic))


@pytest.fixture(scope="module")
def data(analysis):
    return json.loads(analysis.ask(explorer_json))


def test_every_run_that_was_tried_has_the_checkpoints_of_its_trace(analysis, data):
    tried, traces = analysis.runs[analysis.runs["status"] != "skipped"], analysis.traces
    assert len(data["runs"]) == len(tried)
    columns = [("costs", axis["name"]) for axis in data["costs"] if not axis["power"]]
    columns += [("values", axis["name"]) for axis in data["values"]]
    assert {name for _, name in columns} >= {
        *("evaluations", "cpu_s", "wall_s", "n_iter"),
        *("test_error", "train_error", "suboptimality", "n_support"),
    }
    for run in tried.to_dict("records"):
        key = (run["task"], run["solver"], run["seed"])
        found = run_of(data, *key)
        assert (found["status"], found["ok"], found["n"]) == (
            *(run["status"], run["ok"], run["n_train"]),
        )
        mine = traces[traces["task"].eq(key[0]) & traces["solver"].eq(key[1])]
        mine = mine[mine["seed"] == key[2]]
        for kind, name in columns:
            shown = column(data, found, name, kind)
            if mine[name].isna().all():
                assert shown is None
                continue
            # Five significant digits.
            np.testing.assert_allclose(np.array(shown, float), mine[name], rtol=5e-5)


def test_the_places_of_targets_are_those_of_the_costs_to_them(analysis, data):
    for place, name in enumerate(target["name"] for target in data["targets"]):
        value, _, margin = name.partition("-")
        target = Target(value, float(margin))
        expected = costs_to_target(analysis.runs, analysis.traces, target, "cpu_s")
        assert sum(run["reach"][place] is not None for run in data["runs"]) == len(expected)
        for row in expected.to_dict("records"):
            run = run_of(data, row["task"], row["solver"], row["seed"])
            for checkpoint, cost in zip(
                run["reach"][place], (row["value"], row["first"]), strict=True
            ):
                seconds = column(data, run, "cpu_s", "costs")
                found = np.inf if checkpoint < 0 else seconds[checkpoint]
                assert found == pytest.approx(cost, rel=5e-5)


def test_a_sum_of_one_counter_is_offered_once_and_an_unused_counter_not(data):
    words = [axis["words"] for axis in data["costs"]]
    assert len(words) == len(set(words))
    assert "kernel evaluations" in words
    assert not {"inner products", "matrix-vector products", "iterations done"} & set(words)
    # No run of these solvers has a dual point, or keeps a budget.
    assert not {"certified_gap", "maintenance_fraction"} & {axis["name"] for axis in data["values"]}


def test_a_dual_value_gives_a_certified_gap(make, write_results):
    trace = make.trace([10, 100], [0.4, 0.2], [200.0, 125.0])
    for state, dual in zip(trace, (50.0, 100.0), strict=True):
        object.__setattr__(state, "dual", dual)
    other = make.finished("a", "SBP", 0, trace)
    records = [make.finished("a", "SMO", 0, trace), other]
    solvers = [make.solver("SMO"), make.solver("SBP", scalarization=None)]
    results = load_results(write_results(records, [make.task("a")], solvers))
    data = explorer_data(Analysis(results))
    assert column(data, run_of(data, "a", "SMO", 0), "certified_gap", "values") == [0.75, 0.2]
    assert column(data, run_of(data, "a", "SBP", 0), "certified_gap", "values") is None


def test_maintenance_is_at_the_checkpoints_that_end_an_epoch(make, write_results):
    noted = [
        {"epoch": epoch, "n_iter": 3 * epoch, "maintenance": 4 * epoch, "iterations": 16}
        for epoch in (1, 2)
    ]
    trace = make.trace([10, 20, 30, 40, 50, 60], [0.4] * 6)
    record = make.finished("a", "BSGD", 0, trace, epochs=json.dumps(noted))
    results = load_results(write_results([record], [make.task("a")], [make.solver("BSGD")]))
    data = explorer_data(Analysis(results))
    found = column(data, run_of(data, "a", "BSGD", 0), "maintenance_fraction", "values")
    assert found == [None, None, 0.25, None, None, 0.5]


def test_a_run_without_checkpoints_is_one_that_never_gets_there(make, write_results):
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 100], [0.4, 0.01], [200.0, 100.5])),
        make.record("a", "SMO", 1, status="crashed"),
        make.record("a", "LIBSVM", 0, status="skipped", reason="too large"),
    ]
    solvers = [make.solver("SMO"), make.solver("LIBSVM")]
    folder = write_results(records, [make.task("a")], solvers, [("a", "SMO", 2)])
    data = explorer_data(Analysis(load_results(folder)))
    assert [run["status"] for run in data["runs"]] == ["converged", "crashed", "missing"]
    (place,) = (p for p, target in enumerate(data["targets"]) if target["name"] == "test_error-0")
    assert [run["reach"][place] for run in data["runs"]] == [[1, 1], [-1, -1], [-1, -1]]
    assert [run["ok"] for run in data["runs"]] == [True, False, False]


def test_nothing_to_draw_has_no_section(make, write_results):
    record = make.record("a", "SMO", 0, status="crashed")
    results = load_results(write_results([record], [make.task("a")], [make.solver("SMO")]))
    analysis = Analysis(results)
    assert explorer_data(analysis) is None
    assert "explore" not in {section.anchor for section in sections_of(analysis)}


def test_methods_that_look_for_a_certificate_have_theirs_as_the_target(make, tmp_path):
    solved = make.method_record("t", "MPLFP", 0, trace=[make.stage(1), make.stage(100)])
    ended = make.method_record("t", "MPLFP", 1, status="budget", found="budget")
    folder = make.folder(tmp_path, [solved, ended], [make.cell("t")], [make.method("MPLFP")])
    data = explorer_data(Analysis(load_results(folder)))
    assert [axis["name"] for axis in data["values"]] == ["margin_gap", "phi_lo", "phi_up"]
    assert [axis["name"] for axis in data["costs"]] == ["wall_s", "n_iter", "matvecs"]
    assert [target["name"] for target in data["targets"]] == ["certificate"]
    assert [run["reach"] for run in data["runs"]] == [[[1, 1]], [[-1, -1]]]
    gaps = column(data, run_of(data, "t", "MPLFP", 0), "margin_gap", "values")
    assert gaps == [2.0, 0.02]


@pytest.mark.parametrize(("n", "most"), [(1, 5), (5, 5), (6, 5), (1000, 24), (1000, 200)])
def test_thinning_keeps_the_ends_and_what_is_needed_and_no_long_gap(n, most):
    needed = {n // 2, max(n - 2, 0)}
    kept = kept_places(n, most, needed)
    assert kept == sorted(set(kept))
    assert {0, n - 1, *needed} <= set(kept)
    assert len(kept) <= most
    assert max(np.diff(kept), default=0) <= np.ceil(n / max(most - len(needed) - 2, 1))


def test_a_thinned_run_is_at_its_targets_at_the_same_cost(make, write_results):
    rng = np.random.default_rng(3)
    costs = np.geomspace(10, 1e7, 900).astype(int)
    primals = 100 * (1 + 2 / np.sqrt(np.arange(1, 901)) * np.exp(rng.normal(0, 0.2, 900)))
    trace = make.trace(costs, rng.uniform(0.02, 0.4, 900), primals)
    folder = write_results(
        [make.finished("a", "SMO", 0, trace)], [make.task("a")], [make.solver("SMO")]
    )
    analysis = Analysis(load_results(folder))
    data = explorer_data(analysis)
    (run,) = data["runs"]
    assert data["thinned"] == 1
    evaluations = column(data, run, "evaluations", "costs")
    assert MOST_POINTS / 2 < len(evaluations) <= MOST_POINTS
    expected = costs_to_target(
        analysis.runs, analysis.traces, Target("suboptimality", 0.1), "evaluations"
    )
    (place,) = (
        p for p, target in enumerate(data["targets"]) if target["name"] == "suboptimality-0.1"
    )
    stays, first = run["reach"][place]
    assert expected["first"][0] < expected["value"][0] < np.inf
    assert evaluations[stays] == pytest.approx(expected["value"][0], rel=5e-5)
    assert evaluations[first] == pytest.approx(expected["first"][0], rel=5e-5)
    assert min(column(data, run, "test_error", "values")) == pytest.approx(
        analysis.traces["test_error"].min(), rel=5e-5
    )


def test_a_study_of_many_seeds_shows_the_first_and_says_so(make, write_results, monkeypatch):
    monkeypatch.setattr(explorer, "MOST_NUMBERS", 5000)
    trace = make.trace([1, 2, 3], [0.4, 0.3, 0.2], [300.0, 200.0, 150.0])
    folder = write_results(
        [make.finished("a", "SMO", 0, trace)], [make.task("a")], [make.solver("SMO")]
    )
    results = load_results(folder)
    seeds = range(400)
    runs = pd.concat([results.runs] * len(seeds)).assign(seed=seeds)
    traces = pd.concat([results.traces] * len(seeds)).assign(seed=np.repeat(seeds, 3))
    many = replace(results, runs=runs.reset_index(drop=True), traces=traces.reset_index(drop=True))
    data = explorer_data(Analysis(many))
    shown = data["shown_seeds"]
    assert [run["seed"] for run in data["runs"]] == list(range(shown))
    assert 5 < shown < data["all_seeds"] == len(seeds)
    assert sum(len(column or []) for run in data["runs"] for column in run["columns"]
               if not isinstance(column, int)) < 5000  # fmt: skip
    few = explorer_data(Analysis(results))
    assert few["shown_seeds"] == few["all_seeds"] == 1


def test_hostile_labels_cannot_end_the_block_and_read_as_on_the_page(make, write_results):
    name = "</script><img src=x onerror=alert(1)>\"'& \N{RIGHT-TO-LEFT OVERRIDE}<!--"
    record = make.finished(name, name, 0, make.trace([10, 20], [0.4, 0.1]))
    results = load_results(write_results([record], [make.task(name)], [make.solver(name)]))
    text = explorer_json(Analysis(results))
    assert not set("<>&") & set(text)
    assert text.isascii()
    data = json.loads(text)
    shown = name.replace("\N{RIGHT-TO-LEFT OVERRIDE}", "\\u202e")
    assert data["tasks"][0]["label"] == data["solvers"][0]["label"] == shown


def test_scripts_and_their_comments_are_ascii():
    scripts = list((Path(marginbench.reports.__path__[0]) / "templates/scripts").glob("*.js"))
    assert {path.name for path in scripts} >= {"50_explorer_numbers.js", "53_explorer.js"}
    for path in scripts:
        assert path.read_text(encoding="utf-8").isascii(), path


@pytest.mark.slow
def test_a_hundred_thousand_checkpoints_stay_below_five_megabytes(make, write_results):
    trace = make.trace(range(1, 201), [0.4] * 200, [200.0] * 200)
    folder = write_results(
        [make.finished("a", "SMO", 0, trace)], [make.task("a")], [make.solver("SMO")]
    )
    results = load_results(folder)
    rng = np.random.default_rng(11)
    runs = pd.concat([results.runs] * 500).assign(seed=range(500))
    traces = pd.concat([results.traces] * 500).assign(seed=np.repeat(range(500), 200))
    # From milliseconds to thousands of millions of evaluations, in as many digits as there are.
    numbers = [name for name in traces.select_dtypes("float") if traces[name].notna().all()]
    sizes = 10 ** rng.uniform(-3, 9, (500, 200, len(numbers)))
    traces[numbers] = np.sort(sizes, axis=1).reshape(len(traces), -1)
    traces["test_error"] = rng.uniform(0, 0.5, len(traces))
    analysis = Analysis(
        replace(results, runs=runs.reset_index(drop=True), traces=traces.reset_index(drop=True))
    )
    assert len(analysis.traces) == 100_000
    assert len(explorer_json(analysis)) < 5e6
    assert explorer_data(analysis)["thinned"] == 500
