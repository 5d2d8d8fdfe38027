"""Compiled products with a block of columns of A, for every way in which A is stored.

A pass over A goes block by block, each small enough to stay in the cache: ``A'y`` for the block's
columns, what a method makes of it, and the block's part of ``A x``. Two vectors at a time share
each load of A.

A is a matrix in C order ("rows"), one in Fortran order ("columns": C = A' is in C order), or the
three arrays of a CSC matrix ("sparse"). The type of the vectors is that in which a block is summed.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import overload

from ..numeric.compiling import njit

# Sums may be reordered, which vectorises them; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz"}

# Blocks of about this many bytes stay in the second-level cache; the widths were measured.
_BLOCK_BYTES = 2**19
_ROWS_WIDTH = (64, 512)
_COLUMNS_WIDTH = (16, 128)


def block_width(m: int, itemsize: int, *, rows: bool) -> int:
    """Columns in a block of a dense matrix with m rows."""
    least, most = _ROWS_WIDTH if rows else _COLUMNS_WIDTH
    room = _BLOCK_BYTES if rows else _BLOCK_BYTES // 2
    return int(min(max(room // (m * itemsize) // 8 * 8, least), most))


def dot(A, lo, hi, y, out):
    """out_j = A_j'y for the columns j of lo..hi."""
    raise NotImplementedError("for compiled code")


def dot2(A, lo, hi, y, z, out_y, out_z):
    """:func:`dot` for two vectors."""
    raise NotImplementedError("for compiled code")


def add(A, lo, hi, x, image):
    """image += sum of x_j A_j over the columns j of lo..hi."""
    raise NotImplementedError("for compiled code")


def add2(A, lo, hi, x, w, image_x, image_w):
    """:func:`add` for two vectors."""
    raise NotImplementedError("for compiled code")


def _of_storage(A, of_rows, of_columns, of_sparse):
    if not isinstance(A, types.Array):
        return of_sparse
    return of_rows if A.layout == "C" else of_columns


@overload(dot)
def _dot(A, lo, hi, y, out):
    return _of_storage(
        A,
        lambda A, lo, hi, y, out: dot_rows(A, lo, hi, y, out),
        lambda A, lo, hi, y, out: dot_columns(A.T, lo, hi, y, out),
        lambda A, lo, hi, y, out: dot_sparse(A, lo, hi, y, out),
    )


@overload(dot2)
def _dot2(A, lo, hi, y, z, out_y, out_z):
    return _of_storage(
        A,
        lambda A, lo, hi, y, z, out_y, out_z: dot2_rows(A, lo, hi, y, z, out_y, out_z),
        lambda A, lo, hi, y, z, out_y, out_z: dot2_columns(A.T, lo, hi, y, z, out_y, out_z),
        lambda A, lo, hi, y, z, out_y, out_z: dot2_sparse(A, lo, hi, y, z, out_y, out_z),
    )


@overload(add)
def _add(A, lo, hi, x, image):
    def of_columns(A, lo, hi, x, image):
        # A block is summed in A's own type, the blocks in float64.
        part = np.zeros(len(image), x.dtype)
        add_columns(A.T, lo, hi, x, part)
        image += part

    return _of_storage(
        A,
        lambda A, lo, hi, x, image: add_rows(A, lo, hi, x, image),
        of_columns,
        lambda A, lo, hi, x, image: add_sparse(A, lo, hi, x, image),
    )


@overload(add2)
def _add2(A, lo, hi, x, w, image_x, image_w):
    def of_columns(A, lo, hi, x, w, image_x, image_w):
        part_x, part_w = np.zeros(len(image_x), x.dtype), np.zeros(len(image_w), x.dtype)
        add2_columns(A.T, lo, hi, x, w, part_x, part_w)
        image_x += part_x
        image_w += part_w

    return _of_storage(
        A,
        lambda A, lo, hi, x, w, image_x, image_w: add2_rows(A, lo, hi, x, w, image_x, image_w),
        of_columns,
        lambda A, lo, hi, x, w, image_x, image_w: add2_sparse(A, lo, hi, x, w, image_x, image_w),
    )


@njit(error_model="numpy", fastmath=FAST)
def dot_rows(A, lo, hi, y, out):
    m, count = A.shape[0], hi - lo
    out[:count] = 0
    k = 0
    # Four rows at a time: a quarter of the loads and stores of `out`.
    while k + 4 <= m:
        r0, r1, r2, r3 = A[k, lo:hi], A[k + 1, lo:hi], A[k + 2, lo:hi], A[k + 3, lo:hi]
        y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
        for i in range(count):
            out[i] += r0[i] * y0 + r1[i] * y1 + r2[i] * y2 + r3[i] * y3
        k += 4
    while k < m:
        r0 = A[k, lo:hi]
        for i in range(count):
            out[i] += r0[i] * y[k]
        k += 1


