"""Values over commits: their order, what changed from each to the next, steps and blips."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..errors import ReportError
from ..formatting import plural
from .annotations import Annotation, later
from .measures import Watched, watched
from .repository import Commit, Repository
from .steps import Changes, Step, counted, noise, noisy
from .values import FAILED, Cell, Key, Lane, Snapshot
from .verdicts import CellVerdict, compared
from .words import Pair

BLIP, ACCEPTED = "blip", "accepted"


@dataclass(frozen=True)
class Series:
    """One value over the commits of a lane.

    Attributes
    ----------
    key : Key
    measure : Watched
    numbers : tuple of float or None
        By commit; None: not measured there, or failed.
    changes : Changes
        Its steps and blips.
    """

    key: Key
    measure: Watched
    numbers: tuple[float | None, ...]
    changes: Changes

    @property
    def steps(self) -> tuple[Step, ...]:
        """The changes that stay."""
        return self.changes.steps


@dataclass(frozen=True)
class Neighbours(Pair):
    """Two commits, one after the other in a history, and what the history says of their changes.

    Attributes
    ----------
    annotations : tuple of Annotation
        The known changes between them.
    left, back : frozenset of Key
        Values that leave their level for the later commit alone, and that come back with it.
    crept : tuple of Key
        Values that have got beyond their bounds here, by several changes that are within.
    """

    annotations: tuple[Annotation, ...] = ()
    left: frozenset[Key] = frozenset()
    back: frozenset[Key] = frozenset()
    crept: tuple[Key, ...] = ()

    @classmethod
    def alone(cls, pair: Pair) -> Neighbours:
        """Two commits of which no history is known."""
        return cls(pair.base, pair.head, pair.comparison, pair.notes)

    def kind(self, cell: CellVerdict) -> str:
        """What an overview calls a cell: its verdict, "accepted", or "blip".

        A cell is a blip if nothing but blips changed, and accepted if known changes are the reason
        for all that is worse.
        """
        if cell.verdict in ("failed", "gone"):
            return cell.verdict if cell.refused else ACCEPTED
        if cell.verdict not in ("regression", "mixed", "improvement"):
            return cell.verdict
        told = [each for each in cell.told if each.key not in self.left | self.back]
        if not told:
            return BLIP
        if any(each.worse for each in told) and not any(each.refused for each in told):
            return ACCEPTED
        ways = {each.worse for each in told}
        return "mixed" if len(ways) == 2 else "regression" if True in ways else "improvement"

    @property
    def kinds(self) -> Counter[str]:
        """How many cells an overview calls what."""
        return Counter(map(self.kind, self.comparison.cells))


@dataclass(frozen=True)
class History:
    """What was measured on one lane, commit by commit.

    Attributes
    ----------
    lane : Lane
    commits : tuple of Commit
        The oldest first.
    snapshots : tuple of Snapshot
        One for each commit.
    pairs : tuple of Neighbours
        One for each commit but the first.
    series : mapping of Key to Series
    failures : mapping of Cell to frozenset of int
        The places of the commits at which cells failed.
    notes : tuple of str
        What a reader must know, a sentence each.
    """

    lane: Lane
    commits: tuple[Commit, ...]
    snapshots: tuple[Snapshot, ...]
    pairs: tuple[Neighbours, ...]
    series: Mapping[Key, Series]
    failures: Mapping[Cell, frozenset[int]]
    notes: tuple[str, ...] = ()

    def groups(self) -> dict[str, list[Cell]]:
        """The cells of each solver, all in order."""
        cells = sorted({key.cell for key in self.series} | self.failures.keys())
        found: dict[str, list[Cell]] = defaultdict(list)
        for cell in cells:
            found[cell.group].append(cell)
        return dict(sorted(found.items(), key=lambda item: (item[0].casefold(), item[0])))


def histories(
    snapshots: Iterable[Snapshot],
    repository: Repository | None = None,
    bounds: Mapping[str, float] | None = None,
) -> tuple[History, ...]:
    """The history of each lane; the one with the most commits first.

    Parameters
    ----------
    snapshots : iterable of Snapshot
    repository : Repository, optional
        Tells the order of commits, their subjects, and known changes. Without it, commits are in
        the order of their dates.
    bounds : mapping of str to float, optional
        Bounds of the user by names of measures.
    """
    lanes: dict[Lane, list[Snapshot]] = defaultdict(list)
    for each in snapshots:
        lanes[each.lane].append(each)
    found = [_history(lane, each, repository, bounds) for lane, each in lanes.items()]
    return tuple(sorted(found, key=lambda each: (-len(each.commits), each.lane)))


def noise_before(history: History, place: int) -> dict[Key, float]:
    """The relative changes that values showed without a cause before the commit at a place.

    Only times and memory vary without one. The bound of a count never grows.
    """
    return _noise(history.series, place)


def _history(
    lane: Lane,
    snapshots: Sequence[Snapshot],
    repository: Repository | None,
    bounds: Mapping[str, float] | None,
) -> History:
    ordered, notes = _ordered(snapshots, repository)
    hashes = [each.commit for each in ordered]
    described = repository.described(hashes) if repository else {}
    commits = tuple(described.get(each) or Commit(each) for each in hashes)
    series = _series(ordered, bounds)
    known = _annotations(repository, commits, notes)
    pairs = tuple(
        replace(
            _pair(place, commits, ordered, series, known[place - 1], bounds),
            notes=_between(repository, commits[place - 1], commits[place]),
        )
        for place in range(1, len(ordered))
    )
    return History(
        lane,
        commits,
        tuple(ordered),
        pairs,
        series,
        _failures(ordered),
        tuple(dict.fromkeys(notes)),
    )


def _ordered(
    snapshots: Sequence[Snapshot], repository: Repository | None
) -> tuple[list[Snapshot], list[str]]:
    """The snapshots of one line of commits, and what is left out or uncertain of it."""
    by_date = sorted(snapshots, key=lambda each: (each.date, each.commit))
    if repository is None:
        return by_date, ["There is no repository at hand: commits are in the order of their dates."]
    known = repository.ordered([each.commit for each in by_date])
    line = _longest_line(repository, known)
    found = sorted(
        (each for each in by_date if each.commit in line), key=lambda each: line.index(each.commit)
    )
    strange = [each for each in by_date if each.commit not in known]
    for each in strange:
        later_ones = (i for i, other in enumerate(found) if other.date > each.date)
        found.insert(next(later_ones, len(found)), each)
    notes = []
    if strange:
        notes.append(
            f"The repository lacks {plural(len(strange), 'commit')}, placed by date: "
            f"{_listed(each.commit for each in strange)}."
        )
    side = [each for each in known if each not in line]
    if side:
        notes.append(
            f"{plural(len(side), 'commit')} beside the line of first parents left out: "
            f"{_listed(side)}."
        )
    return found, notes


def _longest_line(repository: Repository, known: Sequence[str]) -> list[str]:
    """The most of the commits that follow each other as first parents, the oldest first.

    Neighbours on different branches differ by what either lacks, which is no change over time.
    """
    best: list[str] = []
    seen: set[str] = set()
    for tip in reversed(known):
        if tip not in seen:
            parents = set(repository.line(tip))
            line = [each for each in known if each in parents]
            seen.update(line)
            best = max(best, line, key=len)
    return best


def _listed(commits: Iterable[str]) -> str:
    words = [each[:10] for each in commits]
    return ", ".join(words[:8]) + (f" and {len(words) - 8} more" if len(words) > 8 else "")


def _annotations(
    repository: Repository | None, commits: Sequence[Commit], notes: list[str]
) -> list[tuple[Annotation, ...]]:
    """The known changes of each pair of neighbours; a file that cannot be read is a note."""
    # A commit without a date is none of the repository.
    present = [each.hash for each in commits if each.date]
    if repository is None or not present:
        return [()] * (len(commits) - 1)
    newest = repository.commit("HEAD").hash
    if repository.between(newest, present[-1]):
        newest = present[-1]
    found: list[tuple[Annotation, ...]] = []
    for before, after in pairwise(commits):
        try:
            both = before.date and after.date
            found.append(later(repository, before.hash, after.hash, newest) if both else ())
        except ReportError as error:
            notes.append(f"Known changes are not read. {error}.")
            found.append(())
    return found


def _between(repository: Repository | None, before: Commit, after: Commit) -> tuple[str, ...]:
    """That the cause of a change may be a commit that was not measured."""
    if repository is None or not (before.date and after.date):
        return ()
    count = len(repository.between(before.hash, after.hash))
    if count <= 1:
        return ()
    return (f"{count} commits lead from one to the other, and any of them may be the cause",)


def _series(snapshots: Sequence[Snapshot], bounds: Mapping[str, float] | None) -> dict[Key, Series]:
    units = {name: unit for each in snapshots for name, unit in each.units.items()}
    keys = sorted({key for each in snapshots for key in each.values if key.measure != FAILED})
    measures = {
        name: watched(name, units.get(name, ""), bounds) for name in {key.measure for key in keys}
    }
    found = {}
    for key in keys:
        measure = measures[key.measure]
        values = (each.values.get(key) for each in snapshots)
        numbers = tuple(value.number if value else None for value in values)
        if any(number is not None for number in numbers):
            rule = noisy if varies(measure) else counted
            found[key] = Series(key, measure, numbers, rule(numbers, measure))
    return found


def varies(measure: Watched) -> bool:
    """Whether values differ from run to run of the same code: times and memory do."""
    return measure.unit in ("seconds", "bytes")


def _failures(snapshots: Sequence[Snapshot]) -> dict[Cell, frozenset[int]]:
    found: dict[Cell, set[int]] = defaultdict(set)
    for place, snapshot in enumerate(snapshots):
        for cell in snapshot.failed_cells():
            found[cell].add(place)
    return {cell: frozenset(places) for cell, places in found.items()}


def _pair(
    place: int,
    commits: Sequence[Commit],
    snapshots: Sequence[Snapshot],
    series: Mapping[Key, Series],
    annotations: tuple[Annotation, ...],
    bounds: Mapping[str, float] | None,
) -> Neighbours:
    comparison = compared(
        snapshots[place - 1],
        snapshots[place],
        annotations=annotations,
        bounds=bounds,
        noise=_noise(series, place),
    )
    told = {change.key for cell in comparison.cells for change in cell.told}
    return Neighbours(
        commits[place - 1],
        commits[place],
        comparison,
        annotations=annotations,
        left=frozenset(key for key in told if _has_blip(series, key, place)),
        back=frozenset(key for key in told if _has_blip(series, key, place - 1)),
        crept=tuple(
            key
            for key, each in series.items()
            if key not in told
            and not varies(each.measure)
            and any(step.place == place for step in each.steps)
            and each.numbers[place - 1] is not None
        ),
    )


def _has_blip(series: Mapping[Key, Series], key: Key, place: int) -> bool:
    return key in series and place in series[key].changes.blips


def _noise(series: Mapping[Key, Series], place: int) -> dict[Key, float]:
    return {
        key: noise(each.numbers[:place], each.steps)
        for key, each in series.items()
        if varies(each.measure)
    }
