"""Which test points a model gets wrong, as a short text in a record.

Two solvers are compared on the same points: that tells much smaller differences apart than their
two error rates.
"""

from __future__ import annotations

import base64
import binascii
import zlib

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]


def packed(mistakes: Mask) -> str:
    """The text for a record: base64 of the deflated bits, one a point.

    Parameters
    ----------
    mistakes : ndarray of bool, shape (n_test,)
    """
    return base64.b64encode(zlib.compress(np.packbits(mistakes).tobytes(), 9)).decode()


def unpacked(text: str, n_test: int) -> Mask | None:
    """What :func:`packed` was given; None if the text is none of so many points."""
    limit = (n_test + 7) // 8
    try:
        inflate = zlib.decompressobj()
        data = inflate.decompress(base64.b64decode(text, validate=True), limit + 1)
    except (binascii.Error, zlib.error, ValueError):
        return None
    if len(data) != limit or not text:
        return None
    return np.unpackbits(np.frombuffer(data, np.uint8), count=n_test).astype(bool)
