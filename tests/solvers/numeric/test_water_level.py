"""The water level against exact arithmetic, and what it costs."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from marginbench.solvers.numeric.water_level import volume_below, water_level

EPS = np.finfo(np.float64).eps


def level_by_sorting(heights, volume):
    """The first (V + S_k) / k that does not reach the next height, in rational arithmetic."""
    ordered = sorted(Fraction(float(h)) for h in heights)
    volume, total = Fraction(float(volume)), Fraction(0)
    if volume == 0:
        return ordered[0]
    for k, height in enumerate(ordered, start=1):
        total += height
        level = (volume + total) / k
        if k == len(ordered) or level <= ordered[k]:
            return level
    raise AssertionError("unreachable")


def assert_is_level(level, heights, volume):
    """Right to rounding, of the level itself and of its height over the lowest point."""
    exact = level_by_sorting(heights, volume)
    depth = exact - Fraction(float(np.min(heights)))
    allowed = 2 * EPS * abs(float(exact)) + 4 * EPS * len(heights) * float(depth)
    assert abs(float(Fraction(float(level)) - exact)) <= allowed


@given(
    heights=st.lists(
        st.one_of(st.floats(-1, 1), st.sampled_from([-0.5, 0.0, 0.25])), min_size=1, max_size=30
    ),
    volume=st.one_of(st.just(0.0), st.floats(1e-11, 1e3)),
    guess=st.one_of(st.just(0.0), st.floats(-1e8, 1e8)),
)
@settings(max_examples=300, deadline=None)
def test_level_is_the_sort_formulas(heights, volume, guess):
    assert_is_level(water_level(np.array(heights), volume, guess), heights, volume)


ADVERSARIAL = {
    "falling": 2.0 ** -np.arange(300.0),
    "rising": 2.0 ** np.arange(-300.0, 0.0),
    "repeated": 3.0 ** -np.arange(40.0).repeat(5),
    "two values": np.r_[np.zeros(30), np.ones(30)],
    "hill": np.r_[np.arange(50.0), np.arange(50.0)[::-1]],
    "far away": np.arange(50.0) / 64 - 2.0**20,
    "tiny": 10.0 ** np.random.default_rng(0).uniform(-300, -18, 3),
}


@pytest.mark.parametrize("heights", ADVERSARIAL.values(), ids=ADVERSARIAL)
def test_adversarial_heights(heights):
    for volume in (1e-300, 1e-60, 1e-11, 1e-3, 1.0, 1e3):
        # Also with a guess so far away that the first steps are all rounding.
        for guess in (-1e3, 0.0, 1e-16, 1e3):
            level = water_level(heights, volume, guess)
            assert_is_level(level, heights, volume)
            # Some point is always covered.
            assert level >= heights.min()


@pytest.mark.parametrize("volume", [1e-3, 1e4])
def test_a_warm_level_takes_a_few_passes(volume, monkeypatch):
    passes = []

    def counted(heights, level):
        passes.append(level)
        return volume_below(heights, level)

    monkeypatch.setitem(water_level.py_func.__globals__, "volume_below", counted)
    heights = np.random.default_rng(0).standard_normal(20_000)
    moved = heights + 1e-4 * np.random.default_rng(1).standard_normal(len(heights))
    water_level.py_func(moved, volume, water_level(heights, volume, 0.0))
    assert 1 < len(passes) <= 4
