"""Entries of the table, from small files of the published formats that a local server offers."""

import bz2
import gzip
import io
import tarfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse

from marginbench.data_loaders import find, libsvm, load
from marginbench.data_loaders.content import Content, Part
from marginbench.data_loaders.files import RemoteFile

from .conftest import refused
from .test_readers import packed


@pytest.fixture
def offered(server, mirror):
    """Offer files at the local server in place of those of an entry of the table."""

    def offer(name, *contents):
        source = find(name)
        folder = mirror / "published"
        folder.mkdir(exist_ok=True)
        for file, data in zip(source.files, contents, strict=True):
            (folder / file.name).write_bytes(data)
        here = tuple(
            RemoteFile(file.name, (f"{server}/published/{file.name}",)) for file in source.files
        )
        return replace(source, files=here, fingerprint=None)

    return offer


IJCNN = bz2.compress(b"-1.0 6:1 11:-0.7\n1.0 22:1\n")
HEART = b"+1 1:1 13:-1\n-1 2:1\n" * 6
AUT_AVN = (gzip.compress(b"".join(b"%d:0.5 20707:1 \n" % k for k in range(1, 11))), b"1\n-1\n" * 5)
REAL_SIM = bz2.compress(b"".join(b"%d %d:0.5 20958:1\n" % ((-1) ** k, k + 1) for k in range(12)))
WEB = (b"-1 7:1 300:1\n+1 1:1\n", b"+1 2:1\n-1\n")
ASTRO = b"# 2 abstracts\n1 3:0.25 99757:0.5 # 9801001\n-1 1:1 # hep-ph/9801002\n"


@pytest.mark.parametrize(
    ("name", "files", "shape", "entries", "labels"),
    [
        # Entries of the test part by row and column; its labels.
        ("ijcnn1", (IJCNN, IJCNN), (2, 2, 22), {(0, 5): 1, (0, 10): -0.7, (1, 21): 1}, [-1, 1]),
        ("reuters_moneyfx", (IJCNN, IJCNN), (2, 2, 8315), {(0, 5): 1, (1, 21): 1}, [-1, 1]),
        ("heart", (HEART,), (8, 4, 13), {(0, 0): 1, (1, 1): 1}, [1, -1] * 2),
        ("web8", WEB, (2, 2, 300), {(0, 1): 1}, [1, -1]),
        ("astro-ph", (ASTRO, b"-1 2:1\n1 4:1 #\n"), (2, 2, 99757), {(1, 3): 1}, [-1, 1]),
        ("real-sim", (REAL_SIM,), (10, 2, 20958), {(0, 4): 0.5, (1, 9): 0.5}, [1, -1]),
        ("aut-avn", AUT_AVN, (8, 2, 20707), {(0, 4): 0.5, (1, 9): 0.5, (1, 20706): 1}, [1, -1]),
    ],
)
def test_text_files_as_published(offered, name, files, shape, entries, labels):
    data = load(offered(name, *files))
    assert (data.n_train, data.n_test, data.n_features) == shape
    assert issparse(data.X_train) == (name not in ("ijcnn1", "heart"))
    assert data.X_train.dtype == np.float32
    for place, value in entries.items():
        assert data.X_test[place] == np.float32(value)
    assert data.y_test.tolist() == labels


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        (b"1\n-1\n" * 4, "aut-avn.labels: 8 labels for the 10 points of"),
        (b"1 1:1\n-1 2:1\n" * 5, "line 2: '2:1' is not an index from 1 to 1, a colon"),
        (b"1\n" * 10, "aut-avn.labels: one class only"),
    ],
)
def test_aut_avn_needs_a_label_for_each_point(offered, labels, complaint):
    assert complaint in refused(load, offered("aut-avn", b"1:1\n" * 10, labels))


def forest(n=80):
    """Rows of Covertype's kind: 54 integers and a class from 1 to 7."""
    table = np.random.default_rng(0).integers(0, 4000, (n, 55))
    table[:, 54] = np.arange(n) % 7 + 1
    return table


def csv(table, form="%d"):
    text = io.BytesIO()
    np.savetxt(text, table, fmt=form, delimiter=",")
    return text.getvalue()


def test_covtype(offered):
    table = forest()
    source = offered("covtype", gzip.compress(csv(table)))
    data = load(source)
    test = np.arange(80) % 10 == 0
    np.testing.assert_array_equal(data.y_train, np.where(table[~test, 54] == 2, 1, -1))
    X = table[:, :54]
    low, high = X[~test].min(axis=0), X[~test].max(axis=0)
    np.testing.assert_allclose(data.X_test, (X[test] - low) / (high - low), rtol=1e-6, atol=1e-7)
    raw = load(source, {"positive": "none", "scale": "none"})
    np.testing.assert_array_equal(raw.X_train, X[~test])
    np.testing.assert_array_equal(raw.y_test, table[test, 54])
    assert load(source, {"positive": 7}).y_train.sum() < 0
    sample = np.column_stack((np.where(table[:, 54] == 2, 1, -1), X))
    data = load(offered("covtype-sample", csv(sample)))
    test = np.arange(80) % 3 == 2
    np.testing.assert_array_equal(data.y_test, sample[test, 0])
    assert data.X_train.shape == (54, 54)
    assert (data.X_train.min(), data.X_train.max()) == (0, 1)


