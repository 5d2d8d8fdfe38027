"""Random points around prototypes, in the shape of a dataset that is not at hand.

A point belongs to a prototype, which belongs to a class. Numbers scatter around those of the
prototype, and some are 0; of each group of words a point has one, mostly the prototype's. Some
labels are flipped, which is the least error that a learner can reach. Draws are uniform, and only
sums and products of them are taken, so that every platform makes the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from .content import Content, Matrix, Part

#: Entries that are drawn together.
_BLOCK_ENTRIES = 1 << 20
#: How often a number is stored where its prototype has one, and a word is the prototype's.
_FAITHFUL = 0.9


@dataclass(frozen=True)
class Shape:
    """What a dataset looks like.

    Parameters
    ----------
    n_train, n_test : int
        Points.
    numbers : int
        Features that are numbers.
    density : float
        The share of the numbers that are not 0.
    words : tuple of int
        Sizes of the groups of features of which a point has one each, as 1.
    positive : float
        The share of the points with label +1.
    flipped : float
        The share of the labels that are wrong, less than 0.5.
    prototypes : int
        Of each class.
    spread : float
        Numbers are uniform in [0, 1] in prototypes; points are at most this far from them. With 0,
        all numbers that are stored are 1.
    sparse : bool
        Whether points are stored as CSR.
    """

    n_train: int
    n_test: int
    numbers: int
    positive: float
    flipped: float
    prototypes: int
    spread: float
    density: float = 1.0
    words: tuple[int, ...] = ()
    sparse: bool = False

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.numbers + sum(self.words)


@dataclass(frozen=True, eq=False)
class _Prototypes:
    """Of both classes: those of -1 come first.

    Parameters
    ----------
    centres : float64 ndarray, shape (2 * prototypes, numbers)
    stored : float64 ndarray, shape (2 * prototypes, numbers)
        How likely it is that a point stores a number.
    words : int64 ndarray, shape (2 * prototypes, groups)
    """

    centres: NDArray[np.float64]
    stored: NDArray[np.float64]
    words: NDArray[np.int64]


def generate(shape: Shape, n_train: int, n_test: int, seed: int) -> Content:
    """Draw both parts.

    Parameters
    ----------
    shape : Shape
    n_train, n_test : int
        Points, at least 2 each, in place of those of the shape.
    seed : int

    Returns
    -------
    Content
        float32 points, int8 labels -1 and +1. The test part does not depend on `n_train`.
    """
    seeds = np.random.SeedSequence(seed).spawn(3)
    prototypes = _prototypes(np.random.Generator(np.random.PCG64(seeds[0])), shape)
    train, test = (
        _part(np.random.Generator(np.random.PCG64(seed)), shape, prototypes, n)
        for seed, n in zip(seeds[1:], (n_train, n_test), strict=True)
    )
    return Content(train, test)


def _prototypes(generator: np.random.Generator, shape: Shape) -> _Prototypes:
    n = 2 * shape.prototypes
    centres = generator.random((n, shape.numbers))
    has = generator.random((n, shape.numbers)) < shape.density
    # The others make up for the numbers that are left out.
    elsewhere = (1 - _FAITHFUL) * shape.density / (1 - shape.density) if shape.density < 1 else 1.0
    words = np.empty((n, len(shape.words)), dtype=np.int64)
    for group, size in enumerate(shape.words):
        words[:, group] = generator.integers(0, size, n)
    if not shape.spread:
        centres[:] = 1.0
    return _Prototypes(
        centres, np.where(has, _FAITHFUL if shape.density < 1 else 1.0, elsewhere), words
    )


def _part(generator: np.random.Generator, shape: Shape, prototypes: _Prototypes, n: int) -> Part:
    n_positive = min(max(round(n * shape.positive), 1), n - 1)
    y: NDArray[np.int8] = np.where(np.arange(n) < n_positive, 1, -1).astype(np.int8)
    y = y[generator.permutation(n)]
    seen = np.where(generator.random(n) < shape.flipped, -y, y)
    which = generator.integers(0, shape.prototypes, n) + shape.prototypes * (seen > 0)
    blocks = (
        _points(generator, shape, prototypes, which[rows]) for rows in _blocks(n, shape.n_features)
    )
    return Part(_below_each_other(blocks, shape, n), y)


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK_ENTRIES // width)
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def _points(
    generator: np.random.Generator, shape: Shape, prototypes: _Prototypes, which: Any
) -> NDArray[np.float32]:
    n = len(which)
    X = np.zeros((n, shape.n_features), dtype=np.float32)
    numbers = prototypes.centres[which]
    if shape.spread:
        numbers += shape.spread * (
            generator.random(numbers.shape) - generator.random(numbers.shape)
        )
    if shape.density < 1:
        numbers *= generator.random(numbers.shape) < prototypes.stored[which]
    X[:, : shape.numbers] = numbers
    start = shape.numbers
    for group, size in enumerate(shape.words):
        others = generator.integers(0, size, n)
        faithful = generator.random(n) < _FAITHFUL
        word = np.where(faithful, prototypes.words[which, group], others)
        X[np.arange(n), start + word] = 1.0
        start += size
    return X


def _below_each_other(blocks: Iterator[NDArray[np.float32]], shape: Shape, n: int) -> Matrix:
    if shape.sparse:
        return vstack([csr_matrix(block) for block in blocks], format="csr")
    X = np.empty((n, shape.n_features), dtype=np.float32)
    stop = 0
    for block in blocks:
        start, stop = stop, stop + len(block)
        X[start:stop] = block
    return X
