"""The datasets of images in ten classes."""

from __future__ import annotations

from functools import partial

from marginbench.data_loaders import cifar, idx, transforms
from marginbench.data_loaders.citations import CITATIONS
from marginbench.data_loaders.files import RemoteFile
from marginbench.data_loaders.parameters import one_of
from marginbench.data_loaders.source import Source

_MNIST_SITES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
_FASHION_SITE = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
)
#: Where Debian's package dataset-fashion-mnist puts its files.
_FASHION_FOLDER = "/usr/share/datasets/fashion-mnist"

_TEN_CLASSES = (*range(10), "none")
_IDX_NAMES = tuple(name for pair in idx.FILES for name in pair)

IMAGES = (
    Source(
        name="mnist",
        summary="handwritten digits of 28x28 pixels, eight (or another digit) against the rest",
        format="IDX",
        split="as published",
        files=tuple(
            RemoteFile(name, tuple(f"{site}/{name}" for site in _MNIST_SITES))
            for name in _IDX_NAMES
        ),
        read=partial(idx.read_images, n_classes=10),
        transform=transforms.images,
        parameters={"positive": 8},
        check_parameters=one_of("mnist", positive=_TEN_CLASSES),
        fingerprint="25019ca8d5ae2baf6d91cf28515f26bff6ba74b2b254f4732e82785e47f043f9",
        licence="CC BY-SA 3.0",
        citation=CITATIONS["mnist"],
        # SBP12 table 2, without bias.
        default_gamma=0.02,
        default_C=1.0,
    ),
    Source(
        name="fashion-mnist",
        summary="pictures of clothing of 28x28 pixels, shirts (or another kind) against the rest",
        format="IDX",
        split="as published",
        files=tuple(
            RemoteFile(name, (f"{_FASHION_SITE}/{name}",), installed=f"{_FASHION_FOLDER}/{name}")
            for name in _IDX_NAMES
        ),
        read=partial(idx.read_images, n_classes=10),
        transform=transforms.images,
        # Shirts are the kind that is hardest to tell apart.
        parameters={"positive": 6},
        check_parameters=one_of("fashion-mnist", positive=_TEN_CLASSES),
        fingerprint="c2b87e0b6fadb6637f7bd6a3c44add6c30a3ed976946841cdd9b2d0c4082f6b6",
        licence="MIT",
        citation=CITATIONS["fashion-mnist"],
        default_gamma=0.02,
        default_C=1.0,
    ),
    Source(
        name="cifar10",
        summary="colour pictures of 32x32 pixels, aeroplanes (or another kind) against the rest",
        format="CIFAR binary",
        split="as published",
        files=(
            RemoteFile(
                "cifar-10-binary.tar.gz",
                ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            ),
        ),
        read=partial(cifar.read_binary, name="cifar-10-binary.tar.gz"),
        transform=transforms.images,
        parameters={"positive": 0, "scale": "norm"},
        check_parameters=one_of("cifar10", positive=_TEN_CLASSES, scale=transforms.IMAGE_SCALES),
        licence="not stated",
        citation=CITATIONS["cifar10"],
        # MPFP14 section 7.2, its points taken to have norm 1; that problem has no C.
        default_gamma=5.5,
        default_C=10.0,
    ),
)
