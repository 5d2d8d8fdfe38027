"""The exponential and logarithm of compiled loops against longer numbers."""

import numba
import numpy as np
import pytest

from marginbench.solvers.numeric.exponential import exponential, log_of_one_plus

each_exponential = numba.vectorize(lambda value: exponential(value))
each_logarithm = numba.vectorize(lambda value: log_of_one_plus(value))


@pytest.mark.parametrize(
    ("dtype", "lowest", "highest"), [("float32", -87.3, 0.0), ("float64", -708.0, 600.0)]
)
def test_exponentials_are_exact_to_two_units_of_rounding(dtype, lowest, highest):
    small = 10.0 ** np.linspace(-30, 0, 1000)
    exponents = np.r_[np.linspace(lowest, highest, 100_001), -small, 0.0].astype(dtype)
    found, expected = each_exponential(exponents), np.exp(exponents.astype(np.longdouble))
    assert found.dtype == dtype
    assert np.abs(found / expected - 1).max() < 2 * np.finfo(dtype).eps
    assert found[-1] == 1
    with np.errstate(invalid="ignore"):
        assert np.isnan(each_exponential(np.array([np.nan], dtype)))
    assert not each_exponential(np.array([10 * lowest, -np.finfo(dtype).max, -np.inf], dtype)).any()


def test_logarithms_of_all_sizes():
    rng = np.random.default_rng(0)
    near = np.sqrt(2.0) - 1.0 + 1e-14 * rng.standard_normal(1000)
    parts = [rng.random(100_000), 10.0 ** rng.uniform(-300, 0, 20_000), near, [1.0, 1e-300]]
    values = np.concatenate(parts)
    right = np.log1p(values.astype(np.longdouble))
    errors = np.abs(each_logarithm(values) - right)
    assert (errors / np.spacing(right.astype(np.float64))).max() < 2.5
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(each_logarithm(np.array([0.0, np.nan])), [0.0, np.nan])
