"""Verdicts on changes, on solvers and on tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginbench.reports.comparison.change import (
    adjusted,
    change,
    combined,
    judged,
    of_cell,
    of_tasks,
)

NAN, INF = math.nan, math.inf


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
        ([10], [INF], "worsening"),
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
    assert verdict_on([10, 10], [INF, INF], bound=100.0).beyond
    assert not verdict_on([10, 10], [INF, INF], bound=INF).beyond
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
    def on(n, low, high, each="no difference told", unchanged=(1.0, 1.0)):
        return of_tasks([each] * n, low, high, unchanged=unchanged, n=n)

    assert on(6, 1.2, 1.4) == "worsening"
    assert on(5, 1.2, 1.4) == "no difference told"
    assert on(6, 0.7, 0.9) == "improvement"
    assert on(6, 0.9, 1.4) == "no difference told"
    assert on(6, 1.05, 1.4, unchanged=(1 / 1.1, 1.1)) == "no difference told"
    assert on(6, 1.2, 1.4, each="advice") == "advice"
    mixed = ["identical", "advice"]
    assert of_tasks(mixed, NAN, NAN, unchanged=(1.0, 1.0), n=1) == "advice"
    assert on(6, -0.02, -0.01, unchanged=(0.0, 0.0)) == "improvement"


def test_chance_alone_is_seldom_told_and_a_factor_of_two_is():
    """Of 60 comparisons of 20 values without a change one in twenty may have any verdict."""
    rng = np.random.default_rng(0)

    def told(factor: float, n_changed: int) -> list[int]:
        counts = []
        for _ in range(60):
            noise = rng.lognormal(sigma=0.05, size=(2, 20, 3))
            noise[1, :n_changed] *= factor
            changes = [change(a, b) for a, b in zip(*noise, strict=True)]
            q = adjusted([each.p for each in changes])
            found = [judged(*each, bound=1.05).verdict for each in zip(changes, q, strict=True)]
            counts.append(sum(verdict == "worsening" for verdict in found[: n_changed or None]))
            counts[-1] += sum(verdict == "improvement" for verdict in found) if not n_changed else 0
        return counts

    # Binomial: more than 9 of 60 at 5 % have p < 0.001.
    assert sum(count > 0 for count in told(1.0, 0)) <= 9
    assert np.mean(told(2.0, 4)) > 0.75 * 4
