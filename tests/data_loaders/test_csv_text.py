"""The reader of comma-separated numbers."""

import bz2
import gzip
import io
import lzma
import random
from pathlib import Path

import numpy as np
import pytest

from marginbench.data_loaders import DataError, csv_text
from marginbench.data_loaders.files import LocalFile

TEXT = b"1,0.5,-2,0\n-1,1e-3,0,7\n1,3,.25,+1\n"
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
        (b"1,nan,0,0", "column 2 is 'nan', not a finite number"),
        (b"1,0,NaN,0", "column 3 is 'NaN', not a finite number"),
        (b"1,0,0,-inf", "column 4 is '-inf', not a finite number"),
        (b"1,1e999,0,0", "column 2 is '1e999', not a finite number"),
        (b"1,,0,0", "column 2 is '', not a finite number"),
        (b"1,NA,0,0", "column 2 is 'NA', not a finite number"),
        (b"1,0x1,0,0", "column 2 is '0x1', not a finite number"),
        (b'1,"0",0,0', "column 2 is '\"0\"', not a finite number"),
        (b"1,0;0,0,0", "column 2 is '0;0', not a finite number"),
        (b"1,\x00\xff\x1b[31m,0,0", "column 2 is '\\x00\ufffd\\x1b[31m', not a finite number"),
        (b"label,a,b,c", "column 1 is 'label', not a finite number"),
        (b"1,0,0", "3 columns; expected 4"),
        (b"1,0,0,0,0", "5 columns; expected 4"),
        (b"1 0 0 0", "1 columns; expected 4"),
        (b"2,0,0,0", "label 2 is not one of the 2 classes -1, 1"),
        (b"0.5,0,0,0", "label 0.5 is not one of the 2 classes -1, 1"),
        (b"", "empty line; expected 4 numbers"),
        (b"  ", "empty line; expected 4 numbers"),
    ],
)
def test_refuses_a_wrong_line_and_says_where(tmp_path, line, complaint):
    message = refusal(tmp_path / "data", TEXT + line + b"\n" + TEXT)
    assert message.startswith(f"{tmp_path / 'data'}, line 4: {complaint}")
    assert message.isprintable()


def test_refuses_an_empty_file_and_one_class_only(tmp_path):
    assert "the file is empty" in refusal(tmp_path / "data", b"")
    assert "one class only (every label is 1)" in refusal(tmp_path / "data", b"1,0,0,0\n1,1,1,1\n")


#: Words and line ends that one of the two readers might take for something else.
ODD_WORDS = b"""+1 .5 5. 1e3 1E-3 1e400 1e-400 4.9e-324 nan inf Infinity 0x1p3 1_0 NA NULL true
    "1" '1' \\1 1e e1 --1 . - 1d3 1;2 #1 -0 00012""".split()
ODD_WORDS += [
    b"",
    b" 1",
    b"1 ",
    b"\t1",
    b"\x0b1",
    b"1\x0c",
    b"\xa01",
    b"1\0",
    b"\xff",
]
ODD_WORDS += [
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"0" * 400 + b"1",
    b"9" * 400,
    b"\x1a",
]
ODD_ENDS = [b"\r\n", b"\n\n", b"", b" \n", b",\n"]


def odd_text(rng: random.Random, share: float) -> bytes:
    """A few lines of three numbers, of which so large a share is odd."""

    def drawn(odd: list[bytes], plain: list[bytes]) -> bytes:
        return rng.choice(odd if rng.random() < share else plain)

    text = b"".join(
        b",".join(drawn(ODD_WORDS, [b"1", b"-1", b"0.25"]) for _ in range(3))
        + drawn(ODD_ENDS, [b"\n"])
        for _ in range(rng.randint(1, 4))
    )
    return text if text.endswith(b"\n") else text + b"\n"


def test_what_arrow_accepts_is_what_the_strict_reader_accepts(monkeypatch):
    rng = random.Random(7)
    accepted = 0
    for k in range(6000):
        text = odd_text(rng, (0.02, 0.1)[k % 2])
        monkeypatch.setattr(csv_text, "reading", lambda file, text=text: io.BytesIO(text))
        fast = csv_text._by_arrow("it", 3, ())
        if fast is not None:
            accepted += 1
            strict = csv_text._by_line(LocalFile(Path("it"), "it"), 3, ())
            assert np.array(fast).tobytes() == np.array(strict).tobytes(), text
    assert accepted > 1000
