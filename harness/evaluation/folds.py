"""Cross-validation on the training part of a dataset: which points each seed trains and tests on.

Seed s of n folds tests on fold ``s mod n`` of the permutation number ``s // n``, so that n seeds
are one cross-validation and further ones repeat it with other folds. The test part of the dataset
is not used.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ...data_loaders.errors import DataError
from .svm import Fold

if TYPE_CHECKING:
    from ...data_loaders import Dataset


def fold_data(dataset: Dataset, fold: Fold) -> Dataset:
    """The dataset whose training and test part are those of a fold; read-only, as all data are."""
    folds = fold_numbers(dataset.name, dataset.y_train, fold)
    test = folds == fold.number
    return replace(
        dataset,
        X_train=_rows(dataset.X_train, ~test),
        y_train=_rows(dataset.y_train, ~test),
        X_test=_rows(dataset.X_train, test),
        y_test=_rows(dataset.y_train, test),
        fingerprint=fold_fingerprint(dataset.fingerprint, fold),
    )


def fold_numbers(name: str, y: npt.NDArray[Any], fold: Fold) -> npt.NDArray[np.int64]:
    """The fold of each point, shape (n,).

    The numbers of points of the folds differ by at most one, and so do those of each class.
    """
    labels, classes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(y) < fold.of:
        raise DataError(f"{name}: {len(y)} training points do not make {fold.of} folds")
    if counts.min() < 2:
        raise DataError(
            f"{name}: class {labels[counts.argmin()]} has one training point; folds need two, or "
            "one of them trains without it"
        )
    # The raw stream of a bit generator is the same in every release of NumPy.
    keys = np.random.PCG64(fold.permutation).random_raw(len(y))
    numbers = np.empty(len(y), dtype=np.int64)
    numbers[np.lexsort((keys, classes))] = np.arange(len(y)) % fold.of
    return numbers


def fold_sizes(n: int, fold: Fold) -> tuple[int, int]:
    """How many of n points a fold trains and tests on."""
    n_test = len(range(fold.number, n, fold.of))
    return n - n_test, n_test


def fold_fingerprint(fingerprint: str, fold: Fold) -> str:
    """The fingerprint of a fold's data: SHA-256 of the dataset's and of what makes the fold."""
    text = f"{fingerprint} fold {fold.number} of {fold.of}, permutation {fold.permutation}"
    return hashlib.sha256(text.encode()).hexdigest()


def _rows(values: Any, chosen: npt.NDArray[np.bool_]) -> Any:
    return read_only(values[np.flatnonzero(chosen)])


def read_only(values: Any) -> Any:
    """The same array or CSR matrix, which can no longer be written to."""
    parts = (values.data, values.indices, values.indptr) if sparse.issparse(values) else (values,)
    for part in parts:
        part.flags.writeable = False
    return values
