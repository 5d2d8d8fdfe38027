"""Compiled loops of kernels: points centred, entries finished, stored rows summed in float64."""

from __future__ import annotations

import numpy as np

from ..numeric.compiling import njit
from ..numeric.exponential import exponential
from ..numeric.threads import in_parts

# Entries of a row that are summed together, in the nearest cache.
_CHUNK = 256
# Sums of so many columns stay in the smallest cache while rows pass by.
_COLUMNS = 1024


@njit(error_model="numpy", fastmath={"contract"}, nogil=True)
def exponentials(entries, left, right, start, stop):
    """``entries_ij`` become ``exp(entries_ij - left_i - right_j)``; exponents are clipped at 0."""
    zero = entries.dtype.type(0)
    for i in range(start, stop):
        row, of_row = entries[i], left[i]
        for j in range(len(row)):
            row[j] = exponential(min(row[j] - of_row - right[j], zero))


@njit(error_model="numpy", nogil=True)
def exponential_sums(products, left, right, coef, sums, start, stop):
    """``sums_ki = sum_j coef_kj exp(products_ij - left_i - right_j)`` for rows i, in float64."""
    chunk, n = np.empty(_CHUNK, products.dtype), products.shape[1]
    sums[:, start:stop] = 0.0
    for i in range(start, stop):
        for first in range(0, n, _CHUNK):
            last = min(first + _CHUNK, n)
            _exponentials(products[i, first:last], left[i], right[first:last], chunk)
            for k in range(len(coef)):
                sums[k, i] += _weighted_sum(coef[k, first:last], chunk)


@njit(error_model="numpy", fastmath={"contract"})
def _exponentials(products, left, right, chunk):
    zero = chunk.dtype.type(0)
    for j in range(len(products)):
        chunk[j] = exponential(min(products[j] - left - right[j], zero))


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _weighted_sum(coef, entries):
    total = 0.0
    for j in range(len(coef)):
        total += coef[j] * entries[j]
    return total


@njit(error_model="numpy", fastmath={"contract"}, nogil=True)
def powers(entries, gamma, coef0, degree, start, stop):
    """``entries_ij`` become ``(gamma entries_ij + coef0)^degree``, all of one type."""
    for i in range(start, stop):
        row = entries[i]
        for j in range(len(row)):
            base = gamma * row[j] + coef0
            power = base
            for _ in range(1, degree):
                power *= base
            row[j] = power


# Without reassociation: the sums shall not depend on how the rows are split into calls.
@njit(error_model="numpy", nogil=True)
def rows_added(storage, slots, coef, sums, start, stop):
    """``sums_ki += sum_p coef_kp storage_{slots_p, i}`` for the columns i from start to stop."""
    for k in range(len(coef)):
        for first in range(start, stop, _COLUMNS):
            total = sums[k, first : min(first + _COLUMNS, stop)]
            for p in range(len(slots)):
                factor, row = coef[k, p], storage[slots[p], first:]
                for i in range(len(total)):
                    total[i] += factor * row[i]


@njit(error_model="numpy")
def add_row(responses, y, row, coef):
    """``responses_j += coef y_j row_j``."""
    for j in range(len(responses)):
        responses[j] += coef * y[j] * row[j]


def centre(
    X: np.ndarray,
    shift: np.ndarray,
    scale: float,
    features: np.ndarray,
    values: np.ndarray,
    norms: np.ndarray,
) -> None:
    """Rows of ``values``: ``(x - shift) scale`` in these features; half their squared norms."""
    # NumPy's temporary arrays are new memory: with them the first fit on adult takes 1.3 times as
    # long.
    # Compiled for two types, not for each that a point can have.
    X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.float32 else np.float64).view()
    X.flags.writeable = False
    smallest = max(1, 2**15 // max(1, X.shape[1]))
    in_parts(_centre, len(X), X, shift, scale, features, values, norms, smallest=smallest)


@njit(error_model="numpy", nogil=True)
def _centre(X, shift, scale, features, values, norms, start, stop):
    d, width = X.shape[1], len(features)
    centred = np.empty(d, values.dtype)
    for i in range(start, stop):
        row = X[i]
        for f in range(d):
            centred[f] = (row[f] - shift[f]) * scale
        norms[i] = _squared_norm(centred) / 2
        for f in range(width):
            values[i, f] = centred[features[f]]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _squared_norm(row):
    total = 0.0
    for f in range(len(row)):
        value = np.float64(row[f])
        total += value * value
    return total
