"""Which rows are the training part and which the test part.

Rows are drawn by SplitMix64, which no release of a library can change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import DataError
from .options import Options
from .words import shown_word

#: Of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): its increment and its two multipliers.
_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def divide(
    rows: NDArray[np.intp],
    codes: NDArray[np.int64],
    by: NDArray[np.bool_] | None,
    n_rows: int,
    options: Options,
    origin: str,
) -> tuple[NDArray[np.intp], NDArray[np.intp], str]:
    """Divide the rows that are kept of `n_rows` into a training and a test part.

    `codes` are the classes of all rows; `by` says which of them are the test part where the data
    themselves do. The third result says how, in a line. Raises `DataError` if a part has no rows.
    """
    seed, stratify = options.split_seed, options.stratify
    if by is not None:
        tested = by[rows]
        how = "a training and a test part as given"
        if options.split != "":
            how = f"by the column {options.split!r}"
    elif options.last_rows is not None:
        tested = rows >= n_rows - options.last_rows
        how = f"the last {options.last_rows} rows are the test part"
    else:
        # As many as scikit-learn takes.
        count = math.ceil(options.test_fraction * len(rows))
        tested = draw_rows(codes[rows], count, seed, stratify=stratify)
        scope = "of each class" if stratify else "of the rows"
        how = f"{100 * options.test_fraction:g} % {scope} drawn as the test part by seed {seed}"
    train, test = rows[~tested], rows[tested]
    n_train = len(train)
    if options.n_train > n_train:
        raise DataError(
            f"{origin}: n_train = {options.n_train}, but there are {n_train} training rows"
        )
    if 0 < options.n_train < n_train:
        train = train[draw_rows(codes[train], options.n_train, seed, stratify=stratify)]
        how += f"; of {n_train} training rows {len(train)} are drawn by seed {seed}"
    for part, role in ((train, "training"), (test, "test")):
        if not len(part):
            raise DataError(
                f"{origin}: no rows are left for the {role} part (split: {how}); has each class "
                "several rows, and is target the right column?"
            )
    return train, test, f"split: {how} ({len(train)} training and {len(test)} test rows)"


def draw_rows(
    codes: NDArray[np.int64], count: int, seed: int, *, stratify: bool
) -> NDArray[np.bool_]:
    """Draw `count` rows of a part, fewer than there are; where they are.

    `codes` is the class of each row, from 0. With `stratify`, each class gives its share, to within
    one row, and never its only row.
    """
    # Streams of neighbouring seeds would be shifts of each other: the first output is the seed.
    start = int(_stream(np.zeros(1, dtype=np.uint64), seed)[0])
    ranks = _stream(np.arange(len(codes), dtype=np.uint64), start)
    drawn = np.zeros(len(codes), dtype=bool)
    if not stratify:
        drawn[np.argsort(ranks, kind="stable")[:count]] = True
        return drawn
    # Rows of each class in the part: proportional, by largest remainders.
    sizes = np.bincount(codes)
    exact = sizes * (count / sizes.sum())
    shares = np.floor(exact).astype(np.int64)
    by_remainder = np.argsort(shares - exact, kind="stable")
    shares[by_remainder[: count - shares.sum()]] += 1
    for code, share in enumerate(np.minimum(shares, sizes - 1)):
        rows = np.flatnonzero(codes == code)
        drawn[rows[np.argsort(ranks[rows], kind="stable")[:share]]] = True
    return drawn


def said_by(column: Any, name: str, where: Callable[[int], str]) -> NDArray[np.bool_]:
    """Which rows a column says are the test part."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(column, "string")))
    test = pc.fill_null(pc.equal(words, "test"), False)
    valid = pc.or_(test, pc.fill_null(pc.equal(words, "train"), False))
    if not pc.all(valid).as_py():
        row = int(pc.index(valid, False).as_py())
        raise DataError(
            f"{where(row)}: column {shown_word(name)} is {shown_word(str(column[row].as_py()))}; "
            "a column of the split says 'train' or 'test'"
        )
    return np.asarray(test.to_numpy())


def _stream(rows: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """The outputs of SplitMix64 from a seed at some positions."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (rows + np.uint64(1)) * np.uint64(_STEP)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
        return np.asarray(z ^ (z >> np.uint64(31)))
