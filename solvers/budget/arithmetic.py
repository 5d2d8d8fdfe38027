"""Kernel entries of one point against the points of a budget model, in compiled code.

Points stand feature by feature: ``points[f, j]`` is feature f of point j, so that a loop over j
fills whole vector registers. Arrays over j are aligned and as wide as a whole number of registers;
loops run over that width, and what stands beyond the model's size has coefficient zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from ..kernels import RBF, Kernel, Linear, Polynomial
from ..numeric.exponential import exponential
from .compiling import compiled

# 64 bytes: one AVX-512 register of float32, and one cache line.
ALIGNMENT = 64
LANES = 16

GAUSSIAN, LINEAR, POLYNOMIAL = 0, 1, 2


class KernelCode(NamedTuple):
    """A kernel as compiled code sees it; Gaussian points are scaled so that gamma is 1."""

    kind: int
    degree: int
    gamma: float
    coef0: float


def kernel_code(kernel: Kernel) -> KernelCode:
    """The compiled form of a kernel."""
    if isinstance(kernel, RBF):
        return KernelCode(GAUSSIAN, 0, 0.0, 0.0)
    if isinstance(kernel, Linear):
        return KernelCode(LINEAR, 1, 1.0, 0.0)
    if isinstance(kernel, Polynomial):
        return KernelCode(POLYNOMIAL, kernel.degree, kernel.gamma, kernel.coef0)
    raise ValueError(
        f"a budget model evaluates its kernel in compiled code, at points of its own: {kernel!r} "
        "is not among rbf, linear and poly"
    )


def padded(size: int) -> int:
    """``size`` rounded up to whole registers."""
    return -(-size // LANES) * LANES


def aligned(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Zeros that begin at a cache line, so that no load of a register straddles two."""
    count, item = math.prod(shape), np.dtype(dtype).itemsize
    room = np.zeros(count * item + ALIGNMENT, dtype=np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + count * item].view(dtype).reshape(shape)


@compiled(fastmath={"contract"})
def _exp_negative_float32(exponents, width, out):
    for j in range(width):
        out[j] = exponential(-exponents[j])


@compiled()
def _exp_negative_float64(exponents, width, out):
    for j in range(width):
        out[j] = math.exp(-exponents[j])


def exp_negative(exponents: np.ndarray, width: int, out: np.ndarray) -> None:
    """``out_j = exp(-exponents_j)`` for j < width; compiled code only.

    For float32 a polynomial after range reduction, which vectorises: relative error below 2e-7,
    and 0 for exponents above 88.
    """
    raise NotImplementedError("compiled code only")


@overload(exp_negative)
def _exp_negative(exponents, width, out):
    if exponents.dtype == types.float32:
        return lambda exponents, width, out: _exp_negative_float32(exponents, width, out)
    return lambda exponents, width, out: _exp_negative_float64(exponents, width, out)


@compiled(fastmath={"contract", "reassoc"})
def squared_distances(x, points, width, out):
    """``out_j = ||x - z_j||^2`` for j < width, the differences taken feature by feature."""
    d = len(x)
    for j in range(width):
        out[j] = 0
    whole = d - d % 4
    # Four features a pass: the sums go through the cache only a quarter as often.
    for f in range(0, whole, 4):
        x0, x1, x2, x3 = x[f], x[f + 1], x[f + 2], x[f + 3]
        z0, z1, z2, z3 = points[f], points[f + 1], points[f + 2], points[f + 3]
        for j in range(width):
            a, b, c, e = x0 - z0[j], x1 - z1[j], x2 - z2[j], x3 - z3[j]
            out[j] += a * a + b * b + (c * c + e * e)
    for f in range(whole, d):
        x0, z0 = x[f], points[f]
        for j in range(width):
            a = x0 - z0[j]
            out[j] += a * a


@compiled(fastmath={"contract", "reassoc"})
def inner_products(x, points, width, out):
    """``out_j = <x, z_j>`` for j < width."""
    for j in range(width):
        out[j] = 0
    for f in range(len(x)):
        x0, z0 = x[f], points[f]
        for j in range(width):
            out[j] += x0 * z0[j]


@compiled()
def kernel_row(kernel, x, points, width, distances, entries):
    """``entries_j = k(x, z_j)`` for j < width.

    For the Gaussian kernel ``distances`` gets the exponents; for others it is scratch.
    """
    if kernel.kind == GAUSSIAN:
        squared_distances(x, points, width, distances)
        exp_negative(distances, width, entries)
    elif kernel.kind == LINEAR:
        inner_products(x, points, width, entries)
    else:
        inner_products(x, points, width, distances)
        for j in range(width):
            distances[j] = kernel.gamma * distances[j] + kernel.coef0
            entries[j] = distances[j]
        for _ in range(1, kernel.degree):
            for j in range(width):
                entries[j] *= distances[j]


@compiled(fastmath={"contract", "reassoc"})
def weighted_sum(coef, entries, width):
    """``sum_j coef_j entries_j`` in float64."""
    total = 0.0
    for j in range(width):
        total += coef[j] * entries[j]
    return total


@compiled()
def smallest(bits, size):
    """The last position of the smallest among the first ``size`` values >= 0.

    Takes the values' bits, as whole numbers of the same width: they are in the same order, and a
    reduction of whole numbers vectorises, as one of floating-point numbers does not.
    """
    least = bits[0]
    for j in range(1, size):
        least = min(least, bits[j])
    position = -1
    for j in range(size):
        position = max(position, j if bits[j] == least else -1)
    return position


@compiled()
def width_of(size):
    """``size`` rounded up to whole registers."""
    return (size + LANES - 1) // LANES * LANES
