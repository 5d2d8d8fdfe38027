"""The cache: what goes in comes out, damage is found, writers do not disturb each other."""

import contextlib
import json
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix, issparse

from marginbench.data_loaders import DataError, DataWarning, fetch, load, store, verify
from marginbench.data_loaders.content import Content, Part, fingerprint


def arrays(X):
    return [X.data, X.indices, X.indptr] if issparse(X) else [X]


def assert_same_bits(a, b):
    assert a.shape == b.shape
    for mine, other in zip(arrays(a), arrays(b), strict=True):
        assert mine.dtype == other.dtype
        assert mine.tobytes() == other.tobytes()


def content(make=np.array, dtype=np.float64, classes=(-1, 1), label=np.int8, n=40):
    rng = np.random.default_rng(7)

    def part(n):
        X = rng.standard_normal((n, 5)) * (rng.random((n, 5)) < 0.5)
        X[2] = 0  # a row without non-zeros
        y = np.array(classes, dtype=label)[np.arange(n) % len(classes)]
        return Part(make(X.astype(dtype)), y)

    return Content(part(n), part(n // 2))


def own(tiny, made, **kwargs):
    """A source of given content; nothing is read."""
    return tiny(files=(), read=lambda files, params: made, **kwargs)


@pytest.mark.parametrize(
    "kind",
    [
        {"dtype": np.float64},
        {"dtype": np.float32},
        {"make": csr_matrix, "dtype": np.float32},
        {"make": csr_matrix, "dtype": np.float64},
        {"classes": (0, 3, 9), "label": np.int64},
        {"n": 70_000},
        {"make": csr_matrix, "dtype": np.float32, "n": 70_000},
    ],
    ids=str,
)
def test_every_bit_comes_back(tiny, kind):
    made = content(**kind)
    source = own(tiny, made)
    load(source)
    data = load(source)
    for (_, part), X, y in zip(
        made.parts(), (data.X_train, data.X_test), (data.y_train, data.y_test), strict=True
    ):
        assert_same_bits(X, part.X)
        assert_same_bits(y, part.y)
        for array in [*arrays(X), y]:
            assert array.flags.c_contiguous
            assert not array.flags.writeable
    copy = pickle.loads(pickle.dumps(data))
    for name in ("X_train", "y_train", "X_test", "y_test"):
        assert_same_bits(getattr(copy, name), getattr(data, name))
    assert (data.n_train, data.n_test, data.n_features) == (len(made.train.y), len(made.test.y), 5)
    assert copy.fingerprint == data.fingerprint == fingerprint(made)
    assert (data.citation, data.licence) == (source.citation, source.licence)


def test_other_tools_can_read_the_file(tiny, cache):
    path = fetch(own(tiny, content()))
    assert path == cache / "tiny.parquet"
    table = pq.read_table(path).to_pandas()
    assert list(table.columns) == ["X", "y", "split"]
    assert table["split"].tolist() == ["train"] * 40 + ["test"] * 20
    np.testing.assert_array_equal(np.stack(table["X"][:40]), content().train.X)


def test_the_cache_is_where_it_is_asked_for(tiny, tmp_path, monkeypatch):
    source = own(tiny, content())
    assert fetch(source, cache_dir=tmp_path / "a") == tmp_path / "a" / "datasets" / "tiny.parquet"
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "b"))
    assert fetch(source) == tmp_path / "b" / "datasets" / "tiny.parquet"
    monkeypatch.delenv("MARGINBENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert verify(source).path.name == "tiny.parquet"
    assert verify(source).path.parent.parent.name == "marginbench"


def test_a_cache_that_cannot_be_written_is_named(tiny, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(DataError) as caught:
        load(own(tiny, content()), cache_dir=blocked)
    message = str(caught.value)
    assert message.startswith(f"tiny: cannot write to the cache folder {blocked}")
    assert "set MARGINBENCH_CACHE to a folder that can be written" in message
    assert "\n" not in message


def test_a_full_disk_leaves_nothing_behind(tiny, cache, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(DataError, match=r"cannot write the cache file .*No space left on device"):
        load(own(tiny, content()))
    assert [path.name for path in cache.iterdir() if path.suffix != ".lock"] == []


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_point(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 8] ^= 0x10  # among the points; elsewhere may be what no reader looks at
    path.write_bytes(bytes(data))


def rewrite(path, *gone, **said):
    """Write a file again, with these changes of its metadata."""
    table, about = pq.read_table(path), json.loads(pq.read_metadata(path).metadata[b"marginbench"])
    about = {key: value for key, value in (about | said).items() if key not in ("checksum", *gone)}
    with pq.ParquetWriter(path, table.schema, write_page_checksum=True) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"marginbench": json.dumps(about).encode()})


def incomplete_metadata(path):
    rewrite(path, "fingerprint")


@pytest.mark.parametrize("kind", [{}, {"make": csr_matrix, "dtype": np.float32}], ids=str)
@pytest.mark.parametrize("damage", [truncate, flip_a_point, incomplete_metadata])
def test_a_damaged_file_is_reported_and_made_anew(tiny, damage, kind):
    source = own(tiny, content(**kind))
    whole = load(source)
    path = fetch(source)
    damage(path)
    damaged = path.read_bytes()

    report = verify(source)
    assert report.state == "damaged"
    assert str(path) in report.detail
    assert "\n" not in report.detail
    assert path.read_bytes() == damaged  # verify repairs nothing

    with pytest.warns(DataWarning) as caught:
        again = load(source)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert str(caught[0].message).startswith("tiny: the cached file is damaged")
    assert str(path) in str(caught[0].message)
    assert "\n" not in str(caught[0].message)
    assert again.fingerprint == whole.fingerprint
    assert_same_bits(again.X_train, whole.X_train)
    assert verify(source).state == "ok"


def test_a_damaged_file_whose_source_is_gone_is_an_error(tiny, mirror, monkeypatch):
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    path = fetch(tiny())
    truncate(path)
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror / "gone"))
    with (
        pytest.warns(DataWarning, match="the cached file is damaged"),
        pytest.raises(DataError, match=r"cannot fetch 'tiny\.trn'"),
    ):
        load(tiny())


