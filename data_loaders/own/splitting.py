"""Which rows are the training part, which the test part, and the labels of both.

Rows are drawn by SplitMix64, which no release of a library can change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..content import Labels
from ..errors import DataError
from .classes import Target, decide, describe
from .options import Options
from .tables import SparseRows, Table
from .words import is_number, shown_word

#: Classes that are numbers, of which more are perhaps none.
MANY_CLASSES = 20
#: Of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): its increment and its two multipliers.
_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@dataclass(frozen=True, eq=False)
class Rows:
    """A part: what it is taken from, the class of each row of that, and the rows of the part."""

    data: Table | SparseRows
    target: Target
    rows: NDArray[np.intp]


def divide(
    data: Sequence[Table | SparseRows],
    targets: Sequence[Target],
    kept: Sequence[NDArray[np.bool_]],
    options: Options,
) -> tuple[Rows, Rows, str]:
    """Divide the rows that are `kept` of one file, or of two, into a training and a test part.

    The third result says how, in a line. Raises `DataError` if a part has no rows.
    """
    origin = data[0].origin
    for each, left in zip(data, kept, strict=True):
        if not left.any():
            raise DataError(
                f"{each.origin}: no rows are left: each has a missing value; set missing to 'mean' "
                "or drop the columns without values"
            )
    if len(data) > 1:
        description = "split: a training and a test part as given"
        train, test = (
            Rows(each, target, np.flatnonzero(left))
            for each, target, left in zip(data, targets, kept, strict=True)
        )
    else:
        rows = np.flatnonzero(kept[0])
        chosen, description = _test_rows(data[0], targets[0], rows, options)
        train = Rows(data[0], targets[0], rows[~chosen])
        test = Rows(data[0], targets[0], rows[chosen])
    n_train = len(train.rows)
    if options.n_train > n_train:
        raise DataError(
            f"{origin}: n_train = {options.n_train}, but there are {n_train} training rows"
        )
    if 0 < options.n_train < n_train:
        codes, seed = train.target.codes[train.rows], options.split_seed
        drawn = draw_rows(codes, options.n_train, seed, stratify=options.stratify)
        description += f"; of {n_train} training rows {drawn.sum()} are drawn by seed {seed}"
        train = replace(train, rows=train.rows[drawn])
    for part, role in ((train, "training"), (test, "test")):
        if not len(part.rows):
            words = targets[0].words
            perhaps = ""
            if len(words) > MANY_CLASSES and all(map(is_number, words)):
                perhaps = f"; {len(words)} classes are numbers: is it a regression target?"
            raise DataError(
                f"{origin}: no rows are left for the {role} part ({description}){perhaps}"
            )
    description = f"{description} ({len(train.rows)} training and {len(test.rows)} test rows)"
    return train, test, description


def label(train: Rows, test: Rows, positive: str) -> tuple[Labels, Labels, str]:
    """The labels of each part, and what they stand for in a line.

    Raises `DataError` if there are not two classes in each part, or one is in the test part only.
    """
    origin = train.data.origin
    counts = [part.target.counts(part.rows) for part in (train, test)]
    words = [word for word, count in counts[0].items() if count]
    labelling = decide(words, [counts[0][word] for word in words], positive, origin)
    labels = []
    for part, role in ((train, "train"), (test, "test")):
        y = labelling.labels(part.target, part.rows, part.data.origin)
        if (y == y[0]).all():
            raise DataError(
                f"{origin}: one class only in the {role} part (label {y[0]}); two are needed"
            )
        labels.append(y)
    return labels[0], labels[1], describe(labelling, *counts)


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
    for code, share in enumerate(np.minimum(shares, np.maximum(sizes - 1, 0))):
        rows = np.flatnonzero(codes == code)
        drawn[rows[np.argsort(ranks[rows], kind="stable")[:share]]] = True
    return drawn


def _test_rows(
    data: Table | SparseRows, target: Target, rows: NDArray[np.intp], options: Options
) -> tuple[NDArray[np.bool_], str]:
    """Which of the rows are the test part, and how that was decided."""
    if options.split != "" and isinstance(data, Table):
        chosen = _by_column(data, str(options.split))[rows]
        return chosen, f"split: by the column {options.split!r}"
    if options.last_rows is not None:
        line = f"split: the last {options.last_rows} rows are the test part"
        return rows >= data.n_rows - options.last_rows, line
    fraction, seed = options.test_fraction, options.split_seed
    # As many as scikit-learn takes.
    count = math.ceil(fraction * len(rows))
    scope = "of each class" if options.stratify else "of the rows"
    return (
        draw_rows(target.codes[rows], count, seed, stratify=options.stratify),
        f"split: {100 * fraction:g} % {scope} drawn as the test part by seed {seed}",
    )


def _by_column(data: Table, name: str) -> NDArray[np.bool_]:
    column = data.data.column(name)
    words = pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(column, "string")))
    test = pc.fill_null(pc.equal(words, "test"), False)
    valid = pc.or_(test, pc.fill_null(pc.equal(words, "train"), False))
    if not pc.all(valid).as_py():
        row = int(pc.index(valid, False).as_py())
        raise DataError(
            f"{data.origin}, {data.location(row)}: column {shown_word(name)} is "
            f"{shown_word(str(column[row].as_py()))}; a column of the split says 'train' or 'test'"
        )
    return np.asarray(test.to_numpy())


def _stream(rows: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """The outputs of SplitMix64 from a seed at some positions."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (rows + np.uint64(1)) * np.uint64(_STEP)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
        return np.asarray(z ^ (z >> np.uint64(31)))
