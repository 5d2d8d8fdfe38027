"""Intervals of test errors and of their differences, against published and hand-computed cases."""

import numpy as np
import pytest
from scipy.stats import binomtest

from marginbench.harness.results.svm import packed, unpacked
from marginbench.reports import analysis
from marginbench.reports.statistics.errors import SolverErrors, difference, error_interval


def fourfold(both, only_first, only_second, neither):
    """The mistakes of two solvers with these counts, one run each."""
    first = np.repeat([True, True, False, False], (both, only_first, only_second, neither))
    second = np.repeat([True, False, True, False], (both, only_first, only_second, neither))
    return tuple(
        SolverErrors(np.array([mask.mean()]), len(mask), mask[None]) for mask in (first, second)
    )


def test_intervals_of_paired_differences_are_those_published():
    # Newcombe (1998), Table III, method 10: e, f, g, h of n.
    for counts, interval in (
        ((36, 12, 2, 0), (0.0569, 0.3404)),
        ((18, 12, 2, 18), (0.0562, 0.3290)),
    ):
        found = difference(*fourfold(*counts))
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


def test_a_solver_with_some_of_the_folds_is_told_from_the_best(make, results_of):
    records = [
        make.finished(
            "a", solver, seed, make.trace([10], [wrong / 100]),
            mistakes=packed(np.arange(100) < wrong), n_test=100, fingerprint=str(seed) * 64,
        )
        for solver, wrong, folds in (("Best", 3, 5), ("Half", 40, 2), ("Close", 4, 2))
        for seed in range(folds)
    ]  # fmt: skip
    best = analysis.errors(results_of(records, {"a": {"folds": 5}})).set_index("solver")["best"]
    assert best.to_dict() == {"Best": True, "Half": False, "Close": True}


def test_folds_are_one_test_of_all_their_points(make, results_of):
    rng = np.random.default_rng(5)
    masks = [rng.random(n) < 0.2 for n in (40, 40, 39)]
    records = [
        make.finished(
            "a", "One", seed, make.trace([10], [mask.mean()]), mistakes=packed(mask),
            n_test=len(mask), fingerprint=str(seed) * 64,
        )
        for seed, mask in enumerate([*masks, masks[0]])
    ]  # fmt: skip
    results = results_of(records, {"a": {"folds": 3}})
    found = analysis.errors(results).set_index("solver").loc["One"]
    whole = np.concatenate(masks)
    exact = binomtest(int(whole.sum()), 119).proportion_ci(0.95, method="wilson")
    expected = (whole.mean(), exact.low, exact.high)
    assert found[["value", "low", "high"]].tolist() == pytest.approx(expected)
    # The fourth run tests points again that have been tested.
    row = analysis.table(results).set_index("measure").loc["test_error"]
    rates = [mask.mean() for mask in masks]
    assert (row["n"], row["median"]) == (3, pytest.approx(np.median(rates)))
