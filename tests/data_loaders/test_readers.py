"""The readers of published formats: all spellings alike, and a wrong line refused by its number."""

import bz2
import gzip
import io
import lzma
import struct
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, strategies as st

from marginbench.data_loaders import DataError, csv_text, find, idx, libsvm
from marginbench.data_loaders.files import LocalFile

from .conftest import TRAIN as TEXT, refused


def file(path, data):
    path.write_bytes(data)
    return LocalFile(path, path.name)


# LIBSVM text

DENSE = np.array([[0.5, 0, -2, 0], [0, 1e-3, 0, 0], [0, 0, 0, 0], [7, 0, 0, 1]])


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.rstrip(b"\n"),
        b"\n" + TEXT.replace(b"\n", b"\n \n\r\n"),
        TEXT.replace(b" ", b"\t"),
        TEXT.replace(b"+1", b"1.0"),
        TEXT.replace(b"-2", b"-2.00E+0").replace(b"0.5", b"+.5"),
        TEXT.replace(b"1e-3", b"1e-3 # a: 7:1").replace(b"+1\n", b"+1#\n #\n") + b"# end",
        gzip.compress(TEXT, mtime=0),
        bz2.compress(TEXT[:20]) + bz2.compress(TEXT[20:]),
    ],
)
def test_libsvm_reads_all_spellings_alike(tmp_path, text):
    part = libsvm.read_file(file(tmp_path / "it", text), 4, (-1, 1))
    np.testing.assert_array_equal(part.X.toarray(), DENSE)
    np.testing.assert_array_equal(part.y, [1, -1, 1, -1])
    assert (part.X.dtype, part.y.dtype) == (np.float64, np.int64)
    assert part.X.nnz == np.count_nonzero(DENSE)  # the zero in the text is not stored
    assert part.X.has_canonical_format


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"+1 1:nan", "'1:nan' is not an index from 1 to 4, a colon and a finite number"),
        (b"1:1 2:1", "label '1:1' is not one of the 2 classes -1, 1"),
        (b"2 1:1", "label '2' is not one of the 2 classes -1, 1"),
        (b"0.5 1:1", "label '0.5' is not one of the 2 classes -1, 1"),
        (b"+1 1", "'1' is not an index from 1 to 4, a colon and"),
        (b"+1 -1:1", "'-1:1' is not an index from 1 to 4, a colon and"),
        (b"+1 qid:3 1:1", "'qid:3' is not an index from 1 to 4, a colon and"),
        (b"+1 1:1\x00\xff\x1b[31m", "'1:1\\x00\ufffd\\x1b[31m' is not an index from 1 to 4, "),
        (b"+1 0:1", "'0:1' is not an index from 1 to 4, a colon and a finite number; indices star"),
        (b"+1 2:1 1:1", "'1:1' is not an index from 3 to 4, a colon and"),
        (b"+1 2:1 2:1", "'2:1' is not an index from 3 to 4, a colon and"),
        (b"+1 5:1", "'5:1' is not an index from 1 to 4, a colon and"),
        (b"+1 99999999999999999999:1", "'99999999999999999999:1' is not an index from"),
    ],
)
def test_libsvm_refuses_a_wrong_line_and_says_where(tmp_path, line, complaint):
    wrong = file(tmp_path / "it", TEXT + line + b"\n" + TEXT)
    message = refused(libsvm.read_file, wrong, 4, (-1, 1))
    assert message.startswith(f"it, line 5: {complaint}")


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


@given(st.one_of(_LINES, _NUMBERS, st.text(alphabet="01+-.eE: #\n", max_size=12).map(str.encode)))
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
    assert part.X.nnz == np.count_nonzero(expected)


