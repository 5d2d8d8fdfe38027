"""Frames of plain data: what goes in comes out, and nothing else is read."""

from __future__ import annotations

import json
import math
import random
import struct
from typing import Any

import numpy as np
import pytest

from marginbench.harness.execution.wire import MAX_TEXT, FrameReader, WireError, decode, encode

TREE: dict[str, Any] = {
    "none": None,
    "flag": True,
    "count": 2**62,
    "time": 0.1,
    "infinite": -math.inf,
    "text": 'a "b" \u00e9 \ud800 \x00',
    "list": [1, [2.5, {"deep": []}]],
    "coef": np.array([[1.5, np.nan], [-0.0, 1e-310]]),
    "support": np.arange(3),
    "flags": np.array([True, False]),
    "single": np.float32([0.1]),
    "empty": np.zeros((0, 7)),
    "scalar": np.array(3.5),
}


def round_trip(tree: Any) -> Any:
    reader = FrameReader()
    reader.feed(encode(tree))
    ((text, data),) = reader.frames()
    return decode(text, data)


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name in expected:
            assert_same(found[name], expected[name])
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
    else:
        assert found == expected


def test_what_goes_in_comes_out() -> None:
    assert_same(round_trip(TREE), TREE)


def test_arrays_are_aligned_and_may_be_written_to() -> None:
    odd = round_trip({"one": np.array([True]), "two": np.arange(4.0)})["two"]
    assert odd.flags.aligned
    assert odd.flags.writeable


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float64(1.5), 1.5),
        (np.int32(3), 3),
        ((1, 2), [1, 2]),
        (np.arange(2, dtype=">i4"), np.arange(2, dtype="<i4")),
        (np.float16([1.5]), np.array([1.5])),
        (np.asfortranarray(np.eye(2)), np.eye(2)),
        (object, repr(object)),
    ],
)
def test_near_relatives_are_made_plain(given: Any, expected: Any) -> None:
    assert_same(round_trip(given), expected)


def test_a_frame_may_come_in_pieces() -> None:
    frames = encode(TREE) + encode([1])
    reader = FrameReader()
    found = []
    for place in range(len(frames)):
        reader.feed(frames[place : place + 1])
        found += [decode(*frame) for frame in reader.frames()]
    assert_same(found[0], TREE)
    assert found[1:] == [[1]]


def test_a_frame_that_is_put_back_comes_again() -> None:
    reader = FrameReader()
    reader.feed(encode("first") + encode("second"))
    text, data = next(reader.frames())
    reader.put_back(text, data)
    assert [decode(*frame) for frame in reader.frames()] == ["first", "second"]


def described(**array: Any) -> bytes:
    return json.dumps({"$array": array}).encode()


@pytest.mark.parametrize(
    ("text", "data", "reason"),
    [
        (b"", b"", "no JSON"),
        (b"\xff", b"", "no JSON"),
        (b"[" * 10_000, b"", "no JSON"),
        (b"1" * 10_000, b"", "no JSON"),
        (b"{}", b"xx", "2 bytes of arrays, of which 0 are described"),
        (described(type="<f8", shape=[1]), b"\0" * 7, "longer than its frame"),
        (described(type="<f8", shape=[2**29, 2**29, 2**29]), b"", "longer than its frame"),
        (described(type="<f8", shape=[-1]), b"", "odd shape"),
        (described(type="<f8", shape=[True]), b"\0" * 8, "odd shape"),
        (described(type="<f8", shape=[1] * 9), b"\0" * 8, "odd shape"),
        (described(type="<f8", shape=8), b"\0" * 8, "odd shape"),
        (described(type="|O", shape=[1]), b"\0" * 8, "odd type"),
        (described(type=["<f8"], shape=[1]), b"\0" * 8, "odd type"),
        (described(type="<f8"), b"", "without type and shape"),
        (b'{"$array": [], "more": 1}', b"", "without type and shape"),
        (b'{"\\u0024array": []}', b"", "without type and shape"),
    ],
)
def test_what_is_not_plain_is_refused(text: bytes, data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        decode(text, data)


@pytest.mark.parametrize(
    "start",
    [
        b"mbf0" + bytes(12),
        struct.pack("<4sIQ", b"mbf1", MAX_TEXT + 1, 0),
        struct.pack("<4sIQ", b"mbf1", 2, 10**6 + 1),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_begins_no_frame_is_refused_before_more_of_it_is_read(start: bytes) -> None:
    reader = FrameReader(max_data=10**6)
    reader.feed(start)
    with pytest.raises(WireError):
        list(reader.frames())


def test_damaged_frames_are_refused_or_plain() -> None:
    rng = random.Random(4)
    whole = encode(TREE)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 20])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        reader = FrameReader(max_data=10**6)
        reader.feed(bytes(damaged[: rng.choice([len(damaged), rng.randrange(len(damaged))])]))
        try:
            for frame in reader.frames():
                decode(*frame)
        except WireError:
            refused += 1
    assert refused > 500
