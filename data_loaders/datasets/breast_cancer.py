"""Cell nuclei of breast masses (Wisconsin), of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..content import Content, Part
from ..files import LocalFile
from ..parameters import Parameters
from ..sources import Source
from ..transforms import every, moments


def read_breast_cancer(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """The 569 samples of scikit-learn: 30 measurements, labels 0 (malignant) and 1 (benign)."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return every(Part(X, y.astype(np.int64)), 3, first=2)


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


_CITATION = """@misc{wolberg1993breast,
  author = {Wolberg, William H. and Mangasarian, Olvi L. and Street, W. Nick},
  title = {Breast Cancer Wisconsin (Diagnostic)},
  year = {1993},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C5DW2B}
}"""

SOURCES = (
    Source(
        name="breast-cancer",
        summary="cell nuclei of breast masses (Wisconsin, diagnostic), benign against malignant",
        format="scikit-learn",
        split="every third row is the test part",
        read=read_breast_cancer,
        transform=standardised,
        fingerprint="c191c4f2093673a3980553b41e973e864770c97f9b7a1844ae7bd80068a1e483",
        licence="CC BY 4.0",
        citation=_CITATION,
        default_gamma=0.03,
        default_C=10.0,
    ),
)
