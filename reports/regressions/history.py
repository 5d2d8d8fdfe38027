"""Values over commits, as asv recorded them, and where asv's step detection says they changed."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from statistics import median
from typing import NamedTuple

import pandas as pd
from markupsafe import Markup

from ...harness.environment import version
from ..comparison.report import change_words, headline
from ..comparison.result import Compared
from ..errors import ReportError
from ..formatting import plural, say, some
from ..templating import environment, page, page_script, script_source
from .annotations import Annotation, between, chosen
from .asv_files import FAILED, Lane, Snapshot
from .gate import EXIT_SAME, Regressions, moved, regressions, unit_of, watched
from .repository import Commit, Repository

#: The scripts of the page: tables sort and filter.
_SCRIPTS = ("00_page", "10_unfold", "20_tables")


def render_history(lanes: Sequence[History], site: str = "", commit_url: str = "") -> str:
    """The page of a history: what moved, when, and every commit.

    ``site`` is the address of the overview that it belongs to, and ``commit_url`` what a hash is
    put behind to show the commit on the web; empty for none.
    """
    script = page_script(*_SCRIPTS)
    return page(
        environment().get_template("regressions_index.html"),
        script=Markup(script),
        script_source=script_source(script),
        version=version(),
        lanes=lanes,
        site=site,
        commit_url=commit_url,
        say=say,
        change_words=change_words,
    )


class Step(NamedTuple):
    """A change that stays."""

    place: int  # the first commit of the new level
    before: float  # the levels
    after: float
    gap: int = 0  # how many commits before it have no value: any of them may be the cause as well
    kind: str = ""  # "known", "worse" or "better"
    why: str = ""  # of a known change

    @property
    def ratio(self) -> float:
        """After / before; more than nothing is infinitely more."""
        return self.after / self.before if self.before > 0 else math.inf


@dataclass(frozen=True)
class Moved:
    """One value that changed for good."""

    cell: str
    measure: Compared
    last: float  # its newest value
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class History:
    """What was measured on one lane, commit by commit."""

    lane: Lane
    commits: tuple[Commit, ...]  # the oldest first
    # The newest commit against the one before it; None of a single commit.
    newest: Regressions | None
    # The values that changed for good; the ones with the newest change first.
    moved: tuple[Moved, ...]
    failures: Mapping[str, tuple[int, ...]]  # the places of the commits at which cells failed
    notes: tuple[str, ...] = ()  # what a reader must know, a sentence each

    @property
    def verdict(self) -> str:
        """That on the newest commit, in a sentence."""
        if self.newest is None:
            return "One commit was measured; there is nothing to compare it with."
        return (
            f"The newest of {len(self.commits)} commits against the one before it: "
            f"{self.newest.verdict}: {headline(self.newest)}."
        )

    @property
    def bad(self) -> bool:
        """Whether the newest commit made something worse that is no known change."""
        return self.newest is not None and self.newest.exit_code != EXIT_SAME

    @property
    def marks(self) -> list[Counter[str]]:
        """How many values each commit made better, worse or known, and how many cells failed."""
        kinds = [(step.place, step.kind) for each in self.moved for step in each.steps]
        kinds += [(place, "failed") for places in self.failures.values() for place in places]
        marks: list[Counter[str]] = [Counter() for _ in self.commits]
        for place, kind in kinds:
            marks[place][kind] += 1
        return marks


def histories(
    snapshots: Iterable[Snapshot], repository: Repository | None = None
) -> tuple[History, ...]:
    """The history of each lane; the one with the most commits first."""
    lanes: dict[Lane, list[Snapshot]] = defaultdict(list)
    for each in snapshots:
        lanes[each.lane].append(each)
    unsorted = [_history(lane, each, repository) for lane, each in lanes.items()]
    return tuple(sorted(unsorted, key=lambda each: (-len(each.commits), each.lane)))


def _history(lane: Lane, snapshots: Sequence[Snapshot], repository: Repository | None) -> History:
    ordered, notes = _ordered(snapshots, repository)
    hashes = [each.commit for each in ordered]
    described = repository.described(hashes) if repository else {}
    commits = tuple(described.get(each) or Commit(each) for each in hashes)
    noted = _known_changes(repository, commits, notes)
    newest = ordered[-2:]
    failures: dict[str, list[int]] = defaultdict(list)
    for index, snapshot in enumerate(ordered):
        for cell in sorted(snapshot.failed):
            failures[cell].append(index)
    return History(
        lane,
        commits,
        regressions(newest[0], newest[1], annotations=noted[-1]) if noted else None,
        _moved(ordered, noted),
        {cell: tuple(places) for cell, places in failures.items()},
        tuple(dict.fromkeys(notes)),
    )


Level = tuple[int, int, float]  # its first place, how many values, and the level


def steps_of(values: Sequence[float | None], measure: Compared) -> tuple[Step, ...]:
    """Where a series leaves its level for good, beyond the bound of its measure.

    A level of a single commit between two that do not differ is none; the newest commit may be the
    first of its level. Levels are measured from that since the last step, so that many small
    changes in a row are reported once they add up.
    """

    def beyond(before: float, after: float) -> bool:
        return moved(measure, before, after) in ("worsening", "improvement")

    levels = [*(_fitted(values, beyond) if measure.sampled else _runs(values))]
    steps: list[Step] = []
    for i, (first, n, level) in enumerate(levels):
        if not i:
            current = level
        elif beyond(current, level):
            alone = n == 1 and i + 1 < len(levels)
            if not (alone and not beyond(current, levels[i + 1][2])):
                there = (place for place in range(first) if values[place] is not None)
                steps.append(Step(first, current, level, first - 1 - max(there)))
                current = level
    return tuple(steps)


def _runs(values: Sequence[float | None]) -> Iterator[Level]:
    """The levels of counts, which are exact: equal values in a row."""
    present = [(place, value) for place, value in enumerate(values) if value is not None]
    for level, group in groupby(present, key=lambda each: each[1]):
        places = [place for place, _ in group]
        yield places[0], len(places), level


def _fitted(
    values: Sequence[float | None], beyond: Callable[[float, float], bool]
) -> Iterator[Level]:
    """The levels of times, by asv's step detection; it fits one to values that rise steadily."""
    from asv.step_detect import detect_steps

    def parts(present: list[tuple[int, float]]) -> Iterator[Level]:
        numbers = [value for _, value in present]
        start, end = numbers[: len(numbers) // 4], numbers[-(len(numbers) // 4) :]
        if len(start) > 1 and (
            (max(start) < min(end) and beyond(max(start), min(end)))
            or (max(end) < min(start) and beyond(min(start), max(end)))
        ):
            middle = len(present) // 2
            yield from parts(present[:middle])
            yield from parts(present[middle:])
        else:
            yield present[0][0], len(present), float(median(numbers))

    for first, last, *_ in detect_steps(values):
        yield from parts([(i, x) for i in range(first, last) if (x := values[i]) is not None])


def _moved(
    snapshots: Sequence[Snapshot], noted: Sequence[tuple[Annotation, ...]]
) -> tuple[Moved, ...]:
    changed = []
    series = [each.values.set_index(["cell", "measure"])["value"] for each in snapshots]
    table = pd.concat(series, axis=1, keys=range(len(series))).sort_index()
    # Most values are the same everywhere: no need to look for steps.
    differing = table[table.max(axis=1) > table.min(axis=1)]
    for cell, name, *row in differing.reset_index().itertuples(index=False):
        numbers = [None if math.isnan(value) else value / unit_of(name) for value in row]
        measure = watched(name)
        if name != FAILED and (steps := steps_of(numbers, measure)):
            told = []
            for step in steps:
                # Known changes of all commits since the last one with a value.
                since = chain(*noted[step.place - step.gap - 1 : step.place])
                known = chosen([*since], cell, name, step.ratio)
                worse = moved(measure, step.before, step.after) == "worsening"
                kind = "known" if known else "worse" if worse else "better"
                told.append(step._replace(kind=kind, why=known.why if known else ""))
            last = next(each for each in reversed(numbers) if each is not None)
            changed.append(Moved(cell, measure, last, tuple(told)))
    return tuple(sorted(changed, key=lambda each: -each.steps[-1].place))


def _ordered(
    snapshots: Sequence[Snapshot], repository: Repository | None
) -> tuple[list[Snapshot], list[str]]:
    """The snapshots of one line of commits, and what is left out or uncertain of it."""
    by_date = sorted(snapshots, key=lambda each: (each.date, each.commit))
    present = repository.ordered([each.commit for each in by_date]) if repository else []
    if repository is None or not present:
        return by_date, ["There is no repository at hand: commits are in the order of their dates."]
    line = _longest_line(repository, present)
    by_hash = {each.commit: each for each in by_date}
    left_out = [each[:10] for each in by_hash if each not in line]
    notes = []
    if left_out:
        words = f"{plural(len(left_out), 'commit')} outside the repository's line of first parents"
        notes = [f"{words} left out: {some(left_out, 8)}."]
    return [by_hash[each] for each in line], notes


def _longest_line(repository: Repository, commits: Sequence[str]) -> list[str]:
    """The most of the commits that follow each other as first parents, the oldest first.

    Neighbours on different branches differ by what either lacks, which is no change over time.
    """
    best: list[str] = []
    seen: set[str] = set()
    for tip in reversed(commits):
        if tip not in seen:
            parents = set(repository.line(tip))
            line = [each for each in commits if each in parents]
            seen.update(line)
            best = max(best, line, key=len)
    return best


def _known_changes(
    repository: Repository | None, commits: Sequence[Commit], notes: list[str]
) -> list[tuple[Annotation, ...]]:
    """Those of each pair of neighbours; a file that cannot be read is a note."""
    pairs = [*pairwise(commits)]
    # A commit without a date is none of the repository.
    if repository is None or not commits[-1].date:
        return [()] * len(pairs)
    newest = repository.commit("HEAD").hash
    if repository.between(newest, commits[-1].hash):
        newest = commits[-1].hash
    noted = []
    unmeasured = 0
    for before, after in pairs:
        unmeasured += len(repository.between(before.hash, after.hash)) - 1
        try:
            noted.append(between(repository, before.hash, after.hash, newest))
        except ReportError as error:
            notes.append(f"Known changes are not read. {error}.")
            noted.append(())
    if unmeasured:
        notes.append(
            f"{plural(unmeasured, 'commit')} between these were not measured: a change may be of "
            "one of them."
        )
    return noted
