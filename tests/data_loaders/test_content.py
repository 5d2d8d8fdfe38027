"""Fingerprints and the checks on content."""

import hashlib

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from marginbench.data_loaders import content as content_module
from marginbench.data_loaders.content import Content, Part, check, fingerprint

from .conftest import refused


def example(d=7):
    rng = np.random.default_rng(0)

    def part(rows):
        X = rng.integers(-4, 5, (rows, d)) / 4
        X[rng.random(X.shape) < 0.6] = 0
        return Part(X, np.where(np.arange(rows) % 3 == 0, 1, -1).astype(np.int64))

    return Content(part(50), part(25))


def changed(content, make_X=lambda X: X, make_y=lambda y: y):
    return Content(*(Part(make_X(part.X), make_y(part.y)) for _, part in content.parts()))


def with_explicit_zeros(X):
    rows = csr_matrix(X + 99)
    rows.data -= 99
    return rows


def with_unsorted_columns(X):
    rows = csr_matrix(X[:, ::-1])
    return csr_matrix((rows.data, X.shape[1] - 1 - rows.indices, rows.indptr), shape=X.shape)


@pytest.mark.parametrize("entries", [1, 10])
@pytest.mark.parametrize(
    "store",
    [
        np.array,
        csr_matrix,
        with_explicit_zeros,
        with_unsorted_columns,
        np.asfortranarray,
        lambda X: X.astype(np.float32),
        lambda X: np.where(X == 0, -0.0, X),
    ],
    ids=["dense", "csr", "explicit zeros", "unsorted", "fortran", "float32", "minus zero"],
)
def test_neither_storage_nor_chunks_change_the_fingerprint(monkeypatch, store, entries):
    expected = fingerprint(example())
    monkeypatch.setattr(content_module, "_CHUNK_ENTRIES", entries)
    assert fingerprint(changed(example(), store, lambda y: y.astype(np.int8))) == expected


def test_fingerprint_follows_its_definition():
    content = Content(
        Part(np.array([[0, 2.5, 0], [0, 0, 0], [1, 0, -1]]), np.array([1, -1, 1])),
        Part(np.array([[0, 0, 4.0]]), np.array([-1])),
    )

    def sha(numbers, dtype="<i8"):
        return hashlib.sha256(np.array(numbers, dtype=dtype).tobytes()).digest()

    text = b"marginbench content 1\n" + np.array([3, 3], "<i8").tobytes()
    text += sha([1, 0, 2]) + sha([1, 0, 2]) + sha([2.5, 1, -1], "<f8") + sha([1, -1, 1])
    text += np.array([1, 3], "<i8").tobytes()
    text += sha([1]) + sha([2]) + sha([4.0], "<f8") + sha([-1])
    assert fingerprint(content) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(("store", "value"), [(np.array, np.nan), (csr_matrix, -np.inf)])
def test_check_finds_a_value_that_is_not_finite(monkeypatch, store, value):
    monkeypatch.setattr(content_module, "_CHUNK_ENTRIES", 20)
    content = example()
    content.test.X[12, 4] = value
    message = refused(check, changed(content, store), "mine")
    assert message == f"mine: test part: row 13, feature 5 is {value}, not a finite number"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (changed(example(), make_y=np.ones_like), "train part: one class only (every label is 1)"),
        (changed(example(), lambda X: X[:0], lambda y: y[:0]), "train part has points of shape"),
        (changed(example(), make_y=lambda y: y[1:]), "labels of shape (49,)"),
        (Content(example().train, example(8).test), "7 features in the train part but 8 in the t"),
    ],
)
def test_check_refuses_what_no_solver_can_use(content, complaint):
    assert complaint in refused(check, content, "mine")
