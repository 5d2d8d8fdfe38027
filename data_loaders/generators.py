"""Datasets that need no file: points drawn from a seed, and what scikit-learn brings along.

Each generator draws its two parts from two streams of one seed, so that the test part does not
depend on ``n_train``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from .content import Content, Part
from .errors import DataError
from .files import LocalFile
from .parameters import Parameters
from .transforms import every


def _streams(params: Parameters) -> list[np.random.Generator]:
    seeds = np.random.SeedSequence(int(params["seed"])).spawn(3)
    return [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]


def _two_parts(
    params: Parameters,
    streams: list[np.random.Generator],
    draw: Callable[[np.random.Generator, int], Part],
) -> Content:
    sizes = (int(params["n_train"]), int(params["n_test"]))
    return Content(*map(draw, streams, sizes))


def read_scikit_learn(
    files: Mapping[str, LocalFile], params: Parameters, *, loader: str
) -> Content:
    """What a loader of scikit-learn returns; every third row is the test part."""
    # Imported here: scikit-learn's datasets take a second.
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, loader)(return_X_y=True)
    return every(Part(X, y.astype(np.int64)), 3, first=2)


# Checkers: four by four cells of alternating classes


def read_checkers(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """Float64 points of shape (n, 2) with labels -1 and +1."""
    noise = float(params["noise"])

    def draw(generator: np.random.Generator, n: int) -> Part:
        # SVM-KM's `checkers`: n / 16 uniform points in each unit cell of [-2, 2]^2. CUTS08 states
        # sigma = 0.02; the released generator ignores it. Here it moves points after labelling.
        cell = np.arange(n) % 16
        corner = np.stack((cell // 4, cell % 4), axis=1)
        y: NDArray[np.int8] = np.where(corner.sum(axis=1) % 2 == 0, 1, -1).astype(np.int8)
        X = corner - 2.0 + generator.random((n, 2))
        X += noise * generator.standard_normal((n, 2))
        # Cell by cell, the order of the rows would steer solvers that take points in turn.
        order = generator.permutation(n)
        return Part(X[order], y[order])

    return _two_parts(params, _streams(params), draw)


# Quadric: uniform points on either side of a quadric. The least error that a classifier can reach
# is known: it is the share of flipped labels.

# Numbers that are drawn together.
_BLOCK = 1 << 20


def read_quadric(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """Float32 points, uniform in [-1, 1], with labels -1 and +1.

    The label is +1 where the first half of the features has the larger sum of squares, so that both
    classes are equally likely, and a hyperplane does no better than chance. Then each label is
    flipped with probability ``flipped``, whatever the point: this is the Bayes error.
    """
    width, flipped = int(params["n_features"]), float(params["flipped"])

    def draw(generator: np.random.Generator, n: int) -> Part:
        X, y = np.empty((n, width), dtype=np.float32), np.empty(n, dtype=np.int8)
        step = max(1, _BLOCK // width)
        for start in range(0, n, step):
            rows = slice(start, min(n, start + step))
            X[rows] = 2.0 * generator.random((rows.stop - start, width)) - 1.0
            right = generator.random(rows.stop - start) >= flipped
            y[rows] = np.where((_form(X[rows]) > 0) == right, 1, -1)
        return Part(X, y)

    return _two_parts(params, _streams(params), draw)


def _form(X: NDArray[np.float32]) -> NDArray[np.float64]:
    """The quadratic form of each point, summed in one order on every platform."""
    total = np.zeros(len(X))
    half = X.shape[1] // 2
    for first, second in zip(X.T[:half], X.T[half:], strict=True):
        total += first.astype(np.float64) ** 2
        total -= second.astype(np.float64) ** 2
    return total


# Random text: sparse points like documents, of few frequent and many rare words

# Standard deviation of what is added to scores of standard deviation about 1 before labels are
# taken: about 6 % of the labels are on the wrong side.
_NOISE = 0.2
# Documents that are drawn together.
_DOCUMENTS = 2000


def read_random_text(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """Float32 CSR points of norm 1 with labels -1 and +1.

    A point is the set of the words of a document: each word is drawn with probability about
    1 / (rank log n_features), and stands with its inverse document frequency ``-log P(in a
    document)``. Documents have equally many draws, as many as make the density. The label is the
    sign of a random linear function of the point plus noise; its coefficients are normal, times the
    square root of the probability of a word.
    """
    n_features, density = int(params["n_features"]), float(params["density"])
    if density * n_features < 1:
        least = 1 / n_features
        raise DataError(f"random-text: density must be {least:.3g} or more, got {density}")
    draws = _draws(n_features, density)
    frequency = _document_frequency(n_features, draws)
    # A word that is in every document up to rounding would stand with 0, and not be stored.
    weights = np.maximum(-np.log(frequency), np.finfo(np.float32).eps)
    common, *streams = _streams(params)
    direction = common.standard_normal(n_features)
    # With equal telling power of all words, too much would hang on words that are hardly ever seen.
    direction *= np.sqrt(frequency)
    direction /= np.sqrt(np.average(direction**2, weights=frequency * weights**2))

    def draw(generator: np.random.Generator, n: int) -> Part:
        X, scores = _documents(generator, n, draws, weights, direction)
        return Part(X, np.where(scores > 0, 1, -1).astype(np.int8))

    return _two_parts(params, streams, draw)


def _draws(n_features: int, density: float) -> int:
    """How many words to draw for a document, so that so large a share of all are expected in it."""
    from scipy.optimize import brentq

    def excess(draws: float) -> float:
        return float(_document_frequency(n_features, draws).mean()) - density

    high = 2.0
    while excess(high) < 0:
        high *= 2
    return max(1, round(float(brentq(excess, 0.5, high, xtol=0.1))))


def _document_frequency(n_features: int, draws: float) -> NDArray[np.float64]:
    """P(word j is among the draws)."""
    ranks = np.arange(1, n_features + 1)
    probability = np.log1p(1 / ranks) / math.log(n_features + 1)
    frequency: NDArray[np.float64] = -np.expm1(draws * np.log1p(-probability))
    return frequency


def _documents(
    generator: np.random.Generator,
    n: int,
    draws: int,
    weights: NDArray[np.float64],
    direction: NDArray[np.float64],
) -> tuple[csr_matrix, NDArray[np.float64]]:
    """Points, and the noisy scores that their labels follow from."""
    n_features = len(weights)
    # Room for documents without a repeated word; what is left over is given back at the end.
    indices, data = np.empty(n * draws, dtype=np.int32), np.empty(n * draws, dtype=np.float32)
    indptr, noisy = np.zeros(n + 1, dtype=np.int64), np.empty(n)
    for start in range(0, n, _DOCUMENTS):
        size = min(_DOCUMENTS, n - start)
        # (n_features + 1)^u has the density 1 / (x log(n_features + 1)) on [1, n_features + 1].
        words = (n_features + 1) ** generator.random((size, draws))
        index = np.minimum(words.astype(np.int64), n_features) - 1
        index.sort(axis=1)
        first = np.ones(index.shape, dtype=bool)
        first[:, 1:] = index[:, 1:] != index[:, :-1]
        length = first.sum(axis=1)
        index = index[first]
        starts = np.concatenate(([0], np.cumsum(length)[:-1]))
        value = weights[index]
        value /= np.repeat(np.sqrt(np.add.reduceat(value * value, starts)), length)
        scores = np.add.reduceat(value * direction[index], starts)
        noisy[start : start + size] = scores + _NOISE * generator.standard_normal(size)
        stored = indptr[start]
        indices[stored : stored + len(index)] = index
        data[stored : stored + len(index)] = value
        indptr[start + 1 : start + size + 1] = stored + np.cumsum(length)
    for array in (indices, data):
        array.resize(indptr[-1], refcheck=False)
    return csr_matrix((data, indices, indptr), shape=(n, n_features)), noisy
