"""Labels of entries that have none: made of another key, each different from all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel


def fill_in_labels(values: Any, defaults: Mapping[str, str]) -> Any:
    """A study's values with a label for each entry that has none, made of another of its keys.

    Parameters
    ----------
    values : dict
        As read; anything else is handed back.
    defaults : mapping
        Section -> the key that labels are made of.
    """
    if not isinstance(values, dict):
        return values
    filled = dict(values)
    for section, default in defaults.items():
        entries = filled.get(section)
        if isinstance(entries, list | tuple):
            filled[section] = _labelled(entries, default)
    return filled


def _labelled(entries: Sequence[Any], default: str) -> list[Any]:
    """The entries with the missing labels filled in; a second "SMO" becomes "SMO-2"."""
    given = [entry if isinstance(entry, dict) else _as_dict(entry) for entry in entries]
    taken = {
        str(entry["label"]).casefold()
        for entry in given
        if isinstance(entry, dict) and entry.get("label")
    }
    labelled = []
    for entry in given:
        base = entry.get(default) if isinstance(entry, dict) else None
        if isinstance(base, str) and base and "label" not in entry:
            stem = label_of(base)
            label, number = stem, 1
            while label.casefold() in taken:
                number += 1
                label = f"{stem}-{number}"
            taken.add(label.casefold())
            entry = {**entry, "label": label}
        labelled.append(entry)
    return labelled


def label_of(name: str) -> str:
    """The label of what has a name: the last part of a path, and of "file.py:name" the name."""
    return PurePath(name.rpartition(":")[2]).name or name


def _as_dict(entry: Any) -> Any:
    return entry.model_dump(exclude_unset=True) if isinstance(entry, BaseModel) else entry
