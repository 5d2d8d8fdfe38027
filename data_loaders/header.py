"""What a dataset's cached file says of itself, and whether that is what is asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from .parameters import Value

SCHEMA_VERSION = 2


@dataclass(frozen=True)
class Header:
    """What a file says of itself.

    Parameters
    ----------
    name : str
        The dataset.
    params : dict
        All parameters; empty for a dataset that takes none.
    source_fingerprint : str or None
        The pinned fingerprint of the raw content.
    transform_version : int
    decided : list of str
        What was decided when a user's file was read, a line each; empty for registered sources.
        Not compared when a file is read.
    schema_version : int
        Of this layout.
    """

    name: str
    params: dict[str, Value]
    source_fingerprint: str | None
    transform_version: int
    decided: list[str] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION


class Unusable(Exception):
    """A file that does not hold the content that is asked for.

    Attributes
    ----------
    state : {"missing", "damaged", "outdated"}
        Outdated: whole, but made by another version of the source or of this layout.
    """

    def __init__(self, state: Literal["missing", "damaged", "outdated"], detail: str) -> None:
        super().__init__(detail)
        self.state = state


def header_of(about: dict[str, Any]) -> Header:
    """The header in a file's metadata."""
    # Files of earlier layouts lack what was decided.
    return Header(**{name: about[name] for name in Header.__annotations__ if name in about})


def compare(path: Path, found: dict[str, Any], header: Header) -> None:
    """Raise `Unusable` if a file's metadata are not those of the header."""
    expected = asdict(header)
    for key in ("schema_version", "name", "params", "source_fingerprint", "transform_version"):
        if found[key] != expected[key]:
            # A file of another dataset cannot have got this name by an upgrade.
            state: Literal["damaged", "outdated"] = (
                "damaged" if key in ("name", "params") else "outdated"
            )
            raise Unusable(
                state, f"{path}: {key} is {found[key]!r}, this release needs {expected[key]!r}"
            )
