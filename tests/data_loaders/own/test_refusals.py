"""What is wrong with a file is told in one line: file, line, column, value, remedy."""

import gzip
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from marginbench.data_loaders import import_data, imported, load, remove_imported
from marginbench.data_loaders.own import formats
from marginbench.data_loaders.own.finding import is_own

from ..conftest import refused

PRICES = "x,price\n" + "".join(f"{k},{k * 0.37:.2f}\n" for k in range(60))
PERSONS = "who,y\n" + "".join(f"person {k},{k % 2}\n" for k in range(2000))
GOOD = "age,job,y\n31,a,no\n42,b,yes\n53,a,no\n64,b,yes\n"


TWO = "@attribute a numeric\n@attribute y {n,p}\n@data\n"
EMPTY = "age,job,y\n" + ",a,no\n,b,yes\n" * 4 + "1,,yes\n"
FAR = "x,y\n" + "1e308,a\n-1e308,b\n" * 20
CLOSE = "x,y\n" + "".join(f"{k}e-200,{'ab'[k % 2]}\n" for k in range(40))
TESTED = "s,a,y\ntrain,1,n\nTest,2,p\n,3,p\n"


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "x.csv: the file is empty"),
        ("age,job,y\n", {}, "x.csv: there are no rows; is this the right file?"),
        (GOOD + "75,a\n", {}, "x.csv, line 6: Expected 3 columns, got 2: 75,a (separator ','; set"),
        ("\n" + GOOD.replace("42,b,yes", "42,b,yes,9"), {}, "x.csv, line 4: Expected 3 columns, g"),
        (GOOD.replace("42", "?"), {}, "x.csv, line 3: column 'age' has no value; set missing to '"),
        (GOOD.replace("42,b,yes", "42,b,"), {}, "x.csv, line 3: column 'y' has no value; set miss"),
        ("age,note,y\n" + '31,"two\nlines",no\n' * 3 + ",b,yes\n", {}, "x.csv, line 8: column 'ag"),
        (GOOD.replace("42", "inf"), {}, "x.csv, line 3: column 'age' is 'inf', not a finite numbe"),
        ("a,y\n" + "1,b\n2,c\n3,b\n" * 3 + "1 7,b\n", {}, "x.csv, line 11: column 'a' is '1 7', n"),
        (GOOD.replace("job", "age"), {}, "x.csv: columns 1 and 2 have the same name 'age'; rename"),
        (GOOD.replace("yes", "no"), {}, "x.csv: one class only ('no') in the training part; two a"),
        ("y\na\nb\n", {}, "x.csv: there is no column beside the target 'y'"),
        (PRICES, {}, "x.csv: the target 'price' has 60 distinct values; is it a regression target"),
        (PERSONS, {}, "x.csv: column 'who' holds texts, 1400 distinct ones in the training part ("),
        (b"age,y\n\xe9,a\n3,b\n", {}, "x.csv, line 2: not UTF-8 text; convert the file"),
        (b"\xe9,y\n1,a\n3,b\n", {}, "x.csv, line 1: not UTF-8 text; convert the file"),
        (GOOD.encode("utf-16"), {}, "x.csv, line 1: not UTF-8 text; convert the file to UTF-8"),
        (b"PK\x03\x04\x00\x00\x00", {}, "x.csv: is not text (it holds zero bytes); set format"),
        ('age,y\n1,a\n2,b\n"3,a\n', {}, "x.csv"),
        (EMPTY, {"missing": "drop"}, "x.csv: no rows are left: each has a missing value; set"),
        (EMPTY, {"missing": "mean", "test": "last 3"}, "x.csv: column 'age' has no value in the t"),
        (FAR, {"scale": "standard"}, "x.csv: column 'x' has values from -1e+308 to 1e+308, which"),
        (FAR, {"scale": "minmax"}, "x.csv: column 'x' has values from -1e+308 to 1e+308, which ca"),
        (FAR, {"scale": "unit"}, "x.csv: column 'x' has values from -1e+308 to 1e+308, which cann"),
        (CLOSE, {}, "x.csv: column 'x' has values from 0 to 3.7e-199, which cannot be scaled in d"),
        (TESTED, {"split": "s"}, "x.csv, line 4: column 's' is 'None'; a column of the split says"),
        # What the options ask for.
        (GOOD, {"target": "yy"}, "x.csv: target = 'yy': there is no such column (did you mean 'y'"),
        (GOOD, {"target": 4}, "x.csv: target = 4, but there are 3 columns"),
        (GOOD, {"target": 0}, "x.csv: target must be the name of a column or its number from 1"),
        (GOOD, {"target": True}, "x.csv: target must be the name of a column or its number from 1"),
        (GOOD, {"numeric": ["job"]}, "x.csv: column 'job' is listed in numeric, but none of its t"),
        (GOOD, {"drop": ["y"], "target": "y"}, "x.csv: the target 'y' is dropped as well"),
        (GOOD, {"drop": ["age", "job", "y"]}, "x.csv: all columns are dropped"),
        (GOOD, {"positive": "Yes!"}, "x.csv: positive = 'Yes!' is no class (did you mean 'yes'?)"),
        (GOOD, {"positive": 1}, "x.csv: positive = '1' is no class (classes: no, yes)"),
        (GOOD, {"scale": "std"}, "x.csv: scale must be one of 'standard', 'minmax', 'unit', 'norm"),
        (GOOD, {"split_seed": -1}, "x.csv: split_seed must be between 0 and 9223372036854775807"),
        (GOOD, {"header": "yes"}, "x.csv: header must be true or false, got 'yes'"),
        (GOOD, {"test_fraction": 1}, "x.csv: test_fraction must be a number between 0 and 1, got "),
        (GOOD, {"test_fraction": 0}, "x.csv: test_fraction must be a number between 0 and 1, got "),
        (GOOD, {"split": "job"}, "x.csv, line 2: column 'job' is 'a'; a column of the split says"),
        (GOOD, {"split": "job", "test": "last 2"}, "x.csv: split and test exclude each other"),
        (GOOD, {"test": "last four"}, "x.csv: test must be a file or 'last N', got 'last four'"),
        (GOOD, {"test": "last 4"}, "x.csv: no rows are left for the training part"),
        (GOOD, {"separator": ";;"}, "x.csv: separator must be one character, such as ';', got ';;"),
        (GOOD, {"header": False}, "x.csv, line 1: column 'column 1' is 'age', above numbers alone"),
        (GOOD, {"taget": "y"}, "x.csv: unknown option 'taget' (did you mean 'target'?)"),
        (GOOD, {"format": "libsvm"}, "x.csv, line 1: label 'age,job,y' is not an integer of at mo"),
        (GOOD, {"drop": "age", "numeric": "age"}, "x.csv: column 'age' is in drop and in numeric"),
        (GOOD, {"numeric": 1, "categorical": "age"}, "x.csv: column 'age' is in numeric and in ca"),
        (GOOD, {"format": "arff"}, "x.csv, line 5: '64,b,yes' is not ARFF of numbers"),
        (GOOD, {"format": "parquet"}, "x.csv: not a Parquet file that can be read ("),
        (GOOD, {"format": "npz"}, "x.csv: not a NumPy file of arrays of numbers and texts ("),
        (GOOD, {"test_fraction": 10**400}, "x.csv: test_fraction must be a number between 0 and 1"),
        (GOOD, {"positive": 10**400}, "x.csv: positive = '1000"),
        # Other formats.
        ("@data\n1\n", {}, "x.arff, line 1: '@data' is not ARFF"),
        ("@attribute a numeric\n", {}, "x.arff, line 1: '@attribute a numeric' is not ARFF"),
        ("@attribute a date\n", {}, "x.arff, line 1: '@attribute a date' is not ARFF"),
        (TWO + "1,n\n%\nx,p\n", {}, "x.arff, line 6: 'x,p' is not ARFF"),
        (TWO + "1,n\n2,q\n", {}, "x.arff, line 5: '2,q' is not ARFF"),
        (TWO + "{0 1}\n{2 p, 0 2}\n", {}, "x.arff, line 5: '{2 p, 0 2}' is not ARFF"),
        (TWO + "1\n", {}, "x.arff, line 4: '1' is not ARFF"),
        (TWO + "1,n\n\n1_000,p\n", {}, "x.arff, line 6: '1_000,p' is not ARFF"),
        (TWO + "1,n\nNaN,p\n", {}, "x.arff, line 5: 'NaN,p' is not ARFF"),
        (TWO + "{0 1,0 2,1 p}\n", {}, "x.arff, line 4: '{0 1,0 2,1 p}' is not ARFF"),
        ((TWO + "% é\n").encode("latin-1"), {}, "x.arff, line 4: not UTF-8 text; convert"),
        ("1 1:2\n0.5 1:1\n", {}, "x.txt, line 2: label '0.5' is not an integer of at most"),
        ("1 1:2\n-1 0:1\n", {}, "x.txt, line 2: '0:1' is not an index from 1 to"),
        ("", {}, "x.xlsx: the format of '.xlsx' is not known; set format, or rename it"),
        ("", {}, "x.py: name what makes the data in it too, as in x.py:load"),
        ("1 1:2\n-1 1:3\n", {"numeric": "label"}, "x.txt: sparse rows hold numbers alone; remove "),
        (
            "1 5001:1\n0 1:1\n" * 9,
            {"scale": "unit"},
            "x.txt: scale = 'unit' would make 5001 sparse f",
        ),
        # It would be read as the number before it.
        ("9007199254740993 1:1\n", {}, "x.txt, line 1: label '9007199254740993' is not an integer"),
        ("-9007199254740994 1:1\n", {}, "x.txt, line 1: label '-9007199254740994' is not an integ"),
        ("1e300 1:1\n", {}, "x.txt, line 1: label '1e300' is not an integer of at most 9007199254"),
    ],
)
def test_what_is_wrong_is_told(refusal, content, options, message):
    name = re.match(r"[\w.]+", message)[0]
    assert refusal(content, name, **options).startswith(message)


