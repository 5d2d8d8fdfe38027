"""The generator of points on either side of a quadric."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from marginbench.data_loaders import DataError, load
from marginbench.data_loaders.datasets.quadric import DEFAULTS, check_parameters

SMALL = {"n_train": 20_000, "n_test": 5000, "n_features": 6, "flipped": 0.2}


def sides(X):
    squares = X.astype(np.float64) ** 2
    half = X.shape[1] // 2
    return np.where(squares[:, :half].sum(axis=1) > squares[:, half:].sum(axis=1), 1, -1)


def test_labels_are_those_of_the_quadric_except_for_the_flipped_ones():
    data = load("quadric", SMALL)
    for X, y, n in ((data.X_train, data.y_train, 20_000), (data.X_test, data.y_test, 5000)):
        assert X.shape == (n, 6)
        assert X.dtype == np.float32
        assert np.abs(X).max() <= 1
        # Five standard deviations of a share.
        noise = 5 * np.sqrt(0.25 / n)
        assert np.mean(y != sides(X)) == pytest.approx(0.2, abs=noise)
        assert np.mean(y == 1) == pytest.approx(0.5, abs=noise)
    assert (load("quadric", {**SMALL, "flipped": 0}).y_test == sides(data.X_test)).all()


def test_flips_do_not_depend_on_the_point():
    data = load("quadric", SMALL)
    wrong = data.y_train != sides(data.X_train)
    near = np.abs(data.X_train[:, 0]) < 0.5
    assert wrong[near].mean() == pytest.approx(wrong[~near].mean(), abs=0.03)


def test_a_hyperplane_learns_nothing_but_squares_do():
    data = load("quadric", SMALL)

    def error(features):
        model = LinearRegression().fit(features(data.X_train), data.y_train)
        return np.mean(np.sign(model.predict(features(data.X_test))) != data.y_test)

    assert error(np.asarray) > 0.45
    assert error(np.square) == pytest.approx(0.2, abs=0.02)


def test_the_test_part_depends_on_the_seed_alone():
    first, larger, other = (
        load("quadric", {**SMALL, **changed}) for changed in ({}, {"n_train": 30_000}, {"seed": 1})
    )
    np.testing.assert_array_equal(first.X_test, larger.X_test)
    np.testing.assert_array_equal(first.y_test, larger.y_test)
    assert (first.X_test != other.X_test).any()
    assert (first.X_test != first.X_train[:5000]).any()


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("n_features", 5, "n_features must be even, got 5"),
        ("n_features", 0, "n_features must be between 2 and"),
        ("flipped", 0.5, "flipped must be a number, at least 0 and less than 0.5, got 0.5"),
        ("flipped", "none", "flipped must be a number"),
        ("flipped", float("nan"), "flipped must be a number"),
        ("n_test", 1, "n_test must be between 2 and"),
        ("seed", -1, "seed must be 0 or more"),
    ],
)
def test_parameters_out_of_range_are_refused(key, value, words):
    with pytest.raises(DataError, match=words):
        check_parameters({**DEFAULTS, key: value})
