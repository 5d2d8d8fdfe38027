"""Changes over paired runs, against cases computed by hand, and the verdicts on them."""

import math

import numpy as np
import pytest

from marginbench.reports.comparison.change import (
    adjusted,
    change,
    combined,
    error_change,
    judged,
    mean_over_tasks,
    of_cell,
    of_tasks,
)
from marginbench.reports.statistics.errors import SolverErrors

NAN, INF = math.nan, math.inf


def changed(before, after, **options):
    return change(np.array(before, dtype=float), np.array(after, dtype=float), **options)


def test_the_interval_is_that_of_the_t_distribution_on_logarithms():
    # Logarithms of the ratios: 0, log 2, log 4; their mean is log 2, the error of it
    # log 2 / sqrt(3), and t(0.975; 2) = 4.3027.
    found = changed([10, 10, 10], [10, 20, 40])
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert found.mean == pytest.approx(2.0)
    assert found.median == pytest.approx(2.0)
    assert (found.low, found.high) == pytest.approx((2 * math.exp(-half), 2 * math.exp(half)))
    # t = sqrt(3); with two degrees of freedom p = 1 - t / sqrt(t**2 + 2).
    assert found.p == pytest.approx(1 - math.sqrt(3 / 5))
    assert (found.before, found.after, found.n) == (10.0, 20.0, 3)


def test_equal_values_are_identical_and_have_a_ratio_of_1():
    found = changed([3, 5, 7], [3, 5, 7])
    assert found.identical
    assert (found.mean, found.low, found.high, found.p) == (1.0, 1.0, 1.0, 1.0)


def test_one_run_that_stands_in_many_pairs_is_one():
    found = changed([2, 2, 2], [3, 4, 5], n_runs=1)
    assert np.isnan([found.low, found.high, found.p]).all()
    assert (found.n, found.n_runs) == (3, 1)


def test_exact_values_have_their_range():
    found = changed([10, 10], [20, 5], exact=True)
    assert (found.low, found.high) == pytest.approx((0.5, 2.0))
    assert math.isnan(found.p)


def test_a_zero_makes_differences_of_all_pairs():
    found = changed([0, 10, 20], [5, 12, 20])
    assert found.scale == "difference"
    assert (found.mean, found.median) == pytest.approx((7 / 3, 2.0))
    # Their deviation is sqrt(19 / 3).
    half = 4.302653 * math.sqrt(19 / 3) / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((7 / 3 - half, 7 / 3 + half))


def test_unknown_values_are_in_no_pair_and_are_counted():
    found = changed([NAN, 10, 10, NAN], [5, NAN, 20, NAN])
    assert (found.n, found.n_unknown) == (1, 2)
    assert found.mean == pytest.approx(2.0)
    assert not changed([10, NAN], [10, 5]).identical
    assert changed([NAN], [NAN]).n == 0


def test_never_on_one_side_is_lost_or_gained():
    found = changed([10, 10, INF, INF], [INF, 20, INF, 30])
    assert (found.lost, found.gained) == (1, 1)
    assert (found.reached_before, found.reached_after) == (2, 2)
    assert found.mean == pytest.approx(2.0)
    never = changed([10, 20], [INF, INF])
    assert never.after == INF
    assert math.isnan(never.mean)
    assert changed([INF, INF], [INF, INF]).identical


def test_a_change_within_the_band_is_no_evidence():
    assert changed([10, 10, 10], [10.8, 10.9, 10.7], band=1.1).p == 1.0
    # log 2 beyond log 1.1, without any spread.
    assert changed([10, 10, 10], [20, 20, 20], band=1.1).p == pytest.approx(0.0)


def test_b_against_a_mirrors_a_against_b():
    a, b = [3, 5, 9, 2], [4, 5, 3, 8]
    there, back = changed(a, b, band=1.05), changed(b, a, band=1.05)
    assert back.mean == pytest.approx(1 / there.mean)
    assert back.median == pytest.approx(1 / there.median)
    assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low))
    assert back.p == pytest.approx(there.p)


