"""Splits by a seed that no release of a library can change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): its increment and its two multipliers.
_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def draw_rows(
    codes: NDArray[np.int64], count: int, seed: int, *, stratify: bool
) -> NDArray[np.bool_]:
    """Draw the rows of a part.

    Parameters
    ----------
    codes : int64 ndarray, shape (n,)
        The class of each row, from 0.
    count : int
        How many rows, less than n.
    seed : int
    stratify : bool
        Whether each class gives its share, to within one row; a class never gives its only row.

    Returns
    -------
    bool ndarray, shape (n,)
        Where the rows of the part are.
    """
    # Streams of neighbouring seeds would be shifts of each other: the first output is the seed.
    start = int(_stream(np.zeros(1, dtype=np.uint64), seed)[0])
    ranks = _stream(np.arange(len(codes), dtype=np.uint64), start)
    drawn = np.zeros(len(codes), dtype=bool)
    if not stratify:
        drawn[np.argsort(ranks, kind="stable")[:count]] = True
        return drawn
    sizes = np.bincount(codes)
    for code, size in enumerate(_shares(sizes, count)):
        rows = np.flatnonzero(codes == code)
        drawn[rows[np.argsort(ranks[rows], kind="stable")[:size]]] = True
    return drawn


def _shares(sizes: NDArray[np.int64], count: int) -> list[int]:
    """Rows of each class in the part: proportional, by largest remainders."""
    exact = sizes * (count / sizes.sum())
    shares = np.floor(exact).astype(np.int64)
    by_remainder = np.argsort(shares - exact, kind="stable")
    shares[by_remainder[: count - shares.sum()]] += 1
    return [int(share) for share in np.minimum(shares, np.maximum(sizes - 1, 0))]


def _stream(rows: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """The outputs of SplitMix64 from a seed at some positions."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (rows + np.uint64(1)) * np.uint64(_STEP)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
        found: NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return found
