"""LIBSVM model files as expansions over the training points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ...errors import EvaluationError
from ..plain import PlainModel

Array = npt.NDArray[Any]

# What LIBSVM calls its kernels, and their parameters here and there.
_KERNELS = {"linear": "linear", "polynomial": "poly", "rbf": "rbf"}
_PARAMETERS = ("gamma", "degree", "coef0")
# Relative difference up to which a support vector is a training point: LIBSVM writes 8 digits of
# its features, other programs no fewer.
_SAME = 1e-6
# A header has a dozen lines, and a line of one class a few words.
_HEADER_LINES, _LINE = 50, 10_000


@dataclass(frozen=True)
class _File:
    """A model of two classes as it stands in a file; the first label is that of scores > 0."""

    labels: tuple[int, int]
    counts: tuple[int, int]
    rho: float
    coef: Array
    vectors: sparse.csr_matrix


def expansion_of(
    lines: Iterable[str], kernel: Mapping[str, Any], X: Any, y: npt.NDArray[Any]
) -> PlainModel:
    """The expansion over the training points that a LIBSVM model file of two classes describes.

    Parameters
    ----------
    lines : iterable of str
        Of the file.
    kernel : mapping
        The task's.
    X : ndarray or csr_matrix, shape (n_points, n_features)
    y : ndarray, shape (n_points,)
        Labels, -1 or +1.

    Raises
    ------
    EvaluationError
        If it is no such file, has another kernel, or a support vector is no training point.
    """
    lines = iter(lines)
    header = _header(lines)
    _check_kernel(header, kernel)
    try:
        model = _parsed(header, lines, X.shape[1])
    except (ValueError, KeyError, IndexError) as error:
        raise EvaluationError(
            f"the model file is no LIBSVM model of two classes: {error}"
        ) from None
    if set(model.labels) != {-1, 1}:
        raise EvaluationError(f"the model file has the labels {model.labels}, not -1 and 1")
    support = _training_points(model, X, y)
    sign = float(model.labels[0])
    return PlainModel(
        "kernel expansion",
        -sign * model.rho,
        {"support": support, "coef": sign * model.coef},
    )


def _header(lines: Iterable[str]) -> dict[str, str]:
    """The lines before "SV" by their first words."""
    found: dict[str, str] = {}
    for line in islice(lines, _HEADER_LINES):
        name, _, value = line[:_LINE].strip().partition(" ")
        if name == "SV":
            return found
        found[name] = value
    raise EvaluationError("the model file is no LIBSVM model: it has no line SV")


def _check_kernel(header: Mapping[str, str], kernel: Mapping[str, Any]) -> None:
    if header.get("svm_type") != "c_svc":
        raise EvaluationError(
            f"the model file has svm_type {header.get('svm_type', '')!r:.40}, not 'c_svc'"
        )
    name = _KERNELS.get(header.get("kernel_type", ""))
    if name != kernel["name"]:
        raise EvaluationError(
            f"the model file has kernel_type {header.get('kernel_type', '')!r:.40}; "
            f"the task has the kernel {kernel['name']!r}"
        )
    for parameter in _PARAMETERS:
        given, wanted = header.get(parameter), kernel.get(parameter)
        if given is not None and wanted is not None and not _agree(given, wanted):
            raise EvaluationError(
                f"the model file has {parameter} {given:.40}; the task has {wanted:g}"
            )


def _agree(given: str, wanted: float) -> bool:
    try:
        return math.isclose(float(given), wanted, rel_tol=1e-5, abs_tol=1e-12)
    except ValueError:
        return False


def _parsed(header: Mapping[str, str], lines: Iterable[str], n_features: int) -> _File:
    """The rest of the file.

    Raises
    ------
    ValueError, KeyError, IndexError
        If something in it is no number, or missing.
    """
    labels, counts = _whole_numbers(header["label"]), _whole_numbers(header["nr_sv"])
    if len(labels) != 2 or len(counts) != 2:
        raise ValueError(f"it has {len(labels)} classes")
    coef: list[float] = []
    values: list[float] = []
    indices: list[int] = []
    ends = [0]
    for line in lines:
        first, *pairs = line.split()
        coef.append(float(first))
        for pair in pairs:
            index, _, value = pair.partition(":")
            indices.append(int(index) - 1)
            values.append(float(value))
        ends.append(len(values))
    if len(coef) != sum(counts):
        raise ValueError(f"it has {len(coef)} support vectors, its header says {sum(counts)}")
    if indices and not 0 <= min(indices) <= max(indices) < n_features:
        raise ValueError(f"its points have other features than the {n_features} of the task")
    vectors = sparse.csr_matrix((values, indices, ends), shape=(len(coef), n_features))
    return _File(
        (labels[0], labels[1]),
        (counts[0], counts[1]),
        float(header["rho"]),
        np.array(coef),
        vectors,
    )


def _whole_numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


def _training_points(model: _File, X: Any, y: npt.NDArray[Any]) -> Array:
    """Which training point each support vector is; equal points are taken one after the other."""
    found = np.empty(len(model.coef), dtype=np.int64)
    start = 0
    for label, count in zip(model.labels, model.counts, strict=True):
        own = slice(start, start + count)
        rows = np.flatnonzero(y == label)
        found[own] = rows[_matched(model.vectors[own], sparse.csr_matrix(X[rows], dtype=float))]
        start += count
    return found


def _matched(vectors: sparse.csr_matrix, points: sparse.csr_matrix) -> Array:
    """For each vector the position of a point that is the same up to the digits of the file.

    Points are sorted along a random direction, so that few of them are compared with each vector.
    """
    direction = np.random.default_rng(0).random(points.shape[1]) + 0.5
    along, wanted = points @ direction, vectors @ direction
    widths = _SAME * (abs(vectors) @ direction) + np.finfo(float).tiny
    order = np.argsort(along, kind="stable")
    firsts = np.searchsorted(along[order], wanted - widths, side="left")
    lasts = np.searchsorted(along[order], wanted + widths, side="right")
    free = np.ones(len(order), dtype=bool)
    found = np.empty(len(wanted), dtype=np.int64)
    for k, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
        place = _first_equal(vectors[k], points, order[first:last], free)
        if place is None:
            raise EvaluationError(
                f"the model file's support vector {k + 1} of a class is no training point of it, "
                "or occurs more often than there"
            )
        free[place], found[k] = False, place
    return found


def _first_equal(
    vector: sparse.csr_matrix, points: sparse.csr_matrix, candidates: Array, free: Array
) -> int | None:
    for place in candidates:
        if not free[place]:
            continue
        apart = abs(points[place] - vector)
        if apart.nnz == 0 or (apart - _SAME * abs(vector)).max() <= 0:
            return int(place)
    return None
