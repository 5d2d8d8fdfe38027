"""Known changes: a file in the repository says which ones are accepted, and why.

An entry of ``benchmarks/annotations.toml`` names cells and measures by patterns. It holds for the
commit that it names, or, without one, for the commit that added the entry to the file.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ...harness.words import visible
from ..errors import ReportError
from .asv_files import Cell
from .repository import Repository

#: Where the file is.
FILE = "benchmarks/annotations.toml"
_KEYS = {"commit", "cells", "measures", "most", "why"}
_HASH = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class Annotation:
    """A known change."""

    cells: tuple[str, ...]  # patterns as of file names, such as ``SMO *``
    # Patterns; ``failed`` and ``gone`` are that a cell fails or is no more.
    measures: tuple[str, ...]
    why: str
    commit: str = ""  # its hash or the beginning of it; empty: the commit that added the entry
    most: float = math.inf  # the largest ratio that is accepted, after / before

    def covers(self, cell: Cell, measure: str, ratio: float | None = None) -> bool:
        """Whether a change of a measure of a cell is meant; the ratio is that of its values."""
        if ratio is not None and ratio > self.most:
            return False
        return any(fnmatchcase(cell.name, each) for each in self.cells) and any(
            fnmatchcase(measure, each) for each in self.measures
        )


def parsed(text: str, where: str = FILE) -> tuple[Annotation, ...]:
    """The entries of the file."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ReportError(f"{where}: {error}") from error
    entries = content.pop("change", [])
    if content or not isinstance(entries, list):
        wrong = next(iter(content), "change")
        raise ReportError(f"{where}: {wrong!r} is unknown; write each entry under [[change]]")
    return tuple(_entry(each, f"{where}, entry {n}") for n, each in enumerate(entries, 1))


def _entry(entry: object, where: str) -> Annotation:
    if not isinstance(entry, dict):
        raise ReportError(f"{where}: write it under [[change]]")
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        raise ReportError(
            f"{where}: {unknown[0]!r} is unknown; an entry has {', '.join(sorted(_KEYS))}"
        )
    why, commit = entry.get("why"), entry.get("commit", "")
    if not isinstance(why, str) or not why.strip():
        raise ReportError(f'{where}: say why the change is accepted, as why = "..."')
    if not isinstance(commit, str) or (commit and not _HASH.fullmatch(commit)):
        raise ReportError(f"{where}: commit is {commit!r}; give at least 7 digits of its hash")
    most = entry.get("most", math.inf)
    if isinstance(most, bool) or not isinstance(most, int | float) or not most > 1:
        raise ReportError(f"{where}: most is {most!r}; give the largest ratio, such as 1.2")
    return Annotation(
        _patterns(entry.get("cells"), f"{where}: cells"),
        _patterns(entry.get("measures"), f"{where}: measures"),
        visible(why.strip()),
        commit,
        float(most),
    )


def _patterns(value: object, what: str) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        raise ReportError(f'{what}: give a pattern such as "*", or a list of them')
    return tuple(texts)


def between(repository: Repository, base: str, head: str) -> tuple[Annotation, ...]:
    """The entries that hold for the changes from one commit to another.

    Those that name a commit between them, and those without one that only the second has.
    """
    before = set(_of(repository, base))
    commits = repository.between(base, head)
    return tuple(
        each
        for each in _of(repository, head)
        if (_names(each.commit, commits) if each.commit else each not in before)
    )


def later(repository: Repository, base: str, head: str, newest: str) -> tuple[Annotation, ...]:
    """Also the entries of a later commit that name one between two."""
    commits = repository.between(base, head)
    named = [each for each in _of(repository, newest) if _names(each.commit, commits)]
    return tuple(dict.fromkeys([*between(repository, base, head), *named]))


def _of(repository: Repository, commit: str) -> tuple[Annotation, ...]:
    text = repository.file(commit, FILE)
    return () if text is None else parsed(text, f"{FILE} of {commit[:10]}")


def _names(commit: str, commits: Iterable[str]) -> bool:
    return bool(commit) and any(each.startswith(commit) for each in commits)


def chosen(
    annotations: Sequence[Annotation], cell: Cell, measure: str, ratio: float | None = None
) -> Annotation | None:
    """The first entry that a change of a cell is meant by; None if there is none."""
    return next((each for each in annotations if each.covers(cell, measure, ratio)), None)
