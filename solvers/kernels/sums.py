"""Compiled weighted sums of kernel entries, which finish the entries of product kernels on the way.

Entries are looked at in chunks of a row, which stay in the nearest cache between the steps. Sums
are float64.
"""

from __future__ import annotations

import numpy as np

from ..numeric.compiling import njit
from ..numeric.exponential import exponential

# Entries of a row that are looked at together.
_CHUNK = 256
# Rows of a tile. BLAS takes one thread for a product of a tile and a chunk of points with at most
# so many features (2^18 multiplications), so that each of our threads can multiply by itself.
_TILE = 16
SHORT = 64


def packed(values: np.ndarray) -> np.ndarray:
    """Points in chunks, feature by feature, shape (n_chunks, n_features, 256); zeros at the end."""
    n, d = values.shape
    found = np.zeros((-(-n // _CHUNK), d, _CHUNK), dtype=values.dtype)
    for chunk, first in zip(found, range(0, n, _CHUNK), strict=True):
        part = values[first : first + _CHUNK]
        chunk[:, : len(part)] = part.T
    return found


@njit(error_model="numpy", nogil=True)
def weighted_sums(entries, coef, sums, start, stop):
    """``sums_ki = sum_j coef_kj entries_ij`` for the rows i from start to stop."""
    for i in range(start, stop):
        for k in range(len(coef)):
            sums[k, i] = _weighted_sum(coef[k], entries[i])


@njit(error_model="numpy", nogil=True)
def exponential_sums(products, left, right, coef, sums, start, stop):
    """The same with entries ``exp(products_ij - left_i - right_j)``; exponents are clipped at 0."""
    chunk, n = np.empty(_CHUNK, products.dtype), products.shape[1]
    sums[:, start:stop] = 0.0
    for i in range(start, stop):
        for first in range(0, n, _CHUNK):
            last = min(first + _CHUNK, n)
            _exponentials(products[i, first:last], left[i], right[first:last], chunk)
            _add_sums(coef, first, last, chunk, sums, i)


@njit(error_model="numpy", nogil=True)
def power_sums(products, gamma, coef0, degree, coef, sums, start, stop):
    """The same with entries ``(gamma products_ij + coef0)^degree``.

    ``gamma`` and ``coef0`` are of the type of the products.
    """
    chunk, n = np.empty(_CHUNK, products.dtype), products.shape[1]
    sums[:, start:stop] = 0.0
    for i in range(start, stop):
        for first in range(0, n, _CHUNK):
            last = min(first + _CHUNK, n)
            _powers(products[i, first:last], gamma, coef0, degree, chunk)
            _add_sums(coef, first, last, chunk, sums, i)


@njit(error_model="numpy", nogil=True)
def short_exponential_sums(values, chunks, left, right, coef, sums, start, stop):
    """The sums of :func:`exponential_sums` from points with few features."""
    products, chunk = np.empty((_TILE, _CHUNK), values.dtype), np.empty(_CHUNK, values.dtype)
    tile = np.empty((_TILE, chunks.shape[1]), values.dtype)
    sums[:, start:stop] = 0.0
    for top in range(start, stop, _TILE):
        _take_tile(values, top, stop, tile)
        for c in range(len(chunks)):
            first, last = c * _CHUNK, min((c + 1) * _CHUNK, coef.shape[1])
            np.dot(tile, chunks[c], products)
            for i in range(top, min(top + _TILE, stop)):
                row = products[i - top, : last - first]
                _exponentials(row, left[i], right[first:last], chunk)
                _add_sums(coef, first, last, chunk, sums, i)


@njit(error_model="numpy", nogil=True)
def short_power_sums(values, chunks, gamma, coef0, degree, coef, sums, start, stop):
    """The sums of :func:`power_sums` from points with few features."""
    products, chunk = np.empty((_TILE, _CHUNK), values.dtype), np.empty(_CHUNK, values.dtype)
    tile = np.empty((_TILE, chunks.shape[1]), values.dtype)
    sums[:, start:stop] = 0.0
    for top in range(start, stop, _TILE):
        _take_tile(values, top, stop, tile)
        for c in range(len(chunks)):
            first, last = c * _CHUNK, min((c + 1) * _CHUNK, coef.shape[1])
            np.dot(tile, chunks[c], products)
            for i in range(top, min(top + _TILE, stop)):
                _powers(products[i - top, : last - first], gamma, coef0, degree, chunk)
                _add_sums(coef, first, last, chunk, sums, i)


@njit(error_model="numpy")
def _take_tile(values, top, stop, tile):
    """The rows from top, the last one repeated: BLAS sums in the same order for every tile."""
    for i in range(_TILE):
        row = values[min(top + i, stop - 1)]
        for f in range(tile.shape[1]):
            tile[i, f] = row[f]


@njit(error_model="numpy", fastmath={"contract"})
def _exponentials(products, left, right, chunk):
    zero = chunk.dtype.type(0)
    for j in range(len(products)):
        chunk[j] = exponential(min(products[j] - left - right[j], zero))


@njit(error_model="numpy", fastmath={"contract"})
def _powers(products, gamma, coef0, degree, chunk):
    for j in range(len(products)):
        chunk[j] = gamma * products[j] + coef0
    for _ in range(1, degree):
        for j in range(len(products)):
            chunk[j] *= gamma * products[j] + coef0


@njit(error_model="numpy")
def _add_sums(coef, first, last, chunk, sums, i):
    for k in range(len(coef)):
        sums[k, i] += _weighted_sum(coef[k, first:last], chunk)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _weighted_sum(coef, entries):
    total = 0.0
    for j in range(len(coef)):
        total += coef[j] * entries[j]
    return total
