"""Steps and blips of series whose levels are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginbench.reports.regressions.measures import watched
from marginbench.reports.regressions.steps import FEWEST_PAIRS, Step, counted, noise, noisy

COUNT = watched("evaluations")  # its bound is 1 %
TIME = watched("time_fit", "seconds")  # its bound is 10 %


@pytest.mark.parametrize(
    ("values", "steps", "blips"),
    [
        ([], [], set()),
        ([None, None], [], set()),
        ([100], [], set()),
        ([100, 100, 100], [], set()),
        ([100, 101, 100], [], set()),  # within the bound
        ([100, 120], [(1, 100, 120)], set()),  # the newest commit cannot be a blip yet
        ([100, 120, 120], [(1, 100, 120)], set()),
        ([100, 50, 50, 80], [(1, 100, 50), (3, 50, 80)], set()),
        ([100, 150, 100], [], {1}),
        ([100, 150, 100.5, 100], [], {1}),  # back within the bound
        ([100, 150, 100, 150, 100], [], {1, 3}),
        ([100, 150, 120, 120], [(1, 100, 150), (2, 150, 120)], set()),  # not back
        ([100, 0, 100], [], {1}),
        ([0, 0, 3], [(2, 0, 3)], set()),
        ([100, None, 150, None, 100], [], {2}),  # gaps hide no blip
        ([None, 100, None, None, 150, 150], [(4, 100, 150)], set()),
        ([100, 150, None], [(1, 100, 150)], set()),
    ],
)
def test_counts_have_a_step_at_every_lasting_change_beyond_the_bound(values, steps, blips):
    found = counted(values, COUNT)
    assert list(found.steps) == steps
    assert found.blips == blips


def test_a_creeping_count_has_a_step_where_it_has_left_its_level():
    ramp = [1000 * 1.004**place for place in range(7)]
    # 1.004^3 is the first power above 1.01; from there it takes three more.
    assert [step.place for step in counted(ramp, COUNT).steps] == [3, 6]


def wobbling(levels: list[tuple[float, int]], *, seed: int = 0) -> list[float | None]:
    """Values within 3 % of levels, each for some commits."""
    rng = np.random.RandomState(seed)
    return [level * rng.uniform(0.97, 1.03) for level, n in levels for _ in range(n)]


@pytest.mark.parametrize(
    ("levels", "places"),
    [
        ([(1.0, 30)], []),
        ([(1.0, 10), (1.5, 10)], [10]),
        ([(1.5, 5), (1.0, 5)], [5]),
        ([(1.0, 4), (1.5, 4)], [4]),
        ([(1.0, 3), (1.5, 3)], []),  # too few to be told
        ([(1.0, 10), (1.05, 10)], []),  # told apart, and within the bound
        ([(1.0, 12), (2.0, 12), (1.0, 12)], [12, 24]),
        ([(1.0, 10), (1.3, 10), (1.7, 10)], [10, 20]),
    ],
)
def test_times_have_steps_where_ranks_and_medians_differ(levels, places):
    for seed in range(5):
        found = noisy(wobbling(levels, seed=seed), TIME)
        assert [step.place for step in found.steps] == places
        assert found.blips == frozenset()


def test_the_levels_of_a_step_in_times_are_medians():
    values = [1.0, 1.1, 0.9, 1.0, 1.0, 2.0, 2.2, 1.8, 2.0, 2.0]
    assert noisy(values, TIME).steps == (Step(5, 1.0, 2.0),)


def test_outliers_and_gaps_make_no_step_in_times_and_hide_none():
    values = wobbling([(1.0, 20), (2.0, 20)])
    values[3], values[28] = 9.0, 0.1
    values[6:8] = [None, None]
    assert [step.place for step in noisy(values, TIME).steps] == [20]


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 5.0], [1.0] * 20, [None] * 9])
def test_short_and_constant_times_have_no_step(values):
    assert noisy(values, TIME).steps == ()


def test_a_steady_drift_in_times_is_told_as_steps_of_one_direction():
    steps = noisy([1.05**place for place in range(24)], TIME).steps
    assert steps
    assert all(step.after > step.before for step in steps)


def test_five_commits_after_five_are_told_among_ten():
    # Completely separate: the rank sum of the first five is 15 and 27.5 expected, its standard
    # deviation sqrt(25 * 11 / 12) = 4.79, so z = 2.61 and p = 0.009; there are three possible cuts,
    # and 3 * 0.009 is below 0.05.
    low, high = [1.0, 1.01, 1.02, 1.03, 1.04], [1.5, 1.51, 1.52, 1.53, 1.54]
    assert [step.place for step in noisy([*low, *high], TIME).steps] == [5]
    # Two of either side change places: the rank sum of the first five is 1+2+4+5+8 = 20 or more.
    mixed = [1.0, 1.01, 1.52, 1.03, 1.51, 1.5, 1.04, 1.02, 1.53, 1.54]
    assert noisy(mixed, TIME).steps == ()


def test_noise_is_the_upper_fence_of_what_neighbours_differ_by():
    logs = [0.01, -0.02, 0.03, -0.01, 0.02, -0.03, 0.01, -0.01]
    values = list(np.exp(np.cumsum([0.0, *logs])))
    # Sorted: 1 1 1 1 2 2 3 3 (per cent); the quartiles are 1 and 2.25.
    assert noise(values) == pytest.approx(math.expm1(0.0225 + 3 * 0.0125))
    assert len(logs) == FEWEST_PAIRS
    assert noise(values[:-1]) == 0.0


def test_a_step_adds_nothing_to_the_noise():
    quiet = [1.0, 1.01] * 5
    loud = [2.0, 2.02] * 5
    step = Step(10, 1.0, 2.0)
    assert noise([*quiet, *loud], [step]) == pytest.approx(0.01, rel=1e-9)


def test_noise_passes_over_zeros_and_gaps():
    assert noise([0.0, None, 1.0, 1.0, 0.0] * 6) == 0.0
