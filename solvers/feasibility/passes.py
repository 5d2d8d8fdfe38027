"""One pass over A for a whole iteration: products, exponentials and averages, block by block.

A mirror prox iteration needs ``A'y`` and ``A x`` at the iterate and at the leading point, four
products. The point to lead from and the two points of the ball are known before the iteration's
products with the simplex side, so that one pass over A yields all four (:func:`mirror`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..numeric.compiling import njit
from ..numeric.exponential import exponential
from .products import FAST, add, add2, dot, dot2

# Weights below this part of the largest one are lost in the rounding of any sum; without them there
# are no denormal numbers, which some processors are slow at.
_NEGLIGIBLE = 1e-30


@njit(error_model="numpy")
def exponentials(values):
    """values = exp(values), each as :func:`exponential`."""
    for i in range(len(values)):
        values[i] = exponential(values[i])


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


@njit(error_model="numpy", fastmath=FAST)
def _total(values):
    total = 0.0
    for value in values:
        total += value
    return total


@njit(error_model="numpy", fastmath=FAST)
def _significant(weights, out):
    """The weights in the type of the products, without those that no sum would notice."""
    for i in range(len(weights)):
        out[i] = weights[i] if weights[i] > _NEGLIGIBLE else 0.0


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


class _Block(NamedTuple):
    """Scratch of a pass, for as many columns as a block has."""

    p: np.ndarray
    p_lead: np.ndarray
    x: np.ndarray
    w: np.ndarray
    exponents: np.ndarray


@njit(error_model="numpy")
def _block_of(width, y):
    """Scratch for blocks of this width, in the type of ``y``; float64 for the exponents."""
    p, p_lead = np.empty(width, y.dtype), np.empty(width, y.dtype)
    x, w = np.empty(width, y.dtype), np.empty(width, y.dtype)
    return _Block(p, p_lead, x, w, np.empty((2, width)))


@njit(error_model="numpy", fastmath=FAST)
def _mirror_block(lo, hi, step, side, block):
    """The simplex side of an iteration, for the columns lo..hi; short loops, which vectorise.

    Both exponents are at most ``length * max |A_j'y|`` above 0, since the largest of log_x - shift
    is 0: no overflow, and the largest weight is far from underflow.
    """
    count = hi - lo
    logs, old = side.log_x[lo:hi], side.w[lo:hi]
    sums, responses = side.x_sum[lo:hi], side.p_sum[lo:hi]
    p, p_lead, scratch = block.p, block.p_lead, block.exponents
    length, shift, inverse = step.length, step.shift, step.inverse
    w_new, x_new = scratch[0, :count], scratch[1, :count]
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
    _significant(w_new, block.w)
    _significant(x_new, block.x)
    return _total(x_new), _total(w_new), _greatest(logs), _least(responses)


@njit(error_model="numpy")
def mirror(A, y, y_lead, step, side, image, w_image, width):
    """One mirror prox iteration on the simplex side.

    Given y_t (``y``), the leading point ``y_lead`` and log x_t (``log_x - shift``): the leading
    point ``w = softmax(log x_t - length A'y)`` and the next ``log x``, which is ``log x_t - length
    A'y_lead``; both without their norming factor.
    """
    n = len(side.w)
    block = _block_of(width, y)
    image[:] = 0
    w_image[:] = 0
    total, w_total, top, low = 0.0, 0.0, -np.inf, np.inf
    for lo in range(0, n, width):
        hi = min(lo + width, n)
        dot2(A, lo, hi, y, y_lead, block.p, block.p_lead)
        s, s_w, t, least = _mirror_block(lo, hi, step, side, block)
        total, w_total, top, low = total + s, w_total + s_w, max(top, t), min(low, least)
        add2(A, lo, hi, block.x, block.w, image, w_image)
    return total, w_total, top, low


@njit(error_model="numpy", fastmath=FAST)
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


@njit(error_model="numpy", fastmath=FAST)
def _norm_weights(weights, image, references, mu, lowest, total, width):
    """Bring the blocks' weights to one reference and all sums to one."""
    image /= total
    for block in range(len(references)):
        factor = math.exp((lowest - references[block]) / mu) / total
        part = weights[block * width : (block + 1) * width]
        for i in range(len(part)):
            part[i] *= factor


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