def errors(*masks):
    mistakes = np.array(masks, dtype=bool)
    return SolverErrors(mistakes.mean(axis=1), mistakes.shape[1], mistakes)


def test_errors_on_the_same_points_are_identical_and_on_others_are_not():
    mask = np.arange(100) < 5
    same = error_change(errors(mask), errors(mask), n=1, by_chance=False)
    assert same.identical
    assert (same.mean, same.p) == (0.0, 1.0)
    other = error_change(errors(mask), errors(np.roll(mask, 50)), n=1, by_chance=False)
    assert other.mean == 0.0
    assert not other.identical


def test_the_p_of_a_difference_agrees_with_its_interval():
    a = np.arange(400) < 20
    for wrong in (24, 30, 34, 60):
        found = error_change(errors(a), errors(np.arange(400) < wrong), n=1, by_chance=False)
        assert (found.p < 0.05) == (found.low > 0), wrong
    assert found.mean == pytest.approx(0.1)


def test_errors_of_one_seed_of_a_solver_that_draws_have_no_interval():
    a, b = errors(np.arange(100) < 5), errors(np.arange(100) < 50)
    assert math.isnan(error_change(a, b, n=1, by_chance=True).low)
    assert error_change(a, b, n=1, by_chance=False).low > 0


def test_the_mean_over_tasks_is_geometric_with_an_interval_from_three_on():
    mean, low, high, p = mean_over_tasks(np.array([2.0, 8.0]), "ratio")
    assert mean == pytest.approx(4.0)
    assert np.isnan([low, high, p]).all()
    mean, low, high, p = mean_over_tasks(np.array([1.0, 2.0, 4.0]), "ratio")
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert (mean, low, high) == pytest.approx((2.0, 2 * math.exp(-half), 2 * math.exp(half)))
    assert p == pytest.approx(1 - math.sqrt(3 / 5))
    back = mean_over_tasks(np.array([1.0, 0.5, 0.25]), "ratio")
    assert back == pytest.approx((1 / mean, 1 / high, 1 / low, p))
    assert mean_over_tasks(np.array([1.1, 1.1, 1.1]), "ratio", 1.2)[3] == 1.0
    assert mean_over_tasks(np.array([0.01, -0.01]), "difference")[0] == pytest.approx(0.0)
    assert np.isnan(mean_over_tasks(np.array([]), "ratio")).all()


def verdict_on(before, after, *, exact=False, band=1.0, bound=1.05, **options):
    values = np.array(before, dtype=float), np.array(after, dtype=float)
    found = change(*values, exact=exact, band=band)
    return judged(found, found.p, bound=bound, band=band, **options)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([10, 20, 30], [10, 20, 30], "identical"),
        ([10, 20, 30], [20, 41, 61], "worsening"),
        ([20, 41, 61], [10, 20, 30], "improvement"),
        ([10, 20, 30], [20, 10, 33], "no difference told"),
        ([10], [100], "no difference told"),
        ([NAN], [5], "not compared"),
        ([], [], "not compared"),
        ([0, 0, 0], [50, 51, 52], "worsening"),
        ([10], [INF], "no difference told"),
        ([10, 10], [INF, INF], "no difference told"),
        ([10, 10, 10], [INF, INF, INF], "worsening"),
        ([INF, INF, INF], [10, 10, 10], "improvement"),
        ([10, 10, 10], [INF, 10, 10], "no difference told"),
        # One-sided in six of seven pairs: p = 2 / 64.
        ([10] * 7, [INF] * 6 + [10], "worsening"),
        ([10] * 6, [INF] * 5 + [10], "no difference told"),
        ([INF, INF], [INF, INF], "identical"),
    ],
)
def test_what_is_by_chance_is_told_from_a_change(before, after, verdict):
    assert verdict_on(before, after).verdict == verdict


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([100], [101], "worsening"),
        ([100], [99], "improvement"),
        ([100, 100], [90, 110], "mixed"),
        ([100, 100], [100, 110], "worsening"),
        ([100, 100], [INF, 100], "worsening"),
        ([100, INF], [INF, 100], "mixed"),
        ([100, 100], [INF, 90], "mixed"),
    ],
)
def test_of_exact_values_every_change_is_told(before, after, verdict):
    assert verdict_on(before, after, exact=True).verdict == verdict


