"""Where the parts of a study stand in its file, for messages that name file and line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .toml_lines import Path, line_of


@dataclass(frozen=True, eq=False)
class Places:
    """The file of a study.

    It equals anything: two studies that say the same are the same, whatever they were read from.

    Attributes
    ----------
    where : str
        What messages call the file.
    lines : mapping
        The path of a key in the file -> its line.
    origins : mapping
        Name of a table -> for each entry of the study the entry of the file that it comes from;
        they differ where the file has grids.
    solvers : mapping
        Label of a solver -> the path of its entry in the file.
    """

    where: str
    lines: Mapping[Path, int] = field(default_factory=dict)
    origins: Mapping[str, Sequence[int]] = field(default_factory=dict)
    solvers: Mapping[str, Path] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def written(self, path: Path) -> Path:
        """The path in the file of a path in the study."""
        if len(path) < 2 or not isinstance(path[1], int):
            return path
        known = self.origins.get(str(path[0]), ())
        return (path[0], known[path[1]], *path[2:]) if path[1] < len(known) else path

    def line(self, path: Path) -> int | None:
        """The line of a path in the file, if it is known."""
        return line_of(self.lines, path)

    def at(self, path: Path) -> str:
        """ "study.toml:12" for a path in the file; without a line if that is not known."""
        line = self.line(path)
        return self.where if line is None else f"{self.where}:{line}"


def key_path(path: Sequence[str | int]) -> str:
    """``('task', 1, 'C')`` as ``task[2].C``: entries are counted from one, as people do."""
    words = ""
    for part in path:
        if isinstance(part, int):
            words += f"[{part + 1}]"
        else:
            words += f".{part}" if words else part
    return words


def shown(value: Any) -> str:
    """A value in a message."""
    try:
        text = repr(value)
    except ValueError:  # a number with more digits than Python writes out
        text = "a number with thousands of digits"
    except Exception:  # noqa: BLE001 - a user's object may raise anything here
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
