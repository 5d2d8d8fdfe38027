"""Datasets as LIBSVM text, for programs; and where the files of a run are."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ....data_loaders.atomic import replacing
from ...execution.process import SCRATCH
from ...storage import storing

_REMEDY = "choose another --out, on a disk with room"
# Rows that are turned into text at a time.
_ROWS = 1000


def scratch_folder() -> Path:
    """Where a worker may put files that its command removes at its end."""
    folder = Path(os.environ.get(SCRATCH) or tempfile.gettempdir())
    with storing(folder, _REMEDY):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def exported(name: str, X: Any, y: npt.NDArray[Any]) -> Path:
    """A file with these points as LIBSVM text, written unless it is there and whole.

    A program may have changed the file that it was given; its hash is looked at before each use.

    Parameters
    ----------
    name : str
        Of the file; it stands for the points and labels.
    X : ndarray or csr_matrix, shape (n_points, n_features)
    y : ndarray of integers, shape (n_points,)

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    path = scratch_folder() / name
    digest = path.with_suffix(".sha256")
    if path.is_file() and digest.is_file() and digest.read_text("ascii") == _hash_of(path):
        return path
    with storing(path, _REMEDY):
        written = hashlib.sha256()
        with replacing(path) as sink:
            for text in libsvm_text(X, y):
                sink.write(text)
                written.update(text)
        with replacing(digest) as sink:
            sink.write(written.hexdigest().encode("ascii"))
    return path


def libsvm_text(X: Any, y: npt.NDArray[Any]) -> Iterator[bytes]:
    """The points as lines "label index:value ...", some at a time; indices begin with 1.

    Every number is the shortest decimal that reads back as the same double; zeros are left out.
    """
    for start in range(0, len(y), _ROWS):
        block = sparse.csr_matrix(X[start : start + _ROWS])
        block.sort_indices()
        block.eliminate_zeros()
        values = block.data.astype(np.float64).tolist()
        indices = (block.indices + 1).tolist()
        ends = block.indptr.tolist()
        lines = []
        for k, label in enumerate(y[start : start + _ROWS].tolist()):
            own = slice(ends[k], ends[k + 1])
            pairs = map("{}:{!r}".format, indices[own], values[own])
            lines.append(" ".join([str(int(label)), *pairs]))
        yield ("\n".join(lines) + "\n").encode("ascii")


def _hash_of(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
