"""Loading a results folder: every planned run is accounted for."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from marginbench.harness.records import RecordStore
from marginbench.reports import ReportError
from marginbench.reports.results import load_results


def test_a_row_per_planned_run_in_study_order(make, write_results):
    trace = make.trace([10, 100], [0.4, 0.2])
    records = [make.finished("b", "SMO", 1, trace), make.finished("b", "SMO", 0, trace)]
    records.append(make.finished("a", "SMO", 0, trace))
    folder = write_results(records, [make.task("a"), make.task("b")], [make.solver("SMO")])
    results = load_results(folder)
    found = list(zip(results.runs["task"], results.runs["seed"], strict=True))
    assert found == [("a", 0), ("b", 0), ("b", 1)]
    assert results.runs["ok"].all()
    assert len(results.traces) == 6
    assert results.traces["test_error"].tolist() == [0.4, 0.2] * 3


def test_missing_and_damaged_runs_are_rows_with_a_reason(make, write_results):
    trace = make.trace([10], [0.4])
    kept, cut = make.finished("a", "SMO", 0, trace), make.finished("a", "SMO", 1, trace)
    folder = write_results([kept, cut], [make.task("a")], [make.solver("SMO")], [("a", "SMO", 2)])
    path = folder / "runs" / cut.file_name
    path.write_bytes(path.read_bytes()[:100])
    runs = load_results(folder).runs
    assert runs["status"].tolist() == ["converged", "damaged", "missing"]
    assert not runs["ok"].iloc[1:].any()
    assert cut.file_name in runs["reason"].iloc[1]
    assert str(folder) not in runs["reason"].iloc[1]
    assert "does not exist" in runs["reason"].iloc[2]
    assert math.isnan(runs["test_error"].iloc[2])


def test_a_record_of_another_run_under_a_planned_name_is_damaged(make, write_results):
    record = make.finished("a", "SMO", 0, make.trace([10], [0.4]))
    folder = write_results([record], [make.task("a")], [make.solver("SMO")])
    study = json.loads((folder / "study.json").read_text())
    study["planned"][0]["key"] = "0" * 64
    (folder / "study.json").write_text(json.dumps(study))
    runs = load_results(folder).runs
    assert runs["status"].tolist() == ["damaged"]
    assert "has key" in runs["reason"].iloc[0]


def test_records_that_are_not_planned_are_left_aside(make, write_results):
    trace = make.trace([10], [0.4])
    record = make.finished("a", "SMO", 0, trace)
    folder = write_results([record], [make.task("a")], [make.solver("SMO")])
    RecordStore(folder / "runs").write(make.finished("a", "SMO", 7, trace))
    results = load_results(folder)
    assert results.runs["seed"].tolist() == [0]
    assert set(results.traces["seed"]) == {0}


def test_a_finished_run_without_trace_has_its_final_state_as_checkpoint(make, write_results):
    record = make.finished("a", "SMO", 0, make.trace([10, 20], [0.4, 0.1]))
    record.trace = []
    failed = make.record("a", "SMO", 1, status="crashed")
    folder = write_results([record, failed], [make.task("a")], [make.solver("SMO")])
    traces = load_results(folder).traces
    assert traces[["seed", "kernel_evals", "test_error"]].to_numpy().tolist() == [[0, 20, 0.1]]


def test_unknown_counts_stay_unknown(make, write_results):
    record = make.finished("a", "LIBSVM", 0, make.trace([None], [0.1]))
    solver = make.solver("LIBSVM", instrumented=False)
    results = load_results(write_results([record], [make.task("a")], [solver]))
    assert math.isnan(results.runs["kernel_evals"].iloc[0])
    assert math.isnan(results.traces["kernel_evals"].iloc[0])


def test_inner_products_count_as_evaluations(make, write_results):
    linear = make.trace([0, 0], [0.4, 0.2])
    linear = [replace(item, inner_products=n) for item, n in zip(linear, (50, 70), strict=True)]
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 100], [0.4, 0.2])),
        make.finished("a", "LinearSDCA", 0, linear, inner_products=70),
    ]
    task, solvers = make.task("a"), [make.solver("SMO"), make.solver("LinearSDCA")]
    results = load_results(write_results(records, [task], solvers))
    assert results.runs["kernel_evals"].tolist() == [100, 70]
    assert results.runs["kernel_evals_computed"].tolist() == [50, 70]
    assert results.traces["kernel_evals"].tolist() == [10, 100, 50, 70]
    assert results.evaluations == "kernel evaluations or inner products"
    alone = load_results(write_results(records[:1], [task], solvers[:1]))
    assert alone.evaluations == "kernel evaluations"


def test_a_folder_without_study_is_refused_in_one_line(tmp_path):
    with pytest.raises(ReportError) as caught:
        load_results(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "study.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a study"),
        ("{}", "Field required"),
        ('{"schema_version": 2}', "schema_version"),
        ("\x00", "not a study"),
    ],
)
def test_a_study_of_another_shape_is_refused_in_one_line(tmp_path, text, message):
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(ReportError, match=message) as caught:
        load_results(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_planned_run_of_an_unknown_solver_is_refused(make, write_results):
    record = make.record("a", "SMO", 0)
    folder = write_results([record], [make.task("a")], [make.solver("SBP")])
    with pytest.raises(ReportError, match="unknown solver 'SMO'"):
        load_results(folder)
