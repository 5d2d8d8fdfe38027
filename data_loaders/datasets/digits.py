"""Handwritten digits of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .. import transforms
from ..content import Content, Part
from ..files import LocalFile
from ..parameters import TEN_CLASSES, Parameters, one_of
from ..sources import Source


def read_digits(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """The 1797 digits of scikit-learn: 64 grey levels in 0..16, labels 0..9."""
    # Imported here: scikit-learn's datasets take a second, and a cached dataset needs none.
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return transforms.every(Part(X, y.astype(np.int64)), 3, first=2)


def sixteenths(content: Content, params: Parameters) -> Content:
    """Pixels / 16 as float32, which holds them exactly; labels of ``params["positive"]``."""
    train, test = (
        Part((part.X / 16).astype(np.float32), transforms.labels(part.y, params["positive"]))
        for _, part in content.parts()
    )
    return Content(train, test)


_CITATION = """@misc{alpaydin1998digits,
  author = {Alpaydin, Ethem and Kaynak, Cenk},
  title = {Optical Recognition of Handwritten Digits},
  year = {1998},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C50P49}
}"""

SOURCES = (
    Source(
        name="digits",
        summary="handwritten digits of 8x8 pixels, eight (or another digit) against the rest",
        format="scikit-learn",
        split="every third row is the test part",
        read=read_digits,
        transform=sixteenths,
        parameters={"positive": 8},
        check_parameters=one_of("digits", positive=TEN_CLASSES),
        fingerprint="ea7295ec9e77303841c43cc81de1b72597e6c73f000d06753f6e689ff5b0c3bf",
        licence="CC BY 4.0",
        citation=_CITATION,
        default_gamma=0.02,
        default_C=10.0,
    ),
)
