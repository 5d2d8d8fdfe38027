"""Grids and labels: an entry whose keys hold lists stands for one entry for each combination.

The values are those of a file or of Python as they were written; nothing is checked here but the
lists. What an entry becomes depends on that entry alone, and its labels on the values alone, so
that reordering a list or adding to it leaves the other entries as they were.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
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
    """A study's values with every grid written out; by table the entries that these come from."""
    origins: dict[str, list[int]] = {}
    if not isinstance(values, Mapping):
        return values, origins
    study = dict(values)
    for table, axes in tables.items():
        if not isinstance(study.get(table), list | tuple):
            continue
        entries, origins[table] = list[Any](), list[int]()
        for number, entry in enumerate(study[table]):
            room = MAX_ENTRIES - len(entries)
            try:
                made = [*islice(_entries(entry, axes), room + 1)]
            except StudyError as error:
                at = (table, number, *error.at)
                raise StudyError(f"{key_path(at)}: {error}", at=at) from None
            if len(made) > room:
                words = f"the grids of [[{table}]] make more than {MAX_ENTRIES} entries"
                raise StudyError(words, at=(table, number))
            entries += made
            origins[table] += [number] * len(made)
        study[table] = _labelled(entries, axes.stem) if axes.stem else entries
    return study, origins


def key_path(path: Sequence[str | int]) -> str:
    """``('task', 1, 'C')`` as ``task[2].C``: entries are counted from one, as people do."""
    words = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path)
    return words.removeprefix(".")


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


def _entries(entry: Any, axes: Axes) -> Iterator[Any]:
    """One entry for each combination; the list that is written first changes last."""
    if not isinstance(entry, Mapping):
        yield entry
        return
    # The lists that stand where one value does, in the order written.
    lists: dict[_Address, Sequence[Any]] = {}
    for key, value in entry.items():
        if key in axes.keys and isinstance(value, list | tuple):
            lists[key,] = value
        elif key in axes.tables and isinstance(value, Mapping):
            for name, item in value.items():
                if isinstance(item, list | tuple) and name not in axes.lists:
                    lists[key, name] = item
    for address, values in lists.items():
        texts = [short(value) for value in values]
        twice = [text for number, text in enumerate(texts) if text in texts[:number]]
        if twice or not texts:
            raise StudyError(f"lists {twice[0]} twice" if twice else "is an empty list", at=address)
    groups = _groups(entry.get(ZIP, []), lists)
    addresses = [address for group in groups for address in group]
    for combination in product(*(zip(*map(lists.get, group), strict=True) for group in groups)):
        chosen = dict(zip(addresses, chain(*combination), strict=True))
        yield _entry(entry, axes, {address: chosen[address] for address in lists})


def _groups(zipped: Any, lists: Mapping[_Address, Sequence[Any]]) -> list[tuple[_Address, ...]]:
    """Lists that go together, each group at the place of its first list; the others are alone."""
    groups = zipped if _all_are(zipped, list | tuple) else [zipped]
    if not all(_all_are(group, str) for group in groups):
        message = 'must be a list of names, as ["C", "gamma"], or a list of such lists'
        raise StudyError(message, at=(ZIP,))
    named = {address[-1]: address for address in reversed([*lists])}
    named |= {".".join(address): address for address in lists}
    group_of: dict[_Address, tuple[_Address, ...]] = {}
    for names in groups:
        absent = [name for name in names if name not in named]
        if absent:
            raise StudyError(f"{absent[0]!r} holds no list{suggest(absent[0], named)}", at=(ZIP,))
        group = tuple(named[name] for name in names)
        lengths = [len(lists[address]) for address in group]
        if len({*lengths}) > 1:
            words = f"{', '.join(names)} must have equal lengths, not {lengths}"
            raise StudyError(words, at=(ZIP,))
        if len({*group}) < len(group) or group_of.keys() & group:
            raise StudyError("names a list twice", at=(ZIP,))
        group_of |= dict.fromkeys(group, group)
    return list(dict.fromkeys(group_of.get(address, (address,)) for address in lists))


def _all_are(values: Any, kind: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, kind) for value in values)


def _entry(entry: Mapping[str, Any], axes: Axes, chosen: Mapping[_Address, Any]) -> dict[str, Any]:
    """The entry with these values, and a label that tells them."""
    made = {key: value for key, value in entry.items() if key != ZIP}
    for table in axes.tables:
        if isinstance(made.get(table), Mapping):
            made[table] = {name: _without_marks(item) for name, item in made[table].items()}
    for (key, *names), value in chosen.items():
        if names:
            made[key][names[0]] = value
        else:
            made[key] = value
    label, name = made.get("label"), made.get(axes.stem)
    stem = label or name
    if not chosen or label == "" or not isinstance(stem, str) or not stem:
        return made
    parts = [stem if label else stem.rsplit(":", 1)[-1]]
    last = [address[-1] for address in chosen]
    for address, value in chosen.items():
        if address != (axes.stem,):
            ambiguous = last.count(address[-1]) > 1
            parts.append(f"{'.'.join(address) if ambiguous else address[-1]}={short(value)}")
        elif label:
            parts.append(short(value))
    return {**made, "label": ", ".join(parts)}


def _without_marks(item: Any) -> Any:
    """The list of ``{ value = [1, 2] }``; anything else as it is."""
    marked = isinstance(item, Mapping) and set(item) == {"value"}
    return item["value"] if marked and isinstance(item["value"], list | tuple) else item


def _labelled(entries: Sequence[Any], stem: str) -> list[Any]:
    """The entries with the missing labels filled in; a second "SMO" becomes "SMO-2"."""
    values = [vars(each) if isinstance(each, BaseModel) else each for each in entries]
    values = [each if isinstance(each, Mapping) else {} for each in values]
    taken = {str(each["label"]).casefold() for each in values if each.get("label")}
    labelled = []
    for entry, value in zip(entries, values, strict=True):
        base = value.get(stem)
        is_plain = isinstance(entry, Mapping)
        # An empty label in a file is a mistake; in an object it is the default.
        has_label = value.get("label") or (is_plain and value.get("label") == "")
        if isinstance(base, str) and base and not has_label:
            label = {"label": free_label(label_of(base), taken)}
            taken.add(label["label"].casefold())
            entry = {**entry, **label} if is_plain else entry.model_copy(update=label)
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
