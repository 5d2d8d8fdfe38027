"""The generators of feasibility problems keep what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.data_loaders import DataError, lap, ldfp

SHAPES = [(3, 50), (40, 15), (1, 4)]


@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("kappa", [1.0, 5.0, 0.5])
def test_the_given_vector_separates_the_columns_of_ldfp(m, n, kappa):
    instance = ldfp(m, n, kappa, seed=3)
    assert instance.A.shape == (m, n)
    assert instance.A.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(instance.A, axis=0), 1, rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(instance.y), 1, rtol=1e-14)
    assert (instance.y @ instance.A).min() > 0
    assert instance.x is None


@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("kappa", [1.0, 5.0])
def test_the_given_weights_combine_the_columns_of_lap_to_zero(m, n, kappa):
    instance = lap(m, n, seed=3, kappa=kappa)
    np.testing.assert_allclose(np.linalg.norm(instance.A, axis=0), 1, rtol=1e-14)
    assert instance.x.min() >= 0
    assert instance.x.sum() == pytest.approx(1, rel=1e-14)
    assert np.linalg.norm(instance.A @ instance.x) <= 1e-14 * max(m, n)
    assert instance.y is None


def test_kappa_multiplies_the_component_along_the_separator():
    plain, stretched = ldfp(6, 30, 1.0, seed=1), ldfp(6, 30, 4.0, seed=1)
    np.testing.assert_array_equal(plain.y, stretched.y)
    along = plain.y @ plain.A
    expected = plain.A + 3 * np.outer(plain.y, along)
    expected /= np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(stretched.A, expected, rtol=0, atol=1e-14)
    assert (stretched.y @ stretched.A).min() > (plain.y @ plain.A).min()


def test_with_kappa_one_columns_are_uniform_on_a_half_sphere():
    instance = ldfp(3, 20_000, seed=0)
    along = instance.y @ instance.A
    # In three dimensions the height on the sphere is uniform; standard deviation of the mean .002.
    np.testing.assert_allclose(along.mean(), 0.5, atol=0.01)
    np.testing.assert_allclose(np.quantile(along, [0.1, 0.9]), [0.1, 0.9], atol=0.02)


def test_kappa_flattens_the_columns_of_lap():
    spread = [
        np.linalg.svd(lap(5, 2000, seed=0, kappa=kappa).A, compute_uv=False)[-1]
        for kappa in (1.0, 10.0)
    ]
    assert spread[1] < 0.2 * spread[0]


@pytest.mark.parametrize("generate", [ldfp, lap])
def test_the_seed_decides(generate):
    np.testing.assert_array_equal(generate(4, 9, seed=2).A, generate(4, 9, seed=2).A)
    assert not np.array_equal(generate(4, 9, seed=2).A, generate(4, 9, seed=3).A)


@pytest.mark.parametrize(
    ("generate", "params", "message"),
    [
        (ldfp, {"m": 0, "n": 5}, r"ldfp: m must be a whole number >= 1, got 0"),
        (ldfp, {"m": 2, "n": 2.5}, r"ldfp: n must be a whole number >= 1, got 2.5"),
        (ldfp, {"m": 2, "n": 5, "seed": -1}, r"ldfp: seed must be a whole number >= 0, got -1"),
        (ldfp, {"m": 2, "n": 5, "kappa": 0}, r"ldfp: kappa must be a finite number > 0, got 0"),
        (lap, {"m": 2, "n": 5, "kappa": np.inf}, r"lap: kappa must be a finite number > 0"),
        (lap, {"m": 2, "n": 1}, r"lap: n must be 2 or more, got 1"),
    ],
)
def test_a_parameter_out_of_range_is_named(generate, params, message):
    with pytest.raises(DataError, match=message):
        generate(**params)
