"""Blocks of whole lines."""

import io
import random
import time

import pytest

from marginbench.data_loaders import DataError, limits
from marginbench.data_loaders.streams import whole_lines


def blocks(text: bytes, size: int) -> list[bytes]:
    return list(whole_lines(io.BytesIO(text), size, "it"))


@pytest.mark.parametrize("seed", range(20))
def test_blocks_are_whole_lines_and_nothing_is_lost(seed):
    rng = random.Random(seed)
    lines = [b"x" * rng.choice([0, 1, 5, 100]) for _ in range(rng.randint(1, 60))]
    text = b"\n".join(lines)
    for size in (1, 2, 7, 64, 10_000):
        found = blocks(text, size)
        assert b"".join(found) == (text + b"\n" if text and not text.endswith(b"\n") else text)
        assert all(block.endswith(b"\n") for block in found)


def test_no_text_has_no_blocks():
    assert blocks(b"", 8) == []


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("end", [b"\n", b"", b"\nab\n"])
def test_the_limit_of_a_line_is_exact(monkeypatch, size, end):
    monkeypatch.setattr(limits, "MAX_LINE_BYTES", 20)
    text = b"short\n" + b"x" * 20 + end
    assert b"".join(blocks(text, size)).rstrip(b"\n") == text.rstrip(b"\n")
    with pytest.raises(DataError) as caught:
        blocks(b"short\n" + b"x" * 21 + end, size)
    assert str(caught.value) == (
        "it: the line that begins at byte 6 is longer than 20 bytes; is this the right file?"
    )


def test_a_long_line_takes_time_in_proportion():
    # 8192 pieces: copying all of them with each new one would move 130 GB, half a minute.
    text = b"1" * (32 * limits.MIB)
    began = time.process_time()
    assert blocks(text, 4096) == [text + b"\n"]
    assert time.process_time() - began < 3
