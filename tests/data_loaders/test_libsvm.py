"""LIBSVM text and what is published in it: every spelling, and a wrong line by its number."""

import bz2
import gzip
import io
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from scipy.sparse import csr_matrix, issparse

from marginbench.data_loaders import DataError, libsvm, load
from marginbench.data_loaders.content import Content, Part
from marginbench.data_loaders.files import LocalFile

from .conftest import refused

# Words that are nearly right, put together at random: the reader must accept what the check of a
# line does, and find the numbers that Python does.
_WORDS = st.sampled_from(
    ["1", "-1", "+1", "+", "1:", ":1", "1:2", "2:-.5", "3:1e2", "4:1.", "04:1", "+2:1", "2:+1"]
    + ["1:.", "1:e1", "1:1e", "2:--1", "3:1-", "1:2:3", ":", "0:1", "-0:1", "5:1", "2.5", "1:1_0"]
)
_LINES = st.lists(
    st.tuples(st.sampled_from(["1", "-1", "+1", "", " ", "x"]), st.lists(_WORDS, max_size=3)),
    min_size=1,
    max_size=3,
).map(lambda lines: "".join(" ".join([head, *words]) + "\n" for head, words in lines).encode())
_NUMBERS = st.builds(
    lambda form, *numbers: (f"-1 1:{form} 2:{form} 3:{form} 4:{form}\n" % numbers).encode(),
    st.sampled_from(["%r", "%.3f", "%.17e", "%+g"]),
    *[st.floats(allow_nan=False, allow_infinity=False)] * 4,
)


def complaint(words):
    try:
        libsvm._check_line(b" ".join(words), 4, (-1, 1))
    except ValueError as error:
        return str(error)


@settings(deadline=None)
@given(st.one_of(_LINES, _NUMBERS, st.text(alphabet="01+-.eE: #\n", max_size=12).map(str.encode)))
@example(b"\n+1\t1:+.5 3:-2.00E+0 # a: 7:1\r\n \r\n-1.0 2:1e-3  4:0\n+1#\n #\n\t1 1:7 4:1 # end")
def test_the_numbers_are_those_of_python(text):
    lines = [line.partition(b"#")[0].split() for line in text.split(b"\n")]
    with mock.patch.object(libsvm, "reading", side_effect=lambda file: io.BytesIO(text)):
        try:
            part = libsvm.read_rows([LocalFile(Path("text"), "text")], 4, (-1, 1))
        except DataError:
            assert not any(lines) or any(map(complaint, lines))
            return
    expected = np.zeros((len(part.y), 4))
    lines = [words for words in lines if words]
    for row, words in zip(expected, lines, strict=True):
        for pair in words[1:]:
            index, value = pair.split(b":")
            row[int(index) - 1] = float(value)
    np.testing.assert_array_equal(part.X.toarray(), expected)
    np.testing.assert_array_equal(part.y, [float(words[0]) for words in lines])
    assert part.X.nnz == np.count_nonzero(expected)  # a zero in the text is not stored
    assert part.X.has_canonical_format
    assert (part.X.dtype, part.y.dtype) == (np.float64, np.int64)


def test_limits(tmp_path):
    (tmp_path / "it").write_bytes(b"-9007199254740991 %d:1\n9007199254740991 2:1\n" % (2**31 - 1))
    file = LocalFile(tmp_path / "it", "it")
    part = libsvm.read_rows([file])
    assert part.X.indices[0] == 2**31 - 2
    assert part.y.tolist() == [1 - 2**53, 2**53 - 1]
    (tmp_path / "no pairs").write_bytes(b"1\n-1\n")
    bare = LocalFile(tmp_path / "no pairs", "it")
    assert libsvm.read_rows([bare]).X.shape == (2, 1)
    message = refused(libsvm.read_rows, [file], 2**31)
    assert message.startswith("it: a width of 2147483648 features was asked for; at")


IJCNN = bz2.compress(b"-1.0 6:1 11:-0.7\n1.0 22:1\n")
HEART = b"+1 1:1 13:-1\n-1 2:1\n" * 6
AUT_AVN = (gzip.compress(b"".join(b"%d:0.5 20707:1 \n" % k for k in range(1, 11))), b"1\n-1\n" * 5)
REAL_SIM = bz2.compress(b"".join(b"%d %d:0.5 20958:1\n" % ((-1) ** k, k + 1) for k in range(12)))
WEB = (b"-1 7:1 300:1\n+1 1:1\n", b"+1 2:1\n-1\n")
ASTRO = b"# 2 abstracts\n1 3:0.25 99757:0.5 # 9801001\n-1 1:1 # hep-ph/9801002\n"
#: Two blanks behind a document's number, as in the published files of RCV1-v2.
RCV1 = {
    "train": b"2286  1:0.5 47236:0.25\n2287  3:1\n2288  2:1\n",
    "pt0": b"26151  1:1\n",
    "pt1": b"26152  2:1\n26153  1:1 2:1\n",
    "pt2": b"26154  3:0.125\n",
    "pt3": b"26155  4:2\n",
    "topics": b"C15 2286 1\nCCAT 2286 1\nGCAT 2287 1\nCCAT 2288 1\nE11 2288 1\nCCAT 26151 1\n"
    b"MCAT 26152 1\nCCAT 26153 1\nGCAT 26154 1\nGCAT 26155 1\n",
}


