"""The cache: what goes in comes out, damage is found, writers do not disturb each other."""

import contextlib
import json
import pickle
import re
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix, issparse

from marginbench.data_loaders import DataWarning, fetch, load, store, verify
from marginbench.data_loaders.content import Content, Part, fingerprint

from .conftest import refused


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
        {"make": csr_matrix},
        {"make": lambda X: csr_matrix(X.shape)},  # nothing is stored
        {"classes": (0, 3, 9), "label": np.int64},
        {"dtype": np.float32, "n": 70_000},
        {"make": csr_matrix, "dtype": np.float32, "n": 70_000},
    ],
    ids=["sparse", "nothing stored", "classes", "float32", "sparse float32"],
)
def test_every_bit_comes_back(tiny, kind):
    made = content(**kind)
    source = own(tiny, made)
    load(source)
    data = load(source)
    copy = pickle.loads(pickle.dumps(data))
    for role, part in made.parts():
        for array, whole in ((f"X_{role}", part.X), (f"y_{role}", part.y)):
            assert_same_bits(getattr(data, array), whole)
            assert_same_bits(getattr(copy, array), whole)
            for numbers in arrays(getattr(data, array)):
                assert numbers.flags.c_contiguous
                assert not numbers.flags.writeable
    assert (data.n_train, data.n_test, data.n_features) == (len(made.train.y), len(made.test.y), 5)
    assert copy.fingerprint == data.fingerprint == fingerprint(made)
    assert (data.citation, data.licence) == (source.citation, source.licence)


def test_the_file_is_where_it_is_asked_for_and_other_tools_can_read_it(
    tiny, cache, tmp_path, monkeypatch
):
    source = own(tiny, content())
    path = fetch(source)
    assert path == cache / "tiny.parquet"
    table = pq.read_table(path).to_pandas()
    assert list(table.columns) == ["X", "y", "split"]
    assert table["split"].tolist() == ["train"] * 40 + ["test"] * 20
    np.testing.assert_array_equal(np.stack(table["X"][:40]), content().train.X)
    assert fetch(source, cache_dir=tmp_path / "a") == tmp_path / "a" / "datasets" / "tiny.parquet"
    monkeypatch.delenv("MARGINBENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert verify(source).path.name == "tiny.parquet"
    assert verify(source).path.parent.parent.name == "marginbench"


def test_a_cache_that_cannot_be_written_is_named_and_nothing_left_behind(
    tiny, tmp_path, cache, monkeypatch
):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    message = refused(load, own(tiny, content()), cache_dir=blocked)
    assert message.startswith(f"tiny: cannot write to the cache folder {blocked}")
    assert "set MARGINBENCH_CACHE" in message

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    message = refused(load, own(tiny, content()))
    assert re.search("cannot write the cache file .*No space left on device", message)
    assert [path.name for path in cache.iterdir() if path.suffix != ".lock"] == []


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def rewrite(path, **said):
    """Write a file again, with these changes of its metadata."""
    table, about = pq.read_table(path), json.loads(pq.read_metadata(path).metadata[b"marginbench"])
    about |= said
    del about["checksum"]
    with pq.ParquetWriter(path, table.schema, write_page_checksum=True) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"marginbench": json.dumps(about).encode()})


@pytest.mark.parametrize(
    "damage",
    [truncate, lambda path: rewrite(path, name="other")],
    ids=["cut short", "of another dataset"],
)
def test_a_damaged_file_is_reported_and_made_anew(tiny, damage):
    source = own(tiny, content())
    whole = load(source)
    path = fetch(source)
    damage(path)
    damaged = path.read_bytes()

    report = verify(source)
    assert report.state == "damaged"
    assert str(path) in report.detail
    assert path.read_bytes() == damaged  # verify repairs nothing

    with pytest.warns(DataWarning) as caught:
        again = load(source)
    (warning,) = caught
    assert warning.filename == __file__
    assert f"tiny: the cached file is damaged and will be made anew ({path}" in str(warning.message)
    assert "\n" not in str(warning.message)
    assert again.fingerprint == whole.fingerprint
    assert_same_bits(again.X_train, whole.X_train)
    assert verify(source).state == "ok"


@pytest.mark.parametrize(
    "change", [{"transform_version": 2}, {"fingerprint": fingerprint(content(n=42))}], ids=str
)
def test_a_file_of_an_older_release_is_made_anew_without_a_word(tiny, change):
    fetch(own(tiny, content()))
    newer = replace(own(tiny, content(n=42)), **change)
    assert verify(newer).state == "outdated"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(newer).n_train == 42
    assert verify(newer).state == "ok"


def test_two_processes_fetch_at_once(tmp_path):
    log = tmp_path / "log"
    script = f"""
import time
from marginbench.data_loaders import Source, find, load

def read(files, params):
    with open({str(log)!r}, "a") as stream:
        stream.write("read\\n")
    time.sleep(0.5)
    return find("checkers").read(files, {{"n_train": 160, "n_test": 160, "seed": 0, "noise": 0.0}})

data = load(Source("slow", "", "generator", "", read, "", ""))
print(data.fingerprint, data.new)
"""
    words = [sys.executable, "-c", script]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    whole = load("checkers", {"n_train": 160, "n_test": 160, "noise": 0}).fingerprint
    assert sorted(answers) == [f"{whole} False\n", f"{whole} True\n"]
    assert log.read_text() == "read\n"


# What is damage although every checksum fits

HEADER = store.Header("it", {}, None, 1)
X = np.array([[0, 1, 0, 2], [3, 0, 0, 0]], dtype=np.float32)
Y = np.array([1, -1], dtype=np.int8)


def unreadable(path, X, y=Y, **said):
    """Why a file of these points and labels is not read, with these changes of its metadata."""
    store.write(path, HEADER, Content(Part(X, y), Part(X, y)))
    rewrite(path, **said)
    with pytest.raises(store.Unusable) as caught:
        store.read(path, HEADER)
    return f"{caught.value.state}: {caught.value}"


def test_metadata_that_do_not_fit_the_content_are_damage(tmp_path):
    for width in (3, 1, 0, -1):
        message = unreadable(tmp_path / "it", csr_matrix(X), n_features=width)
        assert re.match(f"damaged: .* a feature is outside 0 to {width - 1}", message)
    wrong = csr_matrix(X)
    wrong.indices[0] = -5
    wrong.has_canonical_format = True
    assert "a feature is outside 0 to 3" in unreadable(tmp_path / "it", wrong)
    for width in (2, 8, 0, -4, 10**15, "4", 4.0, None):
        assert unreadable(tmp_path / "it", X, n_features=width).startswith("damaged")
    message = unreadable(tmp_path / "it", X, Y.astype(float))
    assert re.match("damaged: .* labels are of type float64", message)
    assert unreadable(tmp_path / "it", X, schema_version=1).startswith("outdated")


# Loads rely on checksums: the content is not hashed, and damage is found all the same.


@pytest.mark.parametrize("make", [np.array, csr_matrix], ids=["dense", "sparse"])
def test_no_flipped_bit_changes_what_is_read(tiny, make):
    path = fetch(own(tiny, content(make=make, dtype=np.float32)))
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
