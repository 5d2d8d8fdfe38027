"""Texts as numbers: what counts as one, the same in every format."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PATTERN = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def is_number(text: str) -> bool:
    """Whether a text is a decimal number. "inf" and "nan" are words."""
    return bool(_NUMBER.fullmatch(text))


def numeric(texts: Any) -> Any:
    """Which texts of an Arrow array are decimal numbers; null where the text is."""
    return pc.match_substring_regex(texts, _PATTERN)


def numbers(texts: Any) -> NDArray[np.float64]:
    """The numbers of an Arrow array of texts, or of numbers; NaN for null.

    Parameters
    ----------
    texts : Array or ChunkedArray of Arrow
        All of its texts are decimal numbers. What is too large for float64 becomes infinite.
    """
    if pa.types.is_floating(texts.type):
        return _filled(texts)
    try:
        return _filled(pc.cast(texts, pa.float64(), safe=False))
    except pa.ArrowInvalid:
        # A sign before, a point at the end: forms that Arrow does not know.
        return np.array(
            [math.nan if text is None else float(text) for text in texts.to_pylist()],
            dtype=np.float64,
        )


def _filled(values: Any) -> NDArray[np.float64]:
    filled: NDArray[np.float64] = pc.fill_null(values, math.nan).to_numpy(zero_copy_only=False)
    return filled


def cleaned(texts: Any, decimal: str) -> Any:
    """Texts as decimal numbers, without the signs around and within them; null for all others.

    Parameters
    ----------
    texts : Array of Arrow
        Such as "1,234.5", "45 %" or "$12".
    decimal : {".", ","}
        What stands before the decimals; the other one stands between thousands.
    """
    thousands = "," if decimal == "." else "."
    plain = pc.replace_substring_regex(texts, rf"[\s\x{{a0}}\x{{202f}}%'$€£¥{thousands}]", "")
    plain = pc.replace_substring(plain, decimal, ".")
    return pc.if_else(numeric(plain), plain, pa.scalar(None, pa.string()))


def in_words(value: float) -> str:
    """A number as the word for it in messages and class names: "1" for 1.0."""
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)
