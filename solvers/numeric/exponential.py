"""exp and log(1 + e) for compiled loops, without calls or branches: compilers vectorise them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from .compiling import njit


def _coefficients(degree: int) -> list[float]:
    """Of (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2, interpolated at Chebyshev's points."""
    half = math.log(2.0) / 2

    def quotient(r: np.ndarray) -> np.ndarray:
        # The power series: the quotient itself cancels near 0.
        return np.add.reduce([r**k / math.factorial(k + 2) for k in range(16)])

    fit = np.polynomial.Chebyshev.interpolate(quotient, degree, [-half, half])
    return [float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef]


_ONE = np.float32(1.0)
_LOG2_E = np.float32(math.log2(math.e))
# ln 2 in two parts, the first with so few bits that its whole multiples up to 128 are exact.
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(math.log(2.0) - 0.693359375)
# Adding 1.5 * 2^23 rounds to a whole number, which then stands in the low bits.
_ROUND = np.float32(1.5 * 2**23)
_ROUND_BITS = np.int32(0x4B400000)
_EXPONENT_BIAS = np.int32(127)
_MANTISSA_BITS = np.int32(23)
# exp of anything below is less than the smallest normal number, and becomes 0.
_LOWEST = np.float32(-88.0)
_C0, _C1, _C2, _C3, _C4 = (np.float32(c) for c in _coefficients(4))

# The same for float64, with multiples up to 1024.
_WIDE_LOG2_E = math.log2(math.e)
_WIDE_LN2_HIGH = math.floor(math.log(2.0) * 2**32) / 2**32
_WIDE_LN2_LOW = float(Decimal(2).ln() - Decimal(_WIDE_LN2_HIGH))
_WIDE_ROUND = 1.5 * 2.0**52
_WIDE_LOWEST = -709.0
# From here on, log(1 + e) is that of (1 + e) / 2 plus log 2.
_HALVED_FROM = math.sqrt(2.0) - 1.0
_LN2 = math.log(2.0)
_W0, _W1, _W2, _W3, _W4, _W5, _W6, _W7, _W8, _W9 = _coefficients(9)


def exponential(x: Any) -> Any:
    """exp(x), float32 for x <= 0 or float64 for x < 700; compiled code only.

    A polynomial after range reduction, which vectorises: the relative error is below two units of
    rounding, and exp(x) is 0 where it would be less than about the smallest normal number. A
    float64 that is not a number stays so.
    """
    raise NotImplementedError("compiled code only")


# Contraction to fused multiply-adds is all that is allowed here: reassociation would undo the
# rounding and the two-part ln 2.
@overload(exponential, jit_options={"error_model": "numpy", "fastmath": {"contract"}})
def _exponential(x):
    return _of_float32 if x == types.float32 else _of_float64


def _of_float32(x):
    x = max(x, _LOWEST)
    rounded = x * _LOG2_E + _ROUND
    n = rounded - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    tail = (((_C4 * r + _C3) * r + _C2) * r + _C1) * r + _C0
    power = (np.float32(rounded).view(np.int32) - _ROUND_BITS + _EXPONENT_BIAS) << _MANTISSA_BITS
    return (tail * (r * r) + (r + _ONE)) * np.int32(power).view(np.float32)


def _of_float64(x):
    x = _WIDE_LOWEST if x < _WIDE_LOWEST else x
    rounded = x * _WIDE_LOG2_E + _WIDE_ROUND
    n = rounded - _WIDE_ROUND
    r = (x - n * _WIDE_LN2_HIGH) - n * _WIDE_LN2_LOW
    tail = (((_W9 * r + _W8) * r + _W7) * r + _W6) * r + _W5
    tail = ((((tail * r + _W4) * r + _W3) * r + _W2) * r + _W1) * r + _W0
    # The shift leaves only the low bits of the whole number, and adds them to the exponent.
    power = np.int64((np.float64(rounded).view(np.int64) + 1023) << 52)
    return (tail * (r * r) + (r + 1.0)) * power.view(np.float64)


@njit(error_model="numpy", fastmath={"contract"})
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
