"""Loading a results folder: every planned run is accounted for."""

from contextlib import closing
from dataclasses import replace

import pytest

from marginbench import report
from marginbench.harness.results.description import write_description
from marginbench.harness.results.journal import Journal
from marginbench.reports import ReportError
from marginbench.reports.results import load_results


def test_rows_come_in_the_order_of_the_study_without_those_that_are_not_planned(
    make, write_results
):
    trace = make.trace([10, 100], [0.4, 0.2])
    records = [make.finished("b", "SMO", 1, trace), make.finished("b", "SMO", 0, trace)]
    # The final state of a run without checkpoints is its only one; a failed run has none.
    records.append(replace(make.finished("a", "SMO", 0, trace), trace=[]))
    records.append(make.record("b", "SMO", 2, status="crashed"))
    folder = write_results(records, [make.task("a"), make.task("b")])
    with closing(Journal(folder)) as journal:
        journal.append_record(make.finished("a", "SMO", 7, trace))
    results = load_results(folder)
    found = list(zip(results.runs["task"], results.runs["seed"], strict=True))
    assert found == [("a", 0), ("b", 0), ("b", 1), ("b", 2)]
    assert results.traces[["task", "kernel_evals", "test_error"]].values.tolist() == [
        *(["a", 100, 0.2], *[["b", 10, 0.4], ["b", 100, 0.2]] * 2),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"not a results folder .*study\.json"),
        (
            "{",
            r"damaged \(its content does not match its digest\); a run of the study writes it anew",
        ),
        ('{"schema_version": 3, "digest": "0"}', "its content does not match its digest"),
        ({"kind": "ranking"}, "'svm', 'feasibility'"),
        ({"kind": "svm"}, "Field required at svm.name"),
    ],
)
def test_no_study_or_one_of_another_shape_is_refused_in_one_line(tmp_path, content, message):
    if isinstance(content, dict):
        write_description(tmp_path, content | {"schema_version": 4})
    elif content:
        (tmp_path / "study.json").write_text(content)
    before = list(tmp_path.iterdir())
    with pytest.raises(ReportError, match=message) as caught:
        report(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == before


def test_a_planned_run_of_an_unknown_solver_is_refused(make, write_results):
    folder = write_results([make.record("a", "SMO", 0)], solvers=[make.solver("SBP")])
    with pytest.raises(ReportError, match="unknown solver 'SMO'"):
        load_results(folder)
