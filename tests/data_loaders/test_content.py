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


def by_definition(content):
    """The fingerprint of dense content as the docstring of `fingerprint` has it."""
    text = b"marginbench content 1\n"
    for _, part in content.parts():
        rows, columns = np.nonzero(part.X)
        lengths = np.bincount(rows, minlength=len(part.X))
        streams = [(lengths, "<i8"), (columns, "<i8"), (part.X[rows, columns], "<f8")]
        text += np.array(part.X.shape, "<i8").tobytes()
        for numbers, dtype in (*streams, (part.y, "<i8")):
            text += hashlib.sha256(numbers.astype(dtype).tobytes()).digest()
    return hashlib.sha256(text).hexdigest()


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
    monkeypatch.setattr(content_module, "_CHUNK_ENTRIES", entries)
    stored = changed(example(), store, lambda y: y.astype(np.int8))
    assert fingerprint(stored) == by_definition(example())


def with_value(value, store):
    content = example()
    content.test.X[12, 4] = value
    return changed(content, store)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        *(
            (with_value(v, store), f"test part: row 13, feature 5 is {v}, not a finite number")
            for v, store in ((np.nan, np.array), (-np.inf, csr_matrix))
        ),
        (changed(example(), make_y=np.ones_like), "train part: one class only (every label is 1)"),
        (changed(example(), lambda X: X[:0], lambda y: y[:0]), "train part has points of shape"),
        (changed(example(), make_y=lambda y: y[1:]), "labels of shape (49,)"),
        (Content(example().train, example(8).test), "7 features in the train part but 8 in the t"),
    ],
)
def test_check_refuses_what_no_solver_can_use(monkeypatch, content, complaint):
    monkeypatch.setattr(content_module, "_CHUNK_ENTRIES", 20)
    assert complaint in refused(check, content, "mine")