def test_the_file_of_another_dataset_is_damage(tiny, cache):
    fetch(own(tiny, content(), name="other")).rename(cache / "tiny.parquet")
    report = verify(own(tiny, content()))
    assert report.state == "damaged"
    assert "name is 'other'" in report.detail


@pytest.mark.parametrize(
    "change",
    [{"transform_version": 2}, {"fingerprint": fingerprint(content(n=42))}],
    ids=str,
)
def test_a_file_of_an_older_release_is_made_anew_without_a_word(tiny, change):
    fetch(own(tiny, content()))
    newer = replace(own(tiny, content(n=42)), **change)
    assert verify(newer).state == "outdated"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(newer).n_train == 42
    assert verify(newer).state == "ok"


def start(script):
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ.copy(),
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_fetch_at_once(tmp_path):
    log = tmp_path / "log"
    script = f"""
import time
from marginbench.data_loaders import Source, load
from marginbench.data_loaders import find

def read(files, params):
    with open({str(log)!r}, "a") as stream:
        stream.write("read\\n")
    time.sleep(0.5)
    return find("checkers").read(files, {{"n_train": 160, "n_test": 160, "seed": 0, "noise": 0.0}})

source = Source("slow", "", "generator", "", read, "", "", 1.0, 1.0)
data = load(source)
print(data.fingerprint, data.new)
"""
    processes = [start(script) for _ in range(2)]
    answers = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    params = {"n_train": 160, "n_test": 160, "noise": 0}
    whole = load("checkers", params).fingerprint
    assert sorted(answers) == [f"{whole} False\n", f"{whole} True\n"]
    assert log.read_text() == "read\n"


# What is damage although every checksum fits

HEADER = store.Header("it", {}, None, 1)
X = np.array([[0, 1, 0, 2], [3, 0, 0, 0]], dtype=np.float32)
Y = np.array([1, -1], dtype=np.int8)


def damage(path, X, y=Y, **said):
    """Why a file of these points and labels cannot be read, with these changes of its metadata."""
    store.write(path, HEADER, Content(Part(X, y), Part(X, y)))
    rewrite(path, **said)
    with pytest.raises(store.Unusable) as caught:
        store.read(path, HEADER)
    assert caught.value.state == "damaged"
    return str(caught.value)


def test_features_beyond_the_width_are_damage(tmp_path):
    for width in (3, 1, 0, -1):
        message = damage(tmp_path / "it", csr_matrix(X), n_features=width)
        assert f"a feature is outside 0 to {width - 1}" in message
    wrong = csr_matrix(X)
    wrong.indices[0] = -5
    wrong.has_canonical_format = True
    assert "a feature is outside 0 to 3" in damage(tmp_path / "it", wrong)


@pytest.mark.parametrize("width", [2, 8, 0, -4, 10**15, "4", 4.0])
def test_a_dense_file_of_another_width_is_damage(tmp_path, width):
    damage(tmp_path / "it", X, n_features=width)


def test_labels_of_another_type_are_damage_and_another_schema_is_outdated(tmp_path):
    assert "labels are of type float64" in damage(tmp_path / "it", X, Y.astype(float))
    store.write(tmp_path / "it", HEADER, Content(Part(X, Y), Part(X, Y)))
    rewrite(tmp_path / "it", schema_version=1)
    with pytest.raises(store.Unusable) as caught:
        store.read(tmp_path / "it", HEADER)
    assert caught.value.state == "outdated"


# Loads rely on checksums: no hashing of the content, and damage is found all the same.


@pytest.fixture(params=[np.array, csr_matrix], ids=["dense", "sparse"])
def source(tiny, request):
    """A dataset of dense or sparse points."""
    return own(tiny, content(make=request.param, dtype=np.float32))


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


def test_no_flipped_bit_changes_what_is_read(source):
    path = fetch(source)
    header, whole = store.read_header(path), path.read_bytes()
    right = store.read(path, header).fingerprint
    for position in range(0, len(whole), 61):
        data = bytearray(whole)
        data[position] ^= 1 << position % 8
        path.write_bytes(bytes(data))
        # Headers of pages have a few bits that mean nothing to a reader, the footer many.
        with contextlib.suppress(store.Unusable):
            found = store.read(path, header)
            assert found.fingerprint == fingerprint(found.content) == right
