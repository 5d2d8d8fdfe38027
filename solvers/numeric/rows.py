"""What compiled loops do with the rows of a dense or a CSR matrix.

``rows`` is a dense matrix or the three arrays of a CSR matrix without duplicates; loops are
compiled for each. Two stored numbers of a CSR row at a time make BMRM on adult 1.9 times as fast.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from scipy import sparse

from .compiling import njit
from .matrices import Matrix, squared_norms

#: A dense matrix, or data, indices and indptr of a CSR matrix.
Rows = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]

# Sums in any order, so that they are vectorised; indices that numba need not check for their sign.
_SUMS = {"error_model": "numpy", "fastmath": {"reassoc", "nsz", "contract"}}

_CACHE_LINE = 64
# So many lines of a dense row are asked for; the processor foresees the next ones itself.
_LINES = 8


def row_arrays(X: Matrix) -> Rows:
    """What the loops below take for a dense or CSR matrix."""
    return (X.data, X.indices, X.indptr) if sparse.issparse(X) else X


def finite_squared_norms(X: Matrix) -> np.ndarray:
    """||x_i||^2, float64, shape (n,); ValueError if one overflows."""
    norms = squared_norms(X)
    if not np.isfinite(norms).all():
        raise ValueError("the squared norms of these points overflow float64: scale the features")
    return norms


@njit(error_model="numpy", nogil=True)
def weighted_sums(rows, coef, sums, start, stop):
    """``sums_ki = sum_j coef_kj rows_ij`` for the rows i from start to stop, float64."""
    for i in range(start, stop):
        for k in range(len(coef)):
            sums[k, i] = dot(rows, i, coef[k])


def dot(rows, i, v):
    """<x_i, v>."""
    if isinstance(rows, np.ndarray):
        return rows[i] @ v
    data, indices, indptr = rows
    own = slice(indptr[i], indptr[i + 1])
    return data[own] @ v[indices[own]]


def add(rows, i, step, v):
    """v += step x_i."""
    raise NotImplementedError("for compiled code")


def add_with_norm(rows, i, step, v):
    """v += step x_i; returns by how much ||v||^2 grows."""
    raise NotImplementedError("for compiled code")


@overload(dot, jit_options=_SUMS)
def _dot(rows, i, v):
    def of_dense(rows, i, v):
        row = rows[i]
        total = 0.0
        for j in range(len(v)):
            total += row[j] * v[j]
        return total

    def of_csr(rows, i, v):
        data, indices, indptr = rows
        one, p, last = np.uint64(1), np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        # Two sums side by side: wider ones pay in long rows alone.
        even, odd = 0.0, 0.0
        if (last - p) & one:
            even += data[p] * v[np.uint64(indices[p])]
            p += one
        while p < last:
            even += data[p] * v[np.uint64(indices[p])]
            odd += data[p + one] * v[np.uint64(indices[p + one])]
            p += one + one
        return even + odd

    return of_dense if isinstance(rows, types.Array) else of_csr


@overload(add, jit_options=_SUMS)
def _add(rows, i, step, v):
    def of_dense(rows, i, step, v):
        row = rows[i]
        for j in range(len(v)):
            v[j] += step * row[j]

    def of_csr(rows, i, step, v):
        data, indices, indptr = rows
        one, p, last = np.uint64(1), np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if (last - p) & one:
            v[np.uint64(indices[p])] += step * data[p]
            p += one
        # No feature is twice in a row: both sums are read before the first is written.
        while p < last:
            even, odd = np.uint64(indices[p]), np.uint64(indices[p + one])
            sum_even, sum_odd = v[even] + step * data[p], v[odd] + step * data[p + one]
            v[even], v[odd] = sum_even, sum_odd
            p += one + one

    return of_dense if isinstance(rows, types.Array) else of_csr


@overload(add_with_norm, jit_options=_SUMS)
def _add_with_norm(rows, i, step, v):
    def of_dense(rows, i, step, v):
        row = rows[i]
        growth = 0.0
        for j in range(len(v)):
            change = step * row[j]
            growth += change * (2.0 * v[j] + change)
            v[j] += change
        return growth

    def of_csr(rows, i, step, v):
        data, indices, indptr = rows
        growth = 0.0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[p])
            change = step * data[p]
            growth += change * (2.0 * v[j] + change)
            v[j] += change
        return growth

    return of_dense if isinstance(rows, types.Array) else of_csr


def fetch(rows, i, later):
    """Have row i brought into the cache, and where a later one begins, as the processor goes on.

    LinearSDCA takes 1.3 to 1.5 times as long without it on adult and ijcnn1.
    """
    raise NotImplementedError("for compiled code")


@intrinsic
def prefetch(typingctx, values, index):
    """Have an element of an array brought into the cache, while the processor goes on."""

    def code(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        byte, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole])
        )
        address = builder.bitcast(builder.gep(array.data, [args[1]]), byte)
        # For reading, to be kept in all caches, as data.
        builder.call(function, [address, whole(0), whole(3), whole(1)])
        return context.get_dummy_value()

    return types.void(values, index), code


def _per_cache_line(array):
    """How many elements of an array of this numba type there are in a cache line."""
    return 8 * _CACHE_LINE // array.dtype.bitwidth


@overload(fetch, jit_options=_SUMS)
def _fetch(rows, i, later):
    if isinstance(rows, types.Array):
        step = _per_cache_line(rows)

        def of_dense(rows, i, later):
            row = rows[i]
            for j in range(0, min(len(row), _LINES * step), step):
                prefetch(row, j)

        return of_dense

    step, index_step = _per_cache_line(rows[0]), _per_cache_line(rows[1])

    def of_csr(rows, i, later):
        data, indices, indptr = rows
        prefetch(indptr, later)
        first, last = indptr[i], indptr[i + 1]
        for p in range(first, last, step):
            prefetch(data, p)
        for p in range(first, last, index_step):
            prefetch(indices, p)

    return of_csr
