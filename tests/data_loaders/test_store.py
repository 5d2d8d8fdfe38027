"""The Parquet file: what is damage although every checksum fits, and loads that rely on a stamp."""

import contextlib
import json
import os
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix, issparse

from marginbench.data_loaders import DataWarning, fetch, load, store, verify
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
        writer.add_key_value_metadata({b"marginbench": json.dumps(about | said).encode()})


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


# Loads that rely on a stamp: no hashing, and damage is found all the same.

RNG = np.random.default_rng(5)
POINTS = (RNG.standard_normal((40, 5)) * (RNG.random((40, 5)) < 0.5)).astype(np.float32)
LABELS = np.where(np.arange(40) % 2, 1, -1).astype(np.int8)


@pytest.fixture(params=[np.array, csr_matrix], ids=["dense", "sparse"])
def source(tiny, request):
    """A dataset of dense or sparse points."""
    points = request.param(POINTS)
    content = Content(Part(points[:30], LABELS[:30]), Part(points[30:], LABELS[30:]))
    return tiny(files=(), read=lambda files, params: content)


def forge(path) -> None:
    """Make the stamp fit the file as it is now, but for its footer."""
    *_, kept, whole = store.stamp_path(path).read_text().split()
    *now, _ = store._state(path).split()
    store.stamp_path(path).write_text(" ".join([*now, kept, whole]))


def rewritten(path) -> None:
    """Change the labels, with checksums that fit, and say that nothing has changed."""
    table, about = pq.read_table(path), pq.read_metadata(path).metadata[b"marginbench"]
    flipped = -table["y"].to_numpy()
    table = table.set_column(table.column_names.index("y"), table.schema.field("y"), [flipped])
    with pq.ParquetWriter(path, table.schema, write_page_checksum=True) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"marginbench": about})


def dense(X) -> np.ndarray:
    return X.toarray() if issparse(X) else X


def assert_right(data) -> None:
    np.testing.assert_array_equal(np.vstack([dense(data.X_train), dense(data.X_test)]), POINTS)
    np.testing.assert_array_equal(np.concatenate([data.y_train, data.y_test]), LABELS)


@pytest.fixture
def hashing(monkeypatch):
    """How many times content was hashed: once when the file is made, once per verification."""
    calls = []
    whole = store.fingerprint

    def counting(content):
        calls.append(content)
        return whole(content)

    monkeypatch.setattr(store, "fingerprint", counting)
    return calls


def test_content_is_hashed_once(source, hashing):
    first = load(source)
    assert len(hashing) == 2
    again = load(source)
    assert len(hashing) == 2
    assert_right(again)
    assert again.fingerprint == first.fingerprint
    assert verify(source).state == "ok"
    assert len(hashing) == 3


def test_a_file_that_was_touched_copied_or_swapped_is_verified_again(source, hashing, tmp_path):
    path = fetch(source)
    os.utime(path)
    assert_right(load(source))
    assert len(hashing) == 3
    shutil.copy2(path, tmp_path / "copy")  # its times too
    os.replace(tmp_path / "copy", path)
    assert_right(load(source))
    assert len(hashing) == 4
    load(source)
    assert len(hashing) == 4


def unnoticed_flips(path, header, step) -> list[int]:
    """Where a flipped bit of a stamped file goes unnoticed; the data are right all the same."""
    whole = path.read_bytes()
    unnoticed = []
    for position in range(0, len(whole), step):
        data = bytearray(whole)
        data[position] ^= 1 << position % 8
        path.write_bytes(bytes(data))
        forge(path)
        with contextlib.suppress(store.Unusable):
            content = store.read(path, header).content
            unnoticed.append(position)
            found = np.vstack([dense(part.X) for _, part in content.parts()])
            np.testing.assert_array_equal(found, POINTS)
            assert [*content.train.y, *content.test.y] == LABELS.tolist()
    return unnoticed


@pytest.mark.parametrize("step", [61, pytest.param(5, marks=pytest.mark.slow)])
def test_no_flipped_bit_passes_a_stamp(source, step):
    path = fetch(source)
    size = path.stat().st_size
    footer = size - 8 - int.from_bytes(path.read_bytes()[-8:-4], "little")
    unnoticed = unnoticed_flips(path, store.read_header(path), step)
    # Headers of pages have a few bits that mean nothing to a reader, the footer many.
    assert sum(position < footer for position in unnoticed) < 0.5 * (footer / step)


def test_another_footer_is_found(source):
    """Content changed together with its checksums: only the digest of the footer tells."""
    path = fetch(source)
    rewritten(path)
    forge(path)
    assert verify(source).state == "damaged"
    with pytest.warns(DataWarning, match="the content's fingerprint is"):
        assert_right(load(source))


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(source, hashing, monkeypatch):
    fetch(source)
    read, calls = store._read, []

    def replacing(path, header):
        calls.append(path)
        found = read(path, header)
        if len(calls) == 1:
            os.utime(path)
        return found

    monkeypatch.setattr(store, "_read", replacing)
    assert_right(load(source))
    assert len(calls) == 2
    assert len(hashing) == 3


@pytest.mark.parametrize("stamp", [b"", b"1 2 3", b"\xff"])
def test_a_broken_stamp_does_not_count(source, hashing, stamp):
    path = fetch(source)
    store.stamp_path(path).write_bytes(stamp)
    assert_right(load(source))
    assert len(hashing) == 3
    load(source)
    assert len(hashing) == 3


def test_a_cache_that_cannot_be_written_is_verified_each_time(source, hashing, monkeypatch):
    path = fetch(source)
    store.stamp_path(path).unlink()

    def refused(*args):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(store, "replacing", refused)
    for n_hashed in (3, 4):
        assert_right(load(source))
        assert len(hashing) == n_hashed
