"""A reader of RCV1-v2 as its publishers offer it: vectors by document, topics by document."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from .. import libsvm, transforms
from ..content import Content, Part
from ..errors import DataError, suggest
from ..files import MIB, LocalFile, RemoteFile, reading, shown
from ..parameters import Parameters, one_of
from ..sources import FIGSHARE, Source

TRAIN = ("lyrl2004_vectors_train.dat.gz",)
TEST = tuple(f"lyrl2004_vectors_test_pt{part}.dat.gz" for part in range(4))
TOPICS = "rcv1v2.topics.qrels.gz"
WIDTH = 47236

_LINE = re.compile(rb"([A-Z0-9]+) ([0-9]{1,18}) 1\r?")
_check_split = one_of("rcv1", split=("published", "swapped"))


def check_parameters(params: Mapping[str, object]) -> Parameters:
    """A topic is a code such as "CCAT"; raises `DataError`."""
    topic = params["topic"]
    if not isinstance(topic, str) or not re.fullmatch(r"[A-Z0-9]+", topic):
        raise DataError(f"rcv1: topic must be a code like 'CCAT' or 'C11', got {topic!r}")
    return {"topic": topic, **_check_split(params)}


def read(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """Read the documents, those of one topic (+1) against the rest (-1), as float64 CSR matrices.

    The vectors are LIBSVM text with a document's number for its label; the topics are lines of a
    topic, a document's number and a 1. `DataError` names a file that cannot be read and a malformed
    line, and says if no document has the topic, or a document has no topic at all.
    """
    wanted = str(params["topic"])
    labelled, members = _topics(files[TOPICS], wanted)
    parts = []
    for names in (TRAIN, TEST):
        part = libsvm.read_rows([files[name] for name in names], WIDTH, None)
        unknown = ~np.isin(part.y, labelled)
        if unknown.any():
            raise DataError(
                f"{files[TOPICS].origin}: document {part.y[unknown][0]} of "
                f"{files[names[0]].origin} has no topic; the file is not complete"
            )
        parts.append(Part(part.X, np.where(np.isin(part.y, members), 1, -1)))
    if params["split"] == "swapped":
        parts.reverse()
    return Content(*parts)


def _topics(file: LocalFile, wanted: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of all documents that have a topic, and of those that have the wanted one."""
    labelled: set[int] = set()
    members: set[int] = set()
    topics: set[str] = set()
    with reading(file) as stream:
        for number, raw in enumerate(stream, start=1):
            line = raw.rstrip(b"\n")
            match = _LINE.fullmatch(line)
            if match is None:
                raise DataError(
                    f"{file.origin}, line {number}: {shown(line)} is not a topic, a "
                    "document's number and a 1"
                )
            topic, document = match[1].decode(), int(match[2])
            labelled.add(document)
            topics.add(topic)
            if topic == wanted:
                members.add(document)
    if not members:
        raise DataError(
            f"rcv1: no document has the topic {wanted!r}{suggest(wanted, sorted(topics))}"
        )
    return np.array(sorted(labelled)), np.array(sorted(members))


#: The numbers and SHA-256 of the files of RCV1-v2, as scikit-learn has them.
_FILES = {
    TRAIN[0]: (5976057, "5468f656d0ba7a83afc7ad44841cf9a53048a5c083eedc005dcdb5cc768924ae"),
    TEST[0]: (5976069, "ed40f7e418d10484091b059703eeb95ae3199fe042891dcec4be6696b9968374"),
    TEST[1]: (5976066, "87700668ae45d45d5ca1ef6ae9bd81ab0f5ec88cc95dcef9ae7838f727a13aa6"),
    TEST[2]: (5976063, "48143ac703cbe33299f7ae9f4995db49a258690f60e5debbff8995c34841c7f5"),
    TEST[3]: (5976060, "dfcb0d658311481523c6e6ca0c3f5a3e1d3d12cde5d7a8ce629a9006ec7dbb39"),
    TOPICS: (5976048, "2a98e5e5d8b770bded93afc8930d88299474317fe14181aee1466cc754d0d1c1"),
}

_CITATION = """@article{lewis2004rcv1,
  author = {Lewis, David D. and Yang, Yiming and Rose, Tony G. and Li, Fan},
  title = {{RCV1}: A New Benchmark Collection for Text Categorization Research},
  journal = {Journal of Machine Learning Research},
  volume = {5},
  pages = {361--397},
  year = {2004}
}"""

SOURCES = (
    Source(
        name="rcv1",
        summary="Reuters stories (RCV1-v2) by TF-IDF of words, topic CCAT (or another) or not",
        format="LIBSVM text",
        split="as published (LYRL2004: 23149 and 781265 stories), or swapped",
        files=tuple(
            RemoteFile(name, (f"{FIGSHARE}/{number}",), sha256, max_bytes=2048 * MIB)
            for name, (number, sha256) in _FILES.items()
        ),
        read=read,
        transform=transforms.as_float32,
        parameters={"topic": "CCAT", "split": "published"},
        check_parameters=check_parameters,
        licence="research use (terms of RCV1-v2)",
        citation=_CITATION,
        default_gamma=1.0,
        default_C=1.0,
    ),
)
