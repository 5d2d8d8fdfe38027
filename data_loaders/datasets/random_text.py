"""Random sparse points like documents: few frequent and many rare words, drawn from a seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..content import Content, Part
from ..files import LocalFile
from ..parameters import Parameters, integers, real
from ..sources import Source

#: Points, features and density of the abstracts in BMRM07 table 1 (astro-ph).
DEFAULTS: Parameters = MappingProxyType(
    {"n_train": 62_369, "n_test": 10_000, "n_features": 99_757, "density": 0.0008, "seed": 0}
)
_MAX_POINTS = 10**8
_MAX_FEATURES = 2**31 - 1
# Standard deviation of what is added to scores of standard deviation about 1 before labels are
# taken: about 6 % of the labels are on the wrong side.
_NOISE = 0.2
# Documents are drawn so many at a time.
_BLOCK = 2000


def check_parameters(params: Mapping[str, object]) -> dict[str, int | float]:
    """All parameters, checked and in plain int and float; raises `DataError`.

    ``density`` is the expected share of the entries that are stored, at most 0.5 and enough for a
    feature in each point.
    """
    checked = integers(
        "random-text",
        params,
        n_train=(2, _MAX_POINTS),
        n_test=(2, _MAX_POINTS),
        n_features=(10, _MAX_FEATURES),
        seed=(0, math.inf),
    )
    least = 1.0 / checked["n_features"]
    expected = f"a number between 1 / n_features = {least:.3g} and 0.5"
    density = real(
        "random-text", "density", params["density"], expected, lambda share: least <= share <= 0.5
    )
    return {**checked, "density": density}


def read(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """Generate float32 CSR points of norm 1 with labels -1 and +1.

    A point is the set of the words of a document: each word is drawn with probability about
    1 / (rank log n_features), and stands with its inverse document frequency ``-log P(in a
    document)``. Documents have equally many draws, as many as make the density. The label is the
    sign of a random linear function of the point plus noise; its coefficients are normal, times the
    square root of the probability of a word. The test part does not depend on ``n_train``.
    """
    seeds = np.random.SeedSequence(int(params["seed"])).spawn(4)
    n_features = int(params["n_features"])
    draws = _draws(n_features, float(params["density"]))
    frequency = _document_frequency(n_features, draws)
    # A word that is in every document up to rounding would stand with 0, and not be stored.
    weights = np.maximum(-np.log(frequency), np.finfo(np.float32).eps)
    direction = np.random.Generator(np.random.PCG64(seeds[0])).standard_normal(n_features)
    # With equal telling power of all words, too much would hang on words that are hardly ever seen.
    direction *= np.sqrt(frequency)
    direction /= np.sqrt(np.average(direction**2, weights=frequency * weights**2))

    def drawn(seed: np.random.SeedSequence, n: int) -> tuple[csr_matrix, NDArray[np.float64]]:
        generator = np.random.Generator(np.random.PCG64(seed))
        return _documents(generator, n, draws, weights, direction)

    parts = []
    for seed, size in zip(seeds[1:3], ("n_train", "n_test"), strict=True):
        X, scores = drawn(seed, int(params[size]))
        parts.append(Part(X, np.where(scores > 0, 1, -1).astype(np.int8)))
    return Content(*parts)


def _draws(n_features: int, density: float) -> int:
    """How many words to draw for a document, so that so large a share of all are expected in it."""
    # Imported here: it takes long, and every command lists the datasets.
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
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
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


_CITATION = """@inproceedings{smola2007bundle,
  author = {Smola, Alexander J. and Vishwanathan, S. V. N. and Le, Quoc V.},
  title = {Bundle Methods for Machine Learning},
  booktitle = {Advances in Neural Information Processing Systems 20},
  year = {2007}
}"""

SOURCES = (
    Source(
        name="random-text",
        summary="random sparse points like documents, on either side of a noisy hyperplane",
        format="generator",
        split="two independent samples of one seed",
        read=read,
        parameters=DEFAULTS,
        check_parameters=check_parameters,
        licence="BSD-3-Clause (generated)",
        citation=_CITATION,
        default_gamma=1.0,
        default_C=1.0,
    ),
)
