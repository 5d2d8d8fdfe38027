"""Ratios of timings: against the definition, and how often the interval holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from marginbench.reports.comparison.ratios import ratio_of_samples


def test_the_median_of_all_ratios():
    before, after = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.0, 3.0, 5.0, 7.0, 11.0, 13.0]
    found = ratio_of_samples(before, after)
    assert found is not None
    every = sorted(b / a for a in before for b in after)
    # Of an even number the mean of the two in the middle, of logarithms.
    assert found.ratio == pytest.approx(np.sqrt(every[17] * every[18]))
    assert found.low in [pytest.approx(each) for each in every]
    assert found.n == (6, 6)


def test_too_few_samples_say_nothing():
    assert ratio_of_samples([1.0] * 5, [1.0] * 4) is None
    assert ratio_of_samples([], []) is None


def test_the_fewest_samples_tell_only_what_all_of_them_tell():
    before = [1.0, 1.1, 1.2, 1.3, 1.4]
    told = ratio_of_samples(before, [1.5, 1.6, 1.7, 1.8, 1.9])
    assert told is not None
    assert told.told
    assert (told.low, told.high) == (pytest.approx(1.5 / 1.4), pytest.approx(1.9))
    crossing = ratio_of_samples(before, [1.35, 1.6, 1.7, 1.8, 1.9])
    assert crossing is not None
    assert not crossing.told


@pytest.mark.parametrize(("n", "m"), [(5, 5), (5, 6), (7, 5), (9, 8), (12, 12)])
def test_the_interval_agrees_with_the_exact_test_of_mann_and_whitney(n, m):
    rng = np.random.RandomState(n)
    told = 0
    for _ in range(200):
        before, after = rng.lognormal(0, 0.1, n), rng.lognormal(0.15, 0.1, m)
        found = ratio_of_samples(before, after)
        p = mannwhitneyu(before, after, method="exact").pvalue
        assert found is not None
        assert found.told == (p <= 0.01)
        told += found.told
    assert 0 < told < 200


def test_the_interval_holds_in_99_of_100():
    rng = np.random.RandomState(1)
    held = 0
    for _ in range(1000):
        found = ratio_of_samples(rng.lognormal(0, 0.2, 5), rng.lognormal(np.log(1.5), 0.2, 5))
        assert found is not None
        held += found.low <= 1.5 <= found.high
    # 992 expected (two of 252 orders miss it) with a deviation of 2.8.
    assert 983 <= held < 1000
