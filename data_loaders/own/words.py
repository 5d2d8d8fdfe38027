"""Words of files: which are numbers, and how messages show them."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: A decimal number.
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def is_number(text: str) -> bool:
    """Whether a text is a decimal number. "inf" and "nan" are words."""
    return re.fullmatch(NUMBER, text) is not None


def in_words(value: float) -> str:
    """A number as the word for it in messages and class names: "1" for 1.0."""
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)


def shown_word(word: str | bytes) -> str:
    """A word of a file, quoted, shortened and on one line."""
    text = repr(word.decode("utf-8", "replace") if isinstance(word, bytes) else word)
    return text if len(text) <= 40 else text[:36] + "...'"


def printable(text: str) -> str:
    """A text on one line, with escapes for what cannot be seen."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def listed(words: Sequence[str], most: int = 8) -> str:
    """Words separated by commas; no more than `most` of them."""
    shown = ", ".join(map(printable, words[:most]))
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"
