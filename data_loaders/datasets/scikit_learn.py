"""Datasets that scikit-learn brings along: handwritten digits, and cell nuclei of breast masses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from .. import transforms
from ..content import Content, Part
from ..files import LocalFile
from ..parameters import TEN_CLASSES, Parameters, one_of
from ..sources import Source


def read(files: Mapping[str, LocalFile], params: Parameters, *, loader: str) -> Content:
    """What a loader of scikit-learn returns; every third row is the test part."""
    # Imported here: scikit-learn's datasets take a second, and a cached dataset needs none.
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, loader)(return_X_y=True)
    return transforms.every(Part(X, y.astype(np.int64)), 3, first=2)


_source = partial(
    Source,
    format="scikit-learn",
    split="every third row is the test part",
    licence="CC BY 4.0",
    default_C=10.0,
)

SOURCES = (
    _source(
        name="breast-cancer",
        summary="cell nuclei of breast masses (Wisconsin, diagnostic), benign against malignant",
        read=partial(read, loader="load_breast_cancer"),
        # Unlike the raw measurements, quotients fill every bit, and float32 would decide their
        # rounding for solvers that work in float64.
        transform=partial(transforms.tabular, scale="standard", positive=1, dtype=np.float64),
        fingerprint="c191c4f2093673a3980553b41e973e864770c97f9b7a1844ae7bd80068a1e483",
        citation="""@misc{wolberg1993breast,
  author = {Wolberg, William H. and Mangasarian, Olvi L. and Street, W. Nick},
  title = {Breast Cancer Wisconsin (Diagnostic)},
  year = {1993},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C5DW2B}
}""",
        default_gamma=0.03,
    ),
    _source(
        name="digits",
        summary="handwritten digits of 8x8 pixels, eight (or another digit) against the rest",
        read=partial(read, loader="load_digits"),
        # float32 holds the sixteenths exactly.
        transform=partial(transforms.images, levels=16),
        parameters={"positive": 8},
        check_parameters=one_of("digits", positive=TEN_CLASSES),
        fingerprint="ea7295ec9e77303841c43cc81de1b72597e6c73f000d06753f6e689ff5b0c3bf",
        citation="""@misc{alpaydin1998digits,
  author = {Alpaydin, Ethem and Kaynak, Cenk},
  title = {Optical Recognition of Handwritten Digits},
  year = {1998},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C50P49}
}""",
        default_gamma=0.02,
    ),
)
