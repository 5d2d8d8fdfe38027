"""Runs in pairs, and changes over them against cases computed by hand, with their verdicts."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from marginbench.reports.comparison.change import (
    adjusted,
    change,
    combined,
    error_change,
    estimate,
    judged,
    of_cell,
    of_tasks,
    paired,
    spread_single_runs,
)
from marginbench.reports.comparison.report import differences_table
from marginbench.reports.comparison.result import Difference
from marginbench.reports.statistics.errors import SolverErrors

NAN, INF = math.nan, math.inf


def changed(before, after, **options):
    return change(np.array(before, dtype=float), np.array(after, dtype=float), **options)


def test_the_interval_is_that_of_the_t_distribution_on_logarithms_or_differences():
    # Logarithms of the ratios: 0, log 2, log 4; their mean is log 2, the error of it
    # log 2 / sqrt(3), and t(0.975; 2) = 4.3027.
    found = changed([10, 10, 10], [10, 20, 40])
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert (found.mean, found.median) == pytest.approx((2.0, 2.0))
    assert (found.low, found.high) == pytest.approx((2 * math.exp(-half), 2 * math.exp(half)))
    # t = sqrt(3); with two degrees of freedom p = 1 - t / sqrt(t**2 + 2).
    assert found.p == pytest.approx(1 - math.sqrt(3 / 5))
    assert (found.before, found.after, found.n) == (10.0, 20.0, 3)
    # A zero makes differences of all pairs; their deviation is sqrt(19 / 3).
    found = changed([0, 10, 20], [5, 12, 20])
    half = 4.302653 * math.sqrt(19 / 3) / math.sqrt(3)
    assert found.scale == "difference"
    expected = (7 / 3, 2.0, 7 / 3 - half, 7 / 3 + half)
    assert (found.mean, found.median, found.low, found.high) == pytest.approx(expected)


def test_equal_values_exact_ones_and_those_of_one_run_have_no_interval_by_chance():
    found = changed([3, 5, 7], [3, 5, 7])
    assert found.identical
    assert (found.mean, found.low, found.high, found.p) == (1.0, 1.0, 1.0, 1.0)
    found = changed([10, 10], [20, 5], exact=True)
    assert (found.low, found.high) == pytest.approx((0.5, 2.0))
    assert math.isnan(found.p)
    found = changed([2, 2, 2], [3, 4, 5], n_runs=1)
    assert np.isnan([found.low, found.high, found.p]).all()
    assert (found.n, found.n_runs) == (3, 1)
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


def test_the_mean_over_tasks_is_geometric_and_mirrors():
    def over(*ratios, band=1.0):
        return [*estimate(np.log(ratios), True, band).values()]

    mean, median, *interval = over(2.0, 8.0)
    assert (mean, median) == pytest.approx((4.0, 4.0))
    assert np.isnan(interval).all()
    mean, _, low, high, p = over(1.0, 2.0, 4.0)
    assert over(1.0, 0.5, 0.25) == pytest.approx([1 / mean, 1 / mean, 1 / high, 1 / low, p])
    assert over(1.1, 1.1, 1.1, band=1.2)[-1] == 1.0
    assert estimate(np.array([0.01, -0.01]), False)["mean"] == pytest.approx(0.0)
    assert np.isnan(over()).all()


def verdict_on(before, after, *, exact=False, band=1.0, bound=1.05, **options):
    values = np.array(before, dtype=float), np.array(after, dtype=float)
    found = change(*values, exact=exact, band=band)
    return judged(replace(found, q=found.p), bound=bound, band=band, **options)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([10, 20, 30], [10, 20, 30], "identical"),
        ([10, 20, 30], [20, 41, 61], "worsening"),
        ([10, 20, 30], [20, 10, 33], "no difference told"),
        ([10], [100], "no difference told"),
        ([NAN], [5], "not compared"),
        ([0, 0, 0], [50, 51, 52], "worsening"),
        ([10, 10], [INF, INF], "no difference told"),
        ([10, 10, 10], [INF, INF, INF], "worsening"),
        ([INF, INF, INF], [10, 10, 10], "improvement"),
        # One-sided in six of seven pairs: p = 2 / 64.
        ([10] * 7, [INF] * 6 + [10], "worsening"),
        ([10] * 6, [INF] * 5 + [10], "no difference told"),
    ],
)
def test_what_is_by_chance_is_told_from_a_change(before, after, verdict):
    assert verdict_on(before, after).verdict == verdict


@pytest.mark.parametrize(
    ("before", "after", "band", "verdict"),
    [
        ([100, 100], [90, 100], 1.0, "improvement"),
        ([100, 100], [90, 110], 1.0, "mixed"),
        ([100, 100], [INF, 90], 1.0, "mixed"),
        ([100], [115], 1.19, "no difference told"),
        ([100], [120], 1.19, "worsening"),
    ],
)
def test_of_exact_values_every_change_beyond_the_band_is_told(before, after, band, verdict):
    assert verdict_on(before, after, exact=True, band=band).verdict == verdict


def test_a_worsening_is_beyond_its_bound_if_all_of_its_interval_is():
    assert verdict_on([10, 10, 10], [12, 12, 12], bound=1.15).beyond
    assert not verdict_on([10, 10, 10], [12, 12, 12], bound=1.25).beyond
    # The mean is 1.2, the interval begins at 1.06.
    wide = verdict_on([10, 10, 10], [11.4, 12, 12.6], bound=1.1)
    assert (wide.verdict, wide.beyond) == ("worsening", False)
    assert verdict_on([10] * 3, [INF] * 3, bound=100.0).beyond
    assert verdict_on([10], [INF], exact=True, bound=100.0).beyond
    assert not verdict_on([10] * 3, [INF] * 3, bound=INF).beyond
    assert not verdict_on([12, 12, 12], [10, 10, 10], bound=1.05).beyond


def test_nothing_is_said_in_favour_of_a_side_with_failures_or_of_what_is_advice():
    slow, fast = [20, 20, 20], [10, 10, 10]
    assert verdict_on(slow, fast, incomplete="B").verdict == "advice"
    assert verdict_on(fast, slow, incomplete="B").verdict == "worsening"
    assert verdict_on(fast, slow, incomplete="A").verdict == "advice"
    assert verdict_on(slow, fast, incomplete="A").verdict == "improvement"
    assert verdict_on(fast, slow, advice="two machines").verdict == "advice"
    assert verdict_on(fast, fast, advice="two machines").verdict == "identical"


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
    none = {"low": NAN, "high": NAN}
    assert of_tasks(["identical", "advice"], none, NAN, (1.0, 1.0)) == "advice"


def runs(*rows, **columns):
    """Runs of one solver on one task: pairs of a seed and a status."""
    found = [
        {"task": "a", "solver": "S", "seed": seed, "status": status, "reason": "", "run": seed}
        | {"ok": status in ("converged", "budget"), "fingerprint": "f", "kernel": '{"name":"rbf"}'}
        | {"C": 1.0, "fit_intercept": False, "reference_primal": 100.0, "reference_gap": 1e-4}
        | {"reference_hash": "r"}
        | columns
        for seed, status in rows
    ]
    return pd.DataFrame(found)


@pytest.mark.parametrize(
    ("before", "after", "outcome", "mirrored"),
    [
        ("converged", "budget", "compared", "compared"),
        ("converged", "crashed", "failed in B", "failed in A"),
        ("skipped", "timeout", "failed in B", "failed in A"),
        ("converged", "damaged", "no record in B", "no record in A"),
        ("skipped", "skipped", "skipped in both", "skipped in both"),
        ("converged", "skipped", "skipped in B", "skipped in A"),
        ("converged", None, "gone", "new"),
        ("failed", None, "failed in A", "failed in B"),
    ],
)
def test_every_run_has_an_outcome_and_it_mirrors(before, after, outcome, mirrored):
    other = runs((0, "converged"))
    a, b = (
        pd.concat([other.assign(task="other"), runs((0, status)) if status else runs()])
        for status in (before, after)
    )
    there, back = paired(a, b), paired(b, a)
    assert there.set_index("task")["outcome"].to_dict() == {"other": "compared", "a": outcome}
    assert back.set_index("task")["outcome"]["a"] == mirrored


def test_seeds_of_one_side_alone_are_listed_and_reasons_of_failures_kept():
    found = paired(runs((0, "budget"), (1, "budget")), runs((1, "budget"), (2, "budget")))
    pairs = list(zip(found["seed"], found["outcome"], strict=True))
    assert pairs == [(0, "gone"), (1, "compared"), (2, "new")]
    found = paired(runs((0, "failed"), reason="no"), runs((0, "wrong")))
    assert found["why"].item() == "failed: no; wrong"
    same = runs((0, "skipped"), reason="no bias")
    assert paired(same, same)["why"].item() == "skipped: no bias"


def test_another_problem_is_named_and_another_certificate_or_rounding_is_none():
    plain = runs((0, "budget"))
    for fields, words in (
        ({"fingerprint": "g"}, "data"),
        ({"kernel": '{"name":"rbf","gamma":3}'}, "kernel"),
        ({"C": 5.0, "fit_intercept": True}, "C, bias"),
        ({"C": None}, "C"),
        ({"reference_primal": 99.0, "reference_hash": "s"}, "reference optimum"),
    ):
        found = paired(plain, runs((0, "budget"), **fields))
        assert found[["outcome", "why"]].values.tolist() == [["problem differs", words]]
    exact = {"reference_gap": -1.4e-14}
    rounded = {"reference_gap": 0.0, "reference_primal": 100.0 + 1e-12}
    for before, after, same in (
        ({}, {"reference_primal": 100.00005, "reference_hash": "s"}, False),
        ({}, {"kernel": '{ "name": "rbf" }'}, True),
        (exact, exact, True),
        (exact, rounded, False),
    ):
        found = paired(runs((0, "budget"), **before), runs((0, "budget"), **after))
        assert found[["outcome", "same_reference"]].values.tolist() == [["compared", same]]


def test_the_only_run_of_a_solver_that_draws_nothing_stands_beside_every_seed():
    single, many = runs((0, "converged")), runs((0, "budget"), (1, "budget"), (2, "failed"))
    found = paired(spread_single_runs(single, many), many)
    assert list(found["outcome"]) == ["compared", "compared", "failed in B"]
    assert list(found["seed_a"]) == [0, 0, 0]
    assert list(found["seed_b"]) == [0, 1, 2]
    assert list(paired(single, many)["outcome"])[1:] == [
        *("new", "failed in B"),
    ]


def test_solvers_that_differ_alike_are_told_at_once():
    both = [Difference(name, "version", "1", "2") for name in "ST"]
    own = Difference("S", "params.tol", "1", "2")
    table = differences_table([*both, own], "Solvers")
    assert [[cell.value for cell in row] for row in table.rows] == [
        ["S, T", "version", "1", "2"],
        ["S", "params.tol", "1", "2"],
    ]
    setting = differences_table([Difference("", "processor", "1", "2")], "Environments")
    assert [cell.value for cell in setting.rows[0]] == ["processor", "1", "2"]
