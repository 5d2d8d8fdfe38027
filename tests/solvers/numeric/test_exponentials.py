"""The exponential and logarithm of compiled loops against longer numbers."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.solvers.numeric.compiling import njit
from marginbench.solvers.numeric.exponentials import exponential, log_of_one_plus


@njit(error_model="numpy")
def each_exponential(values, out):
    for i in range(len(values)):
        out[i] = exponential(values[i])


@njit(error_model="numpy")
def each_logarithm(values, out):
    for i in range(len(values)):
        out[i] = log_of_one_plus(values[i])


def units_off(loop, reference, values):
    """The largest error, in units of the last place of the right number."""
    out = np.empty_like(values)
    loop(values, out)
    right = reference(values.astype(np.longdouble))
    return (np.abs(out - right) / np.spacing(right.astype(np.float64))).max()


@pytest.fixture(scope="module")
def draws():
    return np.random.default_rng(0)


def test_exponentials_of_all_sizes(draws):
    small = 10.0 ** draws.uniform(-300, 2.8, 20_000)
    values = np.concatenate([draws.uniform(-708, 600, 100_000), small, -small, [0.0, -0.0]])
    assert units_off(each_exponential, np.exp, values) < 1.5


def test_logarithms_of_all_sizes(draws):
    near = np.sqrt(2.0) - 1.0 + 1e-14 * draws.standard_normal(1000)
    parts = [draws.random(100_000), 10.0 ** draws.uniform(-300, 0, 20_000), near, [1.0, 1e-300]]
    assert units_off(each_logarithm, np.log1p, np.concatenate(parts)) < 2.5


def test_numbers_out_of_range():
    values = np.array([-708.1, -1e308, -np.inf, np.nan])
    out = np.empty(4)
    each_exponential(values, out)
    np.testing.assert_array_equal(out[:3], np.full(3, out[0]))
    assert 0 < out[0] < 1e-307
    assert np.isnan(out[3])
    each_logarithm(np.array([0.0, np.nan]), out[:2])
    np.testing.assert_array_equal(out[:2], [0.0, np.nan])
