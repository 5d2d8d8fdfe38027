"""w8a: web pages, the largest of Platt's eight training sets."""

from __future__ import annotations

from functools import partial

from .. import libsvm, transforms
from ..files import MIB, RemoteFile
from ..sources import LIBSVM_SITE, Source

_CITATION = """@incollection{platt1999fast,
  author = {Platt, John C.},
  title = {Fast Training of Support Vector Machines Using Sequential Minimal Optimization},
  booktitle = {Advances in Kernel Methods: Support Vector Learning},
  publisher = {MIT Press},
  year = {1999}
}"""

SOURCES = (
    Source(
        name="web8",
        summary="web pages by 300 binary keyword features, of one category or not",
        format="LIBSVM text",
        split="as published: w8a and w8a.t",
        files=tuple(
            RemoteFile(name, (f"{LIBSVM_SITE}/{name}",), max_bytes=32 * MIB)
            for name in ("w8a", "w8a.t")
        ),
        read=partial(libsvm.read_pair, train="w8a", test="w8a.t", width=300, classes=(-1, 1)),
        # Exact: features are 0 or 1.
        transform=transforms.as_float32,
        licence="not stated",
        citation=_CITATION,
        # Platt's Gaussian of variance 10: exp(-||x - z||^2 / 20).
        default_gamma=0.05,
        default_C=5.0,
    ),
)
