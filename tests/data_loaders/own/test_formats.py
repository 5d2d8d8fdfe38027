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
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file, load_svmlight_file, load_wine

from marginbench.data_loaders import DataError, import_data, load

ARFF = """% a comment
@RELATION people
@attribute age NUMERIC
@attribute 'job' {clerk, smith, 'blue collar'}
@attribute income real
@attribute town {Ålesund, Bern}
@attribute y {no, yes}
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
    "a.csv.bz2": packed(bz2.compress),
    "a.csv.xz": packed(lzma.compress),
    "wrong-name.csv": packed(gzip.compress),
    "a.parquet": lambda frame, path: frame.to_parquet(path),
    "polars.parquet": lambda frame, path: pl.from_pandas(frame).write_parquet(path),
    "categories.parquet": lambda frame, path: frame.astype({"job": "category"}).to_parquet(path),
    "a.arff": write_arff,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_table_is_the_same_in_every_format(frame, here, name):
    frame.to_csv("plain.csv", index=False)
    plain = load("plain.csv", {"target": "y"})
    WRITERS[name](frame, here / name)
    data = load(name, {"target": "y"})
    assert data.fingerprint == plain.fingerprint
    assert data.decided == plain.decided
    # Its own file, and nothing of what was needed on the way.
    folder = here.parent / "cache" / "datasets" / "own"
    kept = {path.suffix for path in folder.iterdir()}
    # Windows removes the file of a lock.
    assert kept - {".lock"} == {".parquet"}


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "arrays", "bunch"])
def test_tables_in_memory(frame, here, kind):
    frame.to_csv("plain.csv", index=False)
    X, y = frame.drop(columns="y"), frame["y"]
    given = {
        "pandas": (frame,),
        "polars": (pl.from_pandas(frame),),
        "arrow": (pl.from_pandas(frame).to_arrow(),),
        "arrays": (X, y),
        "bunch": ({"data": X, "target": y, "frame": None},),
    }
    assert import_data("people", *given[kind]) == "people"
    assert load("people").fingerprint == load("plain.csv").fingerprint


def test_categories_of_numbers_are_declared_by_their_type(here):
    frame = pd.DataFrame({"code": [10, 2, 10, 3] * 5, "y": ["a", "b"] * 10})
    import_data("codes", frame.astype({"code": "category"}), test="last 4")
    frame.to_csv("codes.csv", index=False)
    listed = load("codes.csv", {"test": "last 4", "categorical": ["code"]})
    assert load("codes").fingerprint == listed.fingerprint
    np.testing.assert_array_equal(listed.X_test, [[0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]])


def test_arrays_are_the_same_from_numpy_files(here):
    wine = load_wine()
    y = wine.target
    np.savez("wine.npz", X=wine.data, y=y)
    np.savez_compressed(
        "parts.npz", X_train=wine.data, y_train=y, X_test=wine.data[::3], y_test=y[::3]
    )
    frame = pd.DataFrame(wine.data, columns=wine.feature_names).assign(target=y)
    frame.to_csv("wine.csv", index=False)
    import_data("wine", wine)
    found = [load(name) for name in ("wine", "wine.npz", "wine.csv")]
    assert len({data.fingerprint for data in found}) == 1
    parts = load("parts.npz", {"scale": "none"})
    np.testing.assert_array_equal(parts.X_test, wine.data[::3].astype(np.float32))
    np.testing.assert_array_equal(parts.y_train, y)
    assert parts.y_train.dtype == np.int64


@pytest.mark.parametrize("name", ["x", "x.txt", "x.libsvm.gz", "x.svm"])
def test_libsvm_text(here, name):
    generator = np.random.default_rng(3)
    X = csr_matrix(generator.random((30, 8)) * (generator.random((30, 8)) < 0.3))
    y = np.arange(30) % 2 * 2 - 1
    dump_svmlight_file(X, y, "plain", zero_based=False)
    raw = Path("plain").read_bytes()
    (here / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    X, _ = load_svmlight_file("plain", n_features=8)
    data = load(name, {"test": "last 10"})
    np.testing.assert_array_equal(data.X_train.toarray(), X.toarray()[:20].astype(np.float32))
    np.testing.assert_array_equal(data.y_test, y[20:])
    import_data("rows", X[:20], y[:20], X_test=X[20:], y_test=y[20:])
    assert load("rows").fingerprint == data.fingerprint


@pytest.mark.parametrize("scale", ["standard", "minmax", "unit", "norm"])
def test_sparse_rows_are_scaled_like_tables(here, scale):
    generator = np.random.default_rng(4)
    X = generator.random((40, 5)).round(3) * (generator.random((40, 5)) < 0.5)
    y = np.arange(40) % 2
    dump_svmlight_file(X, y, "x.txt", zero_based=False)
    np.savez("x.npz", X=X, y=y)
    sparse, dense = (load(name, {"scale": scale}) for name in ("x.txt", "x.npz"))
    rows = sparse.X_test.toarray() if scale == "norm" else sparse.X_test
    np.testing.assert_allclose(rows, dense.X_test, rtol=1e-6, atol=1e-6)


def test_sparse_arff_is_its_dense_form(here):
    head = "@relation r\n@attribute a numeric\n@attribute b {u,v}\n@attribute y {n,p}\n@data\n"
    Path("dense.arff").write_text(head + "0,v,n\n2,u,p\n0,u,p\n-1.5,v,n\n")
    Path("sparse.arff").write_text(head + "{1 v}\n{0 2, 2 p}\n{2 p}\n{0 -1.5, 1 'v'}\n")
    options = {"test": "last 2", "scale": "none"}
    dense, sparse = (load(f"{kind}.arff", options) for kind in ("dense", "sparse"))
    assert dense.fingerprint == sparse.fingerprint
    np.testing.assert_array_equal(dense.X_train, [[0, 0, 1], [2, 1, 0]])


def test_a_folder_with_a_training_and_a_test_file(frame, here):
    (here / "people").mkdir()
    frame[:40].to_csv("people/train.csv", index=False)
    frame[40:].to_parquet("people/test.parquet")
    (here / "people" / "README").write_text("nothing")
    frame.to_csv("whole.csv", index=False)
    assert load("people").fingerprint == load("whole.csv", {"test": "last 20"}).fingerprint
    shutil.copy("people/train.csv", "people/train.tsv")
    with pytest.raises(DataError, match=r"people: 2 files train\.\* in this folder"):
        load("people")


def test_a_table_without_names(here):
    Path("x.csv").write_text("".join(f"{k},{-k},{'pn'[k % 2]}\n" for k in range(20)))
    data = load("x.csv", {"scale": "none"})
    assert data.n_train + data.n_test == 20
    assert data.decided[0].startswith("target: column 'column 3': +1 = 'p'")
    assert data.decided[-2:] == (
        "header: none; columns are numbered",
        "hint: column 'column 1' only numbers the rows; add it to drop",
    )
    numbered = load("x.csv", {"scale": "none", "target": -1, "drop": 2})
    assert numbered.n_features == 1


def test_numbers_that_are_found_again_below_are_no_names(here):
    Path("x.csv").write_text("0,1\na,n\n0,p\nb,n\na,p\n")
    data = load("x.csv", {"test": "last 2"})
    assert (data.n_train, data.decided[-1]) == (3, "header: none; columns are numbered")


def test_code_of_ones_own(frame, here):
    frame.to_csv("plain.csv", index=False)
    (here / "mine.py").write_text(
        "import pandas as pd\n"
        "import pathlib\n"
        "def table():\n"
        "    log = pathlib.Path(__file__).with_name('log')\n"
        "    log.write_text(log.read_text() + 'x' if log.exists() else 'x')\n"
        "    return pd.read_csv(pathlib.Path(__file__).with_name('plain.csv'))\n"
        "def pair():\n"
        "    found = table()\n"
        "    return found.drop(columns='y'), found['y']\n"
        "def number():\n"
        "    return 7\n"
    )
    assert load("mine.py:table").fingerprint == load("plain.csv").fingerprint
    assert load("mine.py:table").decided
    assert (here / "log").read_text() == "x"  # the code ran once
    assert load("mine.py:pair").fingerprint == load("plain.csv").fingerprint
    with pytest.raises(DataError, match=r"^mine.py:number: is a int; expected a table, a Bunch"):
        load("mine.py:number")
    for ending, told in (("raise SystemExit(0)", "SystemExit: 0"), ("raise Odd", "Odd: Odd")):
        (here / "ends.py").write_text(f"class Odd(BaseException): ...\ndef data():\n    {ending}\n")
        with pytest.raises(DataError, match=rf"^ends\.py:data: raised {told}$"):
            load("ends.py:data")
    with pytest.raises(DataError, match=r"defines no 'tabel' \(did you mean 'table'\?\)"):
        load("mine.py:tabel")


def test_a_source_in_a_file_of_ones_own(here):
    (here / "mine.py").write_text(
        "import numpy as np\n"
        "from marginbench.data_loaders import Source\n"
        "from marginbench.data_loaders.content import Content, Part\n"
        "def read(files, params):\n"
        "    part = Part(np.eye(4), np.array([1, -1, 1, -1], dtype=np.int8))\n"
        "    return Content(part, part)\n"
        "source = Source('mine', 'unit vectors', 'code', 'twice', read, 'CC0', '@misc{mine}')\n"
    )
    data = load("mine.py:source")
    np.testing.assert_array_equal(data.X_train, np.eye(4))
    assert data.decided == ("source: unit vectors (code)", "split: twice")
    with pytest.raises(DataError, match=r"^mine: takes no parameters"):
        load("mine.py:source", {"target": "y"})
