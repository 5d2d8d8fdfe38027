"""KDD Cup 1999: network connections by 38 numbers and three words, normal ones or attacks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, hstack

from .. import csv_text
from ..content import Content, Part, check_classes
from ..errors import DataError
from ..files import MIB, LocalFile, RemoteFile
from ..parameters import Parameters, one_of
from ..sources import FIGSHARE, UCI_SITE, Source

TEST = "corrected.gz"
#: 41 features and the label.
N_COLUMNS = 42
#: The protocol, the service and the flag of a connection.
WORDS = (1, 2, 3)
NUMBERS = tuple(column for column in range(N_COLUMNS - 1) if column not in WORDS)
NORMAL = "normal."
SCALES = ("unit", "none")


def read(files: Mapping[str, LocalFile], params: Parameters, *, train: str) -> Content:
    """Read the connections; every word of the training file becomes a feature.

    Features are 38 numbers as they are, then protocols, services and flags in alphabetical order, 0
    or 1, in float64 CSR matrices. A word that only the test file has becomes zeros. Labels are +1
    for a normal connection and -1 for an attack. `DataError` names a wrong line.
    """
    parts = [_read_file(files[name]) for name in (train, TEST)]
    words = [pc.unique(column).sort() for column in parts[0].words]
    content = Content(*(Part(_one_hot(part, words), part.y) for part in parts))
    for (_, part), name in zip(content.parts(), (train, TEST), strict=True):
        check_classes(part.y, files[name].origin)
    return content


def scaled(content: Content, params: Parameters) -> Content:
    """Features as float32, divided by their largest value in the training part for "unit".

    No feature is negative. One that is 0 in the training part becomes 0 in both parts.
    """
    n = content.train.X.shape[1]
    if params["scale"] == "none":
        factors = np.ones(n)
    else:
        highest = content.train.X.max(axis=0).toarray().ravel()
        factors = np.divide(1.0, highest, out=np.zeros(n), where=highest > 0)
    train, test = (
        Part(_times(part.X, factors), part.y.astype(np.int8)) for _, part in content.parts()
    )
    return Content(train, test)


def _times(X: csr_matrix, factors: NDArray[np.float64]) -> csr_matrix:
    values = (X.data * factors[X.indices]).astype(np.float32)
    out = csr_matrix((values, X.indices, X.indptr), shape=X.shape)
    out.eliminate_zeros()
    return out


class _File(NamedTuple):
    """The rows of a file: their numbers, the words of each column of words, their labels."""

    numbers: csr_matrix
    words: list[pa.ChunkedArray]
    y: NDArray[np.int64]


def _read_file(file: LocalFile) -> _File:
    columns = csv_text.read_columns(file, N_COLUMNS, (*WORDS, N_COLUMNS - 1))
    blocks = []
    for column in NUMBERS:
        values, columns[column] = columns[column], None  # all of them take much memory
        if (values < 0).any():
            row = int(np.argmax(values < 0))
            raise DataError(
                f"{file.origin}, line {row + 1}: column {column + 1} is {values[row]:g}; none may "
                "be negative"
            )
        # Column by column: most of the numbers are 0.
        blocks.append(csc_matrix(values[:, None]))
    normal = pc.equal(columns[-1], NORMAL).to_numpy(zero_copy_only=False)
    words = [columns[column] for column in WORDS]
    return _File(hstack(blocks, format="csr"), words, np.where(normal, 1, -1))


def _one_hot(part: _File, words: list[pa.Array]) -> csr_matrix:
    """The numbers, and a column for each of some words."""
    blocks = [part.numbers]
    for column, known in zip(part.words, words, strict=True):
        found = pc.fill_null(pc.index_in(column, known), -1).to_numpy()
        rows = np.flatnonzero(found >= 0)
        shape = (len(found), len(known))
        blocks.append(csr_matrix((np.ones(len(rows)), (rows, found[rows])), shape=shape))
    return hstack(blocks, format="csr")


_CITATION = """@misc{kddcup99,
  author = {Stolfo, Salvatore and Fan, Wei and Lee, Wenke and Prodromidis, Andreas and
    Chan, Philip},
  title = {{KDD} Cup 1999 Data},
  year = {1999},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C51C7N}
}"""


def _source(name: str, rows: str, train: str, number: int, sha256: str, max_bytes: int) -> Source:
    site = f"{UCI_SITE}/kddcup99-mld"
    return Source(
        name=name,
        summary=f"network connections by 41 features, normal or an attack; {rows}",
        format="CSV",
        split=f"as published: {train} and {TEST}",
        files=(
            RemoteFile(
                train, (f"{site}/{train}", f"{FIGSHARE}/{number}"), sha256, max_bytes=max_bytes
            ),
            RemoteFile(TEST, (f"{site}/{TEST}",), max_bytes=256 * MIB),
        ),
        mirror_folder="kdd99",
        read=partial(read, train=train),
        transform=scaled,
        parameters={"scale": "unit"},
        check_parameters=one_of(name, scale=SCALES),
        licence="CC BY 4.0",
        citation=_CITATION,
        default_gamma=1.0,
        default_C=1.0,
    )


# The numbers and SHA-256 of the training files, as scikit-learn has them.
SOURCES = (
    _source(
        "kdd99",
        "all 4 898 431 training rows",
        "kddcup.data.gz",
        5976045,
        "3b6c942aa0356c0ca35b7b595a26c89d343652c9db428893e7494f837b274292",
        2048 * MIB,
    ),
    _source(
        "kdd99-10",
        "a tenth of the training rows",
        "kddcup.data_10_percent.gz",
        5976042,
        "8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",
        256 * MIB,
    ),
)