@njit(error_model="numpy", fastmath=FAST)
def dot2_rows(A, lo, hi, y, z, out_y, out_z):
    m, count = A.shape[0], hi - lo
    out_y[:count] = 0
    out_z[:count] = 0
    k = 0
    while k + 4 <= m:
        r0, r1, r2, r3 = A[k, lo:hi], A[k + 1, lo:hi], A[k + 2, lo:hi], A[k + 3, lo:hi]
        y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
        z0, z1, z2, z3 = z[k], z[k + 1], z[k + 2], z[k + 3]
        for i in range(count):
            a0, a1, a2, a3 = r0[i], r1[i], r2[i], r3[i]
            out_y[i] += a0 * y0 + a1 * y1 + a2 * y2 + a3 * y3
            out_z[i] += a0 * z0 + a1 * z1 + a2 * z2 + a3 * z3
        k += 4
    while k < m:
        r0 = A[k, lo:hi]
        for i in range(count):
            out_y[i] += r0[i] * y[k]
            out_z[i] += r0[i] * z[k]
        k += 1


@njit(error_model="numpy", fastmath=FAST)
def add_rows(A, lo, hi, x, image):
    m, count = A.shape[0], hi - lo
    zero = x.dtype.type(0)
    k = 0
    while k + 4 <= m:
        r0, r1, r2, r3 = A[k, lo:hi], A[k + 1, lo:hi], A[k + 2, lo:hi], A[k + 3, lo:hi]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for i in range(count):
            xi = x[i]
            s0 += r0[i] * xi
            s1 += r1[i] * xi
            s2 += r2[i] * xi
            s3 += r3[i] * xi
        image[k] += s0
        image[k + 1] += s1
        image[k + 2] += s2
        image[k + 3] += s3
        k += 4
    while k < m:
        r0 = A[k, lo:hi]
        s0 = zero
        for i in range(count):
            s0 += r0[i] * x[i]
        image[k] += s0
        k += 1


@njit(error_model="numpy", fastmath=FAST)
def add2_rows(A, lo, hi, x, w, image_x, image_w):
    m, count = A.shape[0], hi - lo
    zero = x.dtype.type(0)
    k = 0
    while k + 4 <= m:
        r0, r1, r2, r3 = A[k, lo:hi], A[k + 1, lo:hi], A[k + 2, lo:hi], A[k + 3, lo:hi]
        s0, s1, s2, s3 = zero, zero, zero, zero
        t0, t1, t2, t3 = zero, zero, zero, zero
        for i in range(count):
            a0, a1, a2, a3 = r0[i], r1[i], r2[i], r3[i]
            xi, wi = x[i], w[i]
            s0 += a0 * xi
            s1 += a1 * xi
            s2 += a2 * xi
            s3 += a3 * xi
            t0 += a0 * wi
            t1 += a1 * wi
            t2 += a2 * wi
            t3 += a3 * wi
        image_x[k] += s0
        image_x[k + 1] += s1
        image_x[k + 2] += s2
        image_x[k + 3] += s3
        image_w[k] += t0
        image_w[k + 1] += t1
        image_w[k + 2] += t2
        image_w[k + 3] += t3
        k += 4
    while k < m:
        r0 = A[k, lo:hi]
        s0, t0 = zero, zero
        for i in range(count):
            s0 += r0[i] * x[i]
            t0 += r0[i] * w[i]
        image_x[k] += s0
        image_w[k] += t0
        k += 1


@njit(error_model="numpy", fastmath=FAST)
def dot_columns(C, lo, hi, y, out):
    m = C.shape[1]
    zero = y.dtype.type(0)
    j = lo
    # Four columns at a time share each load of y.
    while j + 4 <= hi:
        a, b, c, d = C[j], C[j + 1], C[j + 2], C[j + 3]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for k in range(m):
            s0 += a[k] * y[k]
            s1 += b[k] * y[k]
            s2 += c[k] * y[k]
            s3 += d[k] * y[k]
        i = j - lo
        out[i], out[i + 1], out[i + 2], out[i + 3] = s0, s1, s2, s3
        j += 4
    while j < hi:
        a = C[j]
        s0 = zero
        for k in range(m):
            s0 += a[k] * y[k]
        out[j - lo] = s0
        j += 1


