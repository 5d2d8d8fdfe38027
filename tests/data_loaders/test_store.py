"""The Parquet file: what is damage although every checksum fits, and loads that rely on a stamp."""

import contextlib
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix, issparse

from marginbench.data_loaders import fetch, load, store, verify
from marginbench.data_loaders.content import Content, Part, fingerprint

HEADER = store.Header("it", {}, None, 1)
X = np.array([[0, 1, 0, 2], [3, 0, 0, 0]], dtype=np.float32)
Y = np.array([1, -1], dtype=np.int8)


def reading(path, X, y=Y, **said):
    """Read a file of these points and labels, with these changes of its metadata."""
    store.write(path, HEADER, Content(Part(X, y), Part(X, y)))
    rewrite(path, **said)
    return store.read(path, HEADER).content.train


def rewrite(path, **said):
    """Write a file again, with these changes of its metadata."""
    table, about = pq.read_table(path), json.loads(pq.read_metadata(path).metadata[b"marginbench"])
    with pq.ParquetWriter(path, table.schema, write_page_checksum=True) as writer:
        writer.write_table(table)
        about = about | said
        del about["checksum"]
        writer.add_key_value_metadata({b"marginbench": json.dumps(about).encode()})


def damage(path, X, y=Y, **said) -> str:
    with pytest.raises(store.Unusable) as caught:
        reading(path, X, y, **said)
    assert caught.value.state == "damaged"
    return str(caught.value)


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


@pytest.mark.parametrize("make", [np.array, csr_matrix])
@pytest.mark.parametrize("group", [(1 << 15, 1 << 22), (10, 1 << 22), (1 << 15, 9), (1, 1)])
def test_row_groups_do_not_change_what_is_read(tmp_path, monkeypatch, make, group):
    monkeypatch.setattr(store, "GROUP_ROWS", group[0])
    monkeypatch.setattr(store, "GROUP_ENTRIES", group[1])
    rng = np.random.default_rng(3)
    dense = (rng.standard_normal((80, 4)) * (rng.random((80, 4)) < 0.4)).astype(np.float32)
    y = np.where(np.arange(80) % 3 == 0, 1, -1).astype(np.int8)
    expected = Content(Part(make(dense[:50]), y[:50]), Part(make(dense[50:]), y[50:]))
    store.write(tmp_path / "it", HEADER, expected)
    found = store.read(tmp_path / "it", HEADER)
    assert found.fingerprint == fingerprint(expected)
    rows = [part.X.toarray() if issparse(part.X) else part.X for _, part in found.content.parts()]
    np.testing.assert_array_equal(np.vstack(rows), dense)
    np.testing.assert_array_equal(np.concatenate([p.y for _, p in found.content.parts()]), y)
    about = pq.read_metadata(tmp_path / "it")
    sizes = [about.row_group(k).num_rows for k in range(about.num_row_groups)]
    assert max(sizes) <= group[0]
    assert len(sizes) == 2 or group != (1 << 15, 1 << 22)


def test_a_file_of_another_schema_is_outdated(tmp_path):
    store.write(tmp_path / "it", HEADER, Content(Part(X, Y), Part(X, Y)))
    rewrite(tmp_path / "it", schema_version=1)
    with pytest.raises(store.Unusable) as caught:
        store.read(tmp_path / "it", HEADER)
    assert caught.value.state == "outdated"
    assert store.read_header(tmp_path / "it").schema_version == 1


# Loads rely on checksums: no hashing of the content, and damage is found all the same.

RNG = np.random.default_rng(5)
POINTS = (RNG.standard_normal((40, 5)) * (RNG.random((40, 5)) < 0.5)).astype(np.float32)
LABELS = np.where(np.arange(40) % 2, 1, -1).astype(np.int8)


@pytest.fixture(params=[np.array, csr_matrix], ids=["dense", "sparse"])
def source(tiny, request):
    """A dataset of dense or sparse points."""
    points = request.param(POINTS)
    content = Content(Part(points[:30], LABELS[:30]), Part(points[30:], LABELS[30:]))
    return tiny(files=(), read=lambda files, params: content)


def test_content_is_hashed_when_it_is_written_and_by_verify(source, monkeypatch):
    calls = []
    whole = store.fingerprint
    monkeypatch.setattr(store, "fingerprint", lambda content: calls.append(1) or whole(content))
    first = load(source)
    assert len(calls) == 2
    assert load(source).fingerprint == first.fingerprint
    assert len(calls) == 2
    assert verify(source).state == "ok"
    assert len(calls) == 3


@pytest.mark.parametrize("step", [61, pytest.param(3, marks=pytest.mark.slow)])
def test_no_flipped_bit_changes_what_is_read(source, step):
    path = fetch(source)
    header, whole = store.read_header(path), path.read_bytes()
    right = store.read(path, header).fingerprint
    for position in range(0, len(whole), step):
        data = bytearray(whole)
        data[position] ^= 1 << position % 8
        path.write_bytes(bytes(data))
        # Headers of pages have a few bits that mean nothing to a reader, the footer many.
        with contextlib.suppress(store.Unusable):
            found = store.read(path, header)
            assert found.fingerprint == fingerprint(found.content) == right
