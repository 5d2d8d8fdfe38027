"""Fashion-MNIST: pictures of clothing."""

from __future__ import annotations

from functools import partial

from .. import idx, transforms
from ..files import MIB, RemoteFile
from ..idx import NAMES
from ..parameters import TEN_CLASSES, one_of
from ..sources import Source

_SITE = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
#: Where Debian's package dataset-fashion-mnist puts its files.
_FOLDER = "/usr/share/datasets/fashion-mnist"

_CITATION = """@misc{xiao2017fashion,
  author = {Xiao, Han and Rasul, Kashif and Vollgraf, Roland},
  title = {{Fashion-MNIST}: a Novel Image Dataset for Benchmarking Machine Learning Algorithms},
  year = {2017},
  eprint = {1708.07747},
  archivePrefix = {arXiv}
}"""

SOURCES = (
    Source(
        name="fashion-mnist",
        summary="pictures of clothing of 28x28 pixels, shirts (or another kind) against the rest",
        format="IDX",
        split="as published",
        files=tuple(
            RemoteFile(
                name, (f"{_SITE}/{name}",), installed=f"{_FOLDER}/{name}", max_bytes=128 * MIB
            )
            for name in NAMES
        ),
        read=partial(idx.read_images, n_classes=10),
        transform=transforms.images,
        # Shirts are the kind that is hardest to tell apart.
        parameters={"positive": 6},
        check_parameters=one_of("fashion-mnist", positive=TEN_CLASSES),
        fingerprint="c2b87e0b6fadb6637f7bd6a3c44add6c30a3ed976946841cdd9b2d0c4082f6b6",
        licence="MIT",
        citation=_CITATION,
        default_gamma=0.02,
        default_C=1.0,
    ),
)
