"""Compiled reading of regular LIBSVM text. To import this module takes a while: it imports numba.

There is one pass over the bytes. A number of at most 15 digits or so is an integer and a power of
ten that are both exact in float64, so one multiplication or division gives the nearest float64.
Arrow converts the other numbers, correctly rounded too, all of a block at once.

Machine code is kept by numba's own cache. That cache watches this file alone, and the functions
here call none of other files.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa

#: Powers of ten that float64 holds exactly.
_POWERS = 10.0 ** np.arange(23)
#: An integer up to this is exact in float64.
_EXACT = np.uint64(1 << 53)
#: An integer below this takes a further digit in 64 bits.
_ROOM = np.uint64(10**18)
_TEN = np.uint64(10)
_MAX_INDEX = 2**31 - 1


class Tokens(NamedTuple):
    """The numbers of a block of lines.

    Parameters
    ----------
    labels : float64 ndarray, shape (n_lines,)
    lengths : int64 ndarray, shape (n_lines,)
        How many pairs each line has.
    indices : int32 ndarray, shape (n_pairs,)
        As written, from 1.
    values : float64 ndarray, shape (n_pairs,)
    """

    labels: Any
    lengths: Any
    indices: Any
    values: Any


def tokens(text: bytes, width: int, comments: bool) -> Tokens | None:
    """Read a block of whole lines; None if anything in it is irregular.

    Parameters
    ----------
    text : bytes
        Ends with a newline.
    width : int
        The largest index that may occur, at most 2^31 - 1.
    comments : bool
        Whether ``#`` begins a comment, to the end of its line.
    """
    chars = np.frombuffer(text, dtype=np.uint8)
    # Many times faster than bytes.count where hits are frequent.
    n_lines, n_pairs = (int(np.count_nonzero(chars == ord(mark))) for mark in "\n:")
    labels, values = np.empty(n_lines), np.empty(n_pairs)
    lengths = np.empty(n_lines, dtype=np.int64)
    indices = np.empty(n_pairs, dtype=np.int32)
    # Where the hard numbers begin and end, and where they belong: a pair, or -1 - a line.
    hard = np.empty((n_lines + n_pairs, 3), dtype=np.int32)
    rows, pairs, n_hard = _scan(chars, width, comments, labels, lengths, indices, values, hard)
    if rows < 0:
        return None
    found = Tokens(labels[:rows], lengths[:rows], indices[:pairs], values[:pairs])
    return found if _convert(chars, hard[:n_hard], found) else None


def _convert(chars: Any, hard: Any, found: Tokens) -> bool:
    """Convert the hard numbers; False if one is too large."""
    if not len(hard):
        return True
    offsets = np.zeros(len(hard) + 1, dtype=np.int32)
    np.cumsum(hard[:, 1] - hard[:, 0], out=offsets[1:])
    letters = np.empty(offsets[-1], dtype=np.uint8)
    _gather(chars, hard, letters)
    words = pa.StringArray.from_buffers(len(hard), pa.py_buffer(offsets), pa.py_buffer(letters))
    numbers = words.cast(pa.float64()).to_numpy()
    of_pairs = hard[:, 2] >= 0
    found.values[hard[of_pairs, 2]] = numbers[of_pairs]
    found.labels[-1 - hard[~of_pairs, 2]] = numbers[~of_pairs]
    return bool(np.isfinite(numbers).all())


def _compiled(function: Any) -> Any:
    try:
        return numba.njit(function, cache=True, nogil=True)
    except RuntimeError:  # no folder for machine code can be written
        return numba.njit(function, nogil=True)


@_compiled
def _number(chars: Any, at: Any) -> Any:
    """Read a number from `at`: its value, where it ends, and 0 (exact), 1 (hard) or -1 (none)."""
    negative = chars[at] == 45
    if negative or chars[at] == 43:
        at += 1
    mantissa, exponent, n_digits, exact = np.uint64(0), 0, 0, True
    point = False
    while True:
        char = chars[at]
        digit = np.uint8(char - 48)
        if digit < 10:
            n_digits += 1
            if mantissa < _ROOM:
                mantissa = mantissa * _TEN + np.uint64(digit)
                exponent -= point
            else:
                exact = exact and digit == 0
                exponent += not point
        elif char == 46 and not point:
            point = True
        else:
            break
        at += 1
    if n_digits == 0:
        return 0.0, at, -1
    if char == 101 or char == 69:
        at += 1
        down = chars[at] == 45
        if down or chars[at] == 43:
            at += 1
        first, power = at, 0
        while np.uint8(chars[at] - 48) < 10:
            power = min(power * 10 + (chars[at] - 48), 100_000)
            at += 1
        if at == first:
            return 0.0, at, -1
        exponent += -power if down else power
    # Zeros at the end, as in 1.000000000e+00.
    while mantissa > _EXACT and mantissa % _TEN == 0:
        mantissa //= _TEN
        exponent += 1
    if not exact or mantissa > _EXACT or not (-22 <= exponent <= 22 or mantissa == 0):
        return 0.0, at, 1
    value = np.float64(mantissa)
    if mantissa != 0:
        value = value / _POWERS[-exponent] if exponent < 0 else value * _POWERS[exponent]
    return -value if negative else value, at, 0


@_compiled
def _note(hard: Any, n_hard: int, chars: Any, start: int, stop: int, where: int) -> None:
    # Not every release of Arrow converts "+1".
    hard[n_hard, 0] = start + (chars[start] == 43)
    hard[n_hard, 1] = stop
    hard[n_hard, 2] = where


@_compiled
def _scan(
    chars: Any,
    width: int,
    comments: bool,
    labels: Any,
    lengths: Any,
    indices: Any,
    values: Any,
    hard: Any,
) -> Any:
    """Fill the arrays; how many lines, pairs and hard numbers there are, or -1 if irregular."""
    at, row, pair, n_hard = 0, 0, 0, 0
    n = len(chars)
    irregular = -1, 0, 0
    while at < n:
        while chars[at] == 32 or chars[at] == 9 or chars[at] == 13:
            at += 1
        if comments and chars[at] == 35:
            while chars[at] != 10:
                at += 1
            at += 1
            continue
        value, stop, kind = _number(chars, at)
        if kind < 0:
            return irregular
        if kind > 0:
            _note(hard, n_hard, chars, at, stop, -1 - row)
            n_hard += 1
        labels[row] = value
        at = stop
        first, last = pair, 0
        while True:
            blank = chars[at] == 32 or chars[at] == 9 or chars[at] == 13
            while chars[at] == 32 or chars[at] == 9 or chars[at] == 13:
                at += 1
            if comments and chars[at] == 35:
                while chars[at] != 10:
                    at += 1
            if chars[at] == 10:
                break
            index, start = 0, at
            while np.uint8(chars[at] - 48) < 10:
                index = min(index * 10 + (chars[at] - 48), _MAX_INDEX + 1)
                at += 1
            if not blank or at == start or chars[at] != 58 or index <= last or index > width:
                return irregular
            at += 1
            value, stop, kind = _number(chars, at)
            if kind < 0:
                return irregular
            if kind > 0:
                _note(hard, n_hard, chars, at, stop, pair)
                n_hard += 1
            indices[pair] = index
            values[pair] = value
            last = index
            pair += 1
            at = stop
        lengths[row] = pair - first
        row += 1
        at += 1
    return row, pair, n_hard


@_compiled
def _gather(chars: Any, hard: Any, letters: Any) -> None:
    """Copy the words of the hard numbers, one after another."""
    to = 0
    for k in range(len(hard)):
        for at in range(hard[k, 0], hard[k, 1]):
            letters[to] = chars[at]
            to += 1