def test_limits_of_libsvm_text(tmp_path):
    wide = file(tmp_path / "it", b"1 %d:1\n-1 2:1\n" % (2**31 - 1))
    assert libsvm.read_file(wide, 2**31 - 1, (-1, 1)).X.indices[0] == 2**31 - 2
    message = refused(libsvm.read_file, wide, 2**31, (-1, 1))
    assert message.startswith("it: a width of 2147483648 features was asked for; at")
    large = file(tmp_path / "it", b"9007199254740991 1:1\n-9007199254740991 2:1\n")
    assert libsvm.read_rows([large], 4, None).y.tolist() == [2**53 - 1, 1 - 2**53]
    # The first would be read as the number before it.
    for label in ("9007199254740993", "1e300", "-9007199254740994"):
        message = refused(libsvm.read_rows, [file(tmp_path / "it", f"{label} 1:1\n".encode())], 4)
        assert (
            message
            == f"it, line 1: label '{label}' is not an integer of at most 9007199254740991 in size"
        )
    for text in (b"", b"# nothing else\n", gzip.compress(b"")):
        assert refused(libsvm.read_rows, [file(tmp_path / "it", text)]) == "it: the file is empty"
    alike = file(tmp_path / "it", b"-1 1:1\n-1 2:1\n")
    assert "one class only (every label is -1)" in refused(libsvm.read_file, alike, 2, (-1, 1))


# Comma-separated numbers

CSV = b"1,0.5,-2,0\n-1,1e-3,0,7\n1,3,.25,1\n"


def read_csv(path, text, **options):
    options = {"classes": (-1, 1), "label": "first", "every": (3, 2), **options}
    return csv_text.read({"it": file(path, text)}, {}, name="it", width=3, **options)


@pytest.mark.parametrize(
    "text",
    [
        CSV,
        CSV.replace(b"\n", b"\r\n"),
        CSV.replace(b",", b" , "),
        CSV.replace(b"1,", b"1.000000000000000000e+00,"),
        lzma.compress(CSV),
    ],
)
def test_csv_reads_all_spellings_alike(tmp_path, text):
    content = read_csv(tmp_path / "it", text)
    np.testing.assert_array_equal(content.train.X, np.float32([[0.5, -2, 0], [1e-3, 0, 7]]))
    np.testing.assert_array_equal(content.test.X, [[3, 0.25, 1]])
    assert content.train.X.dtype == np.float32
    assert content.train.y.tolist() == [1, -1]
    assert content.train.y.dtype == np.int64


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"1,0,0,-inf", ", line 4: column 4 is -inf, not a finite number"),
        (b"1,,0,0", ": In CSV column #1: Row #4: "),
        (b"1,\x00\xff\x1b[31m,0,0", ": In CSV column #1: Row #4: "),
        (b"1,0,0", ": CSV parse error: Row #4: Expected 4 columns, got 3"),
        (b"2,0,0,0", ", line 4: label 2 is not one of the 2 classes -1, 1"),
        (b"", ": In CSV column #0: Row #4: "),
    ],
)
def test_csv_refuses_a_wrong_line_and_says_where(tmp_path, line, complaint):
    message = refused(read_csv, tmp_path / "it", CSV + line + b"\n" + CSV)
    assert message.startswith(f"it{complaint}")


# Images


def packed(array, magic=None):
    """The IDX form of an array, written from the format's definition."""
    magic = magic or bytes([0, 0, 8, array.ndim])
    return magic + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


PIXELS = np.arange(3 * 2 * 4, dtype=np.uint8).reshape(3, 2, 4) * 10
CLASSES = np.array([7, 0, 9], dtype=np.uint8)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (packed(CLASSES), "begins with the bytes '00000801', not '00000803'"),
        (packed(PIXELS, b"\0\0\x0d\3"), "begins with the bytes '00000d03', not '00000803'"),
        (b"", "begins with the bytes ''"),
        (packed(PIXELS)[:13], "ends in its header"),
        (packed(PIXELS)[:-1], "23 bytes follow the header, which says 3 x 2 x 4"),
        (packed(PIXELS) + b"\0", "25 bytes follow the header, which says 3 x 2 x 4"),
        (gzip.compress(packed(PIXELS), mtime=0)[:20], "cannot be read"),
        # No memory for what a wrong header promises.
        (b"\0\0\x08\3" + b"\xff" * 12 + b"\1", "1 bytes follow the header, which says 4294967295"),
    ],
)
def test_idx_refuses_what_is_not_the_array(tmp_path, data, complaint):
    assert complaint in refused(idx.read_array, file(tmp_path / "it", data), 3)
    whole = file(tmp_path / "it", bz2.compress(packed(PIXELS)))
    np.testing.assert_array_equal(idx.read_array(whole, 3), PIXELS)


