"""Grids and labels: an entry whose keys hold lists stands for one entry for each combination.

The values are those of a file or of Python as they were written; nothing is checked here but the
lists. What an entry becomes depends on that entry alone, and its labels on the values alone, so
that reordering a list or adding to it leaves the other entries as they were.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel

from ...data_loaders import suggest
from ..errors import StudyError

#: Entries that a table of a study may have.
MAX_ENTRIES = 10_000
#: Names the lists that are taken together, not in all combinations.
ZIP = "zip"
# Whole numbers with more digits than this are shown in base 16, as Python limits the other one.
_LONGEST = 10**18

#: The way to a value in an entry: ("C",) or ("params", "nu").
_Address = tuple[str, ...]


@dataclass(frozen=True)
class Axes:
    """Which values of a table's entries may be lists."""

    keys: tuple[str, ...] = ()  # keys of the entry itself
    # Keys that hold tables, such as ``params``; any value in them may be a list.
    tables: tuple[str, ...] = ()
    stem: str = ""  # the key that labels begin with where an entry has none
    lists: tuple[str, ...] = ()  # names in the tables whose values are lists themselves


def written_out(values: Any, tables: Mapping[str, Axes]) -> tuple[Any, dict[str, list[int]]]:
    """A study's values with every grid written out, and the entry that each one comes from.

    Entries are counted from 0, by table. Where an entry has no label it gets one.
    """
    origins: dict[str, list[int]] = {}
    if not isinstance(values, Mapping):
        return values, origins
    study = dict(values)
    for table, axes in tables.items():
        if not isinstance(study.get(table), list | tuple):
            continue
        entries, origins[table] = list[Any](), list[int]()
        for number, entry in enumerate(study[table]):
            made = [entry]
            if isinstance(entry, Mapping):
                grid = _Grid(entry, axes, (table, number))
                n_entries = len(entries) + grid.size
                if n_entries > MAX_ENTRIES:
                    words = "grids" if entries else "grid"
                    raise StudyError(
                        f"the {words} of [[{table}]] {'make' if entries else 'makes'} {n_entries} "
                        f"entries; at most {MAX_ENTRIES} are possible",
                        at=(table, number),
                    )
                made = list(grid.entries())
            entries += made
            origins[table] += [number] * len(made)
        study[table] = _labelled(entries, axes.stem) if axes.stem else entries
    return study, origins


