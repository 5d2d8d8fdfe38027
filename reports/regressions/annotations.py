"""Known changes: a file in the repository says which ones are accepted, and why.

An entry of ``benchmarks/annotations.toml`` names cells and measures by patterns. It holds for the
commit that it names, or, without one, for the commit that added the entry to the file.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from ...harness.words import visible
from ..errors import ReportError
from .repository import Repository

#: Where the file is.
FILE = "benchmarks/annotations.toml"

# One pattern as of file names, such as "SMO *", or a list of them.
_Patterns = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    Field(min_length=1),
]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Annotation:
    """A known change."""

    cells: _Patterns
    measures: _Patterns  # "failed" and "gone" are that a cell fails or is no more
    why: Annotated[str, AfterValidator(lambda why: visible(why.strip())), Field(pattern=r"\S")]
    # Its hash or the beginning of it; empty: the commit that added the entry.
    commit: Annotated[str, Field(pattern="^([0-9a-f]{7,64})?$")] = ""
    # The largest ratio that is accepted, after / before.
    most: Annotated[float, Field(gt=1)] = math.inf


_FILE = TypeAdapter(dict[Literal["change"], tuple[Annotation, ...]])


def parsed(text: str, where: str = FILE) -> tuple[Annotation, ...]:
    """The entries of the file."""
    try:
        return _FILE.validate_python(tomllib.loads(text)).get("change", ())
    except ValidationError as error:
        first = error.errors()[0]
        place = [f"entry {each + 1}" if isinstance(each, int) else each for each in first["loc"]]
        raise ReportError(
            f"{where}: {', '.join(place)}: {first['msg']}; each [[change]] has cells, measures and "
            "why, and may have most and commit, 7 digits of its hash or more"
        ) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ReportError(f"{where}: {error}") from error


def between(
    repository: Repository, base: str, head: str, newest: str = ""
) -> tuple[Annotation, ...]:
    """The entries that hold for the changes from one commit to another.

    Those that name a commit between them, also in the file of the ``newest``, and those without one
    that only the second has.
    """
    before = set(_of(repository, base))
    commits = repository.between(base, head)

    def holds(each: Annotation) -> bool:
        return any(commit.startswith(each.commit) for commit in commits)

    entries = _of(repository, head)
    found = [each for each in entries if (holds(each) if each.commit else each not in before)]
    later = _of(repository, newest) if newest else ()
    return tuple(dict.fromkeys([*found, *(each for each in later if each.commit and holds(each))]))


def _of(repository: Repository, commit: str) -> tuple[Annotation, ...]:
    text = repository.file(commit, FILE)
    return () if text is None else parsed(text, f"{FILE} of {commit[:10]}")


def chosen(
    annotations: Sequence[Annotation], cell: str, measure: str, ratio: float | None = None
) -> Annotation | None:
    """The first entry that means a change of a cell, whose values have this ratio; None of none."""
    name = cell.partition(" ")[2]
    for each in annotations:
        if (
            (ratio is None or ratio <= each.most)
            and any(fnmatchcase(name, pattern) for pattern in each.cells)
            and any(fnmatchcase(measure, pattern) for pattern in each.measures)
        ):
            return each
    return None
