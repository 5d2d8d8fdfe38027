"""One pass over A for a whole iteration: products, exponentials and averages, block by block.

A mirror prox iteration needs ``A'y`` and ``A x`` at the iterate and at the leading point, four
products. The point to lead from and the two points of the ball are known before the iteration's
products with the simplex side, so that one pass over A yields all four (:func:`mirror`). It goes
block by block, each small enough to stay in the cache: ``A'y`` for the block's columns, what the
method makes of it, and the block's part of ``A x``. Vectors side by side share the loads of A: they
are rows of one array.

A is a matrix in C order ("rows") or one in Fortran order ("columns": C = A' is in C order). The
type of the vectors is that in which a block is summed. With BLAS products, one vector at a time,
MPLFP takes 1.2 to 2 times as long on dense columns; of a sparse A, SciPy's products are faster.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba.extending import overload

from ..numeric.compiling import njit
from ..numeric.exponential import exponential
from ..numeric.extremes import largest, smallest

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


@njit(error_model="numpy")
def mirror(A, ys, x_step, shift, inverse, side, images, width):
    """One mirror prox iteration on the simplex side (MPFP14 Algorithm 1 lines 5 to 7).

    Given y_t and the leading point y_lead (``ys``) and log x_t (``log_x - shift``): the leading
    point ``w = softmax(log x_t - x_step A'y)`` and the next ``log x``, which is ``log x_t - x_step
    A'y_lead``; both without their norming factor. ``inverse`` is 1 over the sum of ``w`` as the
    last pass left it, 0 before the first. ``images`` become A x and A w.
    """
    n = len(side.w)
    # In the type of y; float64 for the exponents.
    ps, weights = np.empty((2, width), ys.dtype), np.empty((2, width), ys.dtype)
    room = np.empty((2, width))
    images[:] = 0
    total, w_total, top, low = 0.0, 0.0, -np.inf, np.inf
    for lo in range(0, n, width):
        hi = min(lo + width, n)
        dot(A, lo, hi, ys, ps)
        s, s_w, t, least = mirror_block(
            lo, hi, x_step, shift, inverse, side, ps[0], ps[1], weights, room
        )
        total, w_total, top, low = total + s, w_total + s_w, max(top, t), min(low, least)
        add(A, lo, hi, weights, images)
    return total, w_total, top, low


@njit(error_model="numpy", fastmath=_FAST)
def mirror_block(lo, hi, x_step, shift, inverse, side, p, p_lead, weights, room):
    """The simplex side of an iteration, for the columns lo..hi; short loops, which vectorise.

    Both exponents are at most ``x_step max |A_j'y|`` above 0, since the largest of log_x - shift
    is 0: no overflow, and the largest weight is far from underflow.
    """
    count = hi - lo
    logs, old = side.log_x[lo:hi], side.w[lo:hi]
    sums, responses = side.x_sum[lo:hi], side.p_sum[lo:hi]
    # Exponents at first, then their exponentials.
    x_new, w_new = room[0, :count], room[1, :count]
    # The leading point (line 5), then the next x (line 6).
    for i in range(count):
        logs[i] -= shift
        w_new[i] = logs[i] - x_step * p[i]
    for i in range(count):
        logs[i] -= x_step * p_lead[i]
        x_new[i] = logs[i]
    exponentials(w_new)
    exponentials(x_new)
    # Line 7. The sum of the last iteration's weights was not known before its pass had ended.
    for i in range(count):
        sums[i] += old[i] * inverse
    for i in range(count):
        old[i] = w_new[i]
    for i in range(count):
        responses[i] += p_lead[i]
    _significant(x_new, weights[0])
    _significant(w_new, weights[1])
    return _total(x_new), _total(w_new), logs[largest(logs)], responses[smallest(responses)]


@njit(error_model="numpy")
def smooth(A, ys, mu, weights, images, width):
    """``weights = softmax(-A'y / mu)`` and ``images = A weights``, each for one vector."""
    n, image = len(weights), images[0]
    ps, block = np.empty((1, width), ys.dtype), np.empty((1, width), ys.dtype)
    references = np.empty((n + width - 1) // width)
    images[:] = 0
    lowest, total = np.inf, 0.0
    for lo in range(0, n, width):
        hi = min(lo + width, n)
        dot(A, lo, hi, ys, ps)
        lowest, total = _smooth_block(lo, hi, ps[0], mu, lowest, total, weights, image, block[0])
        references[lo // width] = lowest
        add(A, lo, hi, block, images)
    # Bring the blocks' weights to one reference and all sums to one.
    image /= total
    for k in range(len(references)):
        factor = math.exp((lowest - references[k]) / mu) / total
        for i in range(k * width, min((k + 1) * width, n)):  # a slice would take 3 s to compile
            weights[i] *= factor
    return lowest


@njit(error_model="numpy", fastmath=_FAST)
def _smooth_block(lo, hi, p, mu, lowest, total, weights, image, block):
    """Weights exp(-(p - lowest) / mu) of one block; earlier sums follow a new lowest p."""
    part = weights[lo:hi]
    low = np.float64(p[smallest(p[: hi - lo])])
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


@njit(error_model="numpy")
def exponentials(values):
    """values = exp(values), each as :func:`exponential`, and none of them 0."""
    for i in range(len(values)):
        value = values[i]
        values[i] = exponential(_LEAST_EXPONENT if value < _LEAST_EXPONENT else value)


@njit(error_model="numpy", fastmath=_FAST)
def _total(values):
    total = 0.0
    for i in range(len(values)):
        total += values[i]
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


def dot(A, lo, hi, ys, out):
    """out_vj = A_j'y_v for the columns j of lo..hi and each row y_v of ``ys``."""
    raise NotImplementedError("for compiled code")


def add(A, lo, hi, xs, images):
    """images_v += sum of x_vj A_j over the columns j of lo..hi."""
    raise NotImplementedError("for compiled code")


@overload(dot)
def _dot(A, lo, hi, ys, out):
    if A.layout == "C":
        return lambda A, lo, hi, ys, out: dot_rows(A, lo, hi, ys, out)
    return lambda A, lo, hi, ys, out: dot_columns(A.T, lo, hi, ys, out)


@overload(add)
def _add(A, lo, hi, xs, images):
    def of_columns(A, lo, hi, xs, images):
        # A block is summed in A's own type, the blocks in float64.
        parts = np.zeros(images.shape, xs.dtype)
        add_columns(A.T, lo, hi, xs, parts)
        images += parts

    if A.layout == "C":
        return lambda A, lo, hi, xs, images: add_rows(A, lo, hi, xs, images)
    return of_columns


@njit(error_model="numpy", fastmath=_FAST)
def dot_rows(A, lo, hi, ys, out):
    m, count = A.shape[0], hi - lo
    whole = m - m % 4
    out[:, :count] = 0
    # Four rows at a time: a quarter of the loads and stores of the sums.
    for k in range(0, whole, 4):
        r0, r1, r2, r3 = A[k, lo:hi], A[k + 1, lo:hi], A[k + 2, lo:hi], A[k + 3, lo:hi]
        for v in range(len(ys)):
            sums, y0, y1, y2, y3 = out[v], ys[v, k], ys[v, k + 1], ys[v, k + 2], ys[v, k + 3]
            for i in range(count):
                sums[i] += r0[i] * y0 + r1[i] * y1 + r2[i] * y2 + r3[i] * y3
    for k in range(whole, m):
        row = A[k, lo:hi]
        for v in range(len(ys)):
            sums, y0 = out[v], ys[v, k]
            for i in range(count):
                sums[i] += row[i] * y0


@njit(error_model="numpy", fastmath=_FAST)
def add_rows(A, lo, hi, xs, images):
    m, count = A.shape[0], hi - lo
    whole, zero = m - m % 4, xs.dtype.type(0)
    for k in range(0, whole, 4):
        r0, r1, r2, r3 = A[k, lo:hi], A[k + 1, lo:hi], A[k + 2, lo:hi], A[k + 3, lo:hi]
        for v in range(len(xs)):
            x = xs[v]
            s0, s1, s2, s3 = zero, zero, zero, zero
            for i in range(count):
                s0 += r0[i] * x[i]
                s1 += r1[i] * x[i]
                s2 += r2[i] * x[i]
                s3 += r3[i] * x[i]
            images[v, k] += s0
            images[v, k + 1] += s1
            images[v, k + 2] += s2
            images[v, k + 3] += s3
    for k in range(whole, m):
        row = A[k, lo:hi]
        for v in range(len(xs)):
            x, total = xs[v], zero
            for i in range(count):
                total += row[i] * x[i]
            images[v, k] += total


@njit(error_model="numpy", fastmath=_FAST)
def dot_columns(C, lo, hi, ys, out):
    m, zero = C.shape[1], ys.dtype.type(0)
    whole, y, z = hi - (hi - lo) % 4, ys[0], ys[-1]
    # Four columns at a time share each load of y; two vectors share each load of a column.
    for j in range(lo, whole, 4):
        a, b, c, d = C[j], C[j + 1], C[j + 2], C[j + 3]
        s0, s1, s2, s3 = zero, zero, zero, zero
        t0, t1, t2, t3 = zero, zero, zero, zero
        if len(ys) == 1:
            for k in range(m):
                s0 += a[k] * y[k]
                s1 += b[k] * y[k]
                s2 += c[k] * y[k]
                s3 += d[k] * y[k]
        else:
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
            out[1, i], out[1, i + 1], out[1, i + 2], out[1, i + 3] = t0, t1, t2, t3
        i = j - lo
        out[0, i], out[0, i + 1], out[0, i + 2], out[0, i + 3] = s0, s1, s2, s3
    for j in range(whole, hi):
        column = C[j]
        for v in range(len(ys)):
            y, total = ys[v], zero
            for k in range(m):
                total += column[k] * y[k]
            out[v, j - lo] = total


@njit(error_model="numpy", fastmath=_FAST)
def add_columns(C, lo, hi, xs, images):
    m = C.shape[1]
    whole, image_x, image_w = hi - (hi - lo) % 4, images[0], images[-1]
    for j in range(lo, whole, 4):
        i, a, b, c, d = j - lo, C[j], C[j + 1], C[j + 2], C[j + 3]
        x0, x1, x2, x3 = xs[0, i], xs[0, i + 1], xs[0, i + 2], xs[0, i + 3]
        w0, w1, w2, w3 = xs[-1, i], xs[-1, i + 1], xs[-1, i + 2], xs[-1, i + 3]
        # Weights of a softmax vanish for most columns once the iterate has concentrated.
        some_x = x0 != 0 or x1 != 0 or x2 != 0 or x3 != 0
        if len(xs) == 1:
            if some_x:
                for k in range(m):
                    image_x[k] += x0 * a[k] + x1 * b[k] + x2 * c[k] + x3 * d[k]
        elif some_x or w0 != 0 or w1 != 0 or w2 != 0 or w3 != 0:
            for k in range(m):
                a0, a1, a2, a3 = a[k], b[k], c[k], d[k]
                image_x[k] += x0 * a0 + x1 * a1 + x2 * a2 + x3 * a3
                image_w[k] += w0 * a0 + w1 * a1 + w2 * a2 + w3 * a3
    for j in range(whole, hi):
        column = C[j]
        for v in range(len(xs)):
            image, x0 = images[v], xs[v, j - lo]
            for k in range(m):
                image[k] += x0 * column[k]
