"""The LIBSVM reader: what it accepts, what it refuses and where it says the fault is."""

import bz2
import gzip
import io
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, strategies as st

from marginbench.data_loaders import DataError, libsvm
from marginbench.data_loaders.files import LocalFile

TEXT = b"+1 1:0.5 3:-2\n-1 2:1e-3\n+1\n-1 1:7 2:0 4:1\n"
DENSE = np.array([[0.5, 0, -2, 0], [0, 1e-3, 0, 0], [0, 0, 0, 0], [7, 0, 0, 1]])
LABELS = [1, -1, 1, -1]


def read(path: Path, text: bytes, width: int = 4, classes: tuple[int, ...] = (-1, 1)):
    path.write_bytes(text)
    return libsvm.read_file(LocalFile(path, str(path)), width, classes)


def refusal(path: Path, text: bytes, **kwargs) -> str:
    with pytest.raises(DataError) as caught:
        read(path, text, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.rstrip(b"\n"),
        TEXT + b"\n",
        b"\n" + TEXT.replace(b"\n", b"\n \n\r\n"),
        TEXT.replace(b"\n", b"\r\n"),
        TEXT.replace(b" ", b"\t"),
        TEXT.replace(b"\n", b" \n"),
        TEXT.replace(b"+1", b"1.0"),
        TEXT.replace(b"-2", b"-2.00E+0").replace(b"0.5", b"+.5"),
        bz2.compress(TEXT),
        gzip.compress(TEXT),
        bz2.compress(TEXT[:20]) + bz2.compress(TEXT[20:]),
    ],
    ids=[
        "plain",
        "no end",
        "end",
        "empty",
        "crlf",
        "tabs",
        "blank",
        "1.0",
        "floats",
        "bz2",
        "gz",
        "bz2 twice",
    ],
)
def test_reads_all_spellings_alike(tmp_path, text):
    part = read(tmp_path / "data", text)
    np.testing.assert_array_equal(part.X.toarray(), DENSE)
    np.testing.assert_array_equal(part.y, LABELS)
    assert part.X.dtype == np.float64
    assert part.y.dtype == np.int64
    assert part.X.nnz == np.count_nonzero(DENSE)  # the zero in the text is not stored
    assert part.X.has_canonical_format


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"+1 1:nan", "the value of '1:nan' is not finite"),
        (b"+1 1:-inf", "the value of '1:-inf' is not finite"),
        (b"+1 1:1e999", "the value of '1:1e999' is not finite"),
        (b"yes 1:1", "label 'yes' is not a finite number"),
        (b"nan 1:1", "label 'nan' is not a finite number"),
        (b"1:1 2:1", "label '1:1' is not a finite number"),
        (b"2 1:1", "label '2' is not one of the 2 classes -1, 1"),
        (b"0.5 1:1", "label '0.5' is not one of the 2 classes -1, 1"),
        (b"+1 1", "'1' is not an index:value pair"),
        (b"+1 1:", "'1:' is not an index:value pair"),
        (b"+1 :1", "':1' is not an index:value pair"),
        (b"+1 1: 1", "'1:' is not an index:value pair"),
        (b"+1 1:2:3", "'1:2:3' is not an index:value pair"),
        (b"+1 1:1.5.2", "'1:1.5.2' is not an index:value pair"),
        (b"+1 1.0:1", "'1.0:1' is not an index:value pair"),
        (b"+1 -1:1", "'-1:1' is not an index:value pair"),
        (b"+1 0x1:1", "'0x1:1' is not an index:value pair"),
        (b"+1 1:0x1", "'1:0x1' is not an index:value pair"),
        (b"+1 qid:3 1:1", "'qid:3' is not an index:value pair"),
        (b"+1 1:1\x00\xff\x1b[31m", "'1:1\\x00\ufffd\\x1b[31m' is not an index:value pair"),
        (b"+1 0:1", "index 0 in '0:1'; indices start at 1"),
        (b"+1 2:1 1:1", "index 1 after 2; indices must increase"),
        (b"+1 2:1 2:1", "index 2 after 2; indices must increase"),
        (b"+1 5:1", "index 5 is over the number of features, 4"),
        (
            b"+1 99999999999999999999:1",
            "index 99999999999999999999 is over the number of features, 4",
        ),
    ],
)
def test_refuses_a_wrong_line_and_says_where(tmp_path, line, complaint):
    message = refusal(tmp_path / "data", TEXT + line + b"\n" + TEXT)
    assert message.startswith(f"{tmp_path / 'data'}, line 5: {complaint}")
    assert message.isprintable()


@pytest.mark.parametrize("compress", [bytes, bz2.compress, gzip.compress])
def test_refuses_an_empty_file(tmp_path, compress):
    assert "the file is empty" in refusal(tmp_path / "data", compress(b""))


