"""Merge results folders of one study: runs of two machines, or parts of a study.

The merged journal has the files of all; a plan of its own says which keys count. Of two records
with the same key that differ, the one that is preferred is written again, so that it is the last.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...data_loaders.atomic import replacing
from ..errors import EXIT_OK, EXIT_RUNS, BusyError, RecordError, UserError
from ..interrupts import interrupts_deferred
from ..results.description import FILE_NAME, read_description, write_description
from ..results.journal import FOLDER, Cell, Entry, Journal, record_line
from ..results.records import RecordBase
from ..results.table import runs_table
from ..storage import storing
from ..words import plural
from .manifest import Scope, configuration, content_of, restored_study, size_of
from .plan import kind_named, limits_hit

#: Prefer the record that was made last.
NEWEST = "newest"
#: Columns in which two runs of the same key may differ: clocks, the machine, how it was limited.
OF_THE_MACHINE = frozenset(
    {
        *("started_at", "wall_s", "cpu_s", "system_s", "compile_s"),
        *("evaluation_s", "data_s"),
        *("tuning_wall_s", "tuning_cpu_s", "peak_memory_mb", "environment", "jobs", "threads"),
        *("budget", "version", "traceback"),
    }
)
# Settings of a study that say how much of it is run, and nothing of a run.
_AMOUNTS = frozenset({"seeds", "title", "description", "cost", "source"})
_TABLES = ("tasks", "solvers")


@dataclass(frozen=True)
class Conflict:
    """Two records of one run that do not say the same.

    Attributes
    ----------
    run : str
        Task, solver and seed.
    what : str
        In what they differ.
    """

    run: str
    what: str


@dataclass(frozen=True)
class Merge:
    """What :func:`merge` did.

    Attributes
    ----------
    out : Path
        The merged folder.
    records : int
        Records in it now.
    copied : int
        Those that were not in it before.
    alike : int
        Runs that several folders hold, with the same values.
    conflicts : tuple of Conflict
        Those that were decided by ``prefer``.
    damaged : tuple of str
        A line for each record that cannot be read and was not merged.
    """

    out: Path
    records: int
    copied: int
    alike: int
    conflicts: tuple[Conflict, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if a record is damaged, else 0."""
        return EXIT_RUNS if self.damaged else EXIT_OK

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON takes it."""
        return vars(self) | {
            "out": str(self.out),
            "conflicts": [vars(conflict) for conflict in self.conflicts],
            "damaged": list(self.damaged),
        }


def merge(
    folders: Sequence[Path],
    out: Path,
    *,
    prefer: str = "",
) -> Merge:
    """Merge results folders of one study.

    Parameters
    ----------
    folders : sequence of Path
        At least two.
    out : Path
        A new folder, or one of these.
    prefer : str
        One of the folders, or "newest": whose record is kept where two differ.

    Raises
    ------
    UserError
        If the folders are not of one study, or records differ and ``prefer`` does not decide.
    BusyError
        If a command writes to the merged folder.
    StorageError
        If something cannot be written.
    """
    folders = list(dict.fromkeys(folders))
    _check(folders, out, prefer)
    sides = [Described.read(folder) for folder in folders]
    with interrupts_deferred() as check_interrupt:
        choice = _Choice(sides, prefer)
        described = merged_study(sides, out, choice.base, choice.keys, chosen=bool(prefer))
        with storing(out):
            out.mkdir(exist_ok=True)
        with closing(Journal(out)) as journal, journal.planning():
            if journal.others():
                raise BusyError(f"{out}: another marginbench command is writing here; wait for it")
            before = set(journal.current.values())
            for side in sides:
                for path in (*side.journal.segments(), *sorted(side.folder.glob("sources/*"))):
                    check_interrupt()
                    _copy(path, out / path.relative_to(side.folder))
            journal.refresh()
            plan = {
                (run["task"], run["solver"], run["seed"]): run["key"]
                for run in described["planned"]
            }
            if plan != journal.plan or choice.preferred:
                journal.append_plan(described["name"], plan)
            for record in choice.preferred:
                cut = limits_hit(kind_named(record.kind), record)
                journal.append(record_line(record, cut, preferred=True))
            write_description(out, described)
            after = journal.current.values()
        runs_table(out, kind_named(described["kind"]).record, write=True)
        return Merge(
            out,
            records=len(after),
            copied=sum(entry not in before for entry in after),
            alike=choice.alike,
            conflicts=tuple(choice.conflicts),
            damaged=tuple(
                str(item)
                for side in sides
                for item in side.journal.damages
                if journal.recorded(item.key) is None
            ),
        )


def _check(folders: Sequence[Path], out: Path, prefer: str) -> None:
    if len(folders) < 2:
        raise UserError("merge takes at least two results folders")
    if prefer and prefer != NEWEST and Path(prefer) not in folders:
        known = ", ".join(map(str, [*folders, NEWEST]))
        raise UserError(f"--prefer {prefer}: is none of the folders; give one of {known}")
    if out.resolve() in {folder.resolve() for folder in folders} or not out.exists():
        return
    # What an interrupted merge has left has no study.json yet.
    if not out.is_dir() or {path.name for path in out.iterdir()} - {FOLDER, "sources"}:
        raise UserError(
            f"{out}: exists already; choose another --out, or give it as one of the folders to "
            "merge into it"
        )


def _copy(source: Path, target: Path) -> None:
    """Copy a file of which all or the beginning may be there already."""
    if target.exists() and target.stat().st_size >= source.stat().st_size:
        return
    with storing(target):
        target.parent.mkdir(exist_ok=True)
        with replacing(target) as sink:
            sink.write(source.read_bytes())


class _Choice:
    """Which record is kept of each run.

    Attributes
    ----------
    keys : dict
        Task, solver and seed -> the key of the record that is kept.
    preferred : list of RecordBase
        Records that are kept although another one has the same key.
    base : int
        The side that holds where studies differ.

    Raises
    ------
    UserError
        If records differ and nothing decides.
    """

    def __init__(self, sides: Sequence[Described], prefer: str) -> None:
        self.sides, self.prefer = sides, prefer
        self.keys: dict[Cell, str] = {}
        self.preferred: list[RecordBase] = []
        self.conflicts: list[Conflict] = []
        self.alike = 0
        found: dict[Cell, list[tuple[int, Entry]]] = defaultdict(list)
        for number, side in enumerate(sides):
            for cell, entry in side.journal.current.items():
                found[cell].append((number, entry))
        newest = [
            max((entry.started_at for entry in side.journal.current.values()), default="")
            for side in sides
        ]
        self.base = 0
        if prefer == NEWEST:
            self.base = newest.index(max(newest))
        elif prefer:
            self.base = [side.folder for side in sides].index(Path(prefer))
        undecided: list[Conflict] = []
        for cell, candidates in found.items():
            conflict = self._conflict(cell, candidates)
            winner = candidates[0] if conflict is None else self._preferred(candidates)
            if winner is None:
                assert conflict is not None
                undecided.append(conflict)
                continue
            self.keys[cell] = winner[1].key
            if conflict is not None:
                self.conflicts.append(conflict)
                if any(
                    entry.key == winner[1].key for item, entry in candidates if item != winner[0]
                ):
                    self.preferred.append(self._load(*winner))
        if undecided:
            first, more = undecided[0], len(undecided) - 1
            others = f" (and {plural(more, 'other run')})" if more else ""
            raise UserError(
                f"{first.run}: {first.what}{others}; nothing was merged, choose with --prefer "
                "FOLDER or --prefer newest"
            )

    def _conflict(self, cell: Cell, candidates: Sequence[tuple[int, Entry]]) -> Conflict | None:
        """In what the records of a run differ; None if they say the same."""
        (side, first), *others = candidates
        run = f"{cell[0]} / {cell[1]} / seed {cell[2]}"
        for number, other in others:
            places = f"in {self.sides[side].folder} and {self.sides[number].folder}"
            if other.key != first.key:
                return Conflict(run, f"recorded under different keys {places}")
            column = _first_difference(self._load(side, first), self._load(number, other))
            if column:
                return Conflict(run, f"{column} differs {places}")
        self.alike += bool(others)
        return None

    def _load(self, side: int, entry: Entry) -> RecordBase:
        try:
            return self.sides[side].journal.load(entry)
        except RecordError as error:
            raise UserError(f"{error}; mend or remove that line first") from None

    def _preferred(self, candidates: Sequence[tuple[int, Entry]]) -> tuple[int, Entry] | None:
        if self.prefer == NEWEST:
            return max(candidates, key=lambda candidate: candidate[1].started_at)
        of_side = (candidate for candidate in candidates if candidate[0] == self.base)
        return next(of_side, None) if self.prefer else None


def _first_difference(first: RecordBase, second: RecordBase) -> str:
    """The first column in which two records differ other than by their machines; empty if none."""
    before, after = dict(vars(first)), dict(vars(second))
    traces = [[_rest(vars(state)) for state in values.pop("trace")] for values in (before, after)]
    one, other = _rest(before), _rest(after)
    columns = (name for name in one if repr(one[name]) != repr(other.get(name)))
    return next(columns, "" if repr(traces[0]) == repr(traces[1]) else "trace")


def _rest(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in OF_THE_MACHINE}


@dataclass(frozen=True)
class Described:
    """A results folder and what its ``study.json`` says.

    Attributes
    ----------
    folder : Path
    values : mapping
    journal : Journal
    """

    folder: Path
    values: Mapping[str, Any]
    journal: Journal

    @classmethod
    def read(cls, folder: Path) -> Described:
        """Read a folder that can be merged.

        Raises
        ------
        UserError
            If it is no results folder.
        """
        values = read_description(folder)
        if values is None:
            raise UserError(f"{folder}: no results here ({FILE_NAME} is missing)")
        return cls(folder, values, Journal(folder))

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
    sides: Sequence[Described], out: Path, base: int, keys: Mapping[Cell, str], *, chosen: bool
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
    keys: Mapping[Cell, str],
) -> list[dict[str, Any]]:
    """The planned runs of all sides: those with a record as it is kept, others as first planned."""
    found: dict[Cell, dict[str, Any]] = {}
    for side, own in sides:
        for run in side.values["planned"]:
            identity = (run["task"], run["solver"], run["seed"])
            if not all(
                _alike(own[table][run[table[:-1]]], content[table][run[table[:-1]]])
                for table in _TABLES
            ):
                continue  # its task or solver is configured otherwise now
            found.setdefault(identity, dict(run) | {"key": keys.get(identity, run["key"])})
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
