"""What changed between two commits: each outcome from values made by hand."""

import json
import math
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from marginbench.reports.regressions.annotations import Annotation
from marginbench.reports.regressions.asv_files import COLUMNS
from marginbench.reports.regressions.gate import bounds_of, regressions, watched

from .conftest import snapshot

RBF, POLY = "SMO rbf dense", "SMO poly dense"


def gate(before, after, **options):
    return regressions(snapshot(before), snapshot(after), **options)


def by_cell(found):
    names = found.cells["solver"] + found.cells["task"].str.removeprefix("work.Work")
    return dict(zip(names, found.cells["verdict"], strict=True))


@pytest.mark.parametrize(
    ("measure", "old", "new", "bound", "verdict", "code"),
    [
        ("evaluations", 1000, 1000, "", "identical", 0),
        ("evaluations", 1000, 1010, "", "no difference told", 0),
        ("evaluations", 1000, 1011, "", "worsening", 1),
        ("evaluations", 1000, 900, "", "improvement", 0),
        ("evaluations", 0, 1, "", "worsening", 1),
        ("evaluations", 100, 150, "evaluations=1.5", "no difference told", 0),
        ("evaluations", 100, 151, "test_error=2pt,evaluations=1.5", "worsening", 1),
        ("support_vectors", 10, 11, "", "no difference told", 0),
        ("support_vectors", 10, 11, "support_vectors=1.05", "worsening", 1),
        ("support_vectors", 100, 102, "", "no difference told", 0),
        ("support_vectors", 100, 103, "", "worsening", 1),
        ("test_error", 20.0, 20.5, "", "no difference told", 0),
        ("test_error", 20.0, 20.75, "", "worsening", 1),
        ("test_error", 10.0, 11.9, "test_error=2pt", "no difference told", 0),
        ("test_error", 10.0, 12.1, "test_error=2pt", "worsening", 1),
        ("suboptimality", 0.001, 0.0014, "", "no difference told", 0),
        ("suboptimality", 0.001, 0.0016, "", "worsening", 1),
        ("suboptimality", 0.1, 0.12, "", "worsening", 1),
        ("unsolved", 0, 1, "", "worsening", 1),
        ("time_fit", 1.0, 100.0, "", "advice", 0),
        ("time_fit", 1.0, 1.19, "time=1.2", "no difference told", 0),
        ("time_fit", 1.0, 1.21, "time=1.2", "worsening", 1),
        ("peakmem_fit", 200e6, 230e6, "", "advice", 0),
        ("peakmem_fit", 200e6, 230e6, "memory=off", "advice", 0),
        ("peakmem_fit", 200e6, 230e6, "memory=1.1", "worsening", 1),
    ],
)
def test_a_change_counts_beyond_its_bound(measure, old, new, bound, verdict, code):
    bounds = bounds_of([bound] * bool(bound), ())
    found = gate({RBF: {measure: old}}, {RBF: {measure: new}}, bounds=bounds)
    assert (by_cell(found), found.exit_code) == ({RBF: verdict}, code)


EVALUATIONS = {"evaluations": 100}
GOOD, BROKEN = {"failed": 0, "evaluations": 100}, {"failed": 1}


@pytest.mark.parametrize(
    ("before", "after", "verdicts", "code"),
    [
        (
            {RBF: {"evaluations": 100, "test_error": 20.0}},
            {RBF: {"evaluations": 50, "test_error": 22.0}},
            {RBF: "mixed"},
            1,
        ),
        # A cell that fails hides no other, and is no new one that may.
        (
            {RBF: GOOD, POLY: GOOD},
            {RBF: BROKEN, POLY: {"failed": 0, "evaluations": 200}},
            {RBF: "failed", POLY: "worsening"},
            2,
        ),
        ({RBF: GOOD}, {RBF: GOOD, POLY: GOOD | BROKEN}, {RBF: "identical", POLY: "failed"}, 2),
        # asv did not get the value.
        ({RBF: {"evaluations": None}}, {RBF: EVALUATIONS}, {RBF: "failed"}, 0),
        ({RBF: EVALUATIONS}, {RBF: {"evaluations": None}}, {RBF: "failed"}, 2),
        ({RBF: {"evaluations": None}}, {RBF: {"evaluations": None}}, {RBF: "failed"}, 0),
        # Cells, and values that a cell has no more.
        ({RBF: EVALUATIONS}, {POLY: EVALUATIONS}, {RBF: "gone", POLY: "new"}, 1),
        (
            {RBF: EVALUATIONS | {"test_error": 1.0}, POLY: {"test_error": 1.0}},
            {RBF: EVALUATIONS, POLY: {"test_error": 1.0}},
            {RBF: "worsening", POLY: "identical"},
            1,
        ),
    ],
)
def test_a_cell_is_what_became_of_all_its_values(before, after, verdicts, code):
    found = gate(before, after)
    assert (by_cell(found), found.exit_code) == (verdicts, code)
    assert (found.verdict == "gone") == ("gone" in verdicts.values())


WORKS = {"evaluations": 100, "iterations": 10}
TWICE, THRICE = {"evaluations": 200}, {"evaluations": 300}


