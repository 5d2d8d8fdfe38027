"""The checkers generator."""

import numpy as np
import pytest

from marginbench.data_loaders import DataError, load


def cells(X: np.ndarray) -> np.ndarray:
    return np.floor(X + 2).astype(int)


def test_without_noise_every_cell_has_its_share_and_its_colour():
    data = load("checkers", {"n_train": 1600, "n_test": 100, "noise": 0})
    for X, y, n in ((data.X_train, data.y_train, 1600), (data.X_test, data.y_test, 100)):
        assert X.shape == (n, 2)
        assert X.dtype == np.float64
        assert y.dtype == np.int8
        cell = cells(X)
        assert cell.min() == 0
        assert cell.max() == 3
        counts = np.bincount(cell[:, 0] * 4 + cell[:, 1], minlength=16)
        assert counts.sum() == n
        assert counts.max() - counts.min() == (n % 16 > 0)
        np.testing.assert_array_equal(y, np.where(cell.sum(axis=1) % 2 == 0, 1, -1))
        assert abs(y.sum()) <= 1


def test_points_fill_their_cells_uniformly():
    X = load("checkers", {"n_train": 16000, "n_test": 16, "noise": 0}).X_train
    within = X + 2 - cells(X)
    for low in np.arange(0, 1, 0.1):
        share = np.mean((within >= low) & (within < low + 0.1), axis=0)
        # Standard deviation of a share: sqrt(.1 * .9 / 16000) = .0024.
        np.testing.assert_allclose(share, 0.1, atol=0.012)


def test_noise_moves_points_after_they_are_labelled():
    params = {"n_train": 16000, "n_test": 16}
    noisy = load("checkers", {**params, "noise": 0.02})
    clean = load("checkers", {**params, "noise": 0.0})
    moves = noisy.X_train - clean.X_train
    np.testing.assert_array_equal(noisy.y_train, clean.y_train)
    # Standard error of a standard deviation from 32000 draws: .4 %; of the mean: .00011.
    assert moves.std() == pytest.approx(0.02, rel=0.02)
    assert abs(moves.mean()) < 0.0006
    np.testing.assert_allclose(np.corrcoef(moves.T)[0, 1], 0, atol=0.04)
    # Some have crossed the border of their cell and kept their label.
    crossed = np.where(cells(noisy.X_train).sum(axis=1) % 2 == 0, 1, -1) != noisy.y_train
    assert 0.005 < crossed.mean() < 0.08


def test_the_order_of_the_rows_says_nothing():
    y = load("checkers", {"n_train": 16000, "n_test": 16}).y_train.astype(float)
    assert abs(np.mean(y[1:] * y[:-1])) < 0.05
    assert abs(np.mean(y[:8000])) < 0.05


def test_seed_and_sizes():
    small = load("checkers", {"n_train": 160, "n_test": 320, "seed": 3})
    again = load("checkers", {"n_train": 160.0, "n_test": np.int64(320), "seed": 3})
    large = load("checkers", {"n_train": 1600, "n_test": 320, "seed": 3})
    other = load("checkers", {"n_train": 160, "n_test": 320, "seed": 4})
    assert small.fingerprint == again.fingerprint
    assert small.params == again.params == {"n_train": 160, "n_test": 320, "seed": 3, "noise": 0.02}
    np.testing.assert_array_equal(small.X_test, large.X_test)
    assert not np.array_equal(small.X_test, other.X_test)
    assert not np.array_equal(small.X_train, small.X_test[:160])


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"n_train": 15}, "n_train must be between 16 and 100000000"),
        ({"n_train": 16 * 10**9}, "and 100000000, got 16000000000"),
        ({"n_train": 16.5}, "n_train must be an integer, got 16.5"),
        ({"n_train": "many"}, "n_train must be an integer, got 'many'"),
        ({"n_train": True}, "n_train must be an integer, got True"),
        ({"n_train": float("nan")}, "n_train must be an integer, got nan"),
        ({"n_train": None}, "n_train must be an integer, got None"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"seed": 0.5}, "seed must be an integer, got 0.5"),
        ({"noise": float("nan")}, "noise must be a finite number, 0 or more, got nan"),
        ({"noise": "loud"}, "noise must be a finite number, 0 or more, got 'loud'"),
        ({"noise": False}, "noise must be a finite number, 0 or more, got False"),
        ({"n_trian": 16}, "unknown parameter 'n_trian' (did you mean 'n_train'?)"),
        ({"sigma": 1}, "unknown parameter 'sigma' (known: n_train, n_test, seed, noise)"),
    ],
)
def test_wrong_parameters_are_named(params, complaint):
    with pytest.raises(DataError) as caught:
        load("checkers", params)
    assert str(caught.value).startswith("checkers: ")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