def short(value: Any) -> str:
    """A value as labels show it: 0.1, 1e-05, true, rbf."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if abs(value) < _LONGEST else hex(value)
    if isinstance(value, float):
        text = f"{value:g}"
        return text if float(text) == value else repr(value)
    return value if isinstance(value, str) else json.dumps(value, default=str)


class _Grid:
    """The lists of one entry, and which of them go together."""

    def __init__(self, entry: Mapping[str, Any], axes: Axes, at: tuple[str, int]) -> None:
        self.entry, self.axes, self.at = entry, axes, at
        # The lists that stand where one value does, in the order written.
        self.lists: dict[_Address, list[Any]] = {}
        for key, value in entry.items():
            if key in axes.keys and isinstance(value, list | tuple):
                self.lists[key,] = list(value)
            elif key in axes.tables and isinstance(value, Mapping):
                for name, item in value.items():
                    if isinstance(item, list | tuple) and name not in axes.lists:
                        self.lists[key, name] = list(item)
        for address, values in self.lists.items():
            texts = [short(value) for value in values]
            if not values:
                raise self._error(address, " is an empty list")
            for number, text in enumerate(texts):
                if text in texts[:number]:
                    raise self._error(address, f" lists {text} twice")
        self.groups = self._together()

    @property
    def size(self) -> int:
        """How many entries it stands for."""
        return math.prod(len(self.lists[group[0]]) for group in self.groups)

    def entries(self) -> Iterator[dict[str, Any]]:
        """One for each combination; the list that is written first changes last."""
        choices = [
            list(zip(*(self.lists[address] for address in group), strict=True))
            for group in self.groups
        ]
        addresses = [address for group in self.groups for address in group]
        for combination in product(*choices):
            values = (value for chosen in combination for value in chosen)
            yield self._entry(dict(zip(addresses, values, strict=True)))

    def _together(self) -> list[tuple[_Address, ...]]:
        """Groups of lists of one length, each at the place of its first list."""
        groups = self.entry.get(ZIP, [])
        if not groups or not _all_are(groups, list | tuple):
            groups = [groups]
        if not all(_all_are(group, str) for group in groups):
            raise self._error(
                (ZIP,),
                ' must be a list of names, as ["C", "gamma"], or a list of such lists',
            )
        group_of: dict[_Address, tuple[_Address, ...]] = {}
        for names in filter(None, groups):
            group = tuple(map(self._address_of, names))
            first, size = group[0][-1], len(self.lists[group[0]])
            for address in group:
                name, length = address[-1], len(self.lists[address])
                if address in group_of or group.count(address) > 1:
                    raise self._error((ZIP,), f" names {name} twice")
                if length != size:
                    raise self._error(
                        (ZIP,),
                        f": {first} has {size} values and {name} {length}; lists that go together "
                        "must have equal lengths",
                    )
            # Labels are in the order written, whatever the order in zip.
            ordered = tuple(address for address in self.lists if address in group)
            group_of |= dict.fromkeys(group, ordered)
        return list(dict.fromkeys(group_of.get(address, (address,)) for address in self.lists))

    def _address_of(self, name: str) -> _Address:
        for address in self.lists:
            if name in (address[-1], ".".join(address)):
                return address
        hint = suggest(name, [address[-1] for address in self.lists])
        raise self._error((ZIP,), f": {name!r} holds no list{hint}")

    def _entry(self, chosen: Mapping[_Address, Any]) -> dict[str, Any]:
        """The entry with these values, and a label that tells them."""
        entry = {key: value for key, value in self.entry.items() if key != ZIP}
        for key in self.axes.tables:
            if isinstance(entry.get(key), Mapping):
                entry[key] = {name: _without_marks(item) for name, item in entry[key].items()}
        for address, value in chosen.items():
            if len(address) == 1:
                entry[address[0]] = value
            else:
                entry[address[0]] |= {address[1]: value}
        label = self._label(entry, chosen)
        return entry if label is None else {**entry, "label": label}

    def _label(self, entry: Mapping[str, Any], chosen: Mapping[_Address, Any]) -> str | None:
        """The stem and what differs; None if the entry's own label stays, or none can be made."""
        label, name = entry.get("label"), entry.get(self.axes.stem)
        stem = label or name
        if not chosen or not isinstance(stem, str) or not stem:
            return None
        parts = [stem if label else stem.rsplit(":", 1)[-1]]
        last = [address[-1] for address in self.lists]
        for address in self.lists:
            text = short(chosen[address])
            if address != (self.axes.stem,):
                ambiguous = last.count(address[-1]) > 1
                parts.append(f"{'.'.join(address) if ambiguous else address[-1]}={text}")
            elif label:
                parts.append(text)
        return ", ".join(parts)

    def _error(self, address: _Address, message: str) -> StudyError:
        table, number = self.at
        path = f"{table}[{number + 1}].{'.'.join(address)}"
        return StudyError(f"{path}{message}", at=(*self.at, *address))


def _all_are(values: Any, kind: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, kind) for value in values)


def _without_marks(item: Any) -> Any:
    """The list of ``{ value = [1, 2] }``; anything else as it is."""
    if isinstance(item, Mapping) and set(item) == {"value"}:
        return item["value"] if isinstance(item["value"], list | tuple) else item
    return item


def _labelled(entries: Sequence[Any], stem: str) -> list[Any]:
    """The entries with the missing labels filled in; a second "SMO" becomes "SMO-2"."""
    plain = [
        entry.model_dump(exclude_unset=True) if isinstance(entry, BaseModel) else entry
        for entry in entries
    ]
    taken = {
        str(entry["label"]).casefold()
        for entry in plain
        if isinstance(entry, dict) and entry.get("label")
    }
    labelled = []
    for entry in plain:
        base = entry.get(stem) if isinstance(entry, dict) else None
        if isinstance(base, str) and base and "label" not in entry:
            entry = {**entry, "label": free_label(label_of(base), taken)}
            taken.add(entry["label"].casefold())
        labelled.append(entry)
    return labelled


def label_of(name: str) -> str:
    """The label of what has a name: the last part of a path, and of "file.py:name" the name."""
    return PurePath(name.rpartition(":")[2]).name or name


def free_label(label: str, taken: Collection[str]) -> str:
    """A label that is in any case none of these in lower case: "SMO", else "SMO-2" and so on."""
    number, candidate = 1, label
    while candidate.casefold() in taken:
        number += 1
        candidate = f"{label}-{number}"
    return candidate
