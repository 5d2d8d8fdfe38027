"""Files of asv's results: those that asv itself writes, and those that something damaged."""

import json
import math

import pytest

from marginbench.reports.errors import ReportError
from marginbench.reports.regressions.asv_files import (
    Benchmark,
    Cell,
    Key,
    Lane,
    Value,
    read_results,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CELLS = ["SMO rbf dense", "SMO rbf dense bias"]


def by_asv(folder, add):
    """A file that asv's own code writes."""
    runner = pytest.importorskip("asv.runner")
    results = pytest.importorskip("asv.results")
    made = results.Results(
        {"machine": "vm", "cpu": "Example"}, {}, COMMIT, 1_700_000_000_000, "3.11", "env", {}
    )
    for name, params, kind, numbers, samples in add:
        benchmark = {"name": name, "params": params, "version": f"v-{name}", "type": kind}
        n = len(numbers)
        counts = [1 if each else None for each in samples]
        done = runner.BenchmarkResult(numbers, samples, counts, 0, "", b"")
        assert n == len(samples)
        made.add_result(benchmark, done, record_samples=True)
    made.save(str(folder))
    [path] = folder.glob("vm/*.json")
    return path


def test_what_asv_writes_is_read(tmp_path):
    params = [["'SMO'", "'SBP'"], ["1", "2.5"]]
    times = [[0.1, 0.3, 0.2], None, [0.4, 0.4, 0.4], None]
    path = by_asv(
        tmp_path,
        [
            (
                "work.Work.track_evaluations",
                [list(map(repr, CELLS))],
                "track",
                [7, None],
                [None] * 2,
            ),
            (
                "work.Work.track_error",
                [list(map(repr, CELLS))],
                "track",
                [math.nan, 1.5],
                [None] * 2,
            ),
            ("solve.Fit.time_fit", params, "time", [0.2, None, 0.4, math.nan], times),
            ("start.Whole.time_all", [], "time", [3.0], [None]),
            ("start.Broken.track_all", [list(map(repr, CELLS))], "track", [None, None], [None] * 2),
        ],
    )
    [found] = read_results(path.parents[1])
    assert (found.commit, found.date, found.lane) == (COMMIT, 1_700_000_000_000, Lane("vm", "env"))
    assert found.machine["cpu"] == "Example"
    work, fit = "work.Work", "solve.Fit"
    values = {key: value.number for key, value in found.values.items()}
    assert values == {
        Key(Cell(work, "SMO rbf dense"), "evaluations"): 7,
        Key(Cell(work, "SMO rbf dense bias"), "evaluations"): None,
        # NaN: skipped.
        Key(Cell(work, "SMO rbf dense bias"), "error"): 1.5,
        Key(Cell(fit, "SMO 1"), "time_fit"): 0.2,
        Key(Cell(fit, "SMO 2.5"), "time_fit"): None,
        Key(Cell(fit, "SBP 1"), "time_fit"): 0.4,
        Key(Cell("start.Whole", ""), "time_all"): 3.0,
        Key(Cell("start.Broken", "SMO rbf dense"), "all"): None,
        Key(Cell("start.Broken", "SMO rbf dense bias"), "all"): None,
    }
    timed = found.values[Key(Cell(fit, "SMO 1"), "time_fit")]
    # What a run of asv repeats is not independent.
    assert timed.samples == ()
    assert found.versions[Benchmark(work, "evaluations")] == "v-work.Work.track_evaluations"
    assert found.failed_cells() >= {Cell("start.Broken", "SMO rbf dense"), Cell(fit, "SMO 2.5")}


def test_a_cell_that_says_that_it_failed(write_results):
    folder = write_results({COMMIT: {"work.Work.track_failed": [0, 1]}}, CELLS)
    [found] = read_results(folder)
    assert found.failed_cells() == {Cell("work.Work", CELLS[1])}


def test_infinite_values_are_none(write_results):
    folder = write_results({COMMIT: {"work.Work.track_error": [math.inf, 1]}}, CELLS)
    found = read_results(folder)[0].values[Key(Cell("work.Work", CELLS[0]), "error")]
    assert found == Value(None)


def test_values_whose_ratios_cannot_be_held(write_results):
    """Pages draw logarithms of ratios, which must be finite."""
    folder = write_results({COMMIT: {"work.Work.track_error": [1e308, 1e-320]}}, CELLS)
    values = read_results(folder)[0].values
    numbers = [values[Key(Cell("work.Work", name), "error")].number for name in CELLS]
    assert numbers == [None, 0.0]


def test_two_files_of_a_commit(write_results):
    """A copy of a file must not pass for another commit."""
    folder = write_results({COMMIT: {"work.Work.track_error": [1, 2]}}, CELLS)
    [path] = folder.glob("vm/*.json")
    path.with_name("copy.json").write_text(path.read_text())
    with pytest.raises(ReportError, match="2 files have results of commit 0123456789 on "):
        read_results(folder)


def changed(**fields):
    def change(content):
        content |= fields
        return json.dumps(content)

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: json.dumps(content)[:-20],
        lambda content: "[]",
        lambda content: "",
        changed(version=1),
        changed(date="today"),
        changed(params=[]),
        changed(results=[]),
        changed(results={"a.b": [["x"], [["'a'"]]]}),
    ],
)
def test_damaged_files_are_named(write_results, damage):
    folder = write_results({COMMIT: {"work.Work.track_error": [1, 2]}}, CELLS)
    [path] = folder.glob("vm/*.json")
    path.write_text(damage(json.loads(path.read_text())))
    with pytest.raises(ReportError) as caught:
        read_results(folder)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_folders_without_results(tmp_path):
    with pytest.raises(ReportError, match="no folder"):
        read_results(tmp_path / "none")
    with pytest.raises(ReportError, match="holds no results"):
        read_results(tmp_path)
