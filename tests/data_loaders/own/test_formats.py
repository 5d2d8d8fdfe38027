"""The same content whatever the format, the compression and the place of the file."""

import bz2
import gzip
import lzma
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.datasets import dump_svmlight_file

from marginbench.data_loaders import content, import_data, load

from ..conftest import refused

ARFF = """% a comment
@RELATION people
@attribute age NUMERIC
@attribute 'job' {clerk, smith, 'blue collar'}
@attribute '' real
@attribute town {Ålesund, Bern}
@attribute y {False, True}
@DATA
"""


def write_arff(frame, path):
    rows = frame.assign(job=[f"'{word}'" if " " in word else word for word in frame["job"]])
    path.write_text(ARFF + rows.to_csv(index=False, header=False, quoting=3))


def packed(pack):
    return lambda frame, path: path.write_bytes(pack(frame.to_csv(index=False).encode()))


WRITERS = {
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "crlf.csv": lambda frame, path: frame.to_csv(path, index=False, lineterminator="\r\n"),
    "bom.csv": lambda frame, path: frame.to_csv(path, index=False, encoding="utf-8-sig"),
    "quoted.csv": lambda frame, path: frame.to_csv(path, index=False, quoting=1),
    "semicolon.csv": lambda frame, path: frame.to_csv(path, index=False, sep=";"),
    "blanks.csv": lambda frame, path: path.write_text(
        frame.to_csv(index=False).replace(",", " , ").replace("\n", "\n\n")
    ),
    "a.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "a.csv.gz": packed(gzip.compress),
    "a.csv.bz2": packed(lambda text: bz2.compress(text[:99]) + bz2.compress(text[99:])),
    "a.csv.xz": packed(lzma.compress),
    "wrong-name.csv": packed(gzip.compress),
    "a.parquet": lambda frame, path: frame.to_parquet(path),
    "polars.parquet": lambda frame, path: pl.from_pandas(frame).write_parquet(path),
    "categories.parquet": lambda frame, path: frame.astype({"job": "category"}).to_parquet(path),
    "a.arff": write_arff,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_table_is_the_same_in_every_format(frame, here, name):
    # A column without a name is called by its number, and truth is spelt alike.
    frame = frame.rename(columns={"income": ""}).assign(y=frame["y"] == "yes")
    frame.to_csv("plain.csv", index=False)
    WRITERS[name](frame, here / name)
    options = {"target": "y", "positive": True, "drop": -2}
    plain, data = load("plain.csv", options), load(name, options)
    assert data.fingerprint == plain.fingerprint
    assert data.decided == plain.decided
    assert data.n_features == 1 + 3 + 1
    # Its own file, and nothing of what was needed on the way; Windows removes the file of a lock.
    kept = {path.suffix for path in (here.parent / "cache" / "datasets" / "own").iterdir()}
    assert kept - {".lock"} == {".parquet"}


def test_tables_in_memory(frame, loaded):
    X, y = frame.drop(columns="y"), frame["y"]
    expected = loaded(frame.to_csv(index=False)).fingerprint
    for name, given in {
        "pandas": (frame,),
        "polars": (pl.from_pandas(frame),),
        "arrow": (pl.from_pandas(frame).to_arrow(),),
        "arrays": (X, y),
        "bunch": ({"data": X, "target": y, "frame": None},),
    }.items():
        assert import_data(name, *given) == name
        assert load(name).fingerprint == expected


@pytest.mark.parametrize("name", ["code", ""])
def test_categories_of_numbers_are_declared_by_their_type(loaded, name):
    frame = pd.DataFrame({name: [10, 2, 10, 3] * 5, "y": ["a", "b"] * 10})
    frame.to_parquet("numbers.parquet")
    assert load("numbers.parquet").n_features == 1
    categories = frame.astype({name: "category"})
    categories.to_parquet("x.parquet")
    assert load("x.parquet", {"numeric": 1}).n_features == 1  # unless a user says otherwise
    import_data("codes", categories, test="last 4")
    listed = loaded(frame.to_csv(index=False), test="last 4", categorical=[1])
    assert load("codes").fingerprint == listed.fingerprint
    assert load("x.parquet", {"test": "last 4"}).fingerprint == listed.fingerprint
    np.testing.assert_array_equal(listed.X_test, [[0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize("scale", ["none", "standard", "minmax", "unit", "norm"])
def test_numbers_are_the_same_in_every_format(here, scale, monkeypatch):
    monkeypatch.setattr(content, "_CHUNK_ENTRIES", 35)  # 7 rows at a time
    generator = np.random.default_rng(4)
    X = generator.random((40, 5)).round(3) * (generator.random((40, 5)) < 0.5)
    y, rows = np.arange(40) % 2, csr_matrix(X)
    np.savez("x.npz", X=X, y=y)
    np.savez_compressed("parts.npz", X_train=X[:30], y_train=y[:30], X_test=X[30:], y_test=y[30:])
    pd.DataFrame(X).assign(target=y).to_csv("x.csv", index=False)
    dump_svmlight_file(X, y, "x", zero_based=False)
    text = Path("x").read_bytes()
    for name, raw in (("x.txt", text), ("x.svm", text), ("x.libsvm.gz", gzip.compress(text))):
        Path(name).write_bytes(raw)
    import_data("rows", rows[:30], y[:30], X_test=rows[30:], y_test=y[30:], scale=scale)
    scaled, last = {"scale": scale}, {"scale": scale, "test": "last 10"}
    whole = load("x.npz", last)
    if scale == "none":
        np.testing.assert_array_equal(whole.X_test, X[30:].astype(np.float32))
    assert whole.y_test.tolist() == [-1, 1] * 5
    texts = dict.fromkeys(("x", "x.txt", "x.svm", "x.libsvm.gz"), last)
    for name, options in (texts | {"rows": {}, "x.csv": last, "parts.npz": scaled}).items():
        data = load(name, options)
        few = name in (*texts, "rows") and scale in ("none", "norm")
        assert issparse(data.X_train) == few
        for found, expected in ((data.X_train, whole.X_train), (data.X_test, whole.X_test)):
            found = found.toarray() if few else found
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(data.y_test, whole.y_test)


def test_declarations_and_rows_of_arff(here):
    Path("x.arff").write_text(
        "@attribute 'a\\'s job'{' clerk',\t\"a\tpoet\"}\n@ATTRIBUTE\t''\tinteger [0,30]\n"
        '@attribute "" real\n@attribute y {n,p}\n@data\n'
        "' clerk',1.5,7,n\n'a\tpoet',' 2',8,p\n"
        "{0 'a\tpoet', 2 -1.5, 3 p}\n{1 4}\n"  # 0 and the first words are left out
        "'a\tpoet',3,\"9 \",n\n' clerk',4,1,p\n"
    )
    data = load("x.arff", {"test": "last 2", "scale": "none"})
    expected = [[1, 0, 1.5, 7], [0, 1, 2, 8], [0, 1, 0, -1.5], [1, 0, 4, 0]]
    np.testing.assert_array_equal(data.X_train, expected)
    assert data.y_train.tolist() == [-1, 1, 1, -1]
    assert "one-hot: a's job (2)" in data.decided[2]


def test_a_folder_with_a_training_and_a_test_file(frame, here):
    (here / "people").mkdir()
    frame[:40].to_csv("people/train.csv", index=False)
    frame[40:].to_parquet("people/test.parquet")
    (here / "people" / "README").write_text("nothing")
    frame.to_csv("whole.csv", index=False)
    data = load("people")
    assert data.fingerprint == load("whole.csv", {"test": "last 20"}).fingerprint
    how = "split: a training and a test part as given (40 training and 20 test rows)"
    assert data.decided[1] == how
    shutil.copy("people/train.csv", "people/train.tsv")
    assert refused(load, "people").startswith("people: 2 files train.* in this folder")


MINE = """
from pathlib import Path
import numpy as np
import pandas as pd
from marginbench.data_loaders import Source
from marginbench.data_loaders.content import Content, Part

class Odd(BaseException): ...
def number(): return 7
def ends(): raise SystemExit(0)
def odd(): raise Odd

def table():
    with Path("log").open("a") as log:
        log.write("x")
    return pd.read_csv("plain.csv")

def pair():
    found = table()
    return found.drop(columns="y"), found["y"]

def read(files, params):
    part = Part(np.eye(4), np.array([1, -1, 1, -1], dtype=np.int8))
    return Content(part, part)

source = Source("mine", "unit vectors", "code", "twice", read, "CC0", "@misc{mine}")
"""


def test_code_of_ones_own(frame, here):
    frame.to_csv("plain.csv", index=False)
    (here / "mine.py").write_text(MINE)
    assert load("mine.py:table").fingerprint == load("plain.csv").fingerprint
    assert load("mine.py:table").decided
    assert (here / "log").read_text() == "x"  # the code ran once
    assert load("mine.py:pair").fingerprint == load("plain.csv").fingerprint
    for name, message in (
        ("number", "mine.py:number: is a int; expected a table, a Bunch"),
        ("ends", "mine.py:ends: raised SystemExit: 0"),
        ("odd", "mine.py:odd: raised Odd: Odd"),
    ):
        assert refused(load, f"mine.py:{name}").startswith(message)
    assert "defines no 'tabel' (did you mean 'table'?)" in refused(load, "mine.py:tabel")
    data = load("mine.py:source")
    np.testing.assert_array_equal(data.X_train, np.eye(4))
    assert data.decided == ("source: unit vectors (code)", "split: twice")
    assert refused(load, "mine.py:source", {"target": "y"}).startswith("mine: takes no parameters")
