"""The money-fx task of Reuters-21578."""

from __future__ import annotations

from functools import partial

from .. import libsvm, transforms
from ..files import MIB, RemoteFile
from ..sources import TICK_SITE, Source

_CITATION = """@article{bordes2005fast,
  author = {Bordes, Antoine and Ertekin, Seyda and Weston, Jason and Bottou, L{\\'e}on},
  title = {Fast Kernel Classifiers with Online and Active Learning},
  journal = {Journal of Machine Learning Research},
  volume = {6},
  pages = {1579--1619},
  year = {2005},
  note = {Its money-fx task, of the {Reuters-21578} collection of David D. Lewis}
}"""

SOURCES = (
    Source(
        name="reuters_moneyfx",
        summary="news stories of Reuters-21578 by TF-IDF of words, topic money-fx or not",
        format="LIBSVM text",
        split="as published",
        files=tuple(
            RemoteFile(name, (f"{TICK_SITE}/reuters/{name}",), max_bytes=64 * MIB)
            for name in ("reuters.trn.bz2", "reuters.tst.bz2")
        ),
        read=partial(
            libsvm.read_pair,
            train="reuters.trn.bz2",
            test="reuters.tst.bz2",
            width=8315,
            classes=(-1, 1),
        ),
        transform=transforms.as_float32,
        fingerprint="b9081e7d407090de526a23245a748e47e421fc67143a013084f9acba6bdeb983",
        licence="research use (terms of Reuters-21578)",
        citation=_CITATION,
        # SBP12 table 2, without bias.
        default_gamma=1.0,
        default_C=1.0,
    ),
)
