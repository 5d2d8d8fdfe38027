"""The papers that docstrings cite: ``papers.bib``, beside this file.

>>> from marginbench.solvers.bibliography import references
>>> print(*references("as in [Nov62]_"), sep="\\n")
.. [Nov62] Novikoff: On convergence proofs on perceptrons. Symposium on the Mathematical Theory
   of Automata, 1962.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from functools import cache
from pathlib import Path

_ENTRY = re.compile(r"^@\w+\{(\w+),.*?^\}", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)
_ACCENTS = {'"': "\N{COMBINING DIAERESIS}", "'": "\N{COMBINING ACUTE ACCENT}"}
_ACCENTS |= {"~": "\N{COMBINING TILDE}", "v": "\N{COMBINING CARON}"}
#: What tells where a paper appeared; an entry has one of them.
_WHERE = ("journal", "booktitle", "institution", "howpublished")


@cache
def papers() -> dict[str, str]:
    """The BibTeX entry of each paper by its label, as in the file."""
    text = Path(__file__).with_name("papers.bib").read_text(encoding="utf-8")
    return {entry[1]: entry[0] for entry in _ENTRY.finditer(text)}


def cited(doc: str) -> list[str]:
    """The labels of the papers that a docstring cites, in its order."""
    return [label for label in dict.fromkeys(re.findall(r"\[(\w+)\]_", doc)) if label in papers()]


def references(doc: str) -> list[str]:
    """The lines of a section "References" for what a docstring cites."""
    return [line for label in cited(doc) for line in _reference(label, papers()[label])]


def _reference(label: str, entry: str) -> list[str]:
    fields = {name: _plain(value) for name, value in _FIELD.findall(entry)}
    families = [author.partition(",")[0] for author in fields["author"].split(" and ")]
    where = next(fields[name] for name in _WHERE if name in fields)
    volume = f" {fields['volume']}" if "volume" in fields else ""
    title = fields["title"] if fields["title"][-1] in "!?" else f"{fields['title']}."
    text = f".. [{label}] {', '.join(families)}: {title} {where}{volume}, {fields['year']}."
    return textwrap.wrap(text, 96, subsequent_indent="   ", break_on_hyphens=False)


def _plain(value: str) -> str:
    """A value without TeX's braces and accents."""
    accented = re.sub(
        r"\{\\(.)\{?(\w?)\}?\}",
        lambda match: unicodedata.normalize("NFC", match[2] + _ACCENTS[match[1]]),
        value.replace(r"\^{}", "^"),
    )
    return re.sub(r"[{}]", "", accented)
