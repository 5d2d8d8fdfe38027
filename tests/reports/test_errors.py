"""Intervals of test errors and of their differences, against published and hand-computed cases."""

import numpy as np
import pytest
from scipy.stats import binomtest

from marginbench.harness.results.svm import packed, unpacked
from marginbench.reports import analysis
from marginbench.reports.statistics.errors import SolverErrors, difference, error_interval


def test_intervals_of_paired_differences_are_those_published():
    # Newcombe (1998), Table III, method 10: e, f, g, h, the mistakes of both, the first, the second
    # and neither.
    for counts, interval in (
        ((36, 12, 2, 0), (0.0569, 0.3404)),
        ((18, 12, 2, 18), (0.0562, 0.3290)),
    ):
        masks = (np.repeat(each, counts) for each in ([1, 1, 0, 0], [1, 0, 1, 0]))
        both = [SolverErrors(np.array([m.mean()]), len(m), m[None] > 0) for m in masks]
        found = difference(*both)
        assert (found.low, found.high) == pytest.approx(interval, abs=1e-4)


def test_seeds_that_differ_widen_the_interval_within_proportions():
    one = error_interval(SolverErrors(np.array([0.1]), 1000))
    same = error_interval(SolverErrors(np.array([0.1, 0.1, 0.1]), 1000))
    spread = error_interval(SolverErrors(np.array([0.05, 0.1, 0.15]), 1000))
    assert (one.low, one.high) == pytest.approx((same.low, same.high))
    # The t interval of the mean of three: 4.303 * 0.05 / sqrt(3) = 0.1242.
    assert spread.high == pytest.approx(0.1 + np.hypot(one.high - 0.1, 0.1242), abs=1e-4)
    assert spread.low == 0.0
    wide = error_interval(SolverErrors(np.array([4 / 18, 1 / 18]), 18, None))
    assert (wide.low, wide.high) == (0.0, 1.0)


@pytest.mark.parametrize("n", [1, 8, 1001])
def test_mistakes_come_back(n):
    mask = np.random.default_rng(n).random(n) < 0.3
    assert np.array_equal(unpacked(packed(mask), n), mask)
    for text, length in ((packed(mask), n + 8), ("", n), ("no base64!", n), ("AAAA", n)):
        assert unpacked(text, length) is None


def test_bold_are_all_who_cannot_be_told_from_the_best(make, results_of):
    records = [make.record("a", "Lucky", 1, status="crashed")]
    for solver, wrong in (("Best", 3), ("Close", 5), ("Far", 30), ("Lucky", 1)):
        mask = np.arange(200) < wrong
        trace = make.trace([10], [mask.mean()])
        records.append(make.finished("a", solver, 0, trace, mistakes=packed(mask)))
    table = analysis.table(results_of(records))
    errors = table[table["measure"] == "test_error"].set_index("solver")
    assert errors["best"].to_dict() == {"Best": True, "Close": True, "Far": False, "Lucky": False}
    exact = binomtest(3, 200).proportion_ci(0.95, method="wilson")
    assert errors.loc["Best", ["low", "high"]].tolist() == pytest.approx([exact.low, exact.high])


def test_folds_are_one_test_of_all_their_points_of_which_a_solver_may_have_some(make, results_of):
    # Test points and mistakes of each fold; the sixth run tests points again.
    folds = {
        "Best": [(100, 1), (100, 3), (100, 4), (100, 5), (60, 9), (100, 1)],
        "Half": [(100, 40), (100, 40)],
        "Close": [(100, 4), (100, 4)],
    }
    records = [
        make.finished(
            "a", solver, seed, make.trace([10], [wrong / n]),
            mistakes=packed(np.arange(n) < wrong), n_test=n, fingerprint=str(seed) * 64,
        )
        for solver, runs in folds.items()
        for seed, (n, wrong) in enumerate(runs)
    ]  # fmt: skip
    results = results_of(records, {"a": {"folds": 5}})
    errors = analysis.errors(results).set_index("solver")
    assert errors["best"].to_dict() == {"Best": True, "Half": False, "Close": True}
    exact = binomtest(22, 460).proportion_ci(0.95, method="wilson")
    expected = (22 / 460, exact.low, exact.high)
    assert errors.loc["Best", ["value", "low", "high"]].tolist() == pytest.approx(expected)
    row = analysis.table(results).set_index(["measure", "solver"]).loc[("test_error", "Best")]
    assert (row["n"], row["median"]) == (5, 0.04)