def rcv1(**changes):
    return [gzip.compress(text) for text in (RCV1 | changes).values()]


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
        ("rcv1", rcv1(), (3, 5, 47236), {(0, 0): 1, (2, 1): 1, (4, 3): 2}, [1, -1, 1, -1, -1]),
    ],
)
def test_files_as_published(published, name, files, shape, entries, labels):
    data = load(published(name, *files))
    assert (data.n_train, data.n_test, data.n_features) == shape
    assert issparse(data.X_train) == (name not in ("ijcnn1", "heart"))
    assert data.X_train.dtype == np.float32
    for place, value in entries.items():
        assert data.X_test[place] == np.float32(value)
    assert data.y_test.tolist() == labels


def test_a_topic_of_rcv1_against_the_rest(published):
    source = published("rcv1", *rcv1())
    data, other = load(source), load(source, {"topic": "GCAT"})
    assert data.X_train[0].indices.tolist() == [0, 47235]
    assert (data.y_train.tolist(), other.y_train.tolist()) == ([1, -1, 1], [-1, 1, -1])
    swapped = load(source, {"split": "swapped"})
    np.testing.assert_array_equal(swapped.y_train, data.y_test)
    assert abs(swapped.X_train - data.X_test).max() == 0


NOTHING = (b"", b"# nothing else\n", gzip.compress(b""))
WRONG = {
    b"+1 1:nan": "'1:nan' is not an index from 1 to 13, a colon and a finite number",
    b"1:1 2:1": "label '1:1' is not one of the 2 classes -1, 1",
    b"2 1:1": "label '2' is not one of the 2 classes -1, 1",
    b"0.5 1:1": "label '0.5' is not one of the 2 classes -1, 1",
    b"+1 1": "'1' is not an index from 1 to 13, a colon and",
    b"+1 -1:1": "'-1:1' is not an index from 1 to 13, a colon and",
    b"+1 qid:3 1:1": "'qid:3' is not an index from 1 to 13, a colon and",
    b"+1 1:1\x00\xff\x1b[31m": "'1:1\\x00\ufffd\\x1b[31m' is not an index from 1 to 13, ",
    b"+1 0:1": "'0:1' is not an index from 1 to 13, a colon and a finite number; indices star",
    b"+1 2:1 1:1": "'1:1' is not an index from 3 to 13, a colon and",
    b"+1 2:1 2:1": "'2:1' is not an index from 3 to 13, a colon and",
    b"+1 14:1": "'14:1' is not an index from 1 to 13, a colon and",
    b"+1 99999999999999999999:1": "'99999999999999999999:1' is not an index from",
}


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        *(
            ("heart", (HEART + line + b"\n" + HEART,), f"/heart_scale, line 13: {why}")
            for line, why in WRONG.items()
        ),
        *(("heart", (nothing,), "le: the file is empty") for nothing in NOTHING),
        ("heart", (b"-1 1:1\n-1 2:1\n",), "/heart_scale: one class only (every label is -1)"),
        ("aut-avn", (b"1:1\n" * 10, b"1\n-1\n" * 4), "labels: 8 labels for the 10 points of"),
        ("aut-avn", (b"1:1\n", b"1 1:1\n-1 2:1\n"), "line 2: '2:1' is not an index from 1 to 1, a"),
        ("aut-avn", (b"1:1\n" * 10, b"1\n" * 10), "aut-avn.labels: one class only"),
        ("rcv1", rcv1(pt1=b"26152  2:nan\n"), "pt1.dat.gz, line 1: '2:nan' is not an index from 1"),
        ("rcv1", rcv1(pt2=b"0.5 1:1\n"), "pt2.dat.gz, line 1: label '0.5' is not an integer"),
        ("rcv1", rcv1(pt3=b""), "pt3.dat.gz: the file is empty"),
        (
            "rcv1",
            rcv1(topics=b"CCAT 1\n"),
            ".qrels.gz, line 1: 'CCAT 1' is not a topic, a document",
        ),
        # More digits than int() takes.
        ("rcv1", rcv1(topics=b"CCAT " + b"1" * 5000 + b" 1\n"), "qrels.gz, line 1: 'CCAT 1111"),
        ("rcv1", rcv1(topics=RCV1["topics"][:-13]), "document 26155 of "),
    ],
)
def test_a_wrong_file_is_named_with_the_line(published, name, files, message):
    told = refused(load, published(name, *files))
    assert message in told
    assert ("indices start at 1" in told) == ("'0:1'" in told)


def test_a_topic_that_no_document_has(published):
    message = refused(load, published("rcv1", *rcv1()), {"topic": "CCATS"})
    assert message == "rcv1: no document has the topic 'CCATS' (did you mean 'CCAT'?)"


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
