"""The streams of SBP's draws: their definition, looking ahead, coverage at ties."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.solvers.sbp.draws import Covered, DrawStream, OneBasinDraws, TwoBasinDraws

POSITIVE = np.arange(12) % 3 == 0
EVERYTHING = Covered(np.inf, 12, np.inf, 12)
HEIGHTS = np.random.default_rng(0).standard_normal(12)


def test_candidates_are_uniform_and_rejected_one_by_one():
    rng = np.random.default_rng(1)
    candidates = np.random.default_rng(1).integers(12, size=5000)
    taken = candidates[HEIGHTS[candidates] <= HEIGHTS[4]]
    stream = DrawStream(rng, 12)
    covered = Covered(HEIGHTS[4], 12, HEIGHTS[4], 12)
    assert [stream.take(HEIGHTS, POSITIVE, covered) for _ in taken] == taken.tolist()


def test_a_stream_of_some_points_draws_no_others():
    members = np.flatnonzero(POSITIVE)
    candidates = members[np.random.default_rng(2).integers(len(members), size=3000)]
    stream = DrawStream(np.random.default_rng(2), members)
    drawn = [stream.take(HEIGHTS, POSITIVE, EVERYTHING) for _ in range(3000)]
    assert drawn == candidates.tolist()
    assert set(drawn) == set(members.tolist())


@pytest.mark.parametrize("k", [0, 1, 7, 1024, 1025, 4000])
def test_looking_ahead_changes_no_draw(k):
    plain, watched = (DrawStream(np.random.default_rng(3), 12) for _ in range(2))
    covered = Covered(HEIGHTS[5], 12, HEIGHTS[5], 12)
    for _ in range(700):
        seen = watched.upcoming(k)
        assert len(seen) == k
        i = watched.take(HEIGHTS, POSITIVE, covered)
        assert i == plain.take(HEIGHTS, POSITIVE, covered)
        below = seen[HEIGHTS[seen] <= HEIGHTS[5]]
        if len(below):
            assert i == below[0]
    np.testing.assert_array_equal(plain.upcoming(5000), watched.upcoming(5000))


def test_what_is_upcoming_cannot_be_changed_from_outside():
    stream = DrawStream(np.random.default_rng(4), 12)
    seen = stream.upcoming(50)
    expected = seen.copy()
    seen[:] = 0
    np.testing.assert_array_equal(stream.upcoming(50), expected)


def test_looking_ahead_in_one_class_changes_nothing_in_the_other():
    def draws(look):
        sampler = TwoBasinDraws(np.random.default_rng(5), POSITIVE, 1.0, pairs=True)
        drawn = []
        for t in range(300):
            for stream in sampler.streams[:look]:
                stream.upcoming(37 * t)
            drawn.append(sampler.draw(HEIGHTS))
        return drawn

    assert draws(0) == draws(1) == draws(2)


@pytest.mark.parametrize(
    ("heights", "volume", "at_or_under", "under"),
    [
        # Level 1: exactly the height of the third point.
        ([0.0, 0.5, 1.0, 2.0], 1.5, {0, 1, 2}, {0, 1}),
        # No water: the lowest points, although none is under them.
        ([0.5, 0.5, 1.0, 2.0], 0.0, {0, 1}, {0, 1}),
        # So little water that it does not raise the level.
        ([0.5, 1.0, 0.5, 0.5], 1e-30, {0, 2, 3}, {0, 2, 3}),
        ([0.0, 0.0, 0.0, 0.0], 1.0, {0, 1, 2, 3}, {0, 1, 2, 3}),
    ],
)
def test_ties_without_bias(heights, volume, at_or_under, under):
    heights = np.array(heights)
    for strict, expected in ((False, at_or_under), (True, under)):
        sampler = OneBasinDraws(np.random.default_rng(6), heights > 0, volume, strict=strict)
        drawn = [sampler.draw(heights) for _ in range(300)]
        assert {i for (i,) in drawn} == expected


def chi_square(drawn, support):
    counts = np.array([np.sum(np.array(drawn) == i) for i in support])
    expected = len(drawn) / len(support)
    assert counts.sum() == len(drawn)
    return ((counts - expected) ** 2 / expected).sum()


def test_draws_are_uniform_over_the_k_lowest_of_each_class():
    rng = np.random.default_rng(7)
    heights, positive = rng.standard_normal(60), np.arange(60) % 3 == 0
    sampler = TwoBasinDraws(rng, positive, 8.0, pairs=True)
    drawn = np.array([sampler.draw(heights) for _ in range(4000)])
    k = len(set(drawn[:, 0]))
    assert 4 < k < 15
    for column, members in zip(
        drawn.T, (np.flatnonzero(positive), np.flatnonzero(~positive)), strict=True
    ):
        lowest = members[np.argsort(heights[members])[:k]]
        # Mean k - 1; far below what a point with twice the probability would give.
        assert chi_square(column, lowest) < k - 1 + 5 * np.sqrt(2 * (k - 1))
    # Independent of each other: no pair stands out.
    assert chi_square(drawn[:, 0] * 60 + drawn[:, 1], np.unique(drawn[:, 0] * 60 + drawn[:, 1])) < (
        k * k + 5 * np.sqrt(2 * k * k)
    )


def test_single_draws_are_uniform_over_the_covered_points_of_both_classes():
    rng = np.random.default_rng(8)
    heights, positive = rng.standard_normal(60), np.arange(60) % 3 == 0
    pairs = TwoBasinDraws(rng, positive, 8.0, pairs=True)
    covered = set(np.array([pairs.draw(heights) for _ in range(2000)]).ravel())
    single = TwoBasinDraws(rng, positive, 8.0, pairs=False)
    drawn = np.array([single.draw(heights) for _ in range(4000)]).ravel()
    assert chi_square(drawn, sorted(covered)) < len(covered) - 1 + 5 * np.sqrt(2 * len(covered))


def test_at_a_tie_the_first_points_are_covered():
    positive = np.array([True, False, False, True, False, False, False])
    heights = np.array([0.0, 3.0, 1.0, 0.0, 1.0, 1.0, 0.5])
    # k = 2: both positives, and of the negatives the one at 0.5 and the first of three at 1.
    sampler = TwoBasinDraws(np.random.default_rng(9), positive, 3.0, pairs=True)
    drawn = [sampler.draw(heights) for _ in range(200)]
    assert {i for i, _ in drawn} == {0, 3}
    assert {j for _, j in drawn} == {2, 6}


def test_at_the_start_the_smaller_class_is_covered():
    positive = np.arange(30) >= 26
    for labels in (positive, ~positive):
        sampler = TwoBasinDraws(np.random.default_rng(10), labels, 0.3, pairs=True)
        drawn = np.array([sampler.draw(np.zeros(30)) for _ in range(300)])
        smaller, larger = (0, 1) if labels.sum() == 4 else (1, 0)
        assert set(drawn[:, smaller]) == {26, 27, 28, 29}
        assert set(drawn[:, larger]) == {0, 1, 2, 3}


def test_the_level_is_that_of_its_argument_not_of_the_draws():
    sampler = TwoBasinDraws(np.random.default_rng(11), POSITIVE, 2.0, pairs=True)
    fresh = TwoBasinDraws(np.random.default_rng(12), POSITIVE, 2.0, pairs=True)
    for shift in (0.0, 3.0, -1.0):
        sampler.draw(HEIGHTS + shift)
        assert sampler.level(HEIGHTS) == fresh.level(HEIGHTS)
