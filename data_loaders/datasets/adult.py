"""Adult, and a part of its training points that some papers train on."""

from __future__ import annotations

from functools import partial

import numpy as np

from .. import libsvm, transforms
from ..content import Content, Part
from ..errors import DataError
from ..files import MIB, RemoteFile
from ..parameters import Parameters, one_of
from ..sources import LIBSVM_SITE, Source
from ..transforms import as_float32

#: What the sample is tested on: the rows that were not drawn, or all rows, drawn ones included.
TESTS = ("rest", "all")
#: CUTS08 section 6.1.
N_TRAIN = 22_697


def sample(content: Content, params: Parameters) -> Content:
    """N_TRAIN rows of the training part, drawn by a fixed seed, and what ``params["test"]`` says.

    The published test part is not used: Yu and Joachims (2008) count 32 562 points in all, and do
    not say whether those that they trained on are among the ones that they tested on.
    """
    whole = as_float32(content, params).train
    if len(whole.y) <= N_TRAIN:
        raise DataError(f"adult-sample: {len(whole.y)} rows in a9a, more than {N_TRAIN} expected")
    order = np.random.Generator(np.random.PCG64(2008)).permutation(len(whole.y))
    drawn, rest = np.sort(order[:N_TRAIN]), np.sort(order[N_TRAIN:])
    test = whole if params["test"] == "all" else Part(whole.X[rest], whole.y[rest])
    return Content(Part(whole.X[drawn], whole.y[drawn]), test)


_CITATION = """@misc{becker1996adult,
  author = {Becker, Barry and Kohavi, Ronny},
  title = {Adult},
  year = {1996},
  howpublished = {UCI Machine Learning Repository; binary features of the {LIBSVM} data page},
  doi = {10.24432/C5XW20}
}"""

SOURCES = (
    Source(
        name="adult",
        summary="census records as 123 binary features, income over 50 000 dollars or not",
        format="LIBSVM text",
        split="as published: a9a and a9a.t",
        files=tuple(
            RemoteFile(name, (f"{LIBSVM_SITE}/{name}",), max_bytes=16 * MIB)
            for name in ("a9a", "a9a.t")
        ),
        # The test file stops at feature 122.
        read=partial(libsvm.read_pair, train="a9a", test="a9a.t", width=123, classes=(-1, 1)),
        # Exact: features are 0 or 1.
        transform=transforms.as_float32,
        fingerprint="8bcc25a134f472406ab7b57eac8e51c533384849ad40cbd2a01994d2dd8551c3",
        licence="CC BY 4.0",
        citation=_CITATION,
        # SBP12 table 2, without bias.
        default_gamma=0.05,
        default_C=1.0,
    ),
    Source(
        name="adult-sample",
        summary="22 697 census records of the training part of adult, tested on its other rows",
        format="LIBSVM text",
        split="22 697 rows of a9a drawn once; tested on the others, or on all of a9a",
        files=tuple(
            RemoteFile(name, (f"{LIBSVM_SITE}/{name}",), max_bytes=16 * MIB)
            for name in ("a9a", "a9a.t")
        ),
        mirror_folder="adult",
        read=partial(libsvm.read_pair, train="a9a", test="a9a.t", width=123, classes=(-1, 1)),
        transform=sample,
        parameters={"test": "rest"},
        check_parameters=one_of("adult-sample", test=TESTS),
        fingerprint="8bcc25a134f472406ab7b57eac8e51c533384849ad40cbd2a01994d2dd8551c3",
        licence="CC BY 4.0",
        citation=_CITATION,
        # CUTS08 table 1 has sigma^2 = 20, read here as exp(-||x - z||^2 / sigma^2).
        default_gamma=0.05,
        default_C=100.0,
    ),
)
