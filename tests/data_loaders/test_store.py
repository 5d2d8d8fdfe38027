"""Cached files whose metadata and content disagree although every checksum fits."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix

from marginbench.data_loaders import store
from marginbench.data_loaders.content import Content, Part, fingerprint

HEADER = store.Header("it", {}, None, 1)
X = np.array([[0, 1, 0, 2], [3, 0, 0, 0]], dtype=np.float32)
Y = np.array([1, -1], dtype=np.int8)


def reading(path, X, y=Y, **said):
    """Read a file of these points and labels, with these changes of its metadata."""
    content = Content(Part(X, y), Part(X, y))
    table = store._table(HEADER, content)
    about = json.loads(table.schema.metadata[b"marginbench"]) | said
    table = table.replace_schema_metadata({b"marginbench": json.dumps(about).encode()})
    pq.write_table(table, path, write_page_checksum=True)
    return store.read(path, HEADER)[0].train


def damage(path, X, y=Y, **said) -> str:
    with pytest.raises(store.Unusable) as caught:
        reading(path, X, y, **said)
    assert caught.value.state == "damaged"
    return str(caught.value)


@pytest.mark.parametrize("make", [np.array, csr_matrix])
def test_a_file_that_tells_the_truth_is_read(tmp_path, make):
    found = reading(tmp_path / "it", make(X)).X
    np.testing.assert_array_equal(found if make is np.array else found.toarray(), X)


@pytest.mark.parametrize("width", [3, 1, 0, -1])
def test_features_beyond_the_width_are_damage(tmp_path, width):
    narrow = csr_matrix(X)
    narrow._shape = (2, width)  # so that the fingerprint fits what the metadata say
    fitting = fingerprint(Content(Part(narrow, Y), Part(narrow, Y)))
    message = damage(tmp_path / "it", csr_matrix(X), n_features=width, fingerprint=fitting)
    assert f"a feature is outside 0 to {width - 1}" in message


def test_a_negative_feature_is_damage(tmp_path):
    wrong = csr_matrix(X)
    wrong.indices[0] = -5
    wrong.has_canonical_format = True
    assert "a feature is outside 0 to 3" in damage(tmp_path / "it", wrong)


@pytest.mark.parametrize("width", [2, 8, 0, -4, 10**15, "4", 4.0])
def test_a_dense_file_of_another_width_is_damage(tmp_path, width):
    damage(tmp_path / "it", X, n_features=width)


def test_labels_of_another_type_are_damage(tmp_path):
    assert "labels are of type float64" in damage(tmp_path / "it", X, Y.astype(float))