def test_text_of_a_file_cannot_break_a_line(here, refusal):
    content = '"a\nb",\x1b[31mred,y\n' + "".join(f"{k},u{k % 3},{k % 2}\n" for k in range(20))
    assert refusal(content, target="zzzzz").endswith("(columns: a\\nb, \\x1b[31mred, y)")
    data = load("x.csv")
    assert "one-hot: \\x1b[31mred (3)" in data.decided[2]
    assert all(line.isprintable() for line in data.decided)


def test_what_a_killed_process_left_is_removed(here, loaded):
    loaded(GOOD, test="last 2")
    (path,) = (here.parent / "cache" / "datasets" / "own").glob("*.parquet")
    left = path.with_name(f".{path.stem}.partial-unpacked-x.npz")
    left.write_bytes(b"half a file")
    path.unlink()
    loaded(GOOD, test="last 2")
    assert path.exists()
    assert not left.exists()


@pytest.mark.parametrize(
    ("text", "test", "message"),
    [
        (GOOD, GOOD.replace("job", "jobs"), "t.csv: the column 'job' of x.csv is missing (did you"),
        (GOOD, GOOD.replace("31,a,no", "31,a,maybe"), "x.csv: the class 'maybe' occurs in the tes"),
        (GOOD, GOOD.replace("31", "old"), "t.csv, line 2: column 'age' is 'old', not a finite num"),
        # Without names nothing says which column is one too many.
        ("1,2,no\n3,4,yes\n" * 2, "1,2,5,no\n3,4,6,yes\n", "t.csv: 4 columns, but x.csv has 3; w"),
    ],
)
def test_a_test_file_lacks_a_column_or_has_other_classes(here, text, test, message):
    Path("x.csv").write_text(text)
    Path("t.csv").write_text(test)
    assert refused(load, "x.csv", {"test": "t.csv"}).startswith(message)