@njit(error_model="numpy", fastmath=FAST)
def dot2_columns(C, lo, hi, y, z, out_y, out_z):
    m = C.shape[1]
    zero = y.dtype.type(0)
    j = lo
    while j + 4 <= hi:
        a, b, c, d = C[j], C[j + 1], C[j + 2], C[j + 3]
        s0, s1, s2, s3 = zero, zero, zero, zero
        t0, t1, t2, t3 = zero, zero, zero, zero
        for k in range(m):
            yk, zk = y[k], z[k]
            s0 += a[k] * yk
            t0 += a[k] * zk
            s1 += b[k] * yk
            t1 += b[k] * zk
            s2 += c[k] * yk
            t2 += c[k] * zk
            s3 += d[k] * yk
            t3 += d[k] * zk
        i = j - lo
        out_y[i], out_y[i + 1], out_y[i + 2], out_y[i + 3] = s0, s1, s2, s3
        out_z[i], out_z[i + 1], out_z[i + 2], out_z[i + 3] = t0, t1, t2, t3
        j += 4
    while j < hi:
        a = C[j]
        s0, t0 = zero, zero
        for k in range(m):
            s0 += a[k] * y[k]
            t0 += a[k] * z[k]
        out_y[j - lo] = s0
        out_z[j - lo] = t0
        j += 1


@njit(error_model="numpy", fastmath=FAST)
def add_columns(C, lo, hi, x, image):
    m = C.shape[1]
    j = lo
    while j + 4 <= hi:
        i = j - lo
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        # Weights of a softmax vanish for most columns once the iterate has concentrated.
        if x0 != 0 or x1 != 0 or x2 != 0 or x3 != 0:
            a, b, c, d = C[j], C[j + 1], C[j + 2], C[j + 3]
            for k in range(m):
                image[k] += x0 * a[k] + x1 * b[k] + x2 * c[k] + x3 * d[k]
        j += 4
    while j < hi:
        a = C[j]
        x0 = x[j - lo]
        for k in range(m):
            image[k] += x0 * a[k]
        j += 1


@njit(error_model="numpy", fastmath=FAST)
def add2_columns(C, lo, hi, x, w, image_x, image_w):
    m = C.shape[1]
    j = lo
    while j + 4 <= hi:
        i = j - lo
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        w0, w1, w2, w3 = w[i], w[i + 1], w[i + 2], w[i + 3]
        some_x = x0 != 0 or x1 != 0 or x2 != 0 or x3 != 0
        if some_x or w0 != 0 or w1 != 0 or w2 != 0 or w3 != 0:
            a, b, c, d = C[j], C[j + 1], C[j + 2], C[j + 3]
            for k in range(m):
                a0, a1, a2, a3 = a[k], b[k], c[k], d[k]
                image_x[k] += x0 * a0 + x1 * a1 + x2 * a2 + x3 * a3
                image_w[k] += w0 * a0 + w1 * a1 + w2 * a2 + w3 * a3
        j += 4
    while j < hi:
        a = C[j]
        x0, w0 = x[j - lo], w[j - lo]
        for k in range(m):
            image_x[k] += x0 * a[k]
            image_w[k] += w0 * a[k]
        j += 1


@njit(error_model="numpy", fastmath=FAST)
def dot2_sparse(A, lo, hi, y, z, out_y, out_z):
    data, indices, indptr = A
    for j in range(lo, hi):
        s, t = 0.0, 0.0
        for p in range(indptr[j], indptr[j + 1]):
            s += data[p] * y[indices[p]]
            t += data[p] * z[indices[p]]
        out_y[j - lo] = s
        out_z[j - lo] = t


@njit(error_model="numpy", fastmath=FAST)
def add2_sparse(A, lo, hi, x, w, image_x, image_w):
    data, indices, indptr = A
    for j in range(lo, hi):
        xj, wj = x[j - lo], w[j - lo]
        if xj != 0 or wj != 0:
            for p in range(indptr[j], indptr[j + 1]):
                image_x[indices[p]] += xj * data[p]
                image_w[indices[p]] += wj * data[p]


@njit(error_model="numpy", fastmath=FAST)
def dot_sparse(A, lo, hi, y, out):
    data, indices, indptr = A
    for j in range(lo, hi):
        s = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            s += data[p] * y[indices[p]]
        out[j - lo] = s


@njit(error_model="numpy", fastmath=FAST)
def add_sparse(A, lo, hi, x, image):
    data, indices, indptr = A
    for j in range(lo, hi):
        xj = x[j - lo]
        if xj != 0:
            for p in range(indptr[j], indptr[j + 1]):
                image[indices[p]] += xj * data[p]
