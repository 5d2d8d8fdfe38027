"""Who is first, against cases computed by hand, and the small figures of all tasks."""

import math

import numpy as np
import pandas as pd
import pytest

from marginbench.reports import analysis, formatting
from marginbench.reports.drawing.canvas import PAGE
from marginbench.reports.measures import ERROR_TARGET, OBJECTIVE_TARGET
from marginbench.reports.statistics import targets
from marginbench.reports.views.findings import findings, overview_section, targets_section


def reached(make, task, solver, cost, seed=0):
    """A run that comes within 1 % of the optimum at its second checkpoint, at a cost."""
    trace = make.trace([10, cost], [0.3] * 2, [200.0, 100.5])
    return make.finished(task, solver, seed, trace)


@pytest.fixture(scope="module")
def results(make, results_of):
    """On "a" Fast is first, 4 times ahead; on "b" Fast and Slow overlap; Flaky once failed."""

    def run(task, solver, seed, costs, **fields):
        trace = make.trace(costs, [0.3] * 3, [200.0, 101.0, 100.5])
        return make.finished(task, solver, seed, trace, **fields)

    records = [
        *(run("a", "Fast", seed, [10, 100 + seed, 1000]) for seed in range(3)),
        *(run("a", "Slow", seed, [10, 404 + seed, 5000]) for seed in range(3)),
        *(run("b", "Fast", seed, [10, cost, 1000]) for seed, cost in enumerate((100, 300))),
        *(run("b", "Slow", seed, [10, cost, 1000]) for seed, cost in enumerate((200, 400))),
        run("a", "Flaky", 0, [1, 2, 3]),
        make.record("a", "Flaky", 1, status="crashed"),
        run("a", "Other", 0, [1, 2, 3], suboptimality=None),
        make.finished("a", "Peer", 0, make.trace([None], [0.3], [100.5], [2.0])),
        make.record("b", "Peer", 0, status="skipped", reason="no"),
    ]
    return results_of(records, solvers={"Other": {"scalarization": None}})


def test_costs_are_compared_with_the_best_complete_solver(results):
    table = analysis.target_costs(results, OBJECTIVE_TARGET, "evaluations")
    rows = {(row.task, row.solver): row for row in table.itertuples()}
    # On "b" Slow takes 200 to 400 against 100 to 300.
    assert {key for key, row in rows.items() if row.first} == {
        *(("a", "Fast"), ("b", "Fast"), ("b", "Slow")),
    }
    slow, flaky = rows["a", "Slow"], rows["a", "Flaky"]
    assert rows["a", "Fast"].median == 101
    assert (slow.ratio, slow.ratio_high) == pytest.approx((405 / 101, 406 / 101))
    # Cheaper than all, but a run of it failed, which counts as never.
    assert (flaky.n_failed, flaky.n_reached, flaky.median) == (1, 1, math.inf)
    assert rows["a", "Other"].absent == "no target"
    assert rows["a", "Peer"].absent == "not counted"
    # Nor is what it spends without getting there.
    errors = analysis.target_costs(results, ERROR_TARGET, "evaluations")
    (peer,) = errors[(errors["solver"] == "Peer") & (errors["task"] == "a")].itertuples()
    assert (peer.absent, peer.competes) == ("not counted", False)
    assert rows["b", "Peer"].absent == "skipped"
    seconds = analysis.target_costs(results, OBJECTIVE_TARGET, "cpu_s")
    (peer,) = seconds[(seconds["solver"] == "Peer") & (seconds["task"] == "a")].itertuples()
    assert (peer.absent, peer.median) == ("", 2.0)


def test_the_sentences_say_what_the_matrix_shows(results):
    found = [finding.sentence for finding in findings(results)]
    assert found[0] == (
        "To stay within 1\N{NARROW NO-BREAK SPACE}% of the optimum, in kernel evaluations: Fast is "
        "first on 1 of 2 tasks (4\N{MULTIPLICATION SIGN} ahead of the next); several solvers may "
        "be first on 1."
    )
    # Every test error is 0.3, which is far above that of the optimum.
    assert found[1] == (
        "To stay within 1 point of the optimum's error, in kernel evaluations: no competitor "
        "gets there on 2 of 2 tasks."
    )
    assert found[2] == "Test error, on 2 tasks: no solver can be told from the best."


