"""Files of asv's results: those that asv itself writes, and those that something damaged."""

import json
import math
import re

import pytest

from marginbench.reports.errors import ReportError
from marginbench.reports.regressions import running
from marginbench.reports.regressions.asv_files import (
    Lane,
    cell_of,
    read_results,
    task_and_solver,
)

from .conftest import write_asv, write_results

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CELLS = ["SMO rbf dense", "SMO rbf dense bias"]


def test_what_asv_writes_is_read(tmp_path):
    cells, none = [list(map(repr, CELLS))], [None] * 2
    params = [["'SMO'", "'SBP'"], ["1", "2.5"]]
    times = [[0.1, 0.3, 0.2], None, [0.4, 0.4, 0.4], None]
    benchmarks = [
        ("work.Work.track_evaluations", cells, [7, None], none),
        ("work.Work.track_error", cells, [math.nan, 1.5], none),
        ("solve.Fit.time_fit", params, [0.2, None, 0.4, math.nan], times),
        ("start.Whole.time_all", [], [3.0], [None]),
        ("start.Broken.track_all", cells, none, none),
        ("start.Alone.track_all", [["'SMO'"]], [None], [None]),
    ]
    write_asv(tmp_path, COMMIT, benchmarks)
    [found] = read_results(tmp_path)
    assert (found.commit, found.date, found.lane) == (COMMIT, 1_700_000_000_000, Lane("vm", "env"))
    assert found.machine["cpu"] == "Example"
    # NaN: skipped; null: failed. What a run of asv repeats is not independent.
    failed = -1.0
    assert found.values.fillna(failed).values.tolist() == [
        ["solve.Fit SBP 1", "time_fit", 0, 0.4],
        ["solve.Fit SMO 1", "time_fit", 0, 0.2],
        ["solve.Fit SMO 2.5", "time_fit", 0, failed],
        ["start.Alone SMO", "all", 0, failed],
        [f"start.Broken {CELLS[0]}", "all", 0, failed],
        [f"start.Broken {CELLS[1]}", "all", 0, failed],
        ["start.Whole", "time_all", 0, 3.0],
        [f"work.Work {CELLS[0]}", "evaluations", 0, 7.0],
        [f"work.Work {CELLS[1]}", "evaluations", 0, failed],
        [f"work.Work {CELLS[1]}", "error", 0, 1.5],
    ]
    assert found.versions["work.Work.evaluations"] == "v-work.Work.track_evaluations"
    assert found.failed >= {f"start.Broken {CELLS[0]}", "solve.Fit SMO 2.5"}
    # A suite without any value says nothing; that its only cell fails is an answer.
    assert found.unmeasured == ["start.Broken"]
    for cell, pair in (
        ("solve.Fit SMO 2.5", ("solve.Fit 2.5", "SMO")),
        ("start.Broken SMO", ("start.Broken", "SMO")),
        ("start.Whole", ("start.Whole", "start.Whole")),
    ):
        assert task_and_solver(cell) == pair
        assert cell_of(*pair) == cell


def test_copies_damaged_files_and_folders_without_results_are_named(tmp_path):
    for folder, words in ((tmp_path / "none", "no folder"), (tmp_path, "holds no results")):
        with pytest.raises(ReportError, match=words):
            read_results(folder)
    write_results(tmp_path, {COMMIT: {"work.Work.track_error": [1, 2]}}, CELLS)
    [path] = tmp_path.glob("vm/*.json")
    text, copy = path.read_text(), path.with_name("copy.json")
    copy.write_text(text)
    # A copy of a file must not pass for another commit.
    with pytest.raises(ReportError, match="2 files have results of commit 0123456789 on "):
        read_results(tmp_path)
    unreadable = {"results": {"a.b": [["x"], [["'a'"]]]}}
    changes = ({"version": 1}, {"date": "today"}, {"results": []}, unreadable)
    changed = (json.dumps(json.loads(text) | change) for change in changes)
    for damaged in (text[:-20], "[]", *changed):
        copy.write_text(damaged)
        with pytest.raises(ReportError, match=re.escape(str(copy))) as caught:
            read_results(tmp_path)
        assert "\n" not in str(caught.value)


def test_a_benchmark_that_was_listed_and_has_no_row_is_named(tmp_path):
    listed = {"version": 2, "work.Work.track_failed": {}, "solve.Fit.time_fit": {}}
    (tmp_path / "benchmarks.json").write_text(json.dumps(listed))
    assert running.without_row(tmp_path, [r"^work\."]) == "work.Work.track_failed"
    assert running.without_row(tmp_path, [r"^data\."]) == ""
