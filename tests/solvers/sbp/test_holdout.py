"""Holding out a part of the training set, and seeing when the error there stops falling."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.solvers import KernelOracle
from marginbench.solvers.sbp.holdout import Split, Stabilisation

Y = np.where(np.arange(50) % 5 == 0, 1.0, -1.0)


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5, 0.9])
def test_each_class_is_held_out_by_its_part(fraction):
    split = Split(Y, fraction, np.random.default_rng(0))
    assert sorted(split.order) == list(range(50))
    np.testing.assert_array_equal(split.y, Y[split.order])
    held_out = split.y[split.n_train :]
    assert (held_out > 0).sum() == round(fraction * 10)
    assert (held_out < 0).sum() == round(fraction * 40)
    # Either part keeps the order of the data.
    assert (np.diff(split.order[: split.n_train]) > 0).all()
    assert (np.diff(split.order[split.n_train :]) > 0).all()
    other = Split(Y, fraction, np.random.default_rng(1))
    assert not np.array_equal(split.order, other.order)


def test_the_order_and_back():
    split = Split(Y, 0.3, np.random.default_rng(0))
    values = np.arange(50.0)
    np.testing.assert_array_equal(split.reorder(values), values[split.order])
    np.testing.assert_array_equal(split.restore(split.reorder(values)), values)
    np.testing.assert_array_equal(split.positions(np.array([3, 49])), split.order[[3, 49]])
    X = np.random.default_rng(2).standard_normal((50, 2))
    oracle = KernelOracle("linear", X, "float64")
    row = split.row(oracle, 7, lambda count: np.array([7, 8]))
    np.testing.assert_allclose(row, (X @ X.T)[split.order[7], split.order])
    assert oracle.counters.kernel_evals == 50


def test_nothing_held_out_leaves_everything_as_it_is():
    rng = np.random.default_rng(3)
    split = Split(Y, 0.0, rng)
    assert split.order is None
    assert split.n_train == 50
    values = np.arange(50.0)
    assert split.reorder(values) is values
    assert split.restore(values) is values
    assert rng.random() == np.random.default_rng(3).random()


def test_fractions_that_leave_nothing_are_refused():
    with pytest.raises(ValueError, match=r"validation_fraction=0\.001 holds out none of 50 points"):
        Split(Y, 0.001, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"validation_fraction=0\.96 holds out all 10 points"):
        Split(Y, 0.96, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("errors", "patience", "checks"),
    [
        ([0.5, 0.4, 0.4, 0.4, 0.1], 2, 4),
        ([0.5, 0.6, 0.4, 0.5, 0.3, 0.3, 0.3], 2, 7),
        ([0.1, 0.2], 1, 2),
        ([0.4, 0.3, 0.2, 0.1], 1, None),
        ([0.4, 0.4, 0.4], 3, None),
    ],
)
def test_errors_have_stabilised_without_a_new_lowest(errors, patience, checks):
    watch = Stabilisation(patience)
    for number, error in enumerate(errors, start=1):
        if watch.add(error):
            assert number == checks
            break
    else:
        assert checks is None
    assert watch.errors == errors[:checks]
