"""Two basins that share the water: against exact arithmetic and duality."""

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from marginbench.solvers.sbp.two_basins import basin_state, fill, two_basin_level

EPS = np.finfo(np.float64).eps


def assert_are_levels(levels, positives, negatives, volume):
    """All the water comes out again, and a distribution bounds the level by the same value."""
    u, v = Fraction(float(levels.positive)), Fraction(float(levels.negative))
    n, k = len(positives) + len(negatives), levels.rank
    assert levels.level == (levels.positive + levels.negative) / 2
    assert levels.bias == (levels.negative - levels.positive) / 2
    a, d = np.sort(positives), np.sort(negatives)
    depth = max(float(u + v) - a[0] - d[0], volume)
    allowed = 4 * EPS * (max(abs(float(u)), abs(float(v)), abs(float(u + v))) + n * depth)
    poured = sum(max(Fraction(0), u - Fraction(float(h))) for h in positives)
    poured += sum(max(Fraction(0), v - Fraction(float(h))) for h in negatives)
    assert abs(float(poured - Fraction(float(volume)))) <= n * allowed
    # p'c + V max p for p uniform on the k lowest of each class, SBP12 eq. 3.9.
    lowest = sum(Fraction(float(h)) for h in (*a[:k], *d[:k]))
    assert abs(float((lowest + Fraction(float(volume))) / k - u - v)) <= allowed


height_arrays = st.lists(
    st.one_of(st.floats(-1, 1), st.floats(-1e3, 1e3), st.sampled_from([-0.5, 0.0, 0.25])),
    min_size=1,
    max_size=60,
).map(np.array)
volumes = st.one_of(st.just(0.0), st.floats(1e-11, 1e2))


@given(positives=height_arrays, negatives=height_arrays, volume=volumes)
@settings(max_examples=300, deadline=None)
def test_levels_are_exact(positives, negatives, volume):
    before = positives.copy(), negatives.copy()
    levels = two_basin_level(positives, negatives, volume)
    assert_are_levels(levels, positives, negatives, volume)
    np.testing.assert_array_equal(positives, before[0])
    np.testing.assert_array_equal(negatives, before[1])


def test_of_several_optimal_biases_it_is_the_middle_one():
    # The first of each class covered: u in [1, 1.25] leaves v = 3.25 - u between 2 and 2.25.
    levels = two_basin_level(np.array([1.0, 5.0]), np.array([2.0, 7.0]), 0.25)
    assert levels == (1.125, 2.125, 1)
    # The first iteration: the water stands over the three positives alone, whose number ends k.
    levels = two_basin_level(np.zeros(3), np.zeros(10), 0.75)
    assert levels == (0.25, 0.0, 3)


@pytest.mark.parametrize("pull", [1.0, -1.0])
@pytest.mark.parametrize(
    ("volume", "grid", "most"),
    # Windows around the levels before find them, but for ties.
    [(0.0, None, 9), (1e-7, None, 9), (40.0, None, 85), (4000.0, None, 65), (12.0, 8, 400)],
)
def test_levels_of_moving_heights_are_those_of_selection(volume, pull, grid, most):
    # Heights like responses: each step moves all, some classes together, one point most.
    rng, n = np.random.default_rng(5), 1500
    moved, positive = np.zeros(n), rng.random(n) < 0.3
    basins = basin_state(positive, volume)
    for t in range(1, 401):
        # On a grid there are ties.
        heights = moved if grid is None else np.round(moved * grid) / grid
        fill(basins, heights)
        standing = basins.standing
        found = [standing[name] for name in ("last_positive", "last_negative")]
        tied = [standing[name] for name in ("tied_positive", "tied_negative")]
        expected = two_basin_level(heights[positive], heights[~positive], volume)
        if standing["rank"] != expected.rank:
            # Where the water just reaches the next points, rounding decides.
            assert abs(standing["rank"] - expected.rank) == 1
        else:
            ordered = [np.sort(heights[positive == label]) for label in (True, False)]
            k = expected.rank
            assert found == [of_class[k - 1] for of_class in ordered]
            assert tied == [np.sum(h <= h[k - 1]) > k for h in ordered]
        step = 1 / np.sqrt(t)
        moved = moved + step * rng.uniform(0.2, 0.4, n) * np.where(positive, 1, pull)
        moved[rng.integers(n)] += step
        if t % 3 == 0:
            moved = moved / (1 + step)
    assert basins.standing["n_selections"] <= most


@pytest.mark.parametrize("order", ["rising", "falling", "hill", "equal", "two values"])
def test_selection_takes_linear_time_whatever_the_order(order):
    n = 40_000
    shuffled = np.random.default_rng(0).permutation(n).astype(float)
    half = np.arange(0.0, n, 2)
    heights = {
        "rising": np.arange(float(n)),
        "falling": np.arange(float(n))[::-1].copy(),
        "hill": np.r_[half, half[::-1]],
        "equal": np.zeros(n),
        "two values": np.r_[np.ones(n // 2), np.zeros(n // 2)],
    }[order]

    def fastest(heights):
        times = []
        for _ in range(3):
            start = time.thread_time()
            two_basin_level(heights, heights, 100.0 * n)
            times.append(time.thread_time() - start)
        return min(times)

    assert fastest(heights) < 60 * fastest(shuffled)
