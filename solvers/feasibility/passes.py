"""One pass over A for a whole iteration: products, exponentials and averages, block by block.

A mirror prox iteration needs ``A'y`` and ``A x`` at the iterate and at the leading point, four
products. The point to lead from and the two points of the ball are known before the iteration's
products with the simplex side, so that one pass over A yields all four (:func:`mirror`). It goes
block by block, each small enough to stay in the cache: ``A'y`` for the block's columns, what the
method makes of it, and the block's part of ``A x``. Two vectors at a time share each load of A.

A is a matrix in C order ("rows"), one in Fortran order ("columns": C = A' is in C order), or the
three arrays of a CSC matrix ("sparse"). The type of the vectors is that in which a block is summed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba.core import types
from numba.extending import overload

from ..numeric.compiling import njit
from ..numeric.exponential import exponential

# Sums may be reordered, which vectorises them; NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "nsz"}
# Its exponential is the least that is a normal number.
_LEAST_EXPONENT = -708.0
# Weights below this part of the largest one are lost in the rounding of any sum; without them there
# are no denormal numbers, which some processors are slow at.
_NEGLIGIBLE = 1e-30
# Blocks of about this many bytes stay in the second-level cache; the widths were measured.
_BLOCK_BYTES = 2**19
_ROWS_WIDTH = (64, 512)
_COLUMNS_WIDTH = (16, 128)


class SimplexSide(NamedTuple):
    """The simplex side of mirror prox; changed in place."""

    log_x: np.ndarray  # float64, shape (n,): Of x_t, plus the pass's ``shift``
    w: np.ndarray  # float64, shape (n,): The leading point, without its norming factor
    # float64, shape (n,): Sums of the normed leading points (one pass late) and of ``A'y_lead``
    x_sum: np.ndarray
    p_sum: np.ndarray


class MirrorStep(NamedTuple):
    """What a pass is told of its step."""

    length: float
    shift: float
    inverse: float  # 1 over the sum of ``w`` as the last pass left it, 0 before the first


@njit(error_model="numpy")
def mirror(A, y, y_lead, step, side, image, w_image, width):
    """One mirror prox iteration on the simplex side.

    Given y_t (``y``), the leading point ``y_lead`` and log x_t (``log_x - shift``): the leading
    point ``w = softmax(log x_t - length A'y)`` and the next ``log x``, which is ``log x_t - length
    A'y_lead``; both without their norming factor.
    """
    n = len(side.w)
    # In the type of y; float64 for the exponents.
    p, p_lead = np.empty(width, y.dtype), np.empty(width, y.dtype)
    x, w, exponents = np.empty(width, y.dtype), np.empty(width, y.dtype), np.empty((2, width))
    image[:] = 0
    w_image[:] = 0
    total, w_total, top, low = 0.0, 0.0, -np.inf, np.inf
    for lo in range(0, n, width):
        hi = min(lo + width, n)
        dot2(A, lo, hi, y, y_lead, p, p_lead)
        s, s_w, t, least = _mirror_block(lo, hi, step, side, p, p_lead, x, w, exponents)
        total, w_total, top, low = total + s, w_total + s_w, max(top, t), min(low, least)
        add2(A, lo, hi, x, w, image, w_image)
    return total, w_total, top, low


@njit(error_model="numpy", fastmath=_FAST)
def _mirror_block(lo, hi, step, side, p, p_lead, x, w, exponents):
    """The simplex side of an iteration, for the columns lo..hi; short loops, which vectorise.

    Both exponents are at most ``length * max |A_j'y|`` above 0, since the largest of log_x - shift
    is 0: no overflow, and the largest weight is far from underflow.
    """
    count = hi - lo
    logs, old = side.log_x[lo:hi], side.w[lo:hi]
    sums, responses = side.x_sum[lo:hi], side.p_sum[lo:hi]
    length, shift, inverse = step.length, step.shift, step.inverse
    w_new, x_new = exponents[0, :count], exponents[1, :count]
    for i in range(count):
        logs[i] -= shift
        w_new[i] = logs[i] - length * p[i]
    for i in range(count):
        logs[i] -= length * p_lead[i]
        x_new[i] = logs[i]
    exponentials(w_new)
    exponentials(x_new)
    # The sum of the last iteration's weights was not known before its pass had ended.
    for i in range(count):
        sums[i] += old[i] * inverse
    old[:] = w_new
    for i in range(count):
        responses[i] += p_lead[i]
    _significant(w_new, w)
    _significant(x_new, x)
    return _total(x_new), _total(w_new), _greatest(logs), _least(responses)


@njit(error_model="numpy")
def smooth(A, y, mu, weights, image, width):
    """``weights = softmax(-A'y / mu)`` and ``image = A weights``."""
    n = len(weights)
    p, block = np.empty(width, y.dtype), np.empty(width, y.dtype)
    references = np.empty((n + width - 1) // width)
    image[:] = 0
    lowest, total = np.inf, 0.0
    for lo in range(0, n, width):
        hi = min(lo + width, n)
        dot(A, lo, hi, y, p)
        lowest, total = _smooth_block(lo, hi, p, mu, lowest, total, weights, image, block)
        references[lo // width] = lowest
        add(A, lo, hi, block, image)
    _norm_weights(weights, image, references, mu, lowest, total, width)
    return lowest


@njit(error_model="numpy", fastmath=_FAST)
def _smooth_block(lo, hi, p, mu, lowest, total, weights, image, block):
    """Weights exp(-(p - lowest) / mu) of one block; earlier sums follow a new lowest p."""
    part = weights[lo:hi]
    low = _least(p[: hi - lo])
    if low < lowest:
        if lowest < np.inf:
            factor = math.exp((low - lowest) / mu)
            total *= factor
            image *= factor
        lowest = low
    for i in range(hi - lo):
        part[i] = (lowest - p[i]) / mu
    exponentials(part)
    _significant(part, block)
    return lowest, total + _total(part)


@njit(error_model="numpy", fastmath=_FAST)
def _norm_weights(weights, image, references, mu, lowest, total, width):
    """Bring the blocks' weights to one reference and all sums to one."""
    image /= total
    for block in range(len(references)):
        factor = math.exp((lowest - references[block]) / mu) / total
        part = weights[block * width : (block + 1) * width]
        for i in range(len(part)):
            part[i] *= factor


@njit(error_model="numpy")
def exponentials(values):
    """values = exp(values), each as :func:`exponential`, and none of them 0."""
    for i in range(len(values)):
        value = values[i]
        values[i] = exponential(_LEAST_EXPONENT if value < _LEAST_EXPONENT else value)


@njit(error_model="numpy", fastmath={"nnan", "nsz", "reassoc"})
def _least(values):
    low = np.inf
    for value in values:
        low = min(low, value)
    return low


@njit(error_model="numpy", fastmath={"nnan", "nsz", "reassoc"})
def _greatest(values):
    top = -np.inf
    for value in values:
        top = max(top, value)
    return top


@njit(error_model="numpy", fastmath=_FAST)
def _total(values):
    total = 0.0
    for value in values:
        total += value
    return total


@njit(error_model="numpy", fastmath=_FAST)
def _significant(weights, out):
    """The weights in the type of the products, without those that no sum would notice."""
    for i in range(len(weights)):
        out[i] = weights[i] if weights[i] > _NEGLIGIBLE else 0.0


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


@njit(error_model="numpy", fastmath=_FAST)
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


@njit(error_model="numpy", fastmath=_FAST)
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


@njit(error_model="numpy", fastmath=_FAST)
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


@njit(error_model="numpy", fastmath=_FAST)
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


@njit(error_model="numpy", fastmath=_FAST)
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


@njit(error_model="numpy", fastmath=_FAST)
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


@njit(error_model="numpy", fastmath=_FAST)
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


@njit(error_model="numpy", fastmath=_FAST)
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


@njit(error_model="numpy", fastmath=_FAST)
def dot2_sparse(A, lo, hi, y, z, out_y, out_z):
    data, indices, indptr = A
    for j in range(lo, hi):
        s, t = 0.0, 0.0
        for p in range(indptr[j], indptr[j + 1]):
            s += data[p] * y[indices[p]]
            t += data[p] * z[indices[p]]
        out_y[j - lo] = s
        out_z[j - lo] = t


@njit(error_model="numpy", fastmath=_FAST)
def add2_sparse(A, lo, hi, x, w, image_x, image_w):
    data, indices, indptr = A
    for j in range(lo, hi):
        xj, wj = x[j - lo], w[j - lo]
        if xj != 0 or wj != 0:
            for p in range(indptr[j], indptr[j + 1]):
                image_x[indices[p]] += xj * data[p]
                image_w[indices[p]] += wj * data[p]


@njit(error_model="numpy", fastmath=_FAST)
def dot_sparse(A, lo, hi, y, out):
    data, indices, indptr = A
    for j in range(lo, hi):
        s = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            s += data[p] * y[indices[p]]
        out[j - lo] = s


@njit(error_model="numpy", fastmath=_FAST)
def add_sparse(A, lo, hi, x, image):
    data, indices, indptr = A
    for j in range(lo, hi):
        xj = x[j - lo]
        if xj != 0:
            for p in range(indptr[j], indptr[j + 1]):
                image[indices[p]] += xj * data[p]