@pytest.mark.parametrize(
    ("cells", "measures", "most", "before", "after", "code"),
    [
        (("SMO rbf *",), ("evaluations",), math.inf, EVALUATIONS, TWICE, 0),
        (("SDCA *", "SMO *"), ("iterations", "eval*"), 2.0, EVALUATIONS, TWICE, 0),
        (("*poly*",), ("evaluations",), math.inf, EVALUATIONS, TWICE, 1),
        (("SMO *",), ("iterations", "test_*"), math.inf, EVALUATIONS, TWICE, 1),
        (("SMO *",), ("evaluations",), 2.0, EVALUATIONS, THRICE, 1),
        (("*",), ("evaluations",), math.inf, WORKS, TWICE | {"iterations": 20}, 1),
        # More than nothing is infinitely more.
        (("*",), ("evaluations",), math.inf, {"evaluations": 0}, TWICE, 0),
        (("*",), ("evaluations",), 2.0, {"evaluations": 0}, TWICE, 1),
        # A failure that is accepted is no other change.
        (("*",), ("failed",), math.inf, GOOD, BROKEN, 0),
        (("*",), ("evaluations",), math.inf, GOOD, BROKEN, 2),
        (("*",), ("failed",), math.inf, WORKS, TWICE | {"iterations": None}, 1),
        (("*",), ("failed", "evaluations"), math.inf, WORKS, TWICE | {"iterations": None}, 0),
        (("SMO rbf *",), ("gone",), math.inf, EVALUATIONS, None, 0),
        (("SMO rbf *",), ("evaluations",), math.inf, EVALUATIONS, None, 1),
    ],
)
def test_known_changes_pass_and_others_do_not(cells, measures, most, before, after, code):
    known = Annotation(cells, measures, "steadier", most=most)
    sides = [{RBF: each} if each else {POLY: EVALUATIONS} for each in (before, after)]
    assert gate(*sides, annotations=[known]).exit_code == code


def test_a_benchmark_of_other_code_or_on_one_side_is_named_and_no_regression():
    values = {"evaluations": 1}
    found = gate({RBF: values | {"test_error": 1.0}}, {RBF: values})
    assert found.exit_code == 0
    assert found.cautions == ["work.Work.test_error ran on one side only: nothing is said of it."]
    other = snapshot({RBF: values}, versions={"work.Work.evaluations": "2"})
    [note] = regressions(snapshot({RBF: values}), other).cautions
    assert note.startswith("The code of work.Work.evaluations differs")


def test_the_worst_comes_first_and_is_measured_again_by_a_command():
    before, after = (
        {cell: {"evaluations": value} for cell, value in zip("abcd", each, strict=True)}
        for each in ((100, 100, 100, 100), (100, 103, 300, 50))
    )
    commands = gate(before, after).commands
    assert [line.split()[-1] for line in commands] == ["c", "b"]
    assert all(line.startswith("git switch --detach aaaaaaaaaa && python") for line in commands)


def test_times_and_memory_advise_beyond_what_sessions_differ_by():
    def timed(samples):
        rows = [("solve.Fit SMO", "time_fit", turn, each) for turn, each in enumerate(samples)]
        values = pd.DataFrame(rows, columns=COLUMNS)
        return replace(snapshot({}), values=values, versions={"solve.Fit.time_fit": "1"})

    sides = timed([1.0, 1.01, 1.02, 0.99, 1.0]), timed([2.0, 2.1, 2.0, 1.9, 2.0])
    for found, mean in ((regressions(*sides), 2), (regressions(*sides[::-1]), 0.5)):
        assert list(found.advice["mean"]) == [pytest.approx(mean, rel=0.02)]
        assert found.exit_code == 0
    few = regressions(timed([1.0] * 5), timed([2.0] * 2))
    assert (few.advice.empty, few.exit_code) == (True, 0)
    assert regressions(timed([1.0] * 5), timed([1.05] * 5)).advice.empty
    # One turn, as asv records it, has no interval and is compared all the same.
    assert list(regressions(timed([1.0]), timed([10.0])).advice["mean"]) == [pytest.approx(10)]
    # 8 MiB are none, whatever the ratio.
    for base, size, told in ((200e6, 230e6, ["peakmem_fit"]), (200e6, 215e6, []), (20e6, 28e6, [])):
        found = gate({RBF: {"peakmem_fit": base}}, {RBF: {"peakmem_fit": size}})
        assert list(found.advice["measure"]) == told
    titles = [watched(name).measure.title for name in ("test_error", "time_fit", "peakmem_fit")]
    assert titles == ["Test error", "Time, fit", "Peak memory, fit"]
    # Nor is what the user does not want to be judged.
    off = {"evaluations": math.inf}
    assert gate({RBF: EVALUATIONS}, {RBF: TWICE}, bounds=off).advice.empty


NUMBERS = st.one_of(st.none(), st.integers(0, 10**9), st.floats(0, 1e12, allow_nan=False))
MEASURES = st.sampled_from(["evaluations", "test_error", "suboptimality", "support_vectors"])
SIDES = st.dictionaries(st.sampled_from([RBF, POLY]), st.dictionaries(MEASURES, NUMBERS))


@settings(max_examples=6, deadline=None)
@given(SIDES, SIDES)
def test_every_cell_has_an_outcome_and_a_snapshot_is_identical_to_itself(before, after):
    found = gate(before, after)
    names = [{name for each in side.values() for name in each} for side in (before, after)]
    both = names[0] & names[1]
    cells = {cell for side in (before, after) for cell, each in side.items() if both & {*each}}
    assert set(by_cell(found)) == cells
    json.loads(found.to_json())
    same = gate(before, before)
    assert (same.exit_code, set(same.frame["verdict"]) <= {"identical"}) == (0, True)