def test_labels_must_match_the_images(tmp_path):
    names = [name for pair in idx.FILES for name in pair]
    arrays = [PIXELS, CLASSES, PIXELS[:2], CLASSES[:2]]

    def images(place, array):
        changed = [*arrays[:place], array, *arrays[place + 1 :]]
        whole = zip(names, map(packed, changed), strict=True)
        return {name: file(tmp_path / name, data) for name, data in whole}

    message = refused(idx.read_images, images(3, CLASSES), {}, n_classes=10)
    assert message == f"{names[3]}: 3 labels for the 2 images of {names[2]}"
    wrong = np.array([7, 10, 12], dtype=np.uint8)
    message = refused(idx.read_images, images(1, wrong), {}, n_classes=10)
    assert message == f"{names[1]}: label 2 is 10, not one of 0 to 9"


# RCV1-v2, in the layout of the published files: two blanks behind the document's number

VECTORS = [
    b"2286  1:0.5 47236:0.25\n2287  3:1\n2288  2:1\n",
    b"26151  1:1\n",
    b"26152  2:1\n26153  1:1 2:1\n",
    b"26154  3:0.125\n",
    b"26155  4:2\n",
]
TOPICS = (
    b"C15 2286 1\nCCAT 2286 1\nGCAT 2287 1\nCCAT 2288 1\nE11 2288 1\nCCAT 26151 1\n"
    b"MCAT 26152 1\nCCAT 26153 1\nGCAT 26154 1\nGCAT 26155 1\n"
)


@pytest.fixture
def rcv1(tmp_path):
    """Read the documents of a topic, with other texts in the place of some files."""
    source = find("rcv1")

    def read(topic="CCAT", split="published", **changes):
        texts = dict(zip([each.name for each in source.files], [*VECTORS, TOPICS], strict=True))
        for key, text in changes.items():
            texts[next(name for name in texts if key in name)] = text
        files = {name: file(tmp_path / name, gzip.compress(text)) for name, text in texts.items()}
        return source.read(files, {"topic": topic, "split": split})

    return read


def test_a_topic_against_the_rest(rcv1):
    content = rcv1()
    assert content.train.y.tolist() == [1, -1, 1]
    assert content.test.y.tolist() == [1, -1, 1, -1, -1]
    assert content.train.X.shape == (3, 47236)
    assert content.train.X[0].indices.tolist() == [0, 47235]
    X = content.test.X[:, :4].toarray().tolist()
    assert X == [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0.125, 0], [0, 0, 0, 2]]
    assert rcv1("GCAT").train.y.tolist() == [-1, 1, -1]
    swapped = rcv1(split="swapped")
    assert swapped.train.y.tolist() == content.test.y.tolist()
    assert swapped.train.X.shape == (5, 47236)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topics": TOPICS + b"CCAT 1\n"}, ".qrels.gz, line 11: 'CCAT 1' is not a topic, a doc"),
        # More digits than int() takes.
        ({"topics": TOPICS + b"CCAT " + b"1" * 5000 + b" 1\n"}, ".gz, line 11: 'CCAT 1111"),
        ({"pt1": b"26152  2:nan\n"}, "pt1.dat.gz, line 1: '2:nan' is not an index from 1 to 4"),
        ({"pt2": b"0.5 1:1\n"}, "pt2.dat.gz, line 1: label '0.5' is not an integer"),
        ({"pt3": b""}, "pt3.dat.gz: the file is empty"),
        ({"topics": TOPICS[: TOPICS.rindex(b"GCAT")]}, "document 26155 of "),
        ({"topic": "CCATS"}, "rcv1: no document has the topic 'CCATS' (did you mean 'CCAT'?)"),
    ],
)
def test_rcv1_names_the_file_and_the_line(rcv1, changes, message):
    assert message in refused(rcv1, **changes)
