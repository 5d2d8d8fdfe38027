"""KDD Cup 1999: network connections by 38 numbers and three words, normal ones or attacks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

from ..content import Content, Part, check_classes
from ..errors import DataError
from ..files import LocalFile, RemoteFile
from ..limits import MIB
from ..parameters import Parameters, one_of
from ..rows import joined
from ..sites import FIGSHARE, UCI_SITE
from ..source import Source
from ..streams import reading, shown, whole_lines

TEST = "corrected.gz"
#: 41 features and the label.
N_COLUMNS = 42
#: The protocol, the service and the flag of a connection.
WORDS = (1, 2, 3)
NUMBERS = tuple(column for column in range(N_COLUMNS - 1) if column not in WORDS)
NORMAL = "normal."
SCALES = ("unit", "none")
_BLOCK_BYTES = 1 << 21
#: Columns that a word may become. Services are the most: about 70.
_MAX_WORDS = 256

_OPTIONS = {
    "read_options": pacsv.ReadOptions(
        column_names=[str(column) for column in range(N_COLUMNS)], use_threads=False
    ),
    "parse_options": pacsv.ParseOptions(
        quote_char=False, double_quote=False, ignore_empty_lines=False
    ),
    "convert_options": pacsv.ConvertOptions(
        column_types={
            str(column): pa.float64() if column in NUMBERS else pa.string()
            for column in range(N_COLUMNS)
        },
        null_values=[],
    ),
}


def read(files: Mapping[str, LocalFile], params: Parameters, *, train: str) -> Content:
    """Read the connections; every word of the training file becomes a feature.

    Parameters
    ----------
    files : mapping of str to LocalFile
        By the names `train` and `TEST`: 42 columns, separated by commas.
    params : mapping
        Not used: nothing depends on parameters here.
    train : str
        Name of the training file.

    Returns
    -------
    Content
        float64 CSR matrices: 38 numbers as they are, then protocols, services and flags in
        alphabetical order, 0 or 1. A word that only the test file has becomes zeros. int64 labels,
        +1 for a normal connection and -1 for an attack.

    Raises
    ------
    DataError
        If a file cannot be read, or a line has another number of columns or no number where one
        is expected; with the line's number.
    """
    codes: list[dict[str, int]] = [{} for _ in WORDS]
    raw = [_read_file(files[name], codes) for name in (train, TEST)]
    n_known = [_n_known(raw[0].X, place) for place in range(len(WORDS))]
    orders = [
        # Words get their codes in the order in which they appear, those of the test file last.
        [code for _, code in sorted(list(known.items())[:n])]
        for known, n in zip(codes, n_known, strict=True)
    ]
    parts = [Part(_encoded(part.X, orders), part.y) for part in raw]
    for part, name in zip(parts, (train, TEST), strict=True):
        check_classes(part.y, files[name].origin)
    return Content(*parts)


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


def _read_file(file: LocalFile, codes: list[dict[str, int]]) -> Part:
    """Numbers, then the codes of the words, each in a block of `_MAX_WORDS` columns."""
    width = len(NUMBERS) + _MAX_WORDS * len(WORDS)
    part = joined(_blocks(file, codes), width)
    if not len(part.y):
        raise DataError(f"{file.origin}: the file is empty")
    return part


def _blocks(file: LocalFile, codes: list[dict[str, int]]) -> Iterator[Part]:
    line = 1
    with reading(file) as stream:
        for text in whole_lines(stream, _BLOCK_BYTES, file.origin):
            table = _table(text, file.origin, line)
            line += table.num_rows
            numbers = np.column_stack([table[str(column)].to_numpy() for column in NUMBERS])
            if (numbers < 0).any():
                row, column = (int(k) for k in np.argwhere(numbers < 0)[0])
                raise DataError(
                    f"{file.origin}, line {line - table.num_rows + row}: column "
                    f"{NUMBERS[column] + 1} is {numbers[row, column]:g}; none may be negative"
                )
            words = [
                _one_hot(table[str(column)], known, f"{file.origin}: column {column + 1}")
                for column, known in zip(WORDS, codes, strict=True)
            ]
            X = hstack([csr_matrix(numbers), *words], format="csr")
            normal = np.asarray(table[str(N_COLUMNS - 1)].to_pylist()) == NORMAL
            yield Part(X, np.where(normal, 1, -1))


def _table(text: bytes, origin: str, first: int) -> pa.Table:
    try:
        table = pacsv.read_csv(pa.BufferReader(text), **_OPTIONS)
        if all(np.isfinite(table[str(column)].to_numpy()).all() for column in NUMBERS):
            return table
    except pa.ArrowInvalid:
        pass
    for number, line in enumerate(text.split(b"\n")[:-1], start=first):
        words = line.strip(b"\r").split(b",")
        if len(words) != N_COLUMNS:
            raise DataError(f"{origin}, line {number}: {len(words)} columns; expected {N_COLUMNS}")
        for column in NUMBERS:
            if not _is_finite(words[column]):
                raise DataError(
                    f"{origin}, line {number}: column {column + 1} is {shown(words[column])}, not "
                    "a finite number"
                )
    raise DataError(f"{origin}: the {_BLOCK_BYTES} bytes from line {first} on are not CSV")


def _is_finite(word: bytes) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def _one_hot(words: pa.ChunkedArray, known: dict[str, int], where: str) -> csr_matrix:
    encoded = words.combine_chunks().dictionary_encode()
    for word in encoded.dictionary.to_pylist():
        known.setdefault(word, len(known))
    if len(known) > _MAX_WORDS:
        raise DataError(f"{where} has more than {_MAX_WORDS} words; is this the right file?")
    codes = np.array([known[word] for word in encoded.dictionary.to_pylist()])
    columns = codes[encoded.indices.to_numpy()]
    n = len(columns)
    return csr_matrix((np.ones(n), columns, np.arange(n + 1)), shape=(n, _MAX_WORDS))


def _n_known(X: csr_matrix, place: int) -> int:
    """How many words of a column the training file has."""
    start = len(NUMBERS) + place * _MAX_WORDS
    counts = np.bincount(X.indices, minlength=X.shape[1])
    return int(np.count_nonzero(counts[start : start + _MAX_WORDS]))


def _encoded(X: csr_matrix, orders: list[list[int]]) -> csr_matrix:
    """The columns of the numbers, and of the words in their order."""
    kept = list(range(len(NUMBERS)))
    for place, order in enumerate(orders):
        kept += [len(NUMBERS) + place * _MAX_WORDS + code for code in order]
    target = np.full(X.shape[1], -1, dtype=np.int32)
    target[kept] = np.arange(len(kept))
    moved = target[X.indices]
    before = np.concatenate(([0], np.cumsum(moved >= 0)))
    out = csr_matrix(
        (X.data[moved >= 0], moved[moved >= 0], before[X.indptr]), shape=(X.shape[0], len(kept))
    )
    out.sort_indices()
    return out


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
