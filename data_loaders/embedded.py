"""Datasets that come with scikit-learn, and the steps that make them binary problems."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from data_loaders.content import Content, Part
from data_loaders.files import LocalFile


def read_digits(files: Mapping[str, LocalFile], params: Mapping[str, int | float]) -> Content:
    """The 1797 digits of scikit-learn: 64 grey levels in 0..16, labels 0..9."""
    # Imported here: scikit-learn's datasets take a second, and a cached dataset needs none.
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return every_third(X, y.astype(np.int64))


def read_breast_cancer(
    files: Mapping[str, LocalFile], params: Mapping[str, int | float]
) -> Content:
    """The 569 samples of scikit-learn: 30 measurements, labels 0 (malignant) and 1 (benign)."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return every_third(X, y.astype(np.int64))


def every_third(X: NDArray[np.float64], y: NDArray[np.int64]) -> Content:
    """Rows 3, 6, 9, ... are the test part: a split that no random stream can change."""
    test = np.arange(len(y)) % 3 == 2
    return Content(Part(X[~test], y[~test]), Part(X[test], y[test]))


def eight_against_rest(content: Content) -> Content:
    """Pixels / 16 as float32, which holds them exactly; label +1 for an eight, -1 otherwise."""

    def one(part: Part) -> Part:
        y = np.where(part.y == 8, 1, -1).astype(np.int8)
        return Part((part.X / 16).astype(np.float32), y)

    return Content(one(content.train), one(content.test))


def standardised(content: Content) -> Content:
    """Features less the training part's mean, over its standard deviation; labels 1 and 0
    become +1 and -1.

    The result stays float64: unlike the raw measurements, quotients fill every bit, and float32
    would decide their rounding for solvers that work in float64. Sums are taken with
    :func:`math.fsum`, so the stored bits, and with them the fingerprint, are the same on every
    platform.
    """
    X = content.train.X
    n = X.shape[0]
    mean = np.array([math.fsum(column) / n for column in X.T])
    variance = np.array([math.fsum(column) / n for column in ((X - mean) ** 2).T])
    scale = np.sqrt(np.where(variance == 0, 1.0, variance))

    def one(part: Part) -> Part:
        y = np.where(part.y == 1, 1, -1).astype(np.int8)
        return Part(np.ascontiguousarray((part.X - mean) / scale), y)

    return Content(one(content.train), one(content.test))
