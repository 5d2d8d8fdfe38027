"""astro-ph: abstracts of the arXiv, in the format of SVM-light, which has comments."""

from __future__ import annotations

from collections.abc import Mapping

from .. import libsvm, transforms
from ..content import Content
from ..files import MIB, LocalFile, RemoteFile
from ..parameters import Parameters
from ..sources import Source

TRAIN, TEST = "train.dat", "test.dat"
#: BMRM07 table 1.
WIDTH = 99_757


def read(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """Read the abstracts: float64 CSR matrices, int64 labels."""
    return Content(*(libsvm.read_rows([files[name]], WIDTH, (-1, 1)) for name in (TRAIN, TEST)))


_CITATION = """@inproceedings{joachims2006training,
  author = {Joachims, Thorsten},
  title = {Training Linear {SVM}s in Linear Time},
  booktitle = {Proceedings of the 12th ACM SIGKDD International Conference on Knowledge
    Discovery and Data Mining},
  year = {2006}
}"""

SOURCES = (
    Source(
        name="astro-ph",
        summary="abstracts of physics papers by words, from the section astro-ph or not",
        format="SVM-light text",
        split="as its publisher has it: train.dat and test.dat",
        files=tuple(RemoteFile(name, (), max_bytes=512 * MIB) for name in (TRAIN, TEST)),
        read=read,
        transform=transforms.as_float32,
        licence="not stated",
        citation=_CITATION,
        default_gamma=1.0,
        default_C=1.0,
    ),
)
