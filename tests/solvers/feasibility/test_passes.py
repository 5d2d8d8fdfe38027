"""Compiled products and exponentials against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import sparse

from marginbench.solvers.feasibility import passes
from marginbench.solvers.feasibility.passes import exponentials, smooth

# Shapes with and without a remainder of the fourfold loops.
SHAPES = [(1, 1), (4, 8), (7, 13), (9, 6)]
TOLERANCE = {"float64": 1e-13, "float32": 1e-5}


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    return request.param


def matrix(m, n, dtype):
    rng = np.random.default_rng(m * 100 + n)
    A = rng.standard_normal((m, n)).astype(dtype)
    return A, *(rng.standard_normal(k).astype(dtype) for k in (m, m, n, n))


def storages(A):
    S = sparse.csc_matrix(A, dtype=np.float64)
    return {
        "rows": np.ascontiguousarray(A),
        "columns": np.asfortranarray(A),
        "sparse": (S.data, S.indices, S.indptr),
    }


@njit()
def all_products(A, lo, hi, y, z, out, out_y, out_z, x, w, image, image_x, image_w):
    passes.dot(A, lo, hi, y, out)
    passes.dot2(A, lo, hi, y, z, out_y, out_z)
    passes.add(A, lo, hi, x, image)
    passes.add2(A, lo, hi, x, w, image_x, image_w)


@pytest.mark.parametrize("storage", ["rows", "columns", "sparse"])
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_products_of_a_block_of_columns(storage, m, n, dtype):
    A, y, z, x, w = matrix(m, n, dtype)
    near = {"rtol": 0, "atol": TOLERANCE[dtype] * 10}
    lo, hi = n // 3, n
    part = A[:, lo:hi].astype(np.float64)
    out = [np.full(n, np.nan, dtype) for _ in range(3)]
    image = [np.ones(m) for _ in range(3)]
    x, w = x[lo:hi], w[lo:hi]
    x[::2] = 0
    all_products(storages(A)[storage], lo, hi, y, z, *out, x, w, *image)
    for found, vector in zip(out, (y, y, z), strict=True):
        np.testing.assert_allclose(found[: hi - lo], vector.astype(float) @ part, **near)
    # They add to what is there.
    for found, vector in zip(image, (x, x, w), strict=True):
        np.testing.assert_allclose(found, 1 + part @ vector.astype(float), **near)


@pytest.mark.parametrize("rows", [True, False])
def test_blocks_fit_the_cache(rows):
    for m in (1, 100, 1000, 10**6):
        width = passes.block_width(m, 8, rows=rows)
        assert 16 <= width <= 512
        assert width % 8 == 0
    assert passes.block_width(100, 8, rows=rows) >= passes.block_width(1000, 8, rows=rows)


def test_exponentials_are_right_to_the_last_digits():
    exponents = np.concatenate([np.linspace(-707, 600, 20_001), [0.0, -1e-300, 1e-9]])
    values = exponents.copy()
    exponentials(values)
    np.testing.assert_allclose(values, np.exp(exponents), rtol=4e-16)
    tiny = np.array([-710.0, -1e5, -np.inf])
    exponentials(tiny)
    assert (tiny > 0).all()
    assert (tiny < 1e-300).all()


@pytest.mark.parametrize("storage", ["rows", "columns", "sparse"])
@pytest.mark.parametrize("mu", [10.0, 1.0, 1e-3, 1e-12])
def test_smoothed_weights_are_the_softmax(storage, mu):
    A, y, *_ = matrix(5, 50, "float64")
    weights, image = np.empty(50), np.empty(5)
    low = smooth(storages(A)[storage], y, mu, weights, image, 8)
    s = y @ A
    expected = np.exp(-(s - s.min()) / mu)
    expected /= expected.sum()
    np.testing.assert_allclose(low, s.min(), rtol=1e-14)
    # An exponent of size s / mu carries an error of that size times the rounding unit.
    atol = 1e-14 * max(1.0, np.ptp(s) / mu) if mu > 1e-9 else 1e-3
    np.testing.assert_allclose(weights, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(image, A @ weights, rtol=0, atol=1e-12)
    assert weights.sum() == pytest.approx(1, rel=1e-13)
