"""Words of files: which are numbers, and how messages show them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def is_number(text: str) -> bool:
    """Whether a text is a decimal number. "inf" and "nan" are words."""
    return re.fullmatch(_NUMBER, text) is not None


def numeric(texts: Any) -> Any:
    """Which texts of an Arrow array are decimal numbers; null where the text is."""
    return pc.match_substring_regex(texts, f"^{_NUMBER}$")


def numbers(column: Any) -> NDArray[np.float64]:
    """The numbers of an Arrow column of decimal numbers as texts, or of numbers; NaN for null.

    What is too large for float64 becomes infinite.
    """
    try:
        values = pc.fill_null(pc.cast(column, pa.float64(), safe=False), math.nan)
        return np.asarray(values.to_numpy())
    except pa.ArrowInvalid:
        # A sign before, a point at the end: forms that Arrow does not know.
        texts = column.to_pylist()
        return np.array([math.nan if text is None else float(text) for text in texts])


def cleaned(texts: Any, decimal: str) -> Any:
    """Texts such as "1,234.5", "45 %" or "$12" as decimal numbers; null for all others.

    `decimal`, "." or ",", is what stands before the decimals; the other one stands between
    thousands.
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


def shown_word(word: str) -> str:
    """A word of a file, quoted, shortened and on one line."""
    text = repr(word)
    return text if len(text) <= 40 else text[:36] + "...'"


def printable(text: str) -> str:
    """A text on one line, with escapes for what cannot be seen."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def listed(words: Sequence[str], most: int = 8) -> str:
    """Words separated by commas; no more than `most` of them."""
    told = ", ".join(map(printable, words[:most]))
    return told if len(words) <= most else f"{told} and {len(words) - most} more"
