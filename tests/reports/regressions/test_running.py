"""What is kept of a measurement, without asv."""

import errno
import json
import re
import shutil

import pytest

from marginbench.harness.errors import StorageError
from marginbench.reports.regressions import running


def test_a_full_disk_keeps_nothing(tmp_path, monkeypatch):
    results, kept = tmp_path / "results", tmp_path / "kept" / "commit"
    results.mkdir()
    kept.parent.mkdir()

    def full(source, folder, **options):
        (folder / "half").write_text("{")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(StorageError):
        running._keep(results, kept)
    assert list(kept.parent.iterdir()) == []


def test_an_empty_folder_has_lost_its_results(tmp_path):
    assert not running._is_kept(tmp_path / "none")
    assert not running._is_kept(tmp_path)
    (tmp_path / "benchmarks.json").write_text("{}")
    assert running._is_kept(tmp_path)


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
