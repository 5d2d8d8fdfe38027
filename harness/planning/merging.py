"""Merge results folders of one study: runs of two machines, or parts of a study.

The merged journal has the files of all; its ``study.json`` says which keys count. Of two records
with the same key that differ, the one that is preferred is written again, so that it is the last.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...data_loaders.atomic import replacing
from ..errors import RecordError, UserError
from ..interrupts import interrupts_deferred
from ..results.description import FILE_NAME, Cell, cell_of, write_description
from ..results.journal import FOLDER, Damage, Entry, Journal, record_line, runs_table
from ..results.records import RecordBase
from ..storage import storing
from ..words import plural
from .manifest import configuration, merged, restored
from .plan import kind_named

#: Prefer the record that was made last.
NEWEST = "newest"
#: Columns in which two runs of the same key may differ: clocks, the machine, how it was limited.
OF_THE_MACHINE = frozenset(
    {
        *("started_at", "wall_s", "cpu_s", "system_s", "compile_s"),
        *("evaluation_s", "data_s", "tuning_wall_s", "tuning_cpu_s", "tuning_s"),
        *("peak_memory_mb", "environment", "jobs", "threads"),
        *("budget", "version", "traceback"),
    }
)
# Settings of a study that say how much of it is run, and nothing of a run.
_AMOUNTS = frozenset({"seeds", "title", "description", "cost", "source"})


@dataclass(frozen=True)
class Merge:
    """What :func:`merge` did."""

    out: str  # the merged folder
    records: int  # records in it now
    copied: int  # those that were not in it before
    alike: int  # runs that several folders hold, with the same values
    # Those that were decided by ``prefer``: "run" (task, solver and seed) and "what" differs in it.
    conflicts: tuple[dict[str, str], ...] = ()
    damaged: tuple[str, ...] = ()  # A line for each record that no folder holds whole


def merge(folders: Sequence[Path], out: Path, *, prefer: str = "") -> Merge:
    """Merge results folders of one study into a new folder or one of these.

    ``prefer``, one of the folders or "newest", says whose record is kept where two differ. A
    UserError if they are not of one study or it does not decide; a UserError if a command writes
    there.
    """
    folders = list(dict.fromkeys(folders))
    _check(folders, out, prefer)
    sides = [Journal.settled(folder) for folder in folders]
    for side in sides:
        if not side.description:
            raise UserError(f"{side.results}: no results here ({FILE_NAME} is missing)")
    damages = _damages(sides)
    with interrupts_deferred() as check_interrupt:
        described = _described(sides, out)
        keys, preferred, conflicts, alike = _decided(sides, prefer)
        for run in described["planned"]:
            run["key"] = keys.get(cell_of(run), run["key"])
        with storing(out):
            out.mkdir(exist_ok=True)
        with closing(Journal(out)) as journal, journal.planning():
            if journal.others():
                raise UserError(f"{out}: another marginbench command is writing here; wait for it")
            before = set(journal.current.values())
            for side in sides:
                for path in side.segments():
                    check_interrupt()
                    _copy_segment(path, out / FOLDER / path.name)
            write_description(out, described)
            journal.refresh()
            for record in preferred:
                journal.append(record_line(record, preferred=True))
            after = journal.current.values()
        runs_table(out, kind_named(described["kind"]).record, write=True)
        lost = {
            item.key or item: str(item) for item in damages if journal.recorded(item.key) is None
        }
        return Merge(
            str(out),
            records=len(after),
            copied=sum(entry not in before for entry in after),
            alike=alike,
            conflicts=tuple(conflicts),
            damaged=tuple(lost.values()),
        )


def _damages(sides: Sequence[Journal]) -> list[Damage]:
    """The damaged lines that no copy of their file has whole; a copy may have a longer name."""
    damages = {(item.path, item.byte): item for side in sides for item in side.damages}
    paths = [path for side in sides for path in side.segments()]

    def is_whole(item: Damage) -> bool:
        start = item.path.stem.split("-")[:3]
        copies = (path for path in paths if path.stem.split("-")[:3] == start)
        return any(
            path.stat().st_size > item.byte and (path, item.byte) not in damages for path in copies
        )

    return [item for item in damages.values() if not is_whole(item)]


def _columns(side: Journal, entry: Entry) -> dict[str, Any]:
    """The columns of a record, of its trace and of its tuning that are not of the machine."""
    try:
        values = side.values(entry)
    except RecordError as error:
        raise UserError(f"{error}; mend or remove that line first") from None
    trials = json.loads(values.get("tuning") or "[]")
    values |= {"tuning": trials, "trace": values.pop("trace")}
    columns: dict[str, Any] = _not_of_the_machine(values)
    return columns


def _not_of_the_machine(value: Any) -> Any:
    if isinstance(value, list):
        return [_not_of_the_machine(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {k: _not_of_the_machine(v) for k, v in value.items() if k not in OF_THE_MACHINE}


def _check(folders: Sequence[Path], out: Path, prefer: str) -> None:
    if len(folders) < 2:
        raise UserError("merge takes at least two results folders")
    if prefer and prefer != NEWEST and Path(prefer) not in folders:
        options = ", ".join(map(str, [*folders, NEWEST]))
        raise UserError(f"--prefer {prefer}: is none of the folders; give one of {options}")
    if out.resolve() in {folder.resolve() for folder in folders} or not out.exists():
        return
    # What an interrupted merge has left has no study.json yet.
    if not out.is_dir() or {path.name for path in out.iterdir()} - {FOLDER}:
        raise UserError(
            f"{out}: exists already; choose another --out, or give it as one of the folders to "
            "merge into it"
        )


def _copy_segment(source: Path, target: Path) -> None:
    """Copy a segment, all or the beginning of which may be there; one that differs beside it.

    Of two copies that differ one is damaged: lines that are whole in either count.
    """
    if target.exists():
        content, there = source.read_bytes(), target.read_bytes()
        if there.startswith(content):
            return
        if not content.startswith(there):
            digest = hashlib.sha256(content).hexdigest()[:8]
            target = target.with_stem(f"{target.stem}-{digest}")
    with storing(target):
        target.parent.mkdir(exist_ok=True)
        with replacing(target) as sink:
            sink.write(source.read_bytes())


def _decided(
    sides: Sequence[Journal], prefer: str
) -> tuple[dict[Cell, str], list[RecordBase], list[dict[str, str]], int]:
    """The key of each run, records that count over others of their key, conflicts, runs alike."""
    candidates: dict[Cell, list[tuple[Journal, Entry]]] = defaultdict(list)
    for side in sides:
        for cell, entry in side.current.items():
            candidates[cell].append((side, entry))
    keys: dict[Cell, str] = {}
    preferred, conflicts, undecided = list[RecordBase](), list[dict[str, str]](), list[str]()
    for cell, records in candidates.items():
        what = _difference(records)
        eligible = records
        if what:
            run = f"{cell[0]} / {cell[1]} / seed {cell[2]}"
            conflicts.append({"run": run, "what": what})
            if prefer != NEWEST:
                eligible = [each for each in records if str(each[0].results) == prefer]
            undecided += [] if eligible else [f"{run}: {what}"]
        side, entry = max(eligible or records, key=lambda each: each[1].started_at)
        keys[cell] = entry.key
        if what and [other.key for _, other in records].count(entry.key) > 1:
            preferred.append(side.load(entry))
    if undecided:
        more = len(undecided) - 1
        others = f" (and {plural(more, 'other run')})" if more else ""
        raise UserError(
            f"{undecided[0]}{others}; nothing was merged, choose with --prefer FOLDER or --prefer "
            "newest"
        )
    alike = sum(len(records) > 1 for records in candidates.values()) - len(conflicts)
    return keys, preferred, conflicts, alike


def _difference(records: Sequence[tuple[Journal, Entry]]) -> str:
    """In what the records of a run differ, machines apart, and where; empty if they do not."""
    (side, first), *others = records
    columns = _columns(side, first) if others else {}
    for other_side, other in others:
        places = f"in {side.results} and {other_side.results}"
        if other.key != first.key:
            return f"recorded under different keys {places}"
        now = _columns(other_side, other)
        differing = [name for name, value in columns.items() if value != now.get(name)]
        if differing:
            return f"{differing[0]} differs {places}"
    return ""


def _described(sides: Sequence[Journal], out: Path) -> dict[str, Any]:
    """The description of a folder that holds the runs of several."""
    first, *others = sides
    kind, name = (first.description[what] for what in ("kind", "name"))
    study = kind_named(kind).study
    for side in others:
        if (side.description["kind"], side.description["name"]) != (kind, name):
            raise UserError(
                f"{side.results}: holds the study {side.description['name']!r}, {first.results} "
                f"{name!r}; only folders of one study and kind can be merged"
            )
    contents = [
        restored(study, side.description["study"], side.results).content(out) for side in sides
    ]
    united = contents[0]
    for content, side in zip(contents[1:], sides[1:], strict=True):
        _unite(united, content, first, side)
    whole = restored(study, united, out).whole
    described = dict(first.description)
    for side in sides:
        described = merged(described, {**side.description, "study": united}, whole, united)
    return described


def _unite(
    united: dict[str, Any], content: Mapping[str, Any], first: Journal, side: Journal
) -> None:
    """Add what a folder has of the study; refuses what is not as in the others."""
    settings, differing = united["settings"], list[str]()
    for name, value in content["settings"].items():
        if name not in _AMOUNTS and value != settings.get(name):
            differing.append(f"[{name}]" if isinstance(value, dict) else name)
    if "seeds" in settings:
        settings["seeds"] = max(settings["seeds"] or 0, content["settings"].get("seeds") or 0)
    for table in ("tasks", "solvers"):
        for label, entry in content[table].items():
            kept = united[table].setdefault(label, entry)
            if _without_folders(kept) != _without_folders(entry):
                differing.append(f"{table[:-1]} {label!r}")
            if not entry.get("added"):
                united[table][label] = {k: v for k, v in kept.items() if k != "added"}
    if differing:
        raise UserError(
            f"{side.results}: its study has another {differing[0]} than that of {first.results}; "
            "run one of them in both folders first"
        )


def _without_folders(entry: Mapping[str, Any]) -> str:
    """What an entry configures, with file names instead of paths: keys cover what files hold."""
    return re.sub(r'"[^"]*/', '"', configuration(entry))
