"""Ratios of timings: against the definition, and how often the interval holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from marginbench.reports.regressions.samples import ratio


def test_the_median_of_all_ratios():
    before, after = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.0, 3.0, 5.0, 7.0, 11.0, 13.0]
    found = ratio(before, after)
    assert found is not None
    every = sorted(b / a for a in before for b in after)
    # Of an even number the mean of the two in the middle, of logarithms.
    assert found.ratio == pytest.approx(np.sqrt(every[17] * every[18]))
    assert found.low in [pytest.approx(each) for each in every]
    assert found.n == (6, 6)


def test_too_few_samples_say_nothing():
    assert ratio([1.0] * 6, [1.0] * 5) is None
    assert ratio([], []) is None


def test_the_interval_agrees_with_the_test_of_mann_and_whitney():
    rng = np.random.RandomState(0)
    agreed = 0
    for _ in range(200):
        before, after = rng.lognormal(0, 0.1, 12), rng.lognormal(0.08, 0.1, 12)
        found = ratio(before, after)
        p = mannwhitneyu(before, after, method="asymptotic", use_continuity=False).pvalue
        assert found is not None
        agreed += found.told == (p < 0.05)
    # They differ only where p is within one rank of 0.05.
    assert agreed >= 190


def test_the_interval_holds_in_95_of_100():
    rng = np.random.RandomState(1)
    held = 0
    for _ in range(400):
        found = ratio(rng.lognormal(0, 0.2, 9), rng.lognormal(np.log(1.5), 0.2, 9))
        assert found is not None
        held += found.low <= 1.5 <= found.high
    # 380 expected with a deviation of 4.4.
    assert 360 <= held <= 396
