"""MNIST's handwritten digits, and Fashion-MNIST's pictures of clothing."""

from __future__ import annotations

from functools import partial

from .. import idx, transforms
from ..files import MIB, RemoteFile
from ..parameters import TEN_CLASSES, one_of
from ..sources import Source

_SITES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
_FASHION = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
#: Where Debian's package dataset-fashion-mnist puts its files.
_FOLDER = "/usr/share/datasets/fashion-mnist"

_source = partial(
    Source,
    format="IDX",
    split="as published",
    read=partial(idx.read_images, n_classes=10),
    transform=transforms.images,
    default_gamma=0.02,
)

SOURCES = (
    _source(
        name="fashion-mnist",
        summary="pictures of clothing of 28x28 pixels, shirts (or another kind) against the rest",
        files=tuple(
            RemoteFile(
                name, (f"{_FASHION}/{name}",), installed=f"{_FOLDER}/{name}", max_bytes=128 * MIB
            )
            for name in idx.NAMES
        ),
        # Shirts are the kind that is hardest to tell apart.
        parameters={"positive": 6},
        check_parameters=one_of("fashion-mnist", positive=TEN_CLASSES),
        fingerprint="c2b87e0b6fadb6637f7bd6a3c44add6c30a3ed976946841cdd9b2d0c4082f6b6",
        licence="MIT",
        citation="""@misc{xiao2017fashion,
  author = {Xiao, Han and Rasul, Kashif and Vollgraf, Roland},
  title = {{Fashion-MNIST}: a Novel Image Dataset for Benchmarking Machine Learning Algorithms},
  year = {2017},
  eprint = {1708.07747},
  archivePrefix = {arXiv}
}""",
    ),
    _source(
        name="mnist",
        summary="handwritten digits of 28x28 pixels, eight (or another digit) against the rest",
        files=tuple(
            RemoteFile(name, tuple(f"{site}/{name}" for site in _SITES), max_bytes=128 * MIB)
            for name in idx.NAMES
        ),
        parameters={"positive": 8},
        check_parameters=one_of("mnist", positive=TEN_CLASSES),
        fingerprint="25019ca8d5ae2baf6d91cf28515f26bff6ba74b2b254f4732e82785e47f043f9",
        licence="CC BY-SA 3.0",
        citation="""@article{lecun1998gradient,
  author = {LeCun, Yann and Bottou, L{\\'e}on and Bengio, Yoshua and Haffner, Patrick},
  title = {Gradient-Based Learning Applied to Document Recognition},
  journal = {Proceedings of the IEEE},
  volume = {86},
  number = {11},
  pages = {2278--2324},
  year = {1998},
  doi = {10.1109/5.726791}
}""",
    ),
)
