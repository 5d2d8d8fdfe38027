"""Names for anchors and files, made of labels that may be any text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# A name stays readable, and its file's name within what every system allows.
_LONGEST = 60
_NAMELESS = "unnamed"


def slug(label: str, otherwise: str = _NAMELESS) -> str:
    """A label as lower-case letters, digits and single hyphens: "κ = 1.5" is "kappa-1-5".

    Greek letters are spelled out and accents are dropped. What has no such form is left out, and a
    long name loses its end. Lower case alone: names that differ only in case are one name on some
    file systems.

    Parameters
    ----------
    label : str
    otherwise : str
        The slug of a label of which nothing is left.
    """
    spelled = "".join(_spelled(letter) for letter in unicodedata.normalize("NFKD", label))
    words = re.sub(r"[^a-z0-9]+", "-", spelled.lower()).strip("-")
    return words[:_LONGEST].rstrip("-") or otherwise


def slugs(labels: Iterable[str]) -> dict[str, str]:
    """A slug for each label, in order; of labels with the same slug later ones are numbered."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        name = unused(slug(label), taken)
        taken.add(name)
        found[label] = name
    return found


def unused(name: str, taken: Iterable[str], between: str = "-") -> str:
    """The name, or where it is taken with the first number from 2 on that makes it another."""
    taken = set(taken)
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}{between}{number}"
    return found


def _spelled(letter: str) -> str:
    if letter.isascii():
        return letter
    words = unicodedata.name(letter, "").split()
    return f" {words[-1]} " if words[:1] == ["GREEK"] and "LETTER" in words else ""
