"""Merge results folders of one study: runs of two machines, or parts of a study."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....data_loaders.atomic import UNFINISHED, replacing
from ...errors import EXIT_OK, EXIT_RUNS, RecordError, UserError
from ...execution.guarding import exclusive
from ...interrupts import interrupts_deferred
from ...storage import storing
from ...words import plural
from ..description import write_description
from ..plans import Planned
from ..records import RecordBase
from ..store import RecordStore
from ..superseded import FOLDER as SUPERSEDED
from .gathering import (
    content_by_name,
    put_right,
    remove,
    separate,
    take_out,
)
from .merged_plans import Described, merged_study

#: Prefer the record that was made last.
NEWEST = "newest"
#: Columns in which two runs of the same key may differ: clocks, the machine, how it was limited.
OF_THE_MACHINE = frozenset(
    {
        *("started_at", "wall_s", "cpu_s", "system_s", "compile_s"),
        *("evaluation_s", "data_s"),
        *("tuning_wall_s", "tuning_cpu_s", "peak_memory_mb", "environment", "jobs", "threads"),
        *("budget", "version", "traceback", "schema_version"),
    }
)
# Stands in a new folder until all of it is there.
_MARKER = ".merging"


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


@dataclass(frozen=True)
class _Found:
    """A record of one of the folders."""

    side: int
    name: str
    key: str
    started_at: str


def merge(
    folders: Sequence[Path],
    out: Path,
    *,
    prefer: str = "",
    say: Callable[[str], None] = lambda line: None,
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
    say : callable
        Takes one line for the user.

    Raises
    ------
    UserError
        If the folders are not of one study, or records differ and ``prefer`` does not decide.
    StorageError
        If something cannot be written.
    """
    folders = list(dict.fromkeys(folders))
    _check(folders, out, prefer)
    sides = [Described.read(folder) for folder in folders]
    with interrupts_deferred() as check_interrupt, exclusive(out) as check_folder:
        work = _Merger(sides, out, prefer)
        work.put_right(say)
        work.decide()
        base, chosen = work.base, bool(prefer)
        described = merged_study(sides, out, base, work.keys, chosen=chosen)
        for _ in work.write():
            check_interrupt()
            check_folder()
        write_description(out, described)
        remove([out / _MARKER])
        return work.done()


def _check(folders: Sequence[Path], out: Path, prefer: str) -> None:
    if len(folders) < 2:
        raise UserError("merge takes at least two results folders")
    if prefer and prefer != NEWEST and Path(prefer) not in folders:
        known = ", ".join(map(str, [*folders, NEWEST]))
        raise UserError(f"--prefer {prefer}: is none of the folders; give one of {known}")
    known_place = out.resolve() in {folder.resolve() for folder in folders}
    if known_place or not out.exists() or (out / _MARKER).is_file():
        return
    if not out.is_dir() or any(out.iterdir()):
        raise UserError(
            f"{out}: exists already; choose another --out, or give it as one of the folders to "
            "merge into it"
        )