def test_a_solver_with_a_failed_run_may_get_there_though_it_does_not_compete(make, results_of):
    failed = make.record("a", "Flaky", 3, status="crashed")
    flaky = [reached(make, "a", "Flaky", 100, seed) for seed in range(3)]
    trace = make.trace([10, 100], [0.3] * 2, [200.0, 150.0])
    never = [make.finished("a", name, 0, trace) for name in ("Never", "Neither")]
    fast = reached(make, "a", "Fast", 100)
    for records, words in (
        ([fast, never[0], *flaky, failed], "(no other competitor gets there)"),
        ([*never, *flaky, failed], "no competitor gets there on 1 of 1 task"),
    ):
        assert words in findings(results_of(records))[0].sentence
    # One without a competitor is not first.
    said = findings(results_of([fast, *flaky, failed]))
    assert not any("first" in finding.sentence for finding in said)
    assert not list(targets_section(results_of([fast])))


def test_what_costs_nothing_is_first(make, results_of):
    free = make.finished("a", "Free", 0, make.trace([0, 0], [0.3] * 2, [100.5] * 2))
    results = results_of([free, reached(make, "a", "Dear", 50)])
    table = analysis.target_costs(results, OBJECTIVE_TARGET, "evaluations").set_index("solver")
    assert table["first"].to_dict() == {"Free": True, "Dear": False}
    assert table.loc["Free", "ratio"] == 1.0
    assert math.isnan(table.loc["Dear", "ratio"])
    assert "Free is first on 1 of 1 task (at no cost)" in findings(results)[0].sentence


def test_runs_that_did_not_take_place_are_in_no_median_and_have_not_failed(make, results_of):
    records = [reached(make, "a", name, 50) for name in ("One", "Two")]
    records += [make.record("a", "One", seed, status="missing") for seed in (1, 2)]
    results = results_of(records, missing=[("a", "Two", seed) for seed in range(1, 4)])
    counts = analysis.counts(results).set_index("solver")
    assert counts.loc["Two", ["n_ok", "n_missing", "n_failed"]].tolist() == [1, 3, 0]
    assert "5 of 7 planned runs have no record" in analysis.cautions(results)[0]
    table = analysis.target_costs(results, OBJECTIVE_TARGET, "evaluations").set_index("solver")
    columns = ["median", "high", "n_reached", "n_failed", "n_missing"]
    assert table.loc["One", columns].tolist() == [50, 50, 1, 0, 2]
    assert table.loc["Two", columns].tolist() == [50, 50, 1, 0, 3]


def test_who_leads_is_decided_by_the_state_at_the_budget(make, results_of):
    records = [
        make.finished("a", "Early", 0, make.trace([10, 100], [0.2, 0.15])),
        make.finished("a", "Late", 0, make.trace([50, 1000], [0.3, 0.1])),
        make.finished("a", "Failed", 0, make.trace([1], [0.0])),
        make.record("a", "Failed", 1, status="timeout"),
    ]
    results = results_of(records)
    budgets = pd.DataFrame(
        [("a", str(amount), amount) for amount in (5, 20, 60, 999, 1000, 9999)],
        columns=["task", "budget", "amount"],
    )
    found = targets.leaders(results.runs, results.traces, "evaluations", budgets)
    first = found[found["first"]].groupby("budget")["solver"].agg(list).to_dict()
    assert first == {
        "20": ["Early"], "60": ["Early"], "999": ["Early"], "1000": ["Late"], "9999": ["Late"],
    }  # fmt: skip
    assert found.loc[found["budget"] == "60", "error"].tolist() == [0.2, 0.3]


