"""Runs in pairs, and changes over them against reference tests, with their verdicts."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, ttest_1samp

from marginbench.reports.comparison import report as words
from marginbench.reports.comparison.change import (
    adjusted,
    change,
    combined,
    error_change,
    judged,
    of_cell,
    of_tasks,
    paired,
    spread_single_runs,
)
from marginbench.reports.comparison.result import Difference
from marginbench.reports.formatting import DASH, THIN, TIMES
from marginbench.reports.regressions.gate import watched
from marginbench.reports.statistics.errors import SolverErrors

NAN, INF, MINUS = math.nan, math.inf, "\N{MINUS SIGN}"


def changed(before, after, **options):
    return change(np.array(before, dtype=float), np.array(after, dtype=float), **options)


@pytest.mark.parametrize("scale", ["ratio", "difference"])
def test_the_interval_is_that_of_a_t_test_and_mirrors(scale):
    for seed in range(4):
        before, after = np.random.default_rng(seed).lognormal(0, 0.5, (2, 3 + seed))
        if scale == "ratio":
            values, band, shown = np.log(after / before), 1.05, np.exp
        else:  # a zero makes differences of all pairs
            before[0] = 0.0
            values, band, shown = after - before, 1.0, np.asarray
        there, back = changed(before, after, band=band), changed(after, before, band=band)
        expected = [values.mean(), np.median(values), *ttest_1samp(values, 0).confidence_interval()]
        found = (there.mean, there.median, there.low, there.high)
        assert found == pytest.approx(shown(expected))
        mirrored = shown(-np.array(expected)[[0, 1, 3, 2]])
        assert (back.mean, back.median, back.low, back.high) == pytest.approx(mirrored)
        # What is within the band is no evidence.
        nearest = math.copysign(math.log(band), values.mean())
        assert there.p == back.p == pytest.approx(ttest_1samp(values, nearest).pvalue)
        medians = (np.median(before), np.median(after), 3 + seed)
        assert (there.before, there.after, there.n, there.scale) == (*medians, scale)


def test_equal_values_exact_ones_and_those_of_few_runs_have_no_interval_by_chance():
    found = changed([3, 5, 7], [3, 5, 7])
    assert found.identical
    assert (found.mean, found.low, found.high, found.p) == (1.0, 1.0, 1.0, 1.0)
    found = changed([10, 10], [20, 5], exact=True)
    assert (found.low, found.high) == pytest.approx((0.5, 2.0))
    assert math.isnan(found.p)
    for few, mean, n, n_runs in (
        (changed([2, 2, 2], [3, 4, 5], n_runs=1), 7.5 ** (1 / 3), 3, 1),
        (changed([2, 2], [4, 16]), 4.0, 2, 2),
    ):
        assert np.isnan([few.low, few.high, few.p]).all()
        assert (few.mean, few.n, few.n_runs) == (pytest.approx(mean), n, n_runs)
        assert judged(few, bound=1.0, band=1.0).why.startswith(f"{n_runs} run")
    # A change within the band is no evidence; log 2 beyond log 1.1, without any spread, is.
    assert changed([10, 10, 10], [10.8, 10.9, 10.7], band=1.1).p == 1.0
    assert changed([10, 10, 10], [20, 20, 20], band=1.1).p == pytest.approx(0.0)


def test_unknown_values_are_in_no_pair_and_never_on_one_side_is_lost_or_gained():
    found = changed([NAN, 10, 10, NAN], [5, NAN, 20, NAN])
    assert (found.n, found.n_unknown) == (1, 2)
    assert found.mean == pytest.approx(2.0)
    assert not changed([10, NAN], [10, 5]).identical
    assert changed([NAN], [NAN]).n == 0
    found = changed([10, 10, INF, INF], [INF, 20, INF, 30])
    assert (found.lost, found.gained) == (1, 1)
    assert (found.reached_before, found.reached_after) == (2, 2)
    assert found.mean == pytest.approx(2.0)
    never = changed([10, 20], [INF, INF])
    assert never.after == INF
    assert math.isnan(never.mean)
    assert changed([INF, INF], [INF, INF]).identical


def errors(*masks):
    mistakes = np.array(masks, dtype=bool)
    return SolverErrors(mistakes.mean(axis=1), mistakes.shape[1], mistakes)


def test_errors_on_the_same_points_are_identical_and_p_agrees_with_the_interval():
    mask = np.arange(400) < 20

    def against(other, by_chance=False):
        return error_change(errors(mask), errors(other), n=1, by_chance=by_chance)

    same, other = against(mask), against(np.roll(mask, 50))
    assert (same.identical, same.mean, same.p) == (True, 0.0, 1.0)
    assert (other.identical, other.mean) == (False, 0.0)
    found = {wrong: against(np.arange(400) < wrong) for wrong in (24, 30, 34, 60)}
    assert all((each.p < 0.05) == (each.low > 0) for each in found.values())
    assert found[24].low < 0 < found[60].low
    assert found[60].mean == pytest.approx(0.1)
    # One seed of a solver that draws has no interval.
    assert math.isnan(against(np.arange(400) < 60, by_chance=True).low)
    seeds = ((16, 20, 24), (36, 36, 66))
    # Three have one, which mirrors, with the p of a normal one as far from zero.
    before, after = (errors(*(np.arange(400) < wrong for wrong in each)) for each in seeds)
    there = error_change(before, after, n=3, by_chance=True)
    back = error_change(after, before, n=3, by_chance=True)
    assert (back.low, back.high, back.p) == pytest.approx((-there.high, -there.low, there.p))
    assert there.p == pytest.approx(2 * norm.sf(1.959964 * there.mean / (there.mean - there.low)))
    assert (there.mean, there.median, back.median) == pytest.approx((26 / 400, 0.05, -0.05))


NONE, EXACT = "no difference told", {"exact": True}
LONGER, SHORTER = ([10, 10, 10], [12, 12, 12]), ([12, 12, 12], [10, 10, 10])
ADVISED = {"advice": "two machines"}


@pytest.mark.parametrize(
    ("before", "after", "options", "verdict"),
    [
        # What is by chance is told from a change.
        ([10, 20, 30], [10, 20, 30], {}, "identical"),
        ([10, 20, 30], [20, 41, 61], {}, "worsening beyond"),
        ([10, 20, 30], [20, 10, 33], {}, NONE),
        ([10], [100], {}, NONE),
        ([NAN], [5], {}, "not compared"),
        ([0, 0, 0], [0.50, 0.51, 0.52], {"bound": 0.0}, "worsening beyond"),
        # Whether the target is reached: one-sided in six of seven pairs has p = 2 / 64.
        ([10, 10], [INF, INF], {}, NONE),
        ([10, 10, 10], [INF, INF, INF], {"bound": 100.0}, "worsening beyond"),
        ([10, 10, 10], [INF, INF, INF], {"bound": INF}, "worsening"),
        ([INF, INF, INF], [10, 10, 10], {}, "improvement"),
        ([10] * 7, [INF] * 6 + [10], {}, "worsening beyond"),
        ([10] * 6, [INF] * 5 + [10], {}, NONE),
        # Of exact values every change beyond the band is told.
        ([100, 100], [90, 100], EXACT, "improvement"),
        ([100, 100], [90, 110], EXACT, "mixed"),
        ([100, 100], [INF, 90], EXACT, "mixed"),
        ([100, 100], [100, 110], EXACT, "worsening"),
        ([0], [0.5], EXACT | {"bound": 0.5}, "worsening"),  # at its bound
        ([0.5], [0], EXACT, "improvement"),
        ([INF], [10], EXACT, "improvement"),
        ([10], [INF], EXACT | {"bound": 100.0}, "worsening beyond"),
        ([100], [115], EXACT | {"band": 1.19}, NONE),
        ([100], [120], EXACT | {"band": 1.19}, "worsening beyond"),
        # A worsening is beyond its bound if all of its interval is; here it is 1.06 to 1.36.
        (*LONGER, {"bound": 1.15}, "worsening beyond"),
        (*LONGER, {"bound": 1.25}, "worsening"),
        ([10, 10, 10], [11.4, 12, 12.6], {"bound": 1.1}, "worsening"),
        # Nothing is said in favour of a side with failures, or of what is advice.
        (*SHORTER, {"incomplete": "B"}, "advice"),
        (*LONGER, {"incomplete": "B"}, "worsening beyond"),
        (*LONGER, {"incomplete": "A"}, "advice"),
        (*SHORTER, {"incomplete": "A"}, "improvement"),
        (*LONGER, ADVISED, "advice"),
        ([10, 10, 10], [10, 10, 10], ADVISED, "identical"),
    ],
)
def test_a_verdict_is_what_the_change_proves(before, after, options, verdict):
    options = {"exact": False, "band": 1.0, "bound": 1.05} | options
    found = changed(before, after, exact=options.pop("exact"), band=options["band"])
    found = judged(replace(found, q=found.p), **options)
    assert found.verdict + " beyond" * found.beyond == verdict


def test_p_values_allow_for_their_number():
    # Benjamini and Hochberg: p * n / rank, made monotone from the largest down.
    found = adjusted(["a"] * 4 + ["b"], [0.01, 0.04, NAN, 0.03, 0.02])
    assert list(found) == pytest.approx([0.03, 0.04, NAN, 0.04, 0.02], nan_ok=True)
    assert np.isnan(adjusted(["a", "a"], [NAN, NAN])).all()
    assert adjusted([], []).empty


def test_verdicts_combine_and_a_cell_is_what_became_of_its_runs():
    for verdicts, verdict in (
        (["identical", "identical"], "identical"),
        (["identical", "advice"], "no difference told"),
        (["advice"], "advice"),
        (["improvement", "no difference told"], "improvement"),
        (["improvement", "worsening"], "mixed"),
        (["worsening", "not compared"], "worsening"),
        ([], "not compared"),
    ):
        assert combined(verdicts) == verdict
    assert of_cell(["improvement"], {"compared": 2, "gone": 1}) == "improvement"
    assert of_cell(["improvement"], {"compared": 2, "failed in A": 1}) == "failed"
    for outcome, verdict in (
        *(("new", "new"), ("gone", "gone"), ("skipped in B", "skipped")),
        *(("problem differs", "not compared"), ("no record in B", "no record")),
    ):
        assert of_cell([], {outcome: 3}) == verdict


def test_a_mean_over_tasks_decides_from_six_tasks_on():
    def on(n, low, high, each="no difference told", band=(1.0, 1.0), q=0.04):
        return of_tasks([each] * n, {"low": low, "high": high}, q, band)

    assert on(6, 1.2, 1.4) == "worsening"
    assert on(5, 1.2, 1.4) == on(6, 1.2, 1.4, q=0.06) == "no difference told"
    assert on(6, 0.7, 0.9) == on(6, -0.02, -0.01, band=(0.0, 0.0)) == "improvement"
    assert on(6, 1.2, 1.4, each="advice") == "advice"
    # Single tasks against the mean of all.
    assert on(3, 1.2, 1.4, each="improvement") == on(3, 0.6, 0.8, each="worsening") == "mixed"
    assert on(3, 0.9, 1.4, each="improvement") == "improvement"
    assert on(3, 1.2, 1.4, each="improvement", band=(0.5, 1.3)) == "improvement"
    assert on(3, 0.6, 0.8, each="worsening", band=(0.7, 2.0)) == "worsening"
    assert on(6, 1.2, 1.8, band=(0.7, 1.3)) == "worsening"
    none = {"low": NAN, "high": NAN}
    assert of_tasks(["identical", "advice"], none, NAN, (1.0, 1.0)) == "advice"


def runs(*rows):
    """Runs of one solver on one task, from what is not plain in them."""
    plain = {"task": "a", "solver": "S", "seed": 0, "status": "budget", "reason": ""} | {
        "fingerprint": "f", "kernel": '{"name":"rbf"}', "C": 1.0, "fit_intercept": False,
        "reference_primal": 100.0, "reference_gap": 1e-4, "reference_hash": "r",
    }  # fmt: skip
    found = pd.DataFrame([plain | row for row in rows], columns=[*plain])
    found["ok"] = found["status"].isin(["converged", "budget"])
    return found.assign(run=found["seed"])


def failed(status, reason=""):
    return {"status": status, "reason": reason}


@pytest.mark.parametrize(
    ("before", "after", "outcome", "why"),
    [
        ({"status": "converged"}, {}, "compared", ""),
        ({}, failed("crashed", "signal 11"), "failed in B", "crashed: signal 11"),
        (failed("skipped"), failed("timeout"), "failed in B", "timeout"),
        (failed("failed", "no"), failed("wrong"), "failed in both", "failed: no; wrong"),
        ({}, failed("damaged"), "no record in B", "damaged"),
        ({}, failed("skipped", "no bias"), "skipped in B", "skipped: no bias"),
        (*[failed("skipped", "no bias")] * 2, "skipped in both", "skipped: no bias"),
        ({}, None, "gone", ""),
        (failed("failed"), None, "failed in A", "failed"),
        ({}, {"fingerprint": "g"}, "problem differs", "data"),
        ({}, {"kernel": '{"name":"rbf","gamma":3}'}, "problem differs", "kernel"),
        ({}, {"kernel": '{ "name": "rbf" }'}, "compared", ""),
        ({}, {"C": 5.0, "fit_intercept": True}, "problem differs", "C, bias"),
        ({}, {"C": None}, "problem differs", "C"),
        ({}, {"reference_primal": 99.0}, "problem differs", "reference optimum"),
    ],
)
def test_every_run_has_an_outcome_that_mirrors_with_the_reason(before, after, outcome, why):
    other = {"task": "other"}
    a, b = (runs(other, *([] if each is None else [each])) for each in (before, after))
    mirrored = {"gone": "new"}.get(outcome, outcome.translate(str.maketrans("AB", "BA")))
    for there, back, expected in ((a, b, outcome), (b, a, mirrored)):
        found = paired(there, back).set_index("task")
        assert found["outcome"].to_dict() == {"other": "compared", "a": expected}
    assert paired(a, b).set_index("task").loc["a", "why"] == why


def test_another_certificate_of_an_optimum_is_told_from_rounding():
    exact, unknown = {"reference_gap": -1.4e-14}, {"reference_primal": NAN, "reference_gap": NAN}
    for before, after, same in (
        ({}, {"reference_primal": 100.00005, "reference_hash": "s"}, False),
        (exact, exact, True),
        (exact, {"reference_gap": 0.0, "reference_primal": 100.0 + 1e-12}, False),
        (unknown, unknown, True),
        ({}, unknown, False),
    ):
        found = paired(runs(before), runs(after))
        assert found[["outcome", "same_reference"]].values.tolist() == [["compared", same]]


def test_seeds_of_one_side_are_listed_but_the_only_run_that_draws_nothing_is_beside_every_one():
    single, many = (
        runs({"seed": 1}),
        runs({"seed": 1}, {"seed": 2}, {"seed": 3} | failed("crashed")),
    )
    found = paired(many, single)
    assert list(found["outcome"]) == ["compared", "gone", "failed in A"]
    assert list(found["seed"]) == [1, 2, 3]
    assert list(paired(many, runs({}))["seed"]) == [1, 2, 3, 0]
    found = paired(spread_single_runs(single, many), many)
    assert list(found["outcome"]) == ["compared", "compared", "failed in B"]
    assert list(found["seed_a"]) == [1, 1, 1]
    assert list(found["seed_b"]) == [1, 2, 3]


def test_numbers_are_read_at_a_glance_and_a_ratio_never_as_one():
    for ratio, text in (
        *((0.0005, "<0.001"), (0.0999, "0.100"), (0.1, "0.10"), (1.0, "1.00"), (1.0004, "1.0004")),
        *((1 + 1e-9, "1.000000"), (9.994, "9.99"), (10, "10.0"), (100, "100"), (INF, ">1000")),
    ):
        assert words.ratio(ratio) == text + TIMES
    count, error = watched("evaluations"), watched("test_error")
    for item, before, after, text in (
        (count, 1, 1, f"1.00{TIMES}"),
        (count, 10, 0, f"{MINUS}10"),
        (count, 0, 10, "+10"),
        (error, 0.125, 0.1, f"{MINUS}2.50{THIN}pt"),
        (error, NAN, 0.1, DASH),
    ):
        assert words.change_words(item, before, after) == text
    bounds = [words.bound(item) for item in (count, error, watched("time_fit"))]
    assert bounds == [f"1.01{TIMES}", f"0.5{THIN}pt", "off"]


def test_the_worst_is_first_then_what_is_beyond_its_bound_most_certain_and_largest():
    columns = ["verdict", "beyond", "q", "scale", "mean"]
    rows = [
        ("worsening", True, 0.04, "ratio", 3.0),
        ("worsening", False, 0.01, "ratio", 3.0),
        ("improvement", False, NAN, "ratio", 0.9),  # exact
        ("improvement", False, 0.01, "ratio", 0.25),
        ("improvement", False, 0.01, "difference", -0.9),
        ("improvement", False, 0.01, "ratio", 0.5),
    ]
    found = words.ordered(pd.DataFrame(rows[::-1], columns=columns))
    assert list(found.index) == [*range(6)][::-1]


def test_solvers_that_differ_alike_are_told_at_once():
    both = [Difference(name, "version", "1", "2") for name in "ST"]
    own = Difference("S", "params.tol", "1", "2")
    table = words.differences_table([*both, own], "Solvers")
    assert [[cell.value for cell in row] for row in table.rows] == [
        ["S, T", "version", "1", "2"],
        ["S", "params.tol", "1", "2"],
    ]
    setting = words.differences_table([Difference("", "processor", "1", "2")], "Environments")
    assert [cell.value for cell in setting.rows[0]] == ["processor", "1", "2"]