def test_a_file_that_changes_while_it_is_read(here, refusal, monkeypatch):
    read = formats.read_csv

    def slowly(*given):
        Path("x.csv").write_text(GOOD + "70,a,no\n")
        return read(*given)

    monkeypatch.setattr(formats, "read_csv", slowly)
    message = refusal(GOOD, test="last 2")
    assert message.startswith("x.csv: changed while it was read; run the command again")
    assert list((here.parent / "cache" / "datasets" / "own").glob("*.parquet")) == []


def test_registered_and_imported_names_come_before_files(here):
    Path("digits").write_text("1 1:1\n-1 1:2\n1 1:3\n-1 1:4\n")
    assert load("digits").n_features == 64
    assert load("./digits").n_features == load(Path("digits")).n_features == 1
    message = refused(import_data, "digits", "./digits")
    assert message.startswith("dataset name 'digits': is that of a registered dataset")
    import_data("mine", "./digits", scale="minmax")
    Path("mine").write_text("no data")
    assert load("mine").n_features == 1
    message = refused(load, "mine", {"scale": "none"})
    assert message.startswith("mine: was imported with its options; it takes none")
    (item,) = imported()
    assert item.decided == load("mine").decided
    assert "unknown dataset 'mne' (did you mean 'mine'?)" in refused(load, "mne")
    remove_imported("mine")
    assert imported() == []


