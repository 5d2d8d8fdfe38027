"""Statlog (Heart)."""

from __future__ import annotations

from functools import partial

from .. import libsvm, transforms
from ..files import MIB, RemoteFile
from ..sources import LIBSVM_SITE, Source

_CITATION = """@misc{statlog1993heart,
  author = {{Statlog project}},
  title = {Statlog (Heart)},
  year = {1993},
  howpublished = {UCI Machine Learning Repository; scaled features of the {LIBSVM} data page},
  doi = {10.24432/C57303}
}"""

SOURCES = (
    Source(
        name="heart",
        summary="patients by 13 findings in [-1, 1], heart disease or not",
        format="LIBSVM text",
        split="every third row is the test part",
        files=(RemoteFile("heart_scale", (f"{LIBSVM_SITE}/heart_scale",), max_bytes=MIB),),
        mirror_folder="heart_scale",
        read=partial(libsvm.read_single, name="heart_scale", width=13, classes=(-1, 1), step=3),
        transform=transforms.tabular,
        fingerprint="d158b0237c21322ad066764780992992a2a95e178555279a1a66444a80c52586",
        licence="CC BY 4.0",
        citation=_CITATION,
        default_gamma=0.05,
        default_C=1.0,
    ),
)
