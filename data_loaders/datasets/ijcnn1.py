"""IJCNN1: states of a combustion engine."""

from __future__ import annotations

from functools import partial

from .. import libsvm, transforms
from ..files import MIB, RemoteFile
from ..sources import LIBSVM_SITE, TICK_SITE, Source

_CITATION = """@misc{prokhorov2001ijcnn,
  author = {Prokhorov, Danil},
  title = {{IJCNN} 2001 Neural Network Competition},
  year = {2001},
  howpublished = {Slides, Ford Research Laboratory; features of the {LIBSVM} data page}
}"""

SOURCES = (
    Source(
        name="ijcnn1",
        summary="states of a combustion engine over time, misfire or normal",
        format="LIBSVM text",
        split="as published",
        files=(
            RemoteFile(
                "ijcnn1.trn.bz2",
                (f"{LIBSVM_SITE}/ijcnn1.bz2", f"{TICK_SITE}/ijcnn1/ijcnn1.trn.bz2"),
                max_bytes=64 * MIB,
            ),
            RemoteFile(
                "ijcnn1.tst.bz2",
                (f"{LIBSVM_SITE}/ijcnn1.t.bz2", f"{TICK_SITE}/ijcnn1/ijcnn1.tst.bz2"),
                max_bytes=64 * MIB,
            ),
        ),
        read=partial(
            libsvm.read_pair,
            train="ijcnn1.trn.bz2",
            test="ijcnn1.tst.bz2",
            width=22,
            classes=(-1, 1),
        ),
        transform=transforms.tabular,
        fingerprint="5c4ca242b49130be4201ff4b34344565701819a9add15f0fb1c4164aefdb6845",
        licence="not stated",
        citation=_CITATION,
        # BSCA18 table 1.
        default_gamma=2.0,
        default_C=32.0,
    ),
)
