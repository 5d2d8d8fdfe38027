"""Numbers in words, for messages and reports."""

from __future__ import annotations


def plural(n: int, word: str) -> str:
    """ "1 run", "3 runs"."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
