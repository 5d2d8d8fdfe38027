"""From raw content to what solvers see, and the splits."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from marginbench.data_loaders import content as content_module, transforms
from marginbench.data_loaders.content import Content, Part


def raw(store=np.array) -> Content:
    rng = np.random.default_rng(3)

    def part(n: int) -> Part:
        X = rng.normal(3, 50, (n, 4)) * (rng.random((n, 4)) < 0.7)
        X[:, 2] = np.arange(n) if n < 50 else 5  # constant in the training part only
        return Part(store(X), np.where(np.arange(n) % 3 == 0, 1, -1).astype(np.int64))

    return Content(part(60), part(20))


def dense(part: Part) -> np.ndarray:
    return part.X if isinstance(part.X, np.ndarray) else part.X.toarray()


@pytest.mark.parametrize("store", [np.array, csr_matrix])
@pytest.mark.parametrize(
    ("scale", "scaler"),
    [
        ("minmax", MinMaxScaler((-1, 1))),
        ("unit", MinMaxScaler((0, 1))),
        ("standard", StandardScaler()),
    ],
)
def test_scales_are_fitted_to_the_training_part(store, scale, scaler, monkeypatch):
    monkeypatch.setattr(content_module, "_CHUNK_ENTRIES", 28)  # 7 rows at a time
    content = raw(store)
    scaler.fit(dense(content.train))
    made = transforms.tabular(content, {"scale": scale})
    varying = [0, 1, 3]
    for got, part in ((made.train, content.train), (made.test, content.test)):
        assert got.X.dtype == np.float32
        assert got.X.flags.c_contiguous
        np.testing.assert_allclose(
            got.X[:, varying], scaler.transform(dense(part))[:, varying], rtol=2e-7, atol=1e-7
        )
        np.testing.assert_array_equal(got.X[:, 2], 0)
        np.testing.assert_array_equal(got.y, part.y)
        assert got.y.dtype == np.int8
    if scale != "standard":
        low = -1 if scale == "minmax" else 0
        np.testing.assert_array_equal(made.train.X[:, varying].min(axis=0), low)
        np.testing.assert_array_equal(made.train.X[:, varying].max(axis=0), 1)


def test_moments_are_rounded_once():
    X = np.array([[1e16, 0.1], [1.0, 0.2], [-1e16, 0.3]])
    mean, deviation = transforms.moments(X)
    assert mean.tolist() == [1 / 3, math.fsum(X[:, 1]) / 3]
    np.testing.assert_allclose(deviation, X.std(axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    ("positive", "expected", "dtype"),
    [(2, [-1, 1, -1, 1], np.int8), ("none", [1, 2, 7, 2], np.int64), (None, [1, 2, 7, 2], np.int8)],
)
def test_labels(positive, expected, dtype):
    made = transforms.labels(np.array([1, 2, 7, 2]), positive)
    assert made.tolist() == expected
    assert made.dtype == dtype


def pixels() -> Content:
    X = np.array([[0, 255, 51], [0, 0, 0], [3, 4, 0]], dtype=np.float32)
    return Content(Part(X, np.array([0, 1, 2])), Part(X[::-1].copy(), np.array([2, 1, 0])))


def test_images_of_norm_one():
    made = transforms.images(pixels(), {"positive": "none", "scale": "norm"})
    np.testing.assert_array_equal(made.train.X[1:], np.float32([[0, 0, 0], [0.6, 0.8, 0]]))
    np.testing.assert_allclose(np.linalg.norm(made.train.X, axis=1), [1, 0, 1], rtol=1e-7)
    assert made.train.y.tolist() == [0, 1, 2]
    assert made.train.X.dtype == np.float32


@pytest.mark.parametrize("store", [np.array, csr_matrix])
def test_every_row(store):
    rows = Part(store(np.arange(7.0)[:, None]), np.arange(7))
    content = transforms.every(rows, 3, first=2)
    assert content.train.y.tolist() == [0, 1, 3, 4, 6]
    assert content.test.y.tolist() == [2, 5]
    np.testing.assert_array_equal(dense(content.test)[:, 0], content.test.y)
    assert transforms.every(rows, 3, first=0).test.y.tolist() == [0, 3, 6]
