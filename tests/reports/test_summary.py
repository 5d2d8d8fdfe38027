"""The tables against cases computed by hand."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import marginbench
from marginbench import export
from marginbench.reports import analysis, formatting
from marginbench.reports.command import write_report
from marginbench.reports.results import load_results
from marginbench.reports.statistics import summary as outcomes
from marginbench.reports.statistics.targets import Target
from marginbench.reports.tables import measure_cell
from marginbench.reports.views.findings import findings


def value(table, solver, measure, column="median"):
    chosen = table[(table["solver"] == solver) & (table["measure"] == measure)]
    assert len(chosen) == 1
    return chosen[column].iloc[0]


@pytest.fixture(scope="module")
def mixed(make, results_of):
    """SMO: three good runs. SBP: two good runs, a timeout. Pegasos: skipped. LIBSVM: no counts.

    The optimum has a test error of 0.09, so that the target of the table is 0.1.
    """
    killed = make.trace([20, 30], [0.2, 0.05])
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 100, 1000], [0.4, 0.2, 0.1])),
        make.finished("a", "SMO", 1, make.trace([10, 200, 3000], [0.4, 0.101, 0.1])),
        make.finished("a", "SMO", 2, make.trace([10, 100, 2000], [0.4, 0.3, 0.2])),
        make.finished("a", "SBP", 0, make.trace([20, 50], [0.3, 0.12])),
        make.finished("a", "SBP", 1, make.trace([20, 70], [0.3, 0.10])),
        make.record("a", "SBP", 2, status="timeout", reason="60 s", trace=killed),
        *(make.record("a", "Pegasos", s, status="skipped", reason="no bias") for s in range(3)),
        make.finished("a", "LIBSVM", 0, make.trace([None], [0.1], seconds=[2.0])),
    ]
    return results_of([replace(record, reference_test_error=0.09) for record in records])


def test_medians_and_ranges_are_over_runs_that_ended_as_planned(mixed):
    counts = outcomes.run_counts(mixed.runs).set_index("solver")
    columns = ["n_planned", "n_ok", "n_skipped", "n_failed", "statuses"]
    assert counts.loc["SBP", columns].tolist() == [3, 2, 0, 1, "2 converged, 1 timeout"]
    assert counts.loc["Pegasos", columns].tolist() == [3, 0, 3, 0, "3 skipped"]
    table = analysis.table(mixed)
    smo = [value(table, "SMO", "train_error", name) for name in ("median", "low", "high", "n")]
    assert smo == [0.05, 0.05, 0.1, 3]
    assert value(table, "SBP", "test_error") == pytest.approx(0.11)  # without the timeout's 0.05
    assert value(table, "SBP", "test_error", "n") == 2
    assert value(table, "SMO", "evaluations") == 2000
    assert value(table, "SBP", "n_support") == 20
    # Nothing is known of what LIBSVM counted, and nothing of Pegasos.
    for measure in ("evaluations", "evaluations_computed", "evals_to_error"):
        assert value(table, "LIBSVM", measure, "absent") == "not instrumented"
        assert math.isnan(value(table, "LIBSVM", measure))
    for measure in analysis.shown(mixed):
        assert value(table, "Pegasos", measure, "absent") == "no run"
    assert value(table, "SMO", "evaluations", "absent") == ""


def test_late_spread_is_the_range_over_the_ends_of_the_last_ten_epochs(make, results_of):
    errors = [0.5, 0.4, 0.20, 0.21, 0.22, 0.18, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]
    trace = make.trace(range(1, 13), errors)
    trace = [replace(point, n_iter=800 * epoch) for epoch, point in enumerate(trace, 1)]
    between = replace(trace[5], n_iter=5000, test_error=0.9)  # no end of an epoch
    passed = replace(trace[-1], test_error=0.9)  # of two at an end the last one counts
    runs = [
        make.finished("a", "BSCA", 0, [*trace[:6], between, *trace[6:-1], passed, trace[-1]]),
        make.finished("a", "BSCA", 1, [*trace[:9], trace[8]]),  # nine epochs
        make.finished("a", "SMO", 0, make.trace([10, 20, 30] * 4, [0.3, 0.2, 0.1] * 4)),
    ]
    table = analysis.table(results_of(runs))
    assert value(table, "BSCA", "late_spread") == pytest.approx(0.04)
    assert value(table, "BSCA", "late_spread", "n") == 1
    assert value(table, "SMO", "late_spread", "absent") == "unknown"


def test_each_fold_has_a_target_of_its_own(mixed):
    target = Target("test_error", 0.01)
    # A run without a record has that in the middle.
    folds = mixed.runs[:3].assign(reference_test_error=[0.05, np.nan, 0.07])
    assert target.levels(folds).tolist() == pytest.approx([0.06, 0.07, 0.08])


def test_the_cost_to_a_target_is_infinite_of_runs_that_fail_and_a_bound_at_an_only_end(mixed):
    table = analysis.table(mixed)
    cost = table[table["measure"] == "evals_to_error"].set_index("solver")
    columns = ["low", "median", "high", "n_reached", "n"]
    assert cost.loc["SMO", columns].tolist() == [1000, 3000, math.inf, 2, 3]
    # The timeout passed the target's error, but failed.
    assert cost.loc["SBP", columns].tolist() == [70, math.inf, math.inf, 1, 3]
    assert value(table, "SMO", "seconds_to_error") == pytest.approx(3e-3)
    objective = [value(table, "SMO", f"{cost}_to_objective") for cost in ("evals", "seconds")]
    assert objective == [math.inf] * 2  # every run ends at twice the optimum
    assert value(table, "LIBSVM", "seconds_to_error") == 2.0
    assert value(table, "LIBSVM", "seconds_to_error", "upper_bound")
    assert not value(table, "SMO", "seconds_to_error", "upper_bound")


def test_a_run_is_at_a_target_from_where_it_stays_there(make, results_of):
    cases = {
        "rounded": (0.29, [0.4, 0.30, 0.29], 20, 20),  # 0.29 + 0.01 is less than 0.3 in floats
        "late": (0.1, [0.4, 0.1101, 0.1], 30, 30),
        "touched, left, reached again": (0.1, [0.1, 0.4, 0.1], 30, 10),
        "touched and left for good": (0.1, [0.1, 0.1, 0.2], math.inf, 10),
        "never": (0.1, [0.4, 0.3, 0.2], math.inf, math.inf),
    }
    records = []
    for task, (optimum, errors, *_) in cases.items():
        # The objective is as far above its optimum of 100, as a part of it, as the error.
        trace = make.trace([10, 20, 30], errors, [100 * (1 + each - optimum) for each in errors])
        records.append(make.finished(task, "SMO", 0, trace, reference_test_error=optimum))
    records.append(make.finished("unknown", "SMO", 0, trace, **make.no_reference))
    results = results_of(records)
    for name, unit in (
        ("evals_to_error", 1),
        ("evals_to_objective", 1),
        ("seconds_to_error", 1e-6),
        ("seconds_to_objective", 1e-6),
    ):
        measure, table = analysis.shown(results)[name], analysis.table(results)
        *rows, without = table[table["measure"] == name].to_dict("records")
        for row in rows:
            *_, cost, first = cases[row["task"]]
            found = (row["median"] / unit, row["first"] / unit)
            assert found == pytest.approx((cost, first)), row["task"]
            note = f"first at {formatting.say(measure, row['first'])}" if first < cost else ""
            assert measure_cell(row, measure).note == note, row["task"]
        assert without["absent"] == "no target"


@pytest.mark.usefixtures("undrawn")
def test_a_target_met_at_the_first_checkpoint_is_a_bound_and_never_bold(
    make, write_results, tmp_path, capsys
):
    def bounded(late, exact):
        """Late is at the targets at its first checkpoint; Exact at its second, at a given cost."""
        near = make.trace([late, 9000], [0.01] * 2, [100.5, 100.4])
        later = make.trace([10, exact], [0.4, 0.01], [200.0, 100.5])
        return write_results(
            [make.finished("a", "Late", 0, near), make.finished("a", "Exact", 0, later)]
        )

    folder = bounded(late=800, exact=200)
    table = analysis.table(load_results(folder))
    for measure in ("evals_to_error", "seconds_to_error", "evals_to_objective"):
        for solver, late in (("Late", True), ("Exact", False)):
            assert value(table, solver, measure, "upper_bound") == late
            assert value(table, solver, measure, "best") != late
    page = make.page(write_report(folder, "")).text
    assert "≤ 800" in page
    assert "≤ 4.00" in page  # as a ratio
    printed = " ".join(capsys.readouterr().out.split())
    assert "several solvers may be first on 1 of 1 task" in printed
    assert "≤ 800" in printed
    assert ">≤\N{NARROW NO-BREAK SPACE}800</td>" in marginbench.load_results(folder)._repr_html_()
    export(folder, tmp_path / "out", tables=["results-a"], formats=["csv", "tex"])
    tables = tmp_path / "out" / "tables"
    assert r"$\leq$\,800" in (tables / "results-a.tex").read_text()
    numbers = pd.read_csv(tables / "results-a.csv").set_index(["solver", "measure"])
    late = numbers.loc[("Late", "evals_to_error")]
    assert (late["upper_bound"], late["best"]) == (True, False)

    results = load_results(bounded(late=200, exact=800))
    best = analysis.table(results).set_index("measure")["best"]
    assert not best[["evals_to_error", "seconds_to_error"]].any()
    assert "Late is first on 1 of 1 task (at least 4" in findings(results)[0].sentence


def test_best_is_marked_among_solvers_without_a_failed_run(mixed, make, results_of):
    table = analysis.table(mixed)
    found = {(row.solver, row.measure) for row in table[table["best"]].itertuples()}
    assert {("SMO", "test_error"), ("LIBSVM", "test_error"), ("SMO", "evals_to_error")} <= found
    assert not any(solver in ("SBP", "Pegasos") for solver, _ in found)
    assert not any(measure in ("evaluations", "wall_s", "train_error") for _, measure in found)
    # A model without support vectors is not the sparsest.
    trace = make.trace([10, 20], [0.4, 0.1])
    none = make.finished("a", "LinearSDCA", 0, trace, n_support=0)
    table = analysis.table(results_of([make.finished("a", "SMO", 0, trace), none]))
    assert value(table, "SMO", "n_support", "best")
    assert not value(table, "LinearSDCA", "n_support", "best")


@pytest.mark.parametrize(
    ("fields", "ranked"),
    [
        ({"jobs": 2}, False),
        ({"cpu_s": 0.5, "wall_s": 1.0}, False),
        ({"cpu_s": 0.95, "wall_s": 1.0}, True),
        ({"environment": '{"processor": "another"}'}, False),
    ],
)
def test_no_time_is_ranked_that_does_not_compare(make, results_of, fields, ranked):
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 20], [0.4, 0.01])),
        make.finished("a", "SBP", 0, make.trace([10, 40], [0.4, 0.01]), **fields),
    ]
    table = analysis.table(results_of(records))
    assert value(table, "SMO", "seconds_to_error", "best") == ranked
    assert value(table, "SMO", "evals_to_error", "best")


def test_failures_and_skips_are_grouped_by_reason(make, results_of):
    crashed = [make.record("a", "SMO", s, status="crashed", reason="signal 11") for s in (0, 1)]
    late = make.record("a", "SMO", 2, status="timeout", reason="60 s")
    skip = make.record("a", "SBP", 0, status="skipped", reason="needs nu")
    results = results_of([*crashed, late, skip], missing=[("a", "SBP", 1)])
    failed = analysis.failures(results)
    assert failed[["solver", "status", "n", "n_planned", "seeds"]].to_numpy().tolist() == [
        ["SMO", "crashed", 2, 3, "0, 1"],
        ["SMO", "timeout", 1, 3, "2"],
        ["SBP", "missing", 1, 2, "1"],
    ]
    (skip,) = analysis.skipped(results).to_dict("records")
    assert (skip["solver"], skip["reason"], skip["n"]) == ("SBP", "needs nu", 1)


def test_suboptimality_is_floored_at_the_certified_gap(make, results_of):
    # Reference 100 with gap 1e-4: nothing below 1e-6 can be told apart.
    primals = [150.0, 100.0, 100.00005, 99.99995]
    record = make.finished("a", "SMO", 0, make.trace([1, 2, 3, 4], [0.1] * 4, primals))
    results = results_of([record])
    floored = analysis.traces(results)
    np.testing.assert_allclose(floored["suboptimality"], [0.5, 1e-6, 1e-6, 1e-6], rtol=1e-12)
    assert floored["suboptimality_is_bound"].tolist() == [False, True, True, True]
    table = analysis.table(results)
    assert value(table, "SMO", "suboptimality") == pytest.approx(1e-6, rel=1e-12)
    assert value(table, "SMO", "suboptimality", "upper_bound")
    frame = pd.DataFrame({"suboptimality": [0.25, 0.5, 0.125]})  # one of them is the resolution
    found = outcomes.floor_suboptimality(frame.assign(reference_primal=4.0, reference_gap=1.0))
    assert found["suboptimality"].tolist() == [0.25, 0.5, 0.25]
    assert found["suboptimality_is_bound"].tolist() == [True, False, True]
