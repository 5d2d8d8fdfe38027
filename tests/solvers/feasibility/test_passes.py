"""Compiled passes over blocks of columns against NumPy."""

import numpy as np
import pytest

from marginbench.solvers.feasibility import passes
from marginbench.solvers.feasibility.passes import smooth


def storages(A):
    return {"rows": np.ascontiguousarray(A), "columns": np.asfortranarray(A)}


@pytest.mark.parametrize("rows", [True, False])
def test_blocks_fit_the_cache(rows):
    for m in (1, 100, 1000, 10**6):
        width = passes.block_width(m, 8, rows=rows)
        assert 16 <= width <= 512
        assert width % 8 == 0
    assert passes.block_width(100, 8, rows=rows) >= passes.block_width(1000, 8, rows=rows)


@pytest.mark.parametrize("storage", ["rows", "columns"])
@pytest.mark.parametrize("mu", [10.0, 1.0, 1e-3, 1e-12])
def test_smoothed_weights_are_the_softmax(storage, mu):
    rng = np.random.default_rng(550)
    A, y = rng.standard_normal((5, 50)), rng.standard_normal(5)
    weights, images = np.empty(50), np.empty((1, 5))
    low = smooth(storages(A)[storage], y[None], mu, weights, images, 8)
    s = y @ A
    expected = np.exp(-(s - s.min()) / mu)
    expected /= expected.sum()
    np.testing.assert_allclose(low, s.min(), rtol=1e-14)
    # An exponent of size s / mu carries an error of that size times the rounding unit.
    atol = 1e-14 * max(1.0, np.ptp(s) / mu) if mu > 1e-9 else 1e-3
    np.testing.assert_allclose(weights, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(images[0], A @ weights, rtol=0, atol=1e-12)
    assert weights.sum() == pytest.approx(1, rel=1e-13)
