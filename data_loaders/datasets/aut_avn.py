"""aut-avn: UseNet postings in the format of SVMlin, which has points and labels in two files."""

from __future__ import annotations

from collections.abc import Mapping

from .. import libsvm, transforms
from ..content import Content, Part, check_classes
from ..errors import DataError
from ..files import MIB, LocalFile, RemoteFile
from ..parameters import Parameters
from ..sources import Source

POINTS, LABELS = "aut-avn.examples", "aut-avn.labels"
#: BMRM07 table 1.
WIDTH = 20_707


def read(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """Read the points and their labels; every fifth row is the test part.

    `POINTS` has lines of ``index:value`` pairs, and `LABELS` lines of a label each.
    """
    X = libsvm.read_rows([files[POINTS]], WIDTH, labelled=False).X
    # A label alone is a point without pairs.
    y = libsvm.read_rows([files[LABELS]], 1, (-1, 1)).y
    if len(y) != X.shape[0]:
        raise DataError(
            f"{files[LABELS].origin}: {len(y)} labels for the {X.shape[0]} points of "
            f"{files[POINTS].origin}; one of the files is not complete"
        )
    check_classes(y, files[LABELS].origin)
    return transforms.every(Part(X, y), 5, first=4)


_CITATION = """@misc{mccallum_sraa,
  author = {McCallum, Andrew},
  title = {{SRAA}: Simulated/Real/Aviation/Auto {UseNet} Data},
  howpublished = {Vectors for {SVMlin} by Vikas Sindhwani}
}"""

SOURCES = (
    Source(
        name="aut-avn",
        summary="UseNet postings by TF-IDF of words, about cars or about aviation",
        format="SVMlin text",
        split="every fifth row is the test part",
        files=tuple(RemoteFile(name, (), max_bytes=512 * MIB) for name in (POINTS, LABELS)),
        read=read,
        transform=transforms.as_float32,
        licence="not stated",
        citation=_CITATION,
        default_gamma=1.0,
        default_C=1.0,
    ),
)
