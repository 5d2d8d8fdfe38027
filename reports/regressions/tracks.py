"""What figures show of a history: relative values of a solver's cells, and marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..formatting import plural
from .annotations import chosen
from .history import History, Series
from .measures import Watched
from .sentences import ratio_words
from .sparklines import Mark, Numbers
from .steps import Step
from .values import Cell

#: The page of the commit at a place.
Address = Callable[[int], str]


@dataclass(frozen=True)
class Followed:
    """A measure of a solver over commits, relative to where it began.

    Attributes
    ----------
    measure : Watched
    curves : tuple of sequence of float or None
        One for each cell: ratios to its first value, or differences from it in per cent.
    mean : sequence of float or None
        The geometric mean of the ratios, or the mean of the differences. From commit to commit it
        follows the cells that both have, so that a new cell makes no step.
    """

    measure: Watched
    curves: tuple[Numbers, ...]
    mean: Numbers

    @property
    def words(self) -> str:
        """How far the mean has come."""
        last = next((each for each in reversed(self.mean) if each is not None), None)
        return "" if last is None else change_words(self.measure, last)

    @property
    def neutral(self) -> float:
        """The value of no change."""
        return 0.0 if in_points(self.measure) else 1.0


def in_points(measure: Watched) -> bool:
    """Whether changes of a measure are differences, where ratios would mislead."""
    return measure.unit == "%" or measure.name == "unsolved"


def change_words(measure: Watched, change: float) -> str:
    """A relative value in words: "×0.53" or "+0.25 points"."""
    if not in_points(measure):
        return ratio_words(change)
    unit = " points" if measure.unit == "%" else ""
    sign = "+" if change >= 0 else "\N{MINUS SIGN}"
    return f"{sign}{abs(change):.3g}{unit}"


def followed(series: Sequence[Series]) -> Followed:
    """A measure of several cells over commits.

    Parameters
    ----------
    series : sequence of Series
        Of one measure, all of the same length.
    """
    measure = series[0].measure
    points = in_points(measure)
    scaled = [[_scaled(each, points) for each in one.numbers] for one in series]
    firsts = [next((each for each in one if each is not None), 0.0) for one in scaled]
    back: Callable[[float], float] = float if points else math.exp
    curves = [
        tuple(None if each is None else back(each - first) for each in one)
        for one, first in zip(scaled, firsts, strict=True)
    ]
    mean = tuple(None if each is None else back(each) for each in _chained(scaled))
    return Followed(measure, tuple(curves), mean)


def _scaled(value: float | None, points: bool) -> float | None:
    if value is None or points:
        return value
    return math.log(value) if value > 0 else None


def _chained(curves: Sequence[Numbers]) -> Iterator[float | None]:
    """The sum of the mean changes from each commit to the next."""
    last: list[float | None] = [None] * len(curves)
    level = 0.0
    for place in range(len(curves[0])):
        now = [curve[place] for curve in curves]
        known = [
            value - before
            for value, before in zip(now, last, strict=True)
            if value is not None and before is not None
        ]
        level += sum(known) / len(known) if known else 0.0
        last = [before if value is None else value for value, before in zip(now, last, strict=True)]
        yield level if any(value is not None for value in now) else None


def series_marks(history: History, series: Series, address: Address) -> list[Mark]:
    """The steps, blips and failures of a value, each with its commit in words."""
    measure = series.measure
    marks = []
    for step in series.steps:
        words = f"{_named(history, step.place)}: {_step_words(measure, step)}"
        kind, why = _kind(history, series, step)
        marks.append(Mark(step.place, kind, words + why, step.after, address(step.place)))
    for place in sorted(series.changes.blips):
        value = series.numbers[place]
        if value is not None:
            words = f"{_named(history, place)}: blip, {measure.say(value)} here alone"
            marks.append(Mark(place, "blip", words, value, address(place)))
    marks += failure_marks(history, series.key.cell, address)
    return marks


def failure_marks(history: History, cell: Cell, address: Address) -> list[Mark]:
    """The commits at which a cell failed."""
    return [
        Mark(place, "failed", f"{_named(history, place)}: failed", None, address(place))
        for place in sorted(history.failures.get(cell, ()))
    ]


def group_marks(
    history: History, series: Sequence[Series], track: Followed, address: Address
) -> list[Mark]:
    """The commits at which cells of a solver have steps, with how many and how much."""
    by_place: dict[int, list[tuple[Series, Step]]] = {}
    for each in series:
        for step in each.steps:
            by_place.setdefault(step.place, []).append((each, step))
    marks = []
    for place, found in sorted(by_place.items()):
        kinds = {_kind(history, *each)[0] for each in found}
        kind = next(kind for kind in ("worse", "known", "better") if kind in kinds)
        cells = f"{len(found)} of {plural(len(series), 'cell')}"
        words = f"{_named(history, place)}: {track.measure.title} of {cells}"
        marks.append(Mark(place, kind, words + _range(found), track.mean[place], address(place)))
    return marks


def _range(found: Iterable[tuple[Series, Step]]) -> str:
    changes = sorted(
        change
        for series, step in found
        if (change := step_change(series.measure, step)) is not None
    )
    if not changes:
        return ""
    measure = next(iter(found))[0].measure
    low, high = (change_words(measure, each) for each in (changes[0], changes[-1]))
    return f", {low}" if low == high else f", {low} to {high}"


def step_change(measure: Watched, step: Step) -> float | None:
    """The size of a step as :func:`change_words` says it; None if there is no ratio."""
    return step.after - step.before if in_points(measure) else step.ratio


def _step_words(measure: Watched, step: Step) -> str:
    change = step_change(measure, step)
    size = f" ({change_words(measure, change)})" if change is not None else ""
    return f"{measure.say(step.before)} → {measure.say(step.after)}{size}"


def is_worse(measure: Watched, step: Step) -> bool:
    """Whether a step is one for the worse."""
    return measure.beyond(step.before, step.after) > 0


def _kind(history: History, series: Series, step: Step) -> tuple[str, str]:
    """How a step is marked, and why it is known."""
    annotations = history.pairs[step.place - 1].annotations
    known = chosen(annotations, series.key.cell, series.key.measure, step.ratio)
    if known:
        return "known", f". Known change: {known.why}"
    return ("worse" if is_worse(series.measure, step) else "better"), ""


def run_words(history: History, series: Series) -> Callable[[int, int], str]:
    """What a level of a line says: its value and the commits that have it."""

    def said(first: int, last: int) -> str:
        value = series.numbers[first]
        text = series.measure.say(value) if value is not None else ""
        if first == last:
            return f"{text}: {_named(history, first)}"
        ends = f"{history.commits[first].short} to {history.commits[last].short}"
        return f"{text}: {ends}, {plural(last - first + 1, 'commit')}"

    return said


def _named(history: History, place: int) -> str:
    commit = history.commits[place]
    return f"{commit.short} {commit.subject}".rstrip()
