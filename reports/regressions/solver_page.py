"""The page of a solver: every value of it over commits, task by task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..formatting import plural
from .annotations import chosen
from .history import History, Series, varies
from .measures import KNOWN, Watched
from .pages import page_of
from .repository import Commit
from .sparklines import KEY, sparkline
from .steps import Step
from .tracks import (
    Address,
    change_words,
    failure_marks,
    is_worse,
    run_words,
    series_marks,
    step_change,
)
from .values import Cell, Key


@dataclass(frozen=True)
class _Shown:
    """One value over commits: a figure where it changed, else the value alone."""

    title: str
    last: str
    since: str
    svg: Markup | None
    marked: int


@dataclass(frozen=True)
class _Change:
    """What a commit changed of the solver for good."""

    commit: Commit
    address: str
    lines: Sequence[tuple[str, bool]]
    known: Sequence[str]


def solver_page(
    history: History,
    group: str,
    cells: Sequence[Cell],
    *,
    address: Address,
    site: str = "",
    site_solver: str = "",
) -> str:
    """The page as HTML text.

    Parameters
    ----------
    history : History
    group : str
        The solver.
    cells : sequence of Cell
        All of them.
    address : callable
        The page of the commit at a place.
    site, site_solver : str
        The overview of the site and its page of the solver; empty for none.
    """
    series = [each for cell in cells for each in _series_of(history, cell)]
    measures = _measures(series)
    steps = [(each, step) for each in series for step in each.steps]
    blips = sum(len(each.changes.blips) for each in series)
    return page_of(
        "regressions_solver.html",
        group=group,
        history=history,
        summary=_summary(history, cells, len(steps), blips),
        changes=_changes(history, steps, address),
        measures=measures,
        rows=[
            (
                cell.name.partition(" ")[2] or cell.suite,
                cell,
                _row(history, cell, measures, address),
            )
            for cell in cells
        ],
        site=site,
        site_solver=site_solver,
        key=KEY,
    )


def _series_of(history: History, cell: Cell) -> list[Series]:
    return [each for key, each in history.series.items() if key.cell == cell]


def _measures(series: Sequence[Series]) -> list[Watched]:
    """The measures of the solver: those of the suites in their order, then the others."""
    known = list(KNOWN)
    found = {each.measure for each in series}
    return sorted(
        found,
        key=lambda each: (known.index(each.name) if each.name in known else len(known), each.name),
    )


def _summary(history: History, cells: Sequence[Cell], n_steps: int, n_blips: int) -> str:
    failing = [cell for cell in cells if len(history.commits) - 1 in history.failures.get(cell, ())]
    parts = [plural(n_steps, "step") if n_steps else "no step"]
    if n_blips:
        parts.append(plural(n_blips, "blip"))
    text = (
        f"{plural(len(cells), 'cell')} over {plural(len(history.commits), 'commit')}: "
        f"{' and '.join(parts)}."
    )
    if failing:
        text += f" {plural(len(failing), 'cell')} of the newest commit failed."
    return text


def _changes(
    history: History, steps: Sequence[tuple[Series, Step]], address: Address
) -> list[_Change]:
    """What each commit changed, the newest first."""
    found = []
    for place in sorted({step.place for _, step in steps}, reverse=True):
        here = [(series, step) for series, step in steps if step.place == place]
        annotations = history.pairs[place - 1].annotations
        known = [
            chosen(annotations, each.key.cell, each.key.measure, step.ratio) for each, step in here
        ]
        why = list(dict.fromkeys(each.why for each in known if each))
        found.append(_Change(history.commits[place], address(place), _lines(here), why))
    return found


def _lines(here: Sequence[tuple[Series, Step]]) -> list[tuple[str, bool]]:
    """What changed, a line for each measure and direction, and whether it is for the worse."""
    ways: dict[tuple[Watched, bool], list[float | None]] = {}
    for series, step in here:
        way = series.measure, is_worse(series.measure, step)
        ways.setdefault(way, []).append(step_change(series.measure, step))
    lines = []
    for (measure, worse), changes in sorted(ways.items(), key=lambda item: -len(item[1])):
        sizes = sorted(each for each in changes if each is not None)
        ends = [change_words(measure, each) for each in (sizes[:1] + sizes[-1:])]
        size = " to ".join(dict.fromkeys(ends))
        text = f"{measure.title} {size} in {plural(len(changes), 'cell')}"
        lines.append((text, worse))
    return lines


def _row(
    history: History, cell: Cell, measures: Sequence[Watched], address: Address
) -> list[_Shown | None]:
    return [
        _shown(history, history.series.get(Key(cell, measure.name)), address)
        for measure in measures
    ]


def _shown(history: History, series: Series | None, address: Address) -> _Shown | None:
    if series is None:
        return None
    known = [each for each in series.numbers if each is not None]
    last = series.measure.say(known[-1])
    total = step_change(series.measure, Step(0, known[0], known[-1]))
    since = "" if total is None or known[0] == known[-1] else change_words(series.measure, total)
    failed = failure_marks(history, series.key.cell, address)
    marked = len(series.steps) + len(series.changes.blips) + len(failed)
    if not (varies(series.measure) or marked or None in series.numbers):
        return _Shown(series.measure.title, last, "", None, marked)
    marks = series_marks(history, series, address)
    label = f"{series.measure.title} of {series.key.cell.name}: {_happened(series, len(failed))}"
    svg = sparkline(series.numbers, marks, label, run_words(history, series))
    return _Shown(series.measure.title, last, since, svg, marked)


def _happened(series: Series, failures: int) -> str:
    """What a figure shows, for those who do not see it."""
    counts = (
        (len(series.steps), "step"),
        (len(series.changes.blips), "blip"),
        (failures, "failure"),
    )
    return ", ".join(plural(n, word) for n, word in counts if n) or "no step"