def test_damaged_imported_data_are_named(here):
    import_data("mine", pd.DataFrame({"x": range(10), "y": [0, 1] * 5}))
    path = here.parent / "cache" / "datasets" / "imported" / "mine.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-50])
    assert [item.state for item in imported()] == ["damaged"]
    with pytest.warns():
        assert refused(load, "mine").startswith("mine: was imported; import it again")


def test_arrays_and_tables_in_memory(here):
    X, y, huge = np.eye(4), np.array([0, 1, 0, 1]), [[10**400], [1], [2], [3]]
    twice = pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["a", "a"])
    lists = pa.table({"a": [[1], [2]], "y": ["n", "p"]})
    frame = pd.DataFrame({"x": [1.0, np.inf, 3.0, 4.0], "y": y})
    when = frame.assign(x=1.0, when=pd.Timestamp("2020-01-01"))
    for given, message in [
        ((twice,), "mine: columns 1 and 2 have the same name 'a'"),
        ((lists,), "mine: column 'a' is of type list<item: int64>; make it numbers or texts, or "),
        ((when,), "mine: column 'when' is of type timestamp"),
        ((frame,), "mine, row 2: column 'x' is 'inf', not a finite"),
        ((X, y[:3]), "mine: 4 rows in X but 3 in y"),
        ((X, np.eye(4)), "mine: y has the shape (4, 4); expected one class for each row"),
        ((X, np.array(1)), "mine: y has the shape (); expected one class for each row"),
        ((np.array(3.0), [1]), "mine: X has the shape (); expected (rows, features)"),
        ((X.astype(str).astype(object) + "x", y), "mine: not numbers alone in X"),
        ((1j * X, y), "mine: not numbers alone in X; give a table with named columns (it holds c"),
        ((X.astype("M8[D]"), y), "mine: not numbers alone in X; give a table with named columns ("),
        ((huge, y), "mine: not numbers alone in X; give a table with named columns (int too l"),
        ((sparse.csr_matrix(X), [0, None, 1, 0]), "mine, row 2: column 'target' has no value"),
        ((X, pd.Series([1, 0, pd.NA, 1], dtype=object)), "mine, row 3: column 'target' has no val"),
        ((sparse.csr_matrix([[np.nan]] * 4), y), "mine: a feature is NaN"),
        (({"X": X},), "mine: has the arrays X; expected X and y, or X_train"),
        ((3,), "mine: is a int; expected a table, a Bunch"),
    ]:
        assert refused(import_data, "mine", *given).startswith(message)
    for kind in (np.asarray, sparse.csr_matrix):
        wider = {"X_test": kind(np.eye(5)), "y_test": [0, 1, 0, 1, 0]}
        message = refused(import_data, "mine", kind(X), y, **wider)
        assert re.match(r"mine \(test part\): \d columns, but", message)
    large = frame.replace(np.inf, 1e300)
    message = refused(import_data, "mine", large, scale="none", test="last 2")
    assert message == "mine, row 2: a feature is too large for float32; scale or drop it"
    assert "give both X_test and y_test, or none" in refused(import_data, "mine", X, y, X_test=X)
    twice = {"X_test": X, "y_test": y, "test": "last 2"}
    assert "mine: has a test part already;" in refused(import_data, "mine", X, y, **twice)
    assert "mine: a path comes without y, " in refused(import_data, "mine", "x.csv", y)
    assert imported() == []
    import_data("mine", when, drop="when", test="last 2")
    assert load("mine").n_features == 1
    assert refused(import_data, "mine", X, y).startswith("mine: was imported before; remove it")
    # Images are rows of their pixels, a column of classes is that of an array.
    images = np.random.default_rng(0).random((4, 2, 3))
    import_data("images", images, y[:, None], test="last 2")
    import_data("pixels", images.reshape(4, 6), y, test="last 2")
    assert load("images").fingerprint == load("pixels").fingerprint
    import_data("wide", sparse.csr_matrix(np.eye(4, 6)), y, test="last 2")
    assert load("wide").n_features == 6  # the last two are zero
    taken = pd.DataFrame({"target": [1.0, 2.0, 3.0, 4.0], "target_": [1.0, 0.0, 0.0, 1.0]})
    import_data("taken", taken, y, test="last 2")
    assert load("taken").n_features == 2


