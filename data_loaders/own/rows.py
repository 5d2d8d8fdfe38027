"""Which rows are the training part, which the test part, and which are left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..content import Labels
from ..errors import DataError
from . import classes
from .blocks import Spooled, shown_word
from .classes import Target
from .options import Options
from .splitting import draw_rows

Role = Literal["train", "test"]


@dataclass(frozen=True, eq=False)
class Source:
    """A spooled file with the class of each row and the part that it goes to.

    Attributes
    ----------
    data : Spooled
    target : Target
    train, test : bool ndarray
        Where the rows of each part are.
    """

    data: Spooled
    target: Target
    train: NDArray[np.bool_]
    test: NDArray[np.bool_]

    def of(self, role: Role) -> NDArray[np.bool_]:
        """Where the rows of a part are."""
        return self.train if role == "train" else self.test

    def blocks(self, role: Role) -> Iterator[tuple[Any, NDArray[np.intp]]]:
        """The blocks that have rows of a part, no other rows, and the numbers of these rows."""
        chosen = self.of(role)
        for start, batch in self.data.blocks():
            rows = np.flatnonzero(chosen[start : start + batch.num_rows])
            if len(rows):
                whole = len(rows) == batch.num_rows
                yield batch if whole else batch.take(rows), rows + start


def divide(
    data: Sequence[Spooled],
    targets: Sequence[Target],
    kept: Sequence[NDArray[np.bool_]],
    options: Options,
) -> tuple[list[Source], str]:
    """Divide rows into a training and a test part.

    Parameters
    ----------
    data : sequence of Spooled
        One file, or a training and a test file.
    targets : sequence of Target
    kept : sequence of bool ndarray
        Where rows are that are not left out.
    options : Options

    Returns
    -------
    sources : list of Source
    told : str
        How they were divided, in a line.

    Raises
    ------
    DataError
        If a part has no rows.
    """
    for each, rows in zip(data, kept, strict=True):
        if not rows.any():
            raise DataError(
                f"{each.origin}: no rows are left: each has a missing value; set missing to 'mean' "
                "or drop the columns without values"
            )
    if len(data) > 1:
        nothing = [np.zeros(len(each), dtype=bool) for each in kept]
        train = Source(data[0], targets[0], kept[0], nothing[0])
        test = Source(data[1], targets[1], nothing[1], kept[1])
        sources, told = [train, test], "split: a training and a test part as given"
    else:
        chosen, told = _test_rows(data[0], targets[0], kept[0], options)
        sources = [Source(data[0], targets[0], kept[0] & ~chosen, kept[0] & chosen)]
    if options.n_train:
        sources[0], told = _fewer(sources[0], options, told)
    sizes = [sum(int(source.of(role).sum()) for source in sources) for role in ("train", "test")]
    for size, role in zip(sizes, ("training", "test"), strict=True):
        if not size:
            raise DataError(f"{data[0].origin}: no rows are left for the {role} part ({told})")
    return sources, f"{told} ({sizes[0]} training and {sizes[1]} test rows)"


def label(sources: Sequence[Source], positive: str) -> tuple[list[dict[Role, Labels]], str]:
    """The labels of each source by part, and what they stand for in a line.

    Raises
    ------
    DataError
        If there are not two classes in each part, or one is in the test part only.
    """
    train = _counted(sources, "train")
    words = [word for word, count in train.items() if count]
    origin = sources[0].data.origin
    labelling = classes.decide(words, [train[word] for word in words], positive, origin)
    labels: list[dict[Role, Labels]] = [
        {
            role: labelling.labels(
                source.target, np.flatnonzero(source.of(role)), source.data.origin
            )
            for role in ("train", "test")
        }
        for source in sources
    ]
    for role in ("train", "test"):
        found = {int(each) for part in labels for each in np.unique(part[role])}
        if len(found) < 2:
            raise DataError(
                f"{origin}: one class only in the {role} part (label {min(found)}); two are needed"
            )
    return labels, classes.told(labelling, train, _counted(sources, "test"))


def _counted(sources: Sequence[Source], role: Role) -> dict[str, int]:
    found: dict[str, int] = {}
    for source in sources:
        counts = source.target.counts(source.of(role))
        for word, count in zip(source.target.words, counts, strict=True):
            found[word] = found.get(word, 0) + int(count)
    return found


def _fewer(source: Source, options: Options, told: str) -> tuple[Source, str]:
    """The source with no more training rows than asked for."""
    rows = np.flatnonzero(source.train)
    if options.n_train > len(rows):
        raise DataError(
            f"{source.data.origin}: n_train = {options.n_train}, but there are {len(rows)} "
            "training rows"
        )
    if options.n_train == len(rows):
        return source, told
    train = np.zeros_like(source.train)
    drawn = draw_rows(
        source.target.codes[rows], options.n_train, options.split_seed, stratify=options.stratify
    )
    train[rows[drawn]] = True
    told += f"; of {len(rows)} training rows {train.sum()} are drawn by seed {options.split_seed}"
    return replace(source, train=train), told


def _test_rows(
    data: Spooled, target: Target, kept: NDArray[np.bool_], options: Options
) -> tuple[NDArray[np.bool_], str]:
    if options.split != "":
        return _by_column(data, str(options.split)), f"split: by the column {options.split!r}"
    chosen = np.zeros(len(kept), dtype=bool)
    last = options.last_rows
    if last is not None:
        chosen[max(0, len(chosen) - last) :] = True
        return chosen, f"split: the last {last} rows are the test part"
    rows = np.flatnonzero(kept)
    fraction, seed = options.test_fraction, options.split_seed
    # As many as scikit-learn takes.
    count = math.ceil(fraction * len(rows))
    chosen[rows[draw_rows(target.codes[rows], count, seed, stratify=options.stratify)]] = True
    how = "of each class" if options.stratify else "of the rows"
    return chosen, f"split: {100 * fraction:g} % {how} drawn as the test part by seed {seed}"


def _by_column(data: Spooled, name: str) -> NDArray[np.bool_]:
    words = pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(data.data.column(name), "string")))
    test = pc.fill_null(pc.equal(words, "test"), False)
    known = pc.or_(test, pc.fill_null(pc.equal(words, "train"), False))
    found: NDArray[np.bool_] = test.to_numpy()
    if not pc.all(known).as_py():
        row = int(pc.index(known, False).as_py())
        value = data.data.column(name)[row].as_py()
        raise DataError(
            f"{data.origin}, {data.place(row)}: column {shown_word(name)} is "
            f"{shown_word(str(value))}; a column of the split says 'train' or 'test'"
        )
    return found
