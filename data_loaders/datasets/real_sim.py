"""real-sim: UseNet postings."""

from __future__ import annotations

from functools import partial

from .. import libsvm, transforms
from ..files import MIB, RemoteFile
from ..sources import LIBSVM_SITE, Source

_CITATION = """@misc{mccallum_sraa,
  author = {McCallum, Andrew},
  title = {{SRAA}: Simulated/Real/Aviation/Auto {UseNet} Data},
  howpublished = {Vectors of the {LIBSVM} data page}
}"""

SOURCES = (
    Source(
        name="real-sim",
        summary="UseNet postings by TF-IDF of words, on real or on simulated vehicles",
        format="LIBSVM text",
        split="every fifth row is the test part",
        files=(RemoteFile("real-sim.bz2", (f"{LIBSVM_SITE}/real-sim.bz2",), max_bytes=512 * MIB),),
        read=partial(libsvm.read_single, name="real-sim.bz2", width=20958, classes=(-1, 1), step=5),
        transform=transforms.as_float32,
        licence="not stated",
        citation=_CITATION,
        default_gamma=1.0,
        default_C=1.0,
    ),
)
