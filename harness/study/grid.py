"""Grids and labels: an entry whose keys hold lists stands for one entry for each combination.

The values are those of a file or of Python as they were written; nothing is checked here but the
lists. What an entry becomes depends on that entry alone, and its labels on the values alone, so
that reordering a list or adding to it leaves the other entries as they were.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
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
#: ``{ value = [1, 2] }`` is a list for a parameter that takes one.
_VERBATIM = "value"
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


def expanded(values: Any, tables: Mapping[str, Axes]) -> Any:
    """A study's values with every grid written out."""
    if not isinstance(values, Mapping):
        return values
    study = dict(values)
    for table, axes in tables.items():
        if isinstance(study.get(table), list | tuple):
            study[table] = [entry for _, entry in _expanded_table(table, study[table], axes)]
    return study


def origins(values: Mapping[str, Any], tables: Mapping[str, Axes]) -> dict[str, list[int]]:
    """Which entry each expanded entry comes from, by table; both are counted from 0."""
    return {
        table: [origin for origin, _ in _expanded_table(table, values[table], axes)]
        for table, axes in tables.items()
        if isinstance(values.get(table), list | tuple)
    }


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


def _expanded_table(table: str, entries: Sequence[Any], axes: Axes) -> list[tuple[int, Any]]:
    written: list[tuple[int, Any]] = []
    for number, entry in enumerate(entries):
        if isinstance(entry, Mapping):
            grid = _Grid(entry, axes, (table, number))
            if len(written) + grid.size > MAX_ENTRIES:
                raise StudyError(
                    f"the grid{'s' if written else ''} of [[{table}]] "
                    f"{'make' if written else 'makes'} {len(written) + grid.size} entries; at most "
                    f"{MAX_ENTRIES} are possible",
                    at=(table, number),
                )
            written += [(number, made) for made in grid.entries()]
        else:
            written.append((number, entry))
    return written


class _Grid:
    """The lists of one entry, and which of them go together."""

    def __init__(self, entry: Mapping[str, Any], axes: Axes, at: tuple[str, int]) -> None:
        self.entry, self.axes, self.at = entry, axes, at
        self.lists = dict(self._each_list())
        for address, values in self.lists.items():
            self._check_list(address, values)
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

    def _each_list(self) -> Iterator[tuple[_Address, list[Any]]]:
        """The lists that stand where one value does, in the order written."""
        for key, value in self.entry.items():
            if key in self.axes.keys and isinstance(value, list | tuple):
                yield (key,), list(value)
            elif key in self.axes.tables and isinstance(value, Mapping):
                for name, item in value.items():
                    if isinstance(item, list | tuple) and name not in self.axes.lists:
                        yield (key, name), list(item)

    def _check_list(self, address: _Address, values: list[Any]) -> None:
        if not values:
            raise self._error(f"{self._path(address)} is an empty list", address)
        texts = [short(value) for value in values]
        for number, text in enumerate(texts):
            if text in texts[:number]:
                raise self._error(f"{self._path(address)} lists {text} twice", address)

    def _together(self) -> list[tuple[_Address, ...]]:
        """Groups of lists of one length, each at the place of its first list."""
        group_of: dict[_Address, tuple[_Address, ...]] = {}
        for names in self._zipped_names():
            group = tuple(self._address_of(name) for name in names)
            for address in group:
                if address in group_of or group.count(address) > 1:
                    raise self._error(f"{self._path((ZIP,))} names {address[-1]} twice", (ZIP,))
                self._check_length(group[0], address)
            # Labels are in the order written, whatever the order in zip.
            ordered = tuple(address for address in self.lists if address in group)
            group_of |= dict.fromkeys(group, ordered)
        return list(dict.fromkeys(group_of.get(address, (address,)) for address in self.lists))

    def _zipped_names(self) -> list[list[str]]:
        value = self.entry.get(ZIP, [])
        groups = value if value and _all_are(value, list | tuple) else [value]
        if not all(_all_are(group, str) for group in groups):
            raise self._error(
                f'{self._path((ZIP,))} must be a list of names, as ["C", "gamma"], or a list of '
                "such lists",
                (ZIP,),
            )
        return [list(group) for group in groups if group]

    def _address_of(self, name: str) -> _Address:
        for address in self.lists:
            if name in (address[-1], ".".join(address)):
                return address
        hint = suggest(name, [address[-1] for address in self.lists])
        raise self._error(f"{self._path((ZIP,))}: {name!r} holds no list{hint}", (ZIP,))

    def _check_length(self, first: _Address, other: _Address) -> None:
        lengths = len(self.lists[first]), len(self.lists[other])
        if lengths[0] != lengths[1]:
            raise self._error(
                f"{self._path((ZIP,))}: {first[-1]} has {lengths[0]} values and {other[-1]} "
                f"{lengths[1]}; lists that go together must have equal lengths",
                (ZIP,),
            )

    def _entry(self, chosen: Mapping[_Address, Any]) -> dict[str, Any]:
        """The entry with these values, and a label that tells them."""
        entry = {key: self._verbatim(key, value) for key, value in self.entry.items()}
        entry.pop(ZIP, None)
        for address, value in chosen.items():
            if len(address) == 1:
                entry[address[0]] = value
            else:
                entry[address[0]] = {**entry[address[0]], address[1]: value}
        label = self._label(entry, chosen)
        return entry if label is None else {**entry, "label": label}

    def _verbatim(self, key: str, value: Any) -> Any:
        """The value with the lists that parameters of it take; other values as they are."""
        if key not in self.axes.tables or not isinstance(value, Mapping):
            return value
        return {
            name: item[_VERBATIM] if _is_verbatim(item) else item for name, item in value.items()
        }

    def _label(self, entry: Mapping[str, Any], chosen: Mapping[_Address, Any]) -> str | None:
        """The stem and what differs; None if the entry's own label stays, or none can be made."""
        stem, key = entry.get("label"), (self.axes.stem,)
        given = bool(stem)
        if not given:
            stem = entry.get(self.axes.stem)
        if not chosen or not isinstance(stem, str) or not stem:
            return None
        parts = [stem if given else stem.rsplit(":", 1)[-1]]
        for address in self.lists:
            text = short(chosen[address])
            if address != key:
                parts.append(f"{self._name(address)}={text}")
            elif given:
                parts.append(text)
        return ", ".join(parts)

    def _name(self, address: _Address) -> str:
        alike = [other for other in self.lists if other[-1] == address[-1]]
        return address[-1] if len(alike) == 1 else ".".join(address)

    def _path(self, address: _Address) -> str:
        return f"{self.at[0]}[{self.at[1] + 1}].{'.'.join(address)}"

    def _error(self, message: str, address: _Address) -> StudyError:
        return StudyError(message, at=(*self.at, *address))


def _all_are(values: Any, kind: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, kind) for value in values)


def _is_verbatim(item: Any) -> bool:
    return (
        isinstance(item, Mapping)
        and set(item) == {_VERBATIM}
        and isinstance(item[_VERBATIM], list | tuple)
    )


def fill_in_labels(values: Any, defaults: Mapping[str, str]) -> Any:
    """A study's values with a label for each entry that has none, made of another of its keys."""
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