def test_refuses_one_class_only(tmp_path):
    message = refusal(tmp_path / "data", b"-1 1:1\n-1 2:1\n")
    assert "one class only (every label is -1)" in message


def test_every_so_many_rows_of_a_single_file_are_the_test_part(tmp_path):
    (tmp_path / "data").write_bytes(TEXT + TEXT)
    files = {"data": LocalFile(tmp_path / "data", "data")}
    content = libsvm.read_single(files, {}, name="data", width=4, classes=(-1, 1), step=3)
    rows, labels = np.vstack([DENSE, DENSE]), np.array([*LABELS, *LABELS])
    # Rows 3 and 6, counted from 1.
    for part, kept in ((content.test, [2, 5]), (content.train, [0, 1, 3, 4, 6, 7])):
        np.testing.assert_array_equal(part.X.toarray(), rows[kept])
        np.testing.assert_array_equal(part.y, labels[kept])


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
_NUMBERS = st.tuples(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4),
    st.sampled_from(["%r", "%.3f", "%.17e", "%+g"]),
).map(
    lambda case: (
        "-1 "
        + " ".join(f"{i}:{case[1] % value}" for i, value in enumerate(case[0], start=1))
        + "\n"
    ).encode()
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


def test_a_width_that_32_bits_do_not_hold_is_refused(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"1 %d:1\n-1 2:1\n" % (2**31 - 1))
    assert libsvm.read_file(LocalFile(path, "it"), 2**31 - 1, (-1, 1)).X.indices[0] == 2**31 - 2
    with pytest.raises(DataError, match="it: a width of 2147483648 features was asked for; at"):
        libsvm.read_file(LocalFile(path, "it"), 2**31, (-1, 1))


@pytest.mark.parametrize("label", [b"1e300", b"-9007199254740994", b"1e19"])
def test_an_integer_label_must_fit(tmp_path, label):
    path = tmp_path / "data"
    path.write_bytes(b"9007199254740992 1:1\n-9007199254740992 2:1\n")
    assert libsvm.read_rows([LocalFile(path, "it")], 4, None).y.tolist() == [2**53, -(2**53)]
    path.write_bytes(label + b" 1:1\n-1 2:1\n")
    with pytest.raises(DataError) as caught:
        libsvm.read_rows([LocalFile(path, "it")], 4, None)
    assert str(caught.value) == (
        f"it, line 1: label '{label.decode()}' is over 9007199254740992 in size"
    )


def test_several_files_without_a_width(tmp_path):
    texts = [b"3 2:1\n-7 1:0\n", b"3 9:1 20:2.5\n5\n"]
    for name, text in zip("ab", texts, strict=True):
        (tmp_path / name).write_bytes(text)
    files = [LocalFile(tmp_path / name, name) for name in "ab"]
    part = libsvm.read_rows(files)
    assert part.y.tolist() == [3, -7, 3, 5]
    assert part.X.shape == (4, 20)
    assert {(int(i), int(j)): v for (i, j), v in part.X.todok().items()} == {
        (0, 1): 1.0,
        (2, 8): 1.0,
        (2, 19): 2.5,
    }
    with pytest.raises(DataError, match="a, line 2: label '-7' is not one of the 2 classes 3, 4"):
        libsvm.read_rows(files, classes=(3, 4))
    with pytest.raises(DataError, match="a, line 1: index 2 is over the number of features, 1"):
        libsvm.read_rows(files, 1)


def test_comments_are_skipped(tmp_path):
    text = b"# SVM-light 1\n1 2:0.5 # a: 7:1\n  #\n-1#\n1 1:1#x\n"
    (tmp_path / "a").write_bytes(text)
    file = LocalFile(tmp_path / "a", "a")
    part = libsvm.read_rows([file], 2)
    assert part.X.toarray().tolist() == [[0, 0.5], [0, 0], [1, 0]]
    assert part.y.tolist() == [1, -1, 1]
    (tmp_path / "a").write_bytes(text + b"1 3:1 # z\n")
    with pytest.raises(DataError, match="a, line 6: index 3 is over the number of features, 2"):
        libsvm.read_rows([file], 2)
    (tmp_path / "a").write_bytes(b"# nothing else\n")
    with pytest.raises(DataError, match="a: the file is empty"):
        libsvm.read_rows([file], 2)


def test_lines_without_labels(tmp_path):
    (tmp_path / "a").write_bytes(b"2:0.5 \n\n1:1 3:-2\n")
    file = LocalFile(tmp_path / "a", "a")
    part = libsvm.read_rows([file], 3, labelled=False)
    assert part.X.toarray().tolist() == [[0, 0.5, 0], [0, 0, 0], [1, 0, -2]]
    assert part.y.tolist() == [0, 0, 0]
    (tmp_path / "a").write_bytes(b"2:0.5\n1 2:1\n")
    with pytest.raises(DataError, match="a, line 2: '1' is not an index:value pair"):
        libsvm.read_rows([file], labelled=False)