def test_the_matrix_marks_the_first_shades_the_others_and_has_many_tasks_as_rows(
    results, make, results_of
):
    def matrix(results):
        (section,) = targets_section(results)
        return section.data["matrices"][0]

    fast, slow, flaky = (row[1] for row in matrix(results).rows[:3])
    assert (fast.value, fast.best, fast.shade, fast.note) == ("1.00", True, 0, "1 is 101")
    assert (slow.value, slow.best, slow.shade, slow.note) == ("4.01", False, 3, "")
    assert (flaky.value, flaky.note) == ("never", "1 of 2 failed")
    costs = {"Fast": 100, "Slow": 300}
    many = results_of(
        [reached(make, f"t{n}", name, costs[name]) for n in range(9) for name in costs]
    )
    assert [heading.title for heading in matrix(many).headings] == ["Task", "Fast", "Slow"]
    for place, (task, *cells) in zip(range(9), matrix(many).rows, strict=True):
        assert (task.value, cells[0].note) == (f"t{place}", "1 is 100")
        assert [cell.value for cell in cells] == ["1.00", "3.00"]
    (section,) = targets_section(many)
    assert section.data["budgets"].headings[0].title == "Task"
    at_once = [
        make.finished("a", name, 0, make.trace([cost, 900], [0.3] * 2, [100.5, 100.4]))
        for name, cost in costs.items()
    ]
    notes = [row[1].note for row in matrix(results_of(at_once)).rows]
    assert notes == ["1 is \N{LESS-THAN OR EQUAL TO}\u202f100", "both costs are bounds"]


def rows_of(results):
    """For each value its title, its note and its figures."""
    return [row for section in overview_section(results) for row in section.data["rows"]]


def figures_of(row):
    return [panel.drawing.on(PAGE) for panel in row[2] if panel.drawing]


def test_all_figures_of_a_row_have_the_same_axes_in_units_of_the_kernel_matrix(make, results_of):
    # Tasks of 10 and 100 points with the same costs in units of n².
    sides = {"small": (10, [0.4, 0.2], 101.0), "large": (100, [0.4, 0.01], 100.01)}
    records = []
    for task, (n, errors, last) in sides.items():
        trace = make.trace([n * n, 3 * n * n], errors, [150.0, last], seconds=[1.0, 2.0])
        records += [make.finished(task, name, 0, trace, n_train=n) for name in ("SMO", "SBP")]
    rows = rows_of(results_of(records))
    for row in rows:
        one, other = (figure.axes[0] for figure in figures_of(row))
        assert (one.get_xlim(), one.get_ylim()) == (other.get_xlim(), other.get_ylim())
        low, high = one.get_ylim()
        for line in (*one.get_lines(), *other.get_lines()):
            assert all(low <= value <= high for value in line.get_ydata())
    row = rows[0]
    assert row[0] == "Relative suboptimality against kernel evaluations in units of n²"
    for panel in row[2]:
        costs = panel.drawing.data["cost"]
        assert (costs.min(), costs.max()) == pytest.approx((1.0, 3.0))
    said = f"to {formatting.scientific(0.01)} at 3."
    assert said in row[2][0].drawing.description


def test_without_counts_the_cost_is_cpu_seconds_and_far_above_the_optimum_is_cut_off(
    make, results_of
):
    trace = make.trace([None, None], [0.3, 0.1], [1e9, 101.0], seconds=[0.5, 2.0])
    (row, *_) = rows_of(results_of([make.finished(task, "SMO", 0, trace) for task in "ab"]))
    assert row[0].endswith("against CPU seconds")
    assert row[2][1].drawing.data["cost"].max() == pytest.approx(2.0)
    assert "Curves are cut off above 100." in row[1]
    _, high = figures_of(row)[0].axes[0].get_ylim()
    assert 100 <= high < 1000


def test_tasks_without_anything_to_draw_keep_their_place(make, results_of):
    trace = make.trace([10, 20], [0.4, 0.0])
    good = [make.finished(task, "SMO", 0, trace) for task in "ab"]
    failed = [make.record(task, "SMO", 0, status="failed") for task in "ab"]
    unsized = make.finished("a", "SMO", 0, trace, n_train=None)
    for missing in (failed[0], unsized):
        error = rows_of(results_of([missing, good[1]]))[1]
        assert [panel.drawing is None for panel in error[2]] == [True, False]
        assert np.isfinite(figures_of(error)[-1].axes[0].get_xlim()).all()
    # An error of zero is not on a logarithmic axis.
    assert "Dashed: zero." in error[2][1].drawing.description
    lowest = min(figures_of(error)[-1].axes[0].get_lines()[0].get_ydata())
    assert lowest == pytest.approx(0.005)
    # One task, or nothing at all to draw, has no such section.
    assert rows_of(results_of(failed)) == rows_of(results_of(good[:1])) == []
