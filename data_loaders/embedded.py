"""Datasets that come with scikit-learn, and the steps that make them binary problems."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from marginbench.data_loaders import splits
from marginbench.data_loaders.content import Content, Part
from marginbench.data_loaders.files import LocalFile
from marginbench.data_loaders.parameters import Parameters
from marginbench.data_loaders.transforms import moments


def read_digits(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """The 1797 digits of scikit-learn: 64 grey levels in 0..16, labels 0..9."""
    # Imported here: scikit-learn's datasets take a second, and a cached dataset needs none.
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return every_third(X, y.astype(np.int64))


def read_breast_cancer(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """The 569 samples of scikit-learn: 30 measurements, labels 0 (malignant) and 1 (benign)."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return every_third(X, y.astype(np.int64))


def every_third(X: NDArray[np.float64], y: NDArray[np.int64]) -> Content:
    """Rows 3, 6, 9, ... are the test part."""
    return splits.every(Part(X, y), 3, first=2)


def eight_against_rest(content: Content, params: Parameters) -> Content:
    """Pixels / 16 as float32, which holds them exactly; label +1 for an eight, -1 otherwise."""

    def one(part: Part) -> Part:
        y = np.where(part.y == 8, 1, -1).astype(np.int8)
        return Part((part.X / 16).astype(np.float32), y)

    return Content(one(content.train), one(content.test))


def standardised(content: Content, params: Parameters) -> Content:
    """Features less the training part's mean, over its standard deviation; labels 1 and 0
    become +1 and -1.

    The result stays float64: unlike the raw measurements, quotients fill every bit, and float32
    would decide their rounding for solvers that work in float64.
    """
    mean, deviation = moments(content.train.X)
    scale = np.where(deviation == 0, 1.0, deviation)

    def one(part: Part) -> Part:
        y = np.where(part.y == 1, 1, -1).astype(np.int8)
        return Part(np.ascontiguousarray((part.X - mean) / scale), y)

    return Content(one(content.train), one(content.test))