def test_susy(offered):
    rng = np.random.default_rng(1)
    table = np.column_stack((np.arange(30) % 2, rng.normal(size=(30, 18)).astype(np.float32)))
    source = offered("susy", gzip.compress(csv(table, "%.18e")))
    assert "SUSY.csv.gz: 30 rows, but the last 500000 alone are the test" in refused(load, source)
    data = load(replace(source, read=partial(source.read, last=10)))
    np.testing.assert_array_equal(data.X_train, table[:20, 1:])
    np.testing.assert_array_equal(data.X_test, table[20:, 1:])
    np.testing.assert_array_equal(data.y_train, np.where(table[:20, 0] == 1, 1, -1))


def test_cifar10(offered):
    records = np.random.default_rng(2).integers(0, 256, (12, 3073)).astype(np.uint8)
    records[:, 0] = np.arange(12) % 2 * 3
    buffer = io.BytesIO()
    # Six batches of two records each, in the reverse order.
    names = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for k, name in reversed(list(enumerate(names))):
            batch = records[2 * k : 2 * k + 2].tobytes()
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(batch)
            archive.addfile(info, io.BytesIO(batch))
    source = offered("cifar10", buffer.getvalue())
    data = load(source)
    assert (data.n_train, data.n_test, data.n_features) == (10, 2, 3072)
    np.testing.assert_allclose(np.linalg.norm(data.X_train, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(data.y_train, np.where(records[:10, 0] == 0, 1, -1))
    every = load(source, {"positive": "none", "scale": "unit"})
    np.testing.assert_array_equal(every.X_test, records[10:, 1:] / np.float32(255))
    np.testing.assert_array_equal(every.y_train, records[:10, 0])
    assert "one class only (every label is -1)" in refused(load, source, {"positive": 9})


def test_mnist_and_its_likes(offered):
    rng = np.random.default_rng(3)
    train, test = (rng.integers(0, 256, (n, 28, 28)).astype(np.uint8) for n in (20, 10))
    digits = (np.arange(20) % 10).astype(np.uint8)
    files = (train, digits, test, digits[:10])
    source = offered("mnist", *(gzip.compress(packed(array)) for array in files))
    data = load(source)
    np.testing.assert_array_equal(data.X_train, train.reshape(20, 784) / np.float32(255))
    np.testing.assert_array_equal(data.y_train, np.where(digits == 8, 1, -1))
    assert data.X_train.dtype == np.float32
    np.testing.assert_array_equal(load(source, {"positive": "none"}).y_test, digits[:10])


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


def test_kdd99(offered):
    source = offered("kdd99", gzip.compress(KDD_TRAIN), gzip.compress(KDD_TEST))
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
    ("line", "complaint"),
    [
        (b"1,2,3\n", "Row #3: Expected 42 columns, got 3"),
        (connection("udp http SF", "normal.", c6=-1), "line 3: column 6 is -1; none may be neg"),
        (connection("udp http SF", "x", c9=np.inf), "line 3: column 9 is inf, not a finite"),
    ],
)
def test_kdd99_says_which_line_is_wrong(offered, line, complaint):
    message = refused(load, offered("kdd99", KDD_TRAIN + line, KDD_TEST))
    assert "kddcup.data.gz" in message
    assert complaint in message


def numbered(n):
    """Rows that say which they are."""
    part = Part(csr_matrix(np.arange(1.0, n + 1)[:, None]), np.where(np.arange(n) % 4, -1, 1))
    return Content(part, Part(csr_matrix([[-1.0]]), np.array([1])))


def test_the_sample_of_adult_is_all_rows_once():
    content = libsvm.sample_adult(numbered(30_000), {"test": "rest"})
    assert len(content.train.y) == 22_697
    drawn, rest = (part.X.toarray()[:, 0].astype(int) for _, part in content.parts())
    np.testing.assert_array_equal(np.sort([*drawn, *rest]), np.arange(1, 30_001))
    np.testing.assert_array_equal(content.test.y, np.where((rest - 1) % 4, -1, 1))
    assert content.train.X.dtype == np.float32
    # A draw, not the first rows.
    assert abs(drawn.mean() - 15_000) < 5 * 8_660 / np.sqrt(22_697)
    whole = libsvm.sample_adult(numbered(30_000), {"test": "all"})
    np.testing.assert_array_equal(whole.test.X.toarray()[:, 0], np.arange(1, 30_001))
    np.testing.assert_array_equal(whole.train.X.toarray()[:, 0], drawn)
    complaint = refused(libsvm.sample_adult, numbered(22_697), {"test": "rest"})
    assert complaint.startswith("adult-sample: 22697 rows")
