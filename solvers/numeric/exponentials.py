"""exp and log(1 + e) for compiled loops, without calls or branches: LLVM can vectorise them."""

from __future__ import annotations

import math

import numpy as np

from .compiling import njit

#: Exponents below this one count as this one, whose exponential is still a normal number.
LEAST_EXPONENT = -708.0

_LOG2_E = 1.4426950408889634
_LN2 = math.log(2.0)
# ln 2 in two parts; whole numbers up to 2^11 times the first one are exact.
_LN2_HIGH = 6.93145751953125e-1
_LN2_LOW = 1.42860682030941723212e-6
# Added to a number below 2^51, leaves it rounded to a whole one in the last bits of the sum.
_ROUNDER = 1.5 * 2.0**52
_EXPONENT_BIAS = 1023
# From here on, log(1 + e) is that of (1 + e) / 2 plus log 2.
_HALVED_FROM = math.sqrt(2.0) - 1.0

# No sum here may be taken in another order; the loops that call may allow more.
_EXACT = {"error_model": "numpy", "fastmath": {"contract"}}


@njit(**_EXACT)
def exponential(v):
    """exp(v), to one unit in the last place; not a number for such a v.

    ``exp(v) = 2^k exp(r)`` with ``|r| <= ln 2 / 2`` and the Taylor polynomial of degree 13 for
    ``exp(r)``. v must be below 700; below -708 it counts as -708.
    """
    v = LEAST_EXPONENT if v < LEAST_EXPONENT else v
    rounded = v * _LOG2_E + _ROUNDER
    k = rounded - _ROUNDER
    r = (v - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1 / 6227020800.0
    p = p * r + 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    # The last bits of k, moved to where a number has its exponent.
    bits = np.int64((np.float64(rounded).view(np.int64) + _EXPONENT_BIAS) << 52)
    return (p * r + 1.0) * bits.view(np.float64)


@njit(**_EXACT)
def log_of_one_plus(e):
    """log(1 + e) for e from 0 to 1, to two units in the last place; not a number for such an e.

    ``log(1 + u) = 2 artanh(s)`` with ``s = u / (2 + u)``, by the Taylor polynomial of degree 19.
    u is e, or ``(e - 1) / 2`` where log 2 is taken off first, so that ``|s| < 0.172``.
    """
    halved = 1.0 if e > _HALVED_FROM else 0.0
    s = (e - halved) / (2.0 + halved + e)
    square = s * s
    p = 2 / 19.0
    p = p * square + 2 / 17.0
    p = p * square + 2 / 15.0
    p = p * square + 2 / 13.0
    p = p * square + 2 / 11.0
    p = p * square + 2 / 9.0
    p = p * square + 2 / 7.0
    p = p * square + 2 / 5.0
    p = p * square + 2 / 3.0
    return halved * _LN2 + (2.0 * s + s * square * p)
