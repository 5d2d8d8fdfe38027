"""Sparse rows as datasets: as they are, in rows of norm 1, or scaled and dense."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..content import Labels, Matrix, Part
from ..errors import DataError
from . import rows
from .blocks import Spooled
from .classes import read_target
from .options import Options
from .rows import Role, Source
from .tables import unit_rows

#: Features of data that are stored dense because they are scaled: zeros do not stay zeros.
MAX_DENSE = 5000
#: Options that say something of columns, which sparse rows do not have.
_OF_COLUMNS = ("target", "categorical", "numeric", "drop", "split")


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that is needed to write a dataset.

    Attributes
    ----------
    n_features : int
    sparse : bool
    decided : list of str
    """

    sources: list[Source]
    labels: list[dict[Role, Labels]]
    n_features: int
    scale: str
    shift: NDArray[np.float64]
    width: NDArray[np.float64]
    decided: list[str]

    @property
    def sparse(self) -> bool:
        """Whether rows are stored as CSR."""
        return self.scale in ("none", "norm")

    def parts(self, role: Role) -> Iterator[Part]:
        """The rows of a part, block by block, float32.

        Raises
        ------
        DataError
            If a feature is too large for float32.
        """
        for source, labels in zip(self.sources, self.labels, strict=True):
            done = 0
            for batch, numbers in source.blocks(role):
                y = labels[role][done : done + len(batch)]
                done += len(batch)
                X = self._scaled(_csr(batch, self.n_features))
                values = X.data if self.sparse else X
                if not np.isfinite(values).all():
                    where = f"{source.data.origin}, {source.data.place(int(numbers[0]))} or below"
                    raise DataError(f"{where}: a feature is too large for float32")
                yield Part(X, y)

    def _scaled(self, X: csr_matrix) -> Matrix:
        with np.errstate(over="ignore"):  # looked for by the caller
            if self.scale == "norm":
                X = unit_rows(X)
            if self.sparse:
                return X.astype(np.float32)
            varies = self.width > 0
            scaled = (X.toarray() - self.shift) / np.where(varies, self.width, 1.0)
            if self.scale == "minmax":
                scaled = scaled * 2.0 - 1.0
            dense: NDArray[np.float32] = np.where(varies, scaled, 0.0).astype(np.float32)
        return dense


def prepare(data: Sequence[Spooled], options: Options) -> Prepared:
    """Divide sparse rows and fit their scale to the training rows.

    Parameters
    ----------
    data : sequence of Spooled
        One file, or a training and a test file.
    options : Options

    Raises
    ------
    DataError
    """
    origin = data[0].origin
    for option in _OF_COLUMNS:
        if getattr(options, option) not in ("", ()):
            raise DataError(f"{origin}: sparse rows have no columns; remove {option}")
    targets = [read_target(each.data.column("label"), each.origin, "label") for each in data]
    kept = [np.ones(each.n_rows, dtype=bool) for each in data]
    sources, split = rows.divide(data, targets, kept, options)
    labels, classes = rows.label(sources, options.positive)
    n_features = 1 + max(_last_index(each) for each in data)
    scale = options.scale or "none"
    if scale not in ("none", "norm") and n_features > MAX_DENSE:
        raise DataError(
            f"{origin}: scale = {scale!r} would make {n_features} sparse features dense (at most "
            f"{MAX_DENSE}); use 'norm' or 'none'"
        )
    shift, width = _fit(sources, n_features, scale)
    return Prepared(
        sources=sources,
        labels=labels,
        n_features=n_features,
        scale=scale,
        shift=shift,
        width=width,
        decided=[
            f"target: the label: {classes}",
            split,
            f"features: {n_features}, {'sparse' if scale in ('none', 'norm') else 'dense'}",
            f"scale: {scale}",
        ],
    )


def _last_index(data: Spooled) -> int:
    last = 0
    for _, batch in data.blocks():
        indices = batch.column("indices").flatten().to_numpy()
        last = max(last, int(indices.max(initial=0)))
    return last


def _fit(
    sources: Sequence[Source], n_features: int, scale: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shift and width of each feature in the training rows; a feature that is left out is 0."""
    if scale in ("none", "norm"):
        return np.zeros(0), np.zeros(0)
    if scale == "standard":
        return _moments(sources, n_features)
    lowest, highest = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    for X in _train_matrices(sources, n_features):
        lowest = np.minimum(lowest, X.min(axis=0).toarray().ravel())
        highest = np.maximum(highest, X.max(axis=0).toarray().ravel())
    return lowest, highest - lowest


def _moments(
    sources: Sequence[Source], n_features: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n_rows = sum(int(source.train.sum()) for source in sources)
    total = np.zeros(n_features)
    for X in _train_matrices(sources, n_features):
        np.add.at(total, X.indices, X.data)
    mean = total / n_rows
    squares, stored = np.zeros(n_features), np.zeros(n_features)
    for X in _train_matrices(sources, n_features):
        np.add.at(squares, X.indices, (X.data - mean[X.indices]) ** 2)
        stored += np.bincount(X.indices, minlength=n_features)
    deviation = np.sqrt((squares + (n_rows - stored) * mean**2) / n_rows)
    # The rounding of the mean gives a constant a deviation of its own.
    return mean, np.where(deviation <= 1e-12 * np.abs(mean), 0.0, deviation)


def _train_matrices(sources: Sequence[Source], n_features: int) -> Iterator[csr_matrix]:
    for source in sources:
        for batch, _ in source.blocks("train"):
            yield _csr(batch, n_features)


def _csr(batch: Any, n_features: int) -> csr_matrix:
    lengths = batch.column("indices").value_lengths().to_numpy()
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    columns, data = (batch.column(name).flatten().to_numpy() for name in ("indices", "values"))
    return csr_matrix((data, columns, indptr), shape=(len(lengths), n_features))
