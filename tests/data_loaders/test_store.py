"""Cached files whose metadata and content disagree although every checksum fits."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix, issparse, vstack as sparse_vstack

from marginbench.data_loaders import layout, store
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


def blocks(n, make, dtype=np.float32) -> list[Part]:
    """Blocks of 7 rows, some of them without non-zeros."""
    rng = np.random.default_rng(n)
    dense = rng.standard_normal((n, 4)) * (rng.random((n, 4)) < 0.4)
    y = np.where(np.arange(n) % 3 == 0, 1, -1).astype(np.int8)
    return [
        Part(make(dense[start : start + 7].astype(dtype)), y[start : start + 7])
        for start in range(0, n, 7)
    ]


def write_rows(path, rows, header=HEADER) -> str:
    """Write parts with their roles; the fingerprint that the writer tells."""
    X = rows[0][1].X
    with store.Writer(path, header, n_features=4, sparse=issparse(X), dtype=X.dtype) as writer:
        for role, part in rows:
            writer.append(role, part)
    return writer.fingerprint


def write_blocks(path, train, test, header=HEADER) -> str:
    rows = [("train", part) for part in train] + [("test", part) for part in test]
    return write_rows(path, rows, header)


def whole(parts) -> Part:
    stack = sparse_vstack if issparse(parts[0].X) else np.vstack
    return Part(stack([part.X for part in parts]), np.concatenate([part.y for part in parts]))


@pytest.mark.parametrize("make", [np.array, csr_matrix])
@pytest.mark.parametrize("group", [(1 << 15, 1 << 22), (10, 1 << 22), (1 << 15, 9), (1, 1)])
def test_blocks_make_the_file_that_their_rows_make_at_once(tmp_path, monkeypatch, make, group):
    monkeypatch.setattr(layout, "GROUP_ROWS", group[0])
    monkeypatch.setattr(layout, "GROUP_ENTRIES", group[1])
    train, test = blocks(50, make), blocks(30, make)
    got = write_blocks(tmp_path / "blocks", train, test)
    expected = Content(whole(train), whole(test))
    store.write(tmp_path / "once", HEADER, expected)
    for name in ("blocks", "once"):
        found = store.read(tmp_path / name, HEADER)
        assert found.fingerprint == got == fingerprint(expected)
        for (_, mine), (_, other) in zip(found.content.parts(), expected.parts(), strict=True):
            dense = (X.toarray() if issparse(X) else X for X in (mine.X, other.X))
            np.testing.assert_array_equal(*dense)
            np.testing.assert_array_equal(mine.y, other.y)
    sizes = [
        pq.read_metadata(tmp_path / "blocks").row_group(k).num_rows
        for k in range(pq.read_metadata(tmp_path / "blocks").num_row_groups)
    ]
    assert max(sizes) <= group[0]
    assert len(sizes) == 1 or group != (1 << 15, 1 << 22)


def test_blocks_out_of_order_or_of_another_kind_are_refused(tmp_path):
    [dense], [sparse] = blocks(7, np.array), blocks(7, csr_matrix)
    write_blocks(tmp_path / "it", [dense], [dense])
    with pytest.raises(ValueError, match="it: training rows after test rows"):
        write_rows(tmp_path / "it", [("test", dense), ("train", dense)])
    for wrong in (sparse, Part(dense.X.astype(float), dense.y), Part(dense.X[:, :3], dense.y)):
        with pytest.raises(ValueError, match=r"it: points .* in a file of"):
            write_blocks(tmp_path / "it", [dense], [wrong])
    # The file that was written first is still there, and nothing else.
    assert store.verify(tmp_path / "it", HEADER).content.train.y.tolist() == dense.y.tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["it"]


def test_a_file_without_rows_is_refused(tmp_path):
    with (
        pytest.raises(ValueError, match="it: no rows to write"),
        store.Writer(tmp_path / "it", HEADER, n_features=4, sparse=False, dtype="f4"),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_what_was_decided_comes_back_and_is_not_compared(tmp_path):
    header = replace(HEADER, decided=["target: y", "scale: none"])
    write_blocks(tmp_path / "it", blocks(7, np.array), blocks(7, np.array), header)
    assert store.read(tmp_path / "it", HEADER).header == header
    assert store.read_header(tmp_path / "it") == header


def test_a_file_of_the_first_layout_is_outdated(tmp_path):
    about = {"name": "it", "params": {}, "source_fingerprint": None, "transform_version": 1}
    about |= {"schema_version": 1, "n_features": 4, "fingerprint": "0" * 64}
    store.write(tmp_path / "it", HEADER, Content(Part(X, Y), Part(X, Y)))
    table = pq.read_table(tmp_path / "it")
    table = table.replace_schema_metadata({b"marginbench": json.dumps(about).encode()})
    pq.write_table(table, tmp_path / "it")
    with pytest.raises(store.Unusable) as caught:
        store.read(tmp_path / "it", HEADER)
    assert caught.value.state == "outdated"
    assert store.read_header(tmp_path / "it").schema_version == 1