class _Merger:
    """One call of :func:`merge`."""

    def __init__(self, sides: Sequence[Described], out: Path, prefer: str) -> None:
        self.sides, self.out, self.prefer = sides, out, prefer
        self.stores = [RecordStore(side.folder / "runs") for side in sides]
        places = [side.folder.resolve() for side in sides]
        self.own = places.index(out.resolve()) if out.resolve() in places else None
        self.target = RecordStore(out / "runs") if self.own is None else self.stores[self.own]
        self.kept: dict[Planned, _Found] = {}
        self.replaced: list[_Found] = []
        self.alike = self.copied = 0
        self.conflicts: list[Conflict] = []
        self.damaged: list[str] = []
        self._newest = [""] * len(sides)

    @property
    def keys(self) -> Mapping[Planned, str]:
        """Task, solver and seed -> the key of the record that is kept."""
        return {identity: found.key for identity, found in self.kept.items()}

    @property
    def base(self) -> int:
        """The side that holds where studies differ."""
        if self.prefer == NEWEST:
            return max(range(len(self.sides)), key=lambda side: self._newest[side])
        folders = [side.folder for side in self.sides]
        return folders.index(Path(self.prefer)) if self.prefer else 0

    def put_right(self, say: Callable[[str], None]) -> None:
        """Mark a new folder as unfinished; in an old one, finish what was interrupted."""
        if self.own is None:
            with storing(self.out):
                (self.out / _MARKER).touch()
        for folder in (self.out / "runs", self.out / SUPERSEDED):
            remove(folder.glob(f"{UNFINISHED}*"))
        put_right(self.target, say)

    def decide(self) -> None:
        """Find all records, and choose one for each run.

        Raises
        ------
        UserError
            If records differ and nothing decides.
        """
        found: dict[Planned, list[_Found]] = defaultdict(list)
        for side, store in enumerate(self.stores):
            for item, record in self._records_of(side, store):
                found[record.task, record.solver, record.seed].append(item)
                self._newest[side] = max(self._newest[side], record.started_at)
        undecided: list[Conflict] = []
        for identity, candidates in found.items():
            conflict = self._conflict(identity, candidates)
            winner = candidates[0] if conflict is None else self._preferred(candidates)
            if conflict is not None:
                (self.conflicts if winner else undecided).append(conflict)
            if winner is not None:
                self.kept[identity] = winner
                self.replaced += [item for item in candidates if item.key != winner.key]
        if undecided:
            first, more = undecided[0], len(undecided) - 1
            others = f" (and {plural(more, 'other run')})" if more else ""
            raise UserError(
                f"{first.run}: {first.what}{others}; nothing was merged, choose with --prefer "
                "FOLDER or --prefer newest"
            )

    def _records_of(self, side: int, store: RecordStore) -> Iterator[tuple[_Found, RecordBase]]:
        self.damaged += map(str, store.unreadable.values())
        for name in store.names():
            try:
                record = store.load(name)
            except RecordError as error:
                self.damaged.append(str(error))
                continue
            if record is not None:
                yield _Found(side, name, record.key, record.started_at), record

    def _conflict(self, identity: Planned, candidates: Sequence[_Found]) -> Conflict | None:
        """In what the records of a run differ; None if they say the same."""
        first, *others = candidates
        task, solver, seed = identity
        run = f"{task} / {solver} / seed {seed}"
        for other in others:
            places = f"in {self.sides[first.side].folder} and {self.sides[other.side].folder}"
            if other.key != first.key:
                return Conflict(run, f"recorded under different keys {places}")
            before, after = self._load(first), self._load(other)
            column = _first_difference(before, after)
            if column:
                return Conflict(run, f"{column} differs {places}")
        self.alike += bool(others)
        return None

    def _load(self, found: _Found) -> RecordBase:
        record = self.stores[found.side].load(found.name)
        if record is None:
            raise UserError(f"{self.sides[found.side].folder}: changed while it was read")
        return record

    def _preferred(self, candidates: Sequence[_Found]) -> _Found | None:
        if self.prefer == NEWEST:
            return max(candidates, key=lambda found: found.started_at)
        of_side = (found for found in candidates if found.side == self.base)
        return next(of_side, None) if self.prefer else None

    def write(self) -> Iterator[None]:
        """Copy record after record; between any two, nothing is half done."""
        for folder in (self.target.folder, self.out / SUPERSEDED, self.out / "sources"):
            with storing(folder):
                folder.mkdir(exist_ok=True)
        for found in self.replaced:
            self._supersede(found)
            yield
        for found in self.kept.values():
            if found.side != self.own:
                self._copy(found)
                yield
        for side in self.sides:
            for name in (SUPERSEDED, "sources"):
                for path in sorted((side.folder / name).glob("*")):
                    self._copy_file(path, self.out / name / path.name)
                    yield
        self.target.reopen()
        separate(self.target, ())
        for folder in (self.out / SUPERSEDED, self.out / "sources"):
            if not any(folder.iterdir()):
                folder.rmdir()

    def _supersede(self, found: _Found) -> None:
        """Put a record aside that another one replaces; in the merged folder it is moved."""
        target = self.out / SUPERSEDED / found.name
        if found.side == self.own:
            take_out(self.target, [found.name])
            with storing(target):
                os.replace(self.target.folder / found.name, target)
        elif not target.exists():
            _write(target, content_by_name(self.stores[found.side], found.name))

    def _copy(self, found: _Found) -> None:
        """Copy a record; one of these values that is there already stays."""
        if self.own is not None and self._holds_alike(found):
            return
        content = content_by_name(self.stores[found.side], found.name)
        _write(self.target.folder / found.name, content)
        self.copied += 1

    def _holds_alike(self, found: _Found) -> bool:
        record = self.target.load(found.name)
        return record is not None and not _first_difference(record, self._load(found))

    def _copy_file(self, path: Path, target: Path) -> None:
        if path.is_file() and not target.exists():
            _write(target, path.read_bytes())

    def done(self) -> Merge:
        """What became of it."""
        return Merge(
            self.out,
            records=len(self.target.names()),
            copied=self.copied,
            alike=self.alike,
            conflicts=tuple(self.conflicts),
            damaged=tuple(self.damaged),
        )


def _write(path: Path, content: bytes) -> None:
    with storing(path), replacing(path) as sink:
        sink.write(content)


def _first_difference(first: RecordBase, second: RecordBase) -> str:
    """The first column in which two records differ other than by their machines; empty if none."""
    before, after = dict(vars(first)), dict(vars(second))
    traces = [[_rest(vars(state)) for state in values.pop("trace")] for values in (before, after)]
    one, other = _rest(before), _rest(after)
    columns = (name for name in one if repr(one[name]) != repr(other.get(name)))
    return next(columns, "" if repr(traces[0]) == repr(traces[1]) else "trace")


def _rest(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in OF_THE_MACHINE}
