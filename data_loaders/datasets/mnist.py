"""MNIST: handwritten digits."""

from __future__ import annotations

from functools import partial

from .. import idx, transforms
from ..files import MIB, RemoteFile
from ..idx import NAMES
from ..parameters import TEN_CLASSES, one_of
from ..sources import Source

_SITES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)

_CITATION = """@article{lecun1998gradient,
  author = {LeCun, Yann and Bottou, L{\\'e}on and Bengio, Yoshua and Haffner, Patrick},
  title = {Gradient-Based Learning Applied to Document Recognition},
  journal = {Proceedings of the IEEE},
  volume = {86},
  number = {11},
  pages = {2278--2324},
  year = {1998},
  doi = {10.1109/5.726791}
}"""

SOURCES = (
    Source(
        name="mnist",
        summary="handwritten digits of 28x28 pixels, eight (or another digit) against the rest",
        format="IDX",
        split="as published",
        files=tuple(
            RemoteFile(name, tuple(f"{site}/{name}" for site in _SITES), max_bytes=128 * MIB)
            for name in NAMES
        ),
        read=partial(idx.read_images, n_classes=10),
        transform=transforms.images,
        parameters={"positive": 8},
        check_parameters=one_of("mnist", positive=TEN_CLASSES),
        fingerprint="25019ca8d5ae2baf6d91cf28515f26bff6ba74b2b254f4732e82785e47f043f9",
        licence="CC BY-SA 3.0",
        citation=_CITATION,
        # SBP12 table 2, without bias.
        default_gamma=0.02,
        default_C=1.0,
    ),
)
