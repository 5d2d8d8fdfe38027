"""Plain data between processes: frames of JSON and arrays, bounded, with no code in them.

What a worker sends may come from code that nobody has checked. Reading it builds numbers, texts,
lists, dictionaries and arrays, and nothing else; anything that is not such a frame is refused.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

#: Longest text of a frame and longest array data, bytes.
MAX_TEXT = 2**25
MAX_DATA = 2**30

_MAGIC = b"mbf1"
_HEAD = struct.Struct("<4sIQ")
_ARRAY = "$array"
_KINDS = "biuf"
_KNOWN_TYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
# To make an encoder or a decoder takes longer than what they do for most messages.
_ENCODER, _DECODER = json.JSONEncoder(), json.JSONDecoder()


class WireError(Exception):
    """Bytes that are no frame, or a frame with something in it that is not plain."""


def encode(tree: Any) -> bytes:
    """One frame with this value.

    Parameters
    ----------
    tree : object
        None, numbers, texts, lists, dictionaries with text keys, and arrays of numbers, nested.
        Of anything else the ``repr`` is sent.
    """
    try:
        return frame_of(_ENCODER.encode(tree).encode("ascii"), b"")
    except TypeError:
        # It holds arrays, or something else that is to be made plain.
        return _encode_any(tree)


def _encode_any(tree: Any) -> bytes:
    arrays: list[bytes] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
            kind = value.dtype.newbyteorder("<").str
            kind = kind if kind in _KNOWN_TYPES else "<f8"
            arrays.append(np.ascontiguousarray(value, dtype=kind).tobytes())
            return {_ARRAY: {"type": kind, "shape": value.shape}}
        if isinstance(value, tuple | set | frozenset):
            return list(value)
        return repr(value)

    text = json.dumps(tree, default=plain).encode("ascii")
    return frame_of(text, b"".join(arrays))


def frame_of(text: bytes, data: bytes) -> bytes:
    """A frame of its two parts."""
    return _HEAD.pack(_MAGIC, len(text), len(data)) + text + data


def decode(text: bytes, data: bytes | bytearray | memoryview) -> Any:
    """The value of a frame.

    Raises
    ------
    WireError
        If it is none.
    """
    if not (data or b"$" in text or b"\\" in text):
        # The name that means an array is not in it, nor can it be written in another way.
        try:
            return _DECODER.decode(text.decode())
        except (ValueError, RecursionError) as error:
            raise _no_json(error) from None
    start = 0

    def plain(found: dict[str, Any]) -> Any:
        nonlocal start
        if _ARRAY not in found:
            return found
        array = _array(found, data, start)
        start += array.nbytes
        return array

    try:
        tree = json.loads(text, object_hook=plain)
    except WireError:
        raise
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise _no_json(error) from None
    if start != len(data):
        raise WireError(f"{len(data)} bytes of arrays, of which {start} are described")
    return tree


def _no_json(error: Exception) -> WireError:
    return WireError(f"no JSON ({type(error).__name__})")


def _array(found: dict[str, Any], data: bytes | bytearray | memoryview, start: int) -> np.ndarray:
    described = found[_ARRAY]
    if len(found) != 1 or not isinstance(described, dict) or set(described) != {"type", "shape"}:
        raise WireError("an array without type and shape")
    shape = described["shape"]
    if not isinstance(shape, list) or len(shape) > 4 or not all(map(_is_size, shape)):
        raise WireError("an array with an odd shape")
    if described["type"] not in _KNOWN_TYPES:
        raise WireError("an array of an odd type")
    kind = np.dtype(described["type"])
    count = math.prod(shape)
    if start + count * kind.itemsize > len(data):
        raise WireError("an array that is longer than its frame")
    # A copy is aligned, as compiled code expects.
    return np.frombuffer(data, kind, count, start).reshape(shape).copy()


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_DATA


class FrameReader:
    """Takes bytes as they come and gives out frames as they are complete.

    Parameters
    ----------
    max_data : int
        Longest array data of a frame, bytes.
    """

    def __init__(self, max_data: int = MAX_DATA) -> None:
        self.max_data = max_data
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> None:
        """Add what came in."""
        self._buffer += piece

    def put_back(self, text: bytes, data: bytes) -> None:
        """Make a frame that was given out the next one again."""
        self._buffer[:0] = frame_of(text, data)

    def frames(self) -> Iterator[tuple[bytes, bytes]]:
        """The text and the data of each frame that is complete.

        Raises
        ------
        WireError
            If what came in begins no frame, or one that is too long.
        """
        while len(self._buffer) >= _HEAD.size:
            magic, n_text, n_data = _HEAD.unpack_from(self._buffer)
            if magic != _MAGIC:
                raise WireError("bytes that begin no message")
            if n_text > MAX_TEXT or n_data > self.max_data:
                raise WireError(f"a message of {n_text + n_data} bytes")
            end = _HEAD.size + n_text + n_data
            if len(self._buffer) < end:
                return
            middle = _HEAD.size + n_text
            text, data = bytes(self._buffer[_HEAD.size : middle]), bytes(self._buffer[middle:end])
            del self._buffer[:end]
            yield text, data
