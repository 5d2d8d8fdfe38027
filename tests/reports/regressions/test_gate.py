"""What changed between two commits: each outcome from values made by hand."""

import io
import json
import math
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from rich.console import Console, Group

from marginbench.reports.comparison.report import change_words, in_words
from marginbench.reports.errors import ReportError
from marginbench.reports.regressions.annotations import Annotation
from marginbench.reports.regressions.asv_files import COLUMNS
from marginbench.reports.regressions.gate import bounds_of, moved, regressions, watched

RBF, POLY = "SMO rbf dense", "SMO poly dense"


@pytest.fixture
def verdicts(snapshot):
    """The verdicts on cells, and the exit code."""

    def found(before, after, **options):
        gate = regressions(snapshot(before), snapshot(after), **options)
        return by_cell(gate), gate.exit_code

    return found


def by_cell(gate):
    names = gate.cells["solver"] + gate.cells["task"].str.removeprefix("work.Work")
    return dict(zip(names, gate.cells["verdict"], strict=True))


@pytest.mark.parametrize(
    ("measure", "old", "new", "verdict", "code"),
    [
        ("evaluations", 1000, 1000, "identical", 0),
        ("evaluations", 1000, 1010, "no difference told", 0),
        ("evaluations", 1000, 1011, "worsening", 1),
        ("evaluations", 1000, 900, "improvement", 0),
        ("evaluations", 0, 1, "worsening", 1),
        ("support_vectors", 10, 11, "no difference told", 0),
        ("support_vectors", 100, 102, "no difference told", 0),
        ("support_vectors", 100, 103, "worsening", 1),
        ("test_error", 20.0, 20.5, "no difference told", 0),
        ("test_error", 20.0, 20.75, "worsening", 1),
        ("suboptimality", 0.001, 0.0014, "no difference told", 0),
        ("suboptimality", 0.001, 0.0016, "worsening", 1),
        ("suboptimality", 0.1, 0.12, "worsening", 1),
        ("unsolved", 0, 1, "worsening", 1),
        ("time_fit", 1.0, 100.0, "advice", 0),
    ],
)
def test_a_change_counts_beyond_its_bound(verdicts, measure, old, new, verdict, code):
    assert verdicts({(RBF, measure): old}, {(RBF, measure): new}) == ({RBF: verdict}, code)


def test_a_cell_may_be_mixed_and_a_failing_one_hides_no_other_and_counts_if_it_is_new(verdicts):
    before = {(RBF, "evaluations"): 100, (RBF, "test_error"): 20.0}
    after = {(RBF, "evaluations"): 50, (RBF, "test_error"): 22.0}
    assert verdicts(before, after) == ({RBF: "mixed"}, 1)
    before = {(RBF, "failed"): 0, (RBF, "evaluations"): 100}
    poly = {(POLY, "failed"): 0, (POLY, "evaluations"): 100}
    after = {(RBF, "failed"): 1, (POLY, "failed"): 0, (POLY, "evaluations"): 200}
    # The benchmark ran for the other cell, so it is not one-sided.
    assert verdicts(before | poly, after) == ({RBF: "failed", POLY: "worsening"}, 2)
    assert verdicts(before, before | poly | {(POLY, "failed"): 1})[1] == 2


def test_a_value_that_asv_did_not_get_is_a_failure_and_a_suite_without_any_is_unmeasured(snapshot):
    for old, new, side, code in ((None, 10, "A", 0), (10, None, "B", 2), (None, None, "both", 0)):
        found = regressions(*(snapshot({(RBF, "evaluations"): each}) for each in (old, new)))
        assert list(found.cells["outcomes"]) == [{f"failed in {side}": 1}]
        assert found.exit_code == code
    nothing = {(RBF, "evaluations"): None, (POLY, "evaluations"): None}
    assert snapshot(nothing).unmeasured == ["work.Work"]
    assert snapshot(nothing | {(POLY, "evaluations"): 1}).unmeasured == []
    # One cell that fails is an answer.
    assert snapshot({(RBF, "evaluations"): None}).unmeasured == []