def test_paths_and_numbers_of_any_length(here):
    for name in ("x" * 300 + ".csv", "x" * 300 + "/a.csv"):
        assert "cannot be read (File name too long" in refused(load, name)
    Path("a\tb.csv").write_text(GOOD * 9)
    assert refused(load, "a_b.csv") == "a_b.csv: no such file (did you mean 'a\\tb.csv'?)"
    assert refused(load, "b/a_b.csv") == "b/a_b.csv: no such file"
    path, dropped = Path("a\tb.csv"), {"drop": "age"}
    assert load(path, dropped).fingerprint == load("a\tb.csv", dropped).fingerprint


def test_a_name_that_is_a_number_comes_before_the_place_of_a_column(here):
    frame = pd.DataFrame({0: np.arange(40) % 7, 1: [0, 1] * 20, 2: np.arange(40) % 3})
    import_data("mine", frame, target=1)
    assert set(load("mine").y_train) == {-1, 1}
    for name, target in (("last", -1), ("third", 3)):
        import_data(name, frame, target=target)
        assert set(load(name).y_train) == {0, 1, 2}


@pytest.mark.parametrize("where", [(formats.pacsv, "read_csv"), (pq, "ParquetWriter")])
def test_reading_or_writing_beyond_memory_ends_in_one_line(refusal, monkeypatch, where):
    def beyond(*given, **named):
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    monkeypatch.setattr(*where, beyond)
    assert refusal(GOOD, test="last 2") == (
        "x.csv: does not fit into memory (malloc of size 9 failed)"
    )


def test_what_is_no_name_is_refused_in_one_line():
    for given in (np.eye(3), None):
        assert refused(load, given).startswith("a dataset is a name, a path or a Source, got ")
    for name in ("Two Words", "x" * 81, 7):
        message = refused(import_data, name, np.eye(4), [0, 1, 0, 1])
        assert message.startswith(f"dataset name {name!r}: use up to 80 lower-case letters")
    assert not is_own("9" * 5000)
    assert not is_own("a\0b")


def test_a_file_that_memory_does_not_hold_is_refused(refusal, monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=172))
    message = refusal(GOOD)
    assert message.startswith("x.csv: 44 bytes; data are read into memory, at most 43")
    table = GOOD + GOOD.partition("\n")[2] * 9
    monkeypatch.setenv("MARGINBENCH_MAX_FILE_BYTES", str(len(table)))
    Path("x.csv").write_text(table)
    Path("just.csv.gz").write_bytes(gzip.compress(table.encode()))
    for name in ("x.csv", "just.csv.gz"):
        assert load(name, {"test": "last 2"}).n_train == 38
    message = refusal(gzip.compress(table.encode() + b"\n"), "x.csv.gz")
    assert message.startswith(f"x.csv.gz: expands to more than {len(table)} bytes; if you trust")
