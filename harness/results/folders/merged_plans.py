"""One ``study.json`` from those of several results folders, by the rules of :mod:`..plans`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UserError
from ...planning.plan import kind_named
from ..description import read_description
from ..plans import (
    Planned,
    Scope,
    configuration,
    content_of,
    restored_study,
    size_of,
)

# Settings of a study that say how much of it is run, and nothing of a run.
_AMOUNTS = frozenset({"seeds", "title", "description", "cost", "source"})
_TABLES = ("tasks", "solvers")


@dataclass(frozen=True)
class Described:
    """A results folder and what its ``study.json`` says.

    Attributes
    ----------
    folder : Path
    values : mapping
    """

    folder: Path
    values: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Described:
        """Read a folder that can be merged.

        Raises
        ------
        UserError
            If it is no results folder, or one of a release that did not store the study.
        """
        values = read_description(folder)
        if values is None:
            raise UserError(f"{folder}: no results here (study.json is missing)")
        if "study" not in values:
            raise UserError(
                f"{folder}: written by an earlier release, which did not store the study; run "
                "the study again first"
            )
        return cls(folder, values)

    def content(self, out: Path) -> dict[str, Any]:
        """The study as plain values, with the ways to the user's files from another folder."""
        stored = self.values["study"]
        study = restored_study(kind_named(self.values["kind"]).study, stored, self.folder)
        found = content_of(Scope(study, study), out)
        for table in _TABLES:
            for label, entry in stored[table].items():
                if entry.get("added"):
                    found[table][label]["added"] = True
        return found


def merged_study(
    sides: Sequence[Described], out: Path, base: int, keys: Mapping[Planned, str], *, chosen: bool
) -> dict[str, Any]:
    """The description of a folder that holds the runs of several.

    Parameters
    ----------
    sides : sequence of Described
    out : Path
        The folder that is described.
    base : int
        The side whose settings and entries hold where they differ.
    keys : mapping
        Task, solver and seed -> the key of the record that is kept.
    chosen : bool
        Whether the user has chosen the base.

    Raises
    ------
    UserError
        If they are not of one study, or differ where nobody has chosen.
    """
    _check_study(sides)
    contents = [side.content(out) for side in sides]
    order = [base, *(place for place in range(len(sides)) if place != base)]
    content = _merged_content(
        [contents[place] for place in order], [sides[i] for i in order], chosen
    )
    found: dict[str, Any] = dict(sides[base].values)
    found["study"] = content
    found["planned"] = _planned([(sides[i], contents[i]) for i in order], content, keys)
    for table in _TABLES:
        described = {
            entry["label"]: entry for i in reversed(order) for entry in sides[i].values[table]
        }
        found[table] = [described[label] for label in content[table] if label in described]
    if "seeds" in found:
        found["seeds"] = sorted({seed for side in sides for seed in side.values.get("seeds", ())})
    lines = (line for i in order for line in str(sides[i].values.get("command", "")).split("\n"))
    found["command"] = "\n".join(dict.fromkeys(filter(None, lines)))
    found["of"] = size_of(_own_study(found, out), found)
    return found


def _check_study(sides: Sequence[Described]) -> None:
    first = sides[0]
    for side in sides[1:]:
        for what in ("name", "kind"):
            if side.values[what] != first.values[what]:
                raise UserError(
                    f"{side.folder}: holds the study {side.values['name']!r} of the kind "
                    f"{side.values['kind']!r}, {first.folder} {first.values['name']!r} of the kind "
                    f"{first.values['kind']!r}; only folders of one study can be merged"
                )


def _merged_content(
    contents: Sequence[Mapping[str, Any]], sides: Sequence[Described], chosen: bool
) -> dict[str, Any]:
    """The study of all folders; the first one holds where they differ and it was chosen."""
    found = {name: dict(part) for name, part in contents[0].items()}
    for content, side in zip(contents[1:], sides[1:], strict=True):
        for name, value in content["settings"].items():
            if name not in _AMOUNTS and value != found["settings"].get(name) and not chosen:
                raise _different(f"[{name}]" if isinstance(value, dict) else name, sides[0], side)
        if "seeds" in found["settings"]:
            seeds = content["settings"].get("seeds") or 0
            found["settings"]["seeds"] = max(found["settings"]["seeds"] or 0, seeds)
        for table in _TABLES:
            for label, entry in content[table].items():
                known = found[table].setdefault(label, entry)
                if not _alike(known, entry) and not chosen:
                    raise _different(f"{table[:-1]} {label!r}", sides[0], side)
                if not entry.get("added"):
                    found[table][label] = {k: v for k, v in known.items() if k != "added"}
    return found


def _different(what: str, first: Described, second: Described) -> UserError:
    return UserError(
        f"{second.folder}: its study has another {what} than that of {first.folder}; give "
        "--prefer FOLDER for the one that holds"
    )


def _alike(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two entries configure the same runs; folders may be at different places."""
    return configuration(_without_places(first)) == configuration(_without_places(second))


def _without_places(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with the names of files in place of the ways to them: their content is in keys."""
    found = dict(entry)
    for name in ("name", "dataset"):
        if isinstance(found.get(name), str):
            found[name] = os.path.basename(found[name])
    params = found.get("dataset_params")
    if isinstance(params, dict) and isinstance(params.get("test"), str):
        found["dataset_params"] = params | {"test": os.path.basename(params["test"])}
    return found


def _planned(
    sides: Iterable[tuple[Described, Mapping[str, Any]]],
    content: Mapping[str, Any],
    keys: Mapping[Planned, str],
) -> list[dict[str, Any]]:
    """The planned runs of all sides: those with a record as it is kept, others as first planned."""
    found: dict[Planned, dict[str, Any]] = {}
    for side, own in sides:
        for run in side.values["planned"]:
            identity = (run["task"], run["solver"], run["seed"])
            if not all(
                _alike(own[table][run[table[:-1]]], content[table][run[table[:-1]]])
                for table in _TABLES
            ):
                continue  # its task or solver is configured otherwise now
            if identity not in found or run["key"] == keys.get(identity):
                found[identity] = dict(run)
    places = {
        table: {label: place for place, label in enumerate(content[table])} for table in _TABLES
    }
    return sorted(
        found.values(),
        key=lambda run: (
            places["tasks"][run["task"]],
            places["solvers"][run["solver"]],
            run["seed"],
        ),
    )


def _own_study(found: Mapping[str, Any], out: Path) -> Any:
    """The study without what options added to it."""
    content = dict(found["study"])
    for table in _TABLES:
        own = {label: e for label, e in content[table].items() if not e.get("added")}
        content[table] = own or content[table]
    return restored_study(kind_named(found["kind"]).study, content, out)
