"""LIBSVM text of any width as blocks of sparse rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from scipy.sparse import csr_matrix

from .. import libsvm
from ..errors import DataError
from ..files import LocalFile
from .arrays import sparse_batch
from .blocks import SparseRows


def read_libsvm(file: LocalFile) -> SparseRows:
    """Read LIBSVM text, plain or compressed.

    Parameters
    ----------
    file : LocalFile

    Raises
    ------
    DataError
        When the batches are iterated: if the file cannot be read or a line is not well-formed.
    """

    def batches() -> Iterator[Any]:
        try:
            for part in libsvm.blocks([file]):
                X = cast(csr_matrix, part.X)
                yield sparse_batch(list(map(str, part.y.tolist())), X.indptr, X.indices, X.data)
        except DataError as error:
            if "is not an integer" in str(error):
                raise DataError(f"{error}; is this a regression target?") from None
            if ", line 1:" in str(error):
                raise DataError(
                    f"{error}; set format if this is not LIBSVM text, as in format = 'csv'"
                ) from None
            raise

    return SparseRows(file.origin, batches())
