"""Generated classification sets of the shapes that solvers find easy or hard, by name.

Each generator takes the number of points, the number of features and a random generator, and
returns points and labels -1, 1. They only look like their namesakes: what they share is the number
of features, how many of those are 0, and how much the classes overlap.
"""

import numpy as np
from scipy import sparse


def images(n, d, rng):
    """Two classes of ten blurred strokes each, in [0, 1], most pixels 0; 2 % wrong labels."""
    prototypes = _blurred(rng.standard_normal((20, d)), width=9)
    deformations = _blurred(rng.standard_normal((40, d)), width=5)
    kind = rng.integers(20, size=n)
    points = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, 4096):
        part = slice(start, start + 4096)
        own = kind[part]
        strength = 0.35 * rng.standard_normal((len(own), 40))
        ink = prototypes[own] + strength @ deformations
        ink += 0.1 * rng.standard_normal(ink.shape)
        points[part] = np.clip(ink - 0.8, 0, 1)
    return points, _flipped(np.where(kind < 10, 1.0, -1.0), 0.02, rng)


def texts(n, d, rng):
    """Sparse rows of unit length: 40 words of a Zipf law, tilted by class in rarer words."""
    frequency = 1 / np.arange(1, d + 1)
    tilt = np.where(np.arange(d) < 20, 0.0, 0.3 * rng.standard_normal(d))
    y = _signs(n, rng)
    rows = np.repeat(np.arange(n), 40)
    words = np.empty(len(rows), dtype=np.int64)
    for sign in (-1.0, 1.0):
        law = np.cumsum(frequency * np.exp(sign * tilt))
        of_class = np.repeat(y == sign, 40)
        words[of_class] = np.searchsorted(law, law[-1] * rng.random(of_class.sum()), "right")
    rarity = np.log(np.cumsum(frequency)[-1] / frequency)
    counts = sparse.csr_matrix((rarity[words], (rows, words)), shape=(n, d))
    norms = np.sqrt(counts.multiply(counts).sum(axis=1)).A1
    return sparse.csr_matrix(sparse.diags(1 / norms) @ counts, dtype=np.float32), y


def zero_one(n, d, rng):
    """Features 0 or 1, one in ten of them 1, some of which depend on the class."""
    share = rng.beta(0.5, 4.5, d)
    tilt = 0.7 * rng.standard_normal(d) * (rng.random(d) < 0.3)
    y = _signs(n, rng)
    odds = share / (1 - share) * np.exp(y[:, None] * tilt)
    return (rng.random((n, d)) < odds / (1 + odds)).astype(np.float32), y


def curves(n, d, rng):
    """Two interleaved spirals in the first two coordinates, the others noise."""
    y = _signs(n, rng)
    angle = 3 * np.pi * np.sqrt(rng.random(n)) + 0.5
    turned = angle + np.where(y > 0, 0.0, np.pi)
    points = 0.15 * rng.standard_normal((n, d))
    points[:, 0] += angle / 3 * np.cos(turned)
    points[:, 1] += angle / 3 * np.sin(turned)
    return points.astype(np.float32), y


def overlapping(n, d, rng):
    """Two Gaussians whose best classifier errs on about one point in six."""
    y = _signs(n, rng)
    return (rng.standard_normal((n, d)) + y[:, None] / np.sqrt(d)).astype(np.float32), y


def separable(n, d, rng):
    """Two Gaussians five standard deviations from the plane between them."""
    y = _signs(n, rng)
    return (rng.standard_normal((n, d)) + 5 * y[:, None] / np.sqrt(d)).astype(np.float32), y


def checkers(n, d, rng):
    """A board of four cells a side, of alternating classes, in d dimensions."""
    points = rng.random((n, d))
    y = np.where(np.floor(4 * points).sum(axis=1) % 2 == 0, 1.0, -1.0)
    return points.astype(np.float32), y


def dense_points(n, d):
    """Gaussian points of about unit length."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d), dtype=np.float32) / np.float32(np.sqrt(d))


def text_points(n, d, per_row):
    """CSR points whose features are used as words are: the k-th in proportion to 1 / k."""
    rng = np.random.default_rng(0)
    chances = 1 / np.arange(1, d + 1)
    columns = rng.choice(d, size=n * per_row, p=chances / chances.sum())
    rows = np.repeat(np.arange(n), per_row)
    values = rng.random(n * per_row, dtype=np.float32)
    return sparse.csr_matrix((values, (rows, columns)), shape=(n, d), dtype=np.float32)


def _signs(n, rng):
    return np.where(rng.random(n) < 0.5, 1.0, -1.0)


def _flipped(y, share, rng):
    return np.where(rng.random(len(y)) < share, -y, y)


def _blurred(rows, width):
    """Moving averages along the rows, scaled back to unit variance."""
    window = np.ones(width) / np.sqrt(width)
    return np.stack([np.convolve(row, window, mode="same") for row in rows])
