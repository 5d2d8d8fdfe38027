"""The reader of comma-separated numbers."""

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

from marginbench.data_loaders import DataError, csv_text
from marginbench.data_loaders.files import LocalFile

TEXT = b"1,0.5,-2,0\n-1,1e-3,0,7\n1,3,.25,1\n"
X = np.array([[0.5, -2, 0], [1e-3, 0, 7], [3, 0.25, 1]], dtype=np.float32)
Y = [1, -1, 1]


def read(path: Path, text: bytes, classes=(-1, 1), label="first"):
    path.write_bytes(text)
    return csv_text.read_file(LocalFile(path, str(path)), 3, classes, label)


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
        TEXT.replace(b"\n", b"\r\n"),
        TEXT.replace(b",", b" , "),
        TEXT.replace(b"1,", b"1.000000000000000000e+00,"),
        gzip.compress(TEXT),
        bz2.compress(TEXT),
        lzma.compress(TEXT),
    ],
    ids=["plain", "no end", "crlf", "blanks", "long", "gz", "bz2", "xz"],
)
def test_reads_all_spellings_alike(tmp_path, text):
    part = read(tmp_path / "data", text)
    np.testing.assert_array_equal(part.X, X)
    assert part.X.dtype == np.float32
    assert part.X.flags.c_contiguous
    assert part.y.tolist() == Y
    assert part.y.dtype == np.int64


def test_the_label_can_be_the_last_column(tmp_path):
    part = read(tmp_path / "data", b"0.5,-2,0,7\n1,2,3,4\n", classes=(4, 7), label="last")
    assert part.X.tolist() == [[0.5, -2, 0], [1, 2, 3]]
    assert part.y.tolist() == [7, 4]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"1,nan,0,0", ", line 4: column 2 is nan, not a finite number"),
        (b"1,0,0,-inf", ", line 4: column 4 is -inf, not a finite number"),
        (b"1,1e999,0,0", ", line 4: column 2 is inf, not a finite number"),
        (b"1,,0,0", ": In CSV column #1: Row #4: "),
        (b"1,NA,0,0", ": In CSV column #1: Row #4: "),
        (b'1,"0",0,0', ": In CSV column #1: Row #4: "),
        (b"1,\x00\xff\x1b[31m,0,0", ": In CSV column #1: Row #4: "),
        (b"label,a,b,c", ": In CSV column #0: Row #4: "),
        (b"1,0,0", ": CSV parse error: Row #4: Expected 4 columns, got 3"),
        (b"1,0,0,0,0", ": CSV parse error: Row #4: Expected 4 columns, got 5"),
        (b"2,0,0,0", ", line 4: label 2 is not one of the 2 classes -1, 1"),
        (b"0.5,0,0,0", ", line 4: label 0.5 is not one of the 2 classes -1, 1"),
        (b"", ": In CSV column #0: Row #4: "),
    ],
)
def test_refuses_a_wrong_line_and_says_where(tmp_path, line, complaint):
    message = refusal(tmp_path / "data", TEXT + line + b"\n" + TEXT)
    assert message.startswith(f"{tmp_path / 'data'}{complaint}")
    assert message.isprintable()


def test_refuses_an_empty_file_and_one_class_only(tmp_path):
    assert str(tmp_path / "data") in refusal(tmp_path / "data", b"")
    assert "one class only (every label is 1)" in refusal(tmp_path / "data", b"1,0,0,0\n1,1,1,1\n")