def test_the_band_holds_for_exact_values_too():
    assert verdict_on([100], [115], exact=True, band=1.19).verdict == "no difference told"
    assert verdict_on([100], [120], exact=True, band=1.19).verdict == "worsening"


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


def test_nothing_is_said_in_favour_of_a_side_with_failures():
    slow, fast = [20, 20, 20], [10, 10, 10]
    assert verdict_on(slow, fast, incomplete="B").verdict == "advice"
    assert verdict_on(fast, slow, incomplete="B").verdict == "worsening"
    assert verdict_on(fast, slow, incomplete="A").verdict == "advice"
    assert verdict_on(slow, fast, incomplete="A").verdict == "improvement"


def test_what_is_advice_has_no_verdict_unless_it_is_identical():
    assert verdict_on([10, 10, 10], [90, 90, 90], advice="two machines").verdict == "advice"
    assert verdict_on([10, 10, 10], [10, 10, 10], advice="two machines").verdict == "identical"


def test_p_values_allow_for_their_number():
    # Benjamini and Hochberg: p * n / rank, made monotone from the largest down.
    assert adjusted([0.01, 0.04, NAN, 0.03]) == pytest.approx([0.03, 0.04, NAN, 0.04], nan_ok=True)
    assert np.isnan(adjusted([NAN, NAN])).all()


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (["identical", "identical"], "identical"),
        (["identical", "advice"], "no difference told"),
        (["advice"], "advice"),
        (["improvement", "no difference told"], "improvement"),
        (["improvement", "worsening"], "mixed"),
        (["worsening", "not compared"], "worsening"),
        ([], "not compared"),
    ],
)
def test_verdicts_combine(verdicts, verdict):
    assert combined(verdicts) == verdict


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ({"compared": 3}, "improvement"),
        ({"compared": 2, "gone": 1}, "improvement"),
        ({"compared": 2, "failed in A": 1}, "failed"),
        ({"failed in both": 3}, "failed"),
        ({"new": 3}, "new"),
        ({"gone": 3}, "gone"),
        ({"skipped in B": 3}, "skipped"),
        ({"problem differs": 3}, "not compared"),
        ({"no record in B": 3}, "no record"),
    ],
)
def test_a_cell_is_what_became_of_its_runs(outcomes, verdict):
    measures = ["improvement"] if "compared" in outcomes else []
    assert of_cell(measures, outcomes) == verdict


def test_a_mean_over_tasks_decides_from_six_tasks_on():
    def on(n, low, high, each="no difference told", unchanged=(1.0, 1.0), q=0.04):
        return of_tasks([each] * n, low, high, q, unchanged=unchanged, n=n)

    assert on(6, 1.2, 1.4) == "worsening"
    assert on(5, 1.2, 1.4) == "no difference told"
    assert on(6, 0.7, 0.9) == "improvement"
    assert on(6, 1.2, 1.4, q=0.06) == "no difference told"
    assert on(6, 1.2, 1.4, q=NAN) == "no difference told"
    assert on(6, 1.2, 1.4, each="advice") == "advice"
    # Single tasks against the mean of all.
    assert on(3, 1.2, 1.4, each="improvement") == "mixed"
    assert on(3, 0.6, 0.8, each="worsening") == "mixed"
    assert on(3, 0.9, 1.4, each="improvement") == "improvement"
    mixed = ["identical", "advice"]
    assert of_tasks(mixed, NAN, NAN, NAN, unchanged=(1.0, 1.0), n=1) == "advice"
    assert on(6, -0.02, -0.01, unchanged=(0.0, 0.0)) == "improvement"
