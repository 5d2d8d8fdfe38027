"""Comma-separated numbers as published, and a wrong line by its number."""

import gzip
import io
import lzma
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from marginbench.data_loaders import load

from .conftest import refused

#: Rows of Covertype's kind: 54 integers and a class from 1 to 7.
FOREST = np.random.default_rng(0).integers(0, 4000, (80, 55))
FOREST[:, 54] = np.arange(80) % 7 + 1
SIGNS = np.where(FOREST[:, 54] == 2, 1, -1)


def csv(table, form="%d"):
    text = io.BytesIO()
    np.savetxt(text, table, fmt=form, delimiter=",")
    return text.getvalue()


SAMPLE = csv(np.column_stack((SIGNS, FOREST[:, :54])))


def test_covtype(published):
    source = published("covtype", gzip.compress(csv(FOREST)))
    data = load(source)
    test, X, classes = np.arange(80) % 10 == 0, FOREST[:, :54], FOREST[:, 54]
    np.testing.assert_array_equal(data.y_train, SIGNS[~test])
    low, high = X[~test].min(axis=0), X[~test].max(axis=0)
    np.testing.assert_allclose(data.X_test, (X[test] - low) / (high - low), rtol=1e-6, atol=1e-7)
    raw = load(source, {"positive": "none", "scale": "none"})
    np.testing.assert_array_equal(raw.X_train, X[~test])
    np.testing.assert_array_equal(raw.y_test, classes[test])
    assert load(source, {"positive": 7}).y_train.sum() < 0


def test_the_sample_of_covtype_in_another_spelling(published):
    text = SAMPLE.replace(b",", b" , ").replace(b"\n", b"\r\n")
    source = published("covtype-sample", lzma.compress(text))
    data, test = load(source, {"scale": "none"}), np.arange(80) % 3 == 2
    np.testing.assert_array_equal(data.X_test, FOREST[test, :54])
    np.testing.assert_array_equal(data.y_test, SIGNS[test])
    X = load(source).X_train
    assert (X.shape, X.min(), X.max()) == ((54, 54), 0, 1)


def test_susy(published):
    rng = np.random.default_rng(1)
    table = np.column_stack((np.arange(30) % 2, rng.normal(size=(30, 18)).astype(np.float32)))
    source = published("susy", gzip.compress(csv(table, "%.18e")))
    assert "SUSY.csv.gz: 30 rows, but the last 500000 alone are the test" in refused(load, source)
    short = replace(source, read=partial(source.read, last=30))
    assert "SUSY.csv.gz: 30 rows, but the last 30 alone are the test part" in refused(load, short)
    data = load(replace(source, read=partial(source.read, last=10)))
    np.testing.assert_array_equal(data.X_train, table[:20, 1:])
    np.testing.assert_array_equal(data.X_test, table[20:, 1:])
    np.testing.assert_array_equal(data.y_train, np.where(table[:20, 0] == 1, 1, -1))


def connection(words, label, **numbers):
    """A line of the KDD Cup: numbers by column, from 1, all others 0."""
    columns = ["0"] * 41
    columns[1:4] = words.split()
    for column, number in numbers.items():
        columns[int(column[1:]) - 1] = f"{number:g}"
    return ",".join([*columns, label]).encode() + b"\n"


KDD_TRAIN = connection("udp http SF", "normal.", c1=2, c5=1000) + connection(
    "tcp smtp SF", "smurf.", c5=500, c41=0.5
)
KDD_TEST = connection("tcp icmp REJ", "guess.", c1=1, c5=2000, c6=3) + connection(
    "udp smtp SF", "normal.", c41=0.25
)


def test_kdd99(published):
    source = published("kdd99", gzip.compress(KDD_TRAIN), gzip.compress(KDD_TEST))
    data = load(source)
    # 38 numbers; then tcp, udp; http, smtp; SF: the words of the training file.
    dense = np.zeros((4, 38 + 2 + 2 + 1))
    dense[0, [0, 1, 39, 40, 42]] = 1
    dense[1, [1, 37, 38, 41, 42]] = [0.5, 1, 1, 1, 1]
    dense[2, [0, 1, 38]] = [0.5, 2, 1]  # column 6 is 0 in the training file
    dense[3, [37, 39, 41, 42]] = [0.5, 1, 1, 1]
    np.testing.assert_array_equal(data.X_train.toarray(), dense[:2])
    np.testing.assert_array_equal(data.X_test.toarray(), dense[2:])
    assert data.X_train.dtype == np.float32
    assert [*data.y_train, *data.y_test] == [1, -1, -1, 1]
    raw = load(source, {"scale": "none"})
    assert raw.X_train[0, [0, 1]].toarray().tolist() == [[2, 1000]]
    assert raw.X_test[0, 2] == 3


@pytest.mark.parametrize(
    ("name", "line", "complaint"),
    [
        ("covtype-sample", b"1,0,0,-inf", ", line 81: column 4 is -inf, not a finite number"),
        ("covtype-sample", b"1,,0,0", ": In CSV column #1: Row #81: "),
        ("covtype-sample", b"1,\x00\xff\x1b[31m,0,0", ": In CSV column #1: Row #81: "),
        ("covtype-sample", b"1,0,0", ": CSV parse error: Row #81: Expected 55 columns, got 54"),
        ("covtype-sample", b"2,0,0,0", ", line 81: label 2 is not one of the 2 classes -1, 1"),
        ("covtype-sample", b"", ": In CSV column #0: Row #81: "),
        ("kdd99", b"1,2,3\n", ": CSV parse error: Row #3: Expected 42 columns, got 3"),
        ("kdd99", connection("udp http SF", "x", c6=-1), ", line 3: column 6 is -1; none may be"),
        ("kdd99", connection("udp http SF", "x", c9=np.inf), ", line 3: column 9 is inf, not a f"),
    ],
)
def test_a_wrong_line_is_named(published, name, line, complaint):
    if name == "kdd99":
        files, file = [KDD_TRAIN + line, KDD_TEST], "kddcup.data.gz"
    else:
        line += b",0" * 51 if line else b""  # every other cell
        files, file = [SAMPLE + line + b"\n" + SAMPLE], "covtype_union_binary_raw.csv"
    assert f"{file}{complaint}" in refused(load, published(name, *files))