def test_known_changes_and_failures_accept_nothing_else(verdicts):
    before = {(RBF, "evaluations"): 100, (RBF, "iterations"): 10}
    after = {(RBF, "evaluations"): 200, (RBF, "iterations"): None}
    failing = Annotation((RBF,), ("failed",), "known")
    assert verdicts(before, after, annotations=[failing]) == ({RBF: "worsening"}, 1)
    both = Annotation((RBF,), ("failed", "evaluations"), "known")
    assert verdicts(before, after, annotations=[both])[1] == 0
    before, after = {(RBF, "failed"): 0}, {(RBF, "failed"): 1}
    assert verdicts(before, after, annotations=[failing])[1] == 0
    every = Annotation(("*",), ("evaluations",), "steadier")
    assert verdicts(before, after, annotations=[every])[1] == 2


def test_cells_and_values_that_a_cell_has_no_more_are_refused(verdicts):
    old, new = {(RBF, "evaluations"): 1}, {(POLY, "evaluations"): 1}
    assert verdicts(old, new) == ({RBF: "gone", POLY: "new"}, 1)
    for measure, code in (("gone", 0), ("evaluations", 1)):
        known = Annotation(("SMO rbf *",), (measure,), "no longer supported")
        assert verdicts(old, new, annotations=[known])[1] == code
    errors = {(RBF, "test_error"): 1.0, (POLY, "test_error"): 1.0}
    fewer = old | {(POLY, "test_error"): 1.0}
    assert verdicts(old | errors, fewer) == ({RBF: "worsening", POLY: "identical"}, 1)


def test_a_benchmark_of_other_code_or_on_one_side_is_named_and_no_regression(snapshot):
    values = {(RBF, "evaluations"): 1}
    found = regressions(snapshot(values | {(RBF, "test_error"): 1.0}), snapshot(values))
    assert found.exit_code == 0
    assert found.cautions == ["work.Work.test_error ran on one side only: nothing is said of it."]
    other = snapshot(values, versions={"work.Work.evaluations": "2"})
    [note] = regressions(snapshot(values), other).cautions
    assert note.startswith("The code of work.Work.evaluations differs")


@pytest.mark.parametrize(
    ("cells", "measures", "most", "refuses"),
    [
        ("*poly*", ("evaluations",), math.inf, {RBF}),
        ("SMO *", ("evaluations",), 3.0, set()),
        ("SMO *", ("evaluations",), 2.0, {POLY}),
        ("SMO *", ("iterations", "test_*"), math.inf, {RBF, POLY}),
    ],
)
def test_known_changes_pass_and_others_do_not(snapshot, cells, measures, most, refuses):
    known = Annotation((cells,), measures, "steadier", most=most)
    before = snapshot({(RBF, "evaluations"): 1, (POLY, "evaluations"): 1})
    after = snapshot({(RBF, "evaluations"): 2, (POLY, "evaluations"): 3})
    found = regressions(before, after, annotations=[known])
    assert by_cell(found) == {RBF: "worsening", POLY: "worsening"}
    rows = found.frame[found.frame["beyond"].astype(bool)]
    assert set(rows["solver"] + rows["task"].str.removeprefix("work.Work")) == refuses
    assert found.exit_code == bool(refuses)
    from_nothing = snapshot({(RBF, "evaluations"): 0, (POLY, "evaluations"): 3})
    code = regressions(from_nothing, after, annotations=[known]).exit_code
    assert code == (most < math.inf or RBF in refuses)


