"""The pages of a history: an overview of commits and solvers, and a page for each of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from ..formatting import plural
from ..naming import slug, unused
from . import sentences, words
from .history import History, Neighbours, Series
from .pages import Navigation, page_of, render_pair
from .solver_page import solver_page
from .sparklines import KEY, Mark, ratio_figure
from .tracks import (
    Address,
    Followed,
    failure_marks,
    followed,
    group_marks,
)
from .values import Cell

#: The page to open.
INDEX = "index.html"
# What the overview draws of a solver where it changed.
_DRAWN = ("evaluations", "suboptimality", "test_error")
_SHORT = 12


@dataclass(frozen=True)
class Surroundings:
    """What the pages belong to; all addresses are relative to the folder of the pages.

    Attributes
    ----------
    site : str
        The overview of the site; empty for none.
    solvers : mapping of str to str
        Pages of the site by names of solvers.
    commit_url : str
        What a hash is put behind to show the commit on the web; empty for none.
    """

    site: str = ""
    solvers: Mapping[str, str] = field(default_factory=dict)
    commit_url: str = ""


@dataclass(frozen=True)
class Places:
    """Where the pages of a lane are, relative to the folder of all.

    Attributes
    ----------
    folder : str
        Of the lane: empty for the first one, else with a slash at its end.
    solvers : mapping of str to str
        Files by names of solvers.
    commits : sequence of str
        Files of the commits in ``commits/``; the first commit of a history has none.
    """

    folder: str
    solvers: Mapping[str, str]
    commits: Sequence[str]

    @classmethod
    def of(cls, history: History, number: int) -> Places:
        """The places of the lane of a number, from 0 on."""
        files: dict[str, str] = {}
        for name in history.groups():
            base = unused(slug(name, "solver"), [*files.values(), "index"])
            files[name] = base
        shorts = [commit.hash[:_SHORT] for commit in history.commits]
        unique = len(set(shorts)) == len(shorts)
        names = shorts if unique else [commit.hash for commit in history.commits]
        return cls(
            f"lane-{number + 1}/" if number else "",
            {name: f"{base}.html" for name, base in files.items()},
            ["", *(f"commits/{name}.html" for name in names[1:])],
        )

    @property
    def up(self) -> str:
        """From the folder of the lane to the folder of all."""
        return "../" if self.folder else ""


def history_pages(
    histories: Sequence[History],
    surroundings: Surroundings | None = None,
) -> Iterator[tuple[str, str]]:
    """All pages by their paths.

    Parameters
    ----------
    histories : sequence of History
        The lane that is shown first comes first.
    surroundings : Surroundings, optional
    """
    around = surroundings or Surroundings()
    places = [Places.of(history, number) for number, history in enumerate(histories)]
    for number, (history, place) in enumerate(zip(histories, places, strict=True)):
        others = [
            (other.lane, f"{place.up}{where.folder}{INDEX}", len(other.commits))
            for i, (other, where) in enumerate(zip(histories, places, strict=True))
            if i != number
        ]
        yield f"{place.folder}{INDEX}", _index(history, place, around, others)
        for group, cells in history.groups().items():
            yield (
                f"{place.folder}{place.solvers[group]}",
                _solver(history, place, around, group, cells),
            )
        for i, pair in enumerate(history.pairs, 1):
            navigation = _navigation(history, place, around, i)
            yield f"{place.folder}{place.commits[i]}", render_pair(pair, navigation)


def _navigation(history: History, places: Places, around: Surroundings, i: int) -> Navigation:
    """Where the page of the commit at a place leads to."""
    pair = history.pairs[i - 1]
    beside = [
        places.commits[j].removeprefix("commits/") if 0 < j < len(places.commits) else ""
        for j in (i - 1, i + 1)
    ]
    changed = {each.name for each in words.groups(pair.comparison)}
    return Navigation(
        overview=f"../{INDEX}",
        site=around.site and f"../{places.up}{around.site}",
        earlier=beside[0],
        later=beside[1],
        solvers=tuple(
            (name, f"../{file}") for name, file in places.solvers.items() if name in changed
        ),
        commit=_web(around, pair.head.hash),
    )


def _web(around: Surroundings, commit: str) -> str:
    return f"{around.commit_url}{commit}" if around.commit_url else ""


@dataclass(frozen=True)
class _Row:
    """A commit in the overview; the first one has no pair."""

    commit: Any
    address: str
    web: str
    pair: Neighbours | None
    counts: Sequence[tuple[str, int]]
    groups: str


def _rows(history: History, places: Places, around: Surroundings) -> list[_Row]:
    """The commits, the newest first."""
    shown = shown_kinds(history)
    found = []
    for i, commit in enumerate(history.commits):
        pair = history.pairs[i - 1] if i else None
        kinds = pair.kinds if pair else {}
        counts = [(kind, kinds.get(kind, 0)) for kind, _ in shown]
        groups = _groups(pair) if pair else ""
        web = _web(around, commit.hash)
        found.append(_Row(commit, places.commits[i], web, pair, counts, groups))
    return found[::-1]


def shown_kinds(history: History) -> list[tuple[str, str]]:
    """The kinds of cells that have a column: those that matter, and those that there are."""
    there = {kind for pair in history.pairs for kind, n in pair.kinds.items() if n}
    always = {"failed", "regression", "improvement"}
    return [
        item for item in sentences.KINDS if item[0] != "still failing" and item[0] in there | always
    ]


def _groups(pair: Neighbours) -> str:
    """The solvers that a commit changed."""
    kinds = {kind for kind, _ in sentences.KINDS} - {"still failing"}
    found = sentences.groups_of(pair, kinds)
    names = sorted(found, key=lambda name: (-found[name], name.casefold()))
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


@dataclass(frozen=True)
class _Figure:
    """A measure of a solver over commits."""

    title: str
    words: str
    svg: Markup


@dataclass(frozen=True)
class _Solver:
    """A solver in the overview."""

    name: str
    address: str
    cells: int
    figures: Sequence[_Figure]


def _index(
    history: History,
    places: Places,
    around: Surroundings,
    others: Sequence[tuple[Any, str, int]],
) -> str:
    solvers = [
        _Solver(group, places.solvers[group], len(cells), _figures(history, places, cells))
        for group, cells in history.groups().items()
    ]
    newest = history.pairs[-1] if history.pairs else None
    return page_of(
        "regressions_index.html",
        history=history,
        newest=newest,
        verdict=newest_sentence(history),
        bad=is_bad(history),
        last=_last_change(history, places),
        rows=_rows(history, places, around),
        kinds=shown_kinds(history),
        bad_kinds=sentences.BAD,
        changed=[each for each in solvers if each.figures],
        unchanged=[each for each in solvers if not each.figures],
        others=others,
        key=KEY,
        newest_address=places.commits[-1],
        up=around.site and f"{places.up}{around.site}",
    )


def newest_sentence(history: History) -> str:
    """The verdict on the newest commit."""
    if not history.pairs:
        return "One commit was measured; there is nothing to compare it with."
    return sentences.newest_sentence(history.pairs[-1], len(history.commits))


def is_bad(history: History) -> bool:
    """Whether the newest commit made anything worse that is no known change."""
    return bool(history.pairs) and any(history.pairs[-1].kinds[kind] for kind in sentences.BAD)


def _last_change(history: History, places: Places) -> tuple[Any, str, str] | None:
    """The last commit before the newest that changed anything: itself, its page, and what."""
    for i in range(len(history.pairs) - 1, 0, -1):
        pair = history.pairs[i - 1]
        if _groups(pair):
            return pair.head, places.commits[i], sentences.headline(pair)
    return None


def _figures(history: History, places: Places, cells: Sequence[Cell]) -> list[_Figure]:
    """What changed of a solver; nothing if nothing did."""

    def address(place: int) -> str:
        return places.commits[place]

    of_solver = set(cells)
    by_measure: dict[str, list[Series]] = {}
    for key, each in history.series.items():
        if key.cell in of_solver:
            by_measure.setdefault(key.measure, []).append(each)
    stepped = [name for name, found in by_measure.items() if any(each.steps for each in found)]
    gating = [name for name in stepped if by_measure[name][0].measure.gates]
    drawn = [name for name in _DRAWN if name in stepped] or gating[:1] or stepped[:1]
    figures = []
    for name in drawn:
        track = followed(by_measure[name])
        marks = group_marks(history, by_measure[name], track, address)
        stepped_cells = sum(bool(each.steps) for each in by_measure[name])
        figures.append(_figure(track, stepped_cells, marks, history, cells, address))
    if not figures and any(cell in history.failures for cell in cells):
        return [_failures_only(history, cells, address)]
    return figures


def _figure(
    track: Followed,
    stepped: int,
    marks: Sequence[Mark],
    history: History,
    cells: Sequence[Cell],
    address: Address,
) -> _Figure:
    failures = {
        mark.place: mark for cell in cells for mark in failure_marks(history, cell, address)
    }
    steps = plural(len(marks), "commit")
    label = f"{track.measure.title} of {cells[0].group}: {track.words} after steps at {steps}"
    svg = ratio_figure(
        track.curves, track.mean, [*marks, *failures.values()], label, neutral=track.neutral
    )
    ended = f"{track.words}, {stepped} of {plural(len(track.curves), 'cell')}"
    return _Figure(track.measure.title, ended, svg)


def _failures_only(history: History, cells: Sequence[Cell], address: Address) -> _Figure:
    n = len(history.commits)
    marks = {mark.place: mark for cell in cells for mark in failure_marks(history, cell, address)}
    label = f"Failures of {cells[0].group} over commits"
    svg = ratio_figure((), [None] * n, list(marks.values()), label)
    return _Figure("failures", "", svg)


def _solver(
    history: History, places: Places, around: Surroundings, group: str, cells: Sequence[Cell]
) -> str:
    site_page = around.solvers.get(group, "")
    return solver_page(
        history,
        group,
        cells,
        address=lambda place: places.commits[place],
        site=around.site and f"{places.up}{around.site}",
        site_solver=site_page and f"{places.up}{site_page}",
    )
