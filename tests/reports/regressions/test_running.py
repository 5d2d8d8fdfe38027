"""What is kept of a measurement, without asv."""

import json
import re

from marginbench.reports.regressions import running


def test_counts_of_both_suites_are_run_and_their_times_are_not():
    def runs(patterns, name):
        return any(re.search(each, name) for each in patterns)

    for plan in (running.FULL, running.SHORT):
        assert runs(plan.counts, "work.Work.track_evaluations(SMO rbf dense)")
        assert runs(plan.counts, "shapes.Exact.track_violation(SMO images)")
        assert runs(plan.counts, "shapes.Linear.track_suboptimality(OCAS texts)")
        assert not runs([*plan.counts, *plan.timed], "solve.Shape.time_fit(SMO images)")


def test_a_benchmark_that_was_listed_and_has_no_row_is_named(tmp_path):
    listed = {"version": 2, "work.Work.track_failed": {}, "solve.Fit.time_fit": {}}
    (tmp_path / "benchmarks.json").write_text(json.dumps(listed))
    assert running.without_row(tmp_path, [r"^work\."]) == "work.Work.track_failed"
    assert running.without_row(tmp_path, [r"^data\."]) == ""