def test_the_worst_comes_first_and_is_measured_again_by_a_command(snapshot):
    before = {(name, "evaluations"): 100 for name in "abcd"}
    after = dict(zip(before, (100, 103, 300, 50), strict=True))
    found = regressions(snapshot(before), snapshot(after))
    console = Console(width=200, file=io.StringIO())
    console.print(Group(*in_words(found, all_rows=False)))
    text = console.file.getvalue()
    commands = [line for line in text.splitlines() if line.startswith("  git switch")]
    assert [line.split()[-1] for line in commands] == ["c", "b"]
    rows = text.partition("Values")[2].partition("Means over tasks")[0]
    words = [row.split()[0] for row in rows.splitlines() if row.split()]
    told = [word for word in words if word in ("worsening", "improvement")]
    assert told == ["worsening", "worsening", "improvement"]


def test_times_and_memory_advise_beyond_their_bounds(snapshot):
    def timed(samples):
        rows = [("solve.Fit SMO", "time_fit", turn, each) for turn, each in enumerate(samples)]
        values = pd.DataFrame(rows, columns=COLUMNS)
        return replace(snapshot({}), values=values, versions={"solve.Fit.time_fit": "1"})

    slower = regressions(timed([1.0, 1.01, 1.02, 0.99, 1.0]), timed([2.0, 2.1, 2.0, 1.9, 2.0]))
    assert list(slower.advice["mean"]) == [pytest.approx(2, rel=0.02)]
    assert slower.exit_code == 0
    assert regressions(timed([1.0] * 5), timed([2.0] * 2)).advice.empty
    assert regressions(timed([1.0] * 5), timed([1.05] * 5)).advice.empty
    # One turn, as asv records it, has no interval and is compared all the same.
    assert list(regressions(timed([1.0]), timed([10.0])).advice["mean"]) == [pytest.approx(10)]
    for bound, code in ((1.3, 1), (20.0, 0)):
        assert regressions(timed([1.0]), timed([10.0]), bounds={"time": bound}).exit_code == code

    def peak(size):
        return snapshot({(RBF, "peakmem_fit"): size})

    found = regressions(peak(200e6), peak(230e6))
    assert (list(found.advice["measure"]), found.exit_code) == (["peakmem_fit"], 0)
    assert regressions(peak(200e6), peak(215e6)).advice.empty
    assert regressions(peak(200e6), peak(230e6), bounds={"memory": 1.1}).exit_code == 1


def test_bounds_of_the_user_are_kept_and_those_that_are_none_refused():
    bounds = bounds_of(["evaluations=1.5,test_error=2pt", "memory=off", "time=1.2"], ())
    for measure, before, within, beyond in (
        ("evaluations", 100, 149, 151),
        ("test_error", 0.10, 0.119, 0.121),
        ("time_fit", 1, 1.19, 1.21),
    ):
        bound = watched(measure, bounds)
        assert not bound.advice
        assert moved(bound, before, within) != "worsening"
        assert moved(bound, before, beyond) == "worsening"
    assert watched("peakmem_fit", bounds).advice
    # An error is in points: "+2 %" would be read as a fiftieth.
    assert change_words(watched("test_error"), 0.20, 0.22) == "+2.00\u202fpt"
    for text in ("evals=2", "evaluations=5pt", "test_error=1.5", "failed=2"):
        with pytest.raises(ReportError, match="--bound"):
            bounds_of([text], ())


NUMBERS = st.one_of(st.none(), st.integers(0, 10**9), st.floats(0, 1e12, allow_nan=False))
MEASURES = st.sampled_from(["evaluations", "test_error", "suboptimality", "support_vectors"])
SIDES = st.dictionaries(st.tuples(st.sampled_from([RBF, POLY]), MEASURES), NUMBERS)


@settings(max_examples=6, deadline=None)
@given(SIDES, SIDES)
def test_every_cell_has_an_outcome_and_a_snapshot_is_identical_to_itself(snapshot, before, after):
    found = regressions(snapshot(before), snapshot(after))
    both = {measure for _, measure in before} & {measure for _, measure in after}
    cells = {name for name, measure in (*before, *after) if measure in both}
    assert set(by_cell(found)) == cells
    json.loads(found.to_json())
    same = regressions(snapshot(before), snapshot(before))
    assert (same.exit_code, set(same.frame["verdict"]) <= {"identical"}) == (0, True)
