"""The generator of points like documents."""

import math
import tracemalloc

import numpy as np
import pytest

from marginbench.data_loaders import DataError, load
from marginbench.data_loaders.datasets import random_text
from marginbench.data_loaders.datasets.random_text import DEFAULTS, check_parameters, read

SMALL = {"n_train": 3000, "n_test": 1000, "n_features": 2000, "density": 0.02}


def test_points_are_sparse_unit_rows_of_the_density_asked_for():
    data = load("random-text", SMALL)
    for X, y, n in ((data.X_train, data.y_train, 3000), (data.X_test, data.y_test, 1000)):
        assert X.shape == (n, 2000)
        assert X.dtype == np.float32
        assert y.dtype == np.int8
        assert set(np.unique(y)) == {-1, 1}
        assert X.has_canonical_format
        assert (X.data > 0).all()
        np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0, rtol=1e-5)
        # The number of words of a document varies by less than its square root.
        assert X.nnz / (n * 2000) == pytest.approx(0.02, rel=0.02)


def test_few_words_are_frequent_and_many_are_rare():
    X = load("random-text", {**SMALL, "n_train": 20_000}).X_train
    share = np.bincount(X.indices, minlength=2000) / 20_000
    # Drawn with probability 1 / (rank log n): ten times the rank is a tenth of the share.
    assert share[0] > 0.9
    assert share[100:110].mean() / share[1000:1100].mean() == pytest.approx(10.0, rel=0.1)
    frequent, rare = (X[:, columns].sum() / X[:, columns].nnz for columns in ([0], slice(500, 600)))
    assert rare > 10 * frequent


def test_defaults_have_the_shape_that_the_paper_prints():
    assert check_parameters(DEFAULTS) == DEFAULTS
    X = read({}, {**DEFAULTS, "n_train": 2000, "n_test": 2}).train.X
    assert X.shape[1] == 99_757
    assert X.nnz / 2000 == pytest.approx(0.0008 * 99_757, rel=0.02)


def test_labels_can_be_learnt_but_not_without_errors():
    data = load("random-text", {**SMALL, "n_train": 10_000, "n_features": 500})
    X, y = data.X_train.astype(np.float64), data.y_train
    w = np.linalg.lstsq(X.toarray(), y, rcond=None)[0]
    error = np.mean(np.where(data.X_test @ w > 0, 1, -1) != data.y_test)
    assert 0.03 < error < 0.2
    assert abs(y.mean()) < 0.5


def test_noise_turns_the_labels_of_points_near_the_boundary(monkeypatch):
    params = {**DEFAULTS, "n_train": 20_000, "n_test": 2, "n_features": 500, "density": 0.05}
    noisy = read({}, params).train
    monkeypatch.setattr(random_text, "_NOISE", 0.0)
    exact = read({}, params).train
    assert (noisy.X != exact.X).nnz == 0
    # Normal scores of variance about one, with noise of deviation 0.2.
    assert np.mean(noisy.y != exact.y) == pytest.approx(math.atan(0.2) / math.pi, rel=0.2)


def test_seed_and_sizes():
    first = load("random-text", {**SMALL, "seed": 3})
    again = load("random-text", {**SMALL, "n_train": 3000.0, "seed": np.int64(3)})
    larger = load("random-text", {**SMALL, "n_train": 12_000, "seed": 3})
    other = load("random-text", {**SMALL, "seed": 4})
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.params == {**SMALL, "seed": 3}
    assert abs(first.X_test - larger.X_test).nnz == 0
    np.testing.assert_array_equal(first.y_test, larger.y_test)
    assert abs(first.X_test - first.X_train[:1000]).nnz > 0


def test_memory_is_a_small_multiple_of_the_points():
    params = {**DEFAULTS, **SMALL, "n_train": 100_000, "n_test": 2}
    tracemalloc.start()
    content = read({}, params)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    X = content.train.X
    assert peak <= 3 * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"density": 0.6}, "density must be a number between 1 / n_features = 1e-05 and 0.5"),
        ({"density": 1e-6}, "got 1e-06"),
        ({"density": True}, "got True"),
        ({"n_trian": 16}, "unknown parameter 'n_trian' (did you mean 'n_train'?)"),
    ],
)
def test_wrong_parameters_are_named(params, complaint):
    with pytest.raises(DataError) as caught:
        load("random-text", {"n_features": 100_000, **params})
    assert str(caught.value).startswith("random-text: ")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
