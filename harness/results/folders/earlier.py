"""What a results folder held before a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import RecordError, UserError
from ..description import (
    DamagedDescriptionError,
    move_aside,
    read_description,
)
from ..store import RecordStore


def described_before(
    results: Path, study: str, store: RecordStore, say: Callable[[str], None], place: str
) -> dict[str, Any] | None:
    """What study.json said so far; one that is damaged is moved aside.

    Parameters
    ----------
    results : Path
    study : str
        The name of the study that is to be run.
    store : RecordStore
        The records of the folder.
    say : callable
        Takes one line for the user.
    place : str
        How messages name the folder.

    Raises
    ------
    UserError
        If the folder holds another study, whose runs its page would lose, or one of a later
        release.
    """
    before = None
    try:
        before = read_description(results)
    except DamagedDescriptionError as error:
        say(f"{error.why}; moved to {move_aside(results)}, written anew")
    found = (before or {}).get("name")
    if found is None:
        # None yet, or a damaged one; then the records tell.
        known = (item.study for item in store.scan() if not isinstance(item, RecordError))
        found = next(known, study)
    if found != study:
        raise UserError(f"{place}: holds the study {found!r}; choose another --out for {study!r}")
    return before
