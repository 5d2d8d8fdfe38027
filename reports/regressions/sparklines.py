"""Figures of values over commits as compact inline SVG: a page has hundreds of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

#: Sizes in the units of the view box, which are pixels on a phone.
WIDTH, HEIGHT = 132, 34
_PAD = 5.0
# Changes smaller than this look small.
_LEAST_SPAN = math.log(1.1)

#: Values by commit; None where there is none.
Numbers = Sequence[float | None]


@dataclass(frozen=True)
class Mark:
    """What happened at a commit.

    Attributes
    ----------
    place : int
    kind : {"worse", "better", "blip", "failed", "known"}
    words : str
        Shown when pointed at.
    value : float or None
        Where it stands; None: at the lower edge.
    address : str
        The page that it leads to; empty for none.
    """

    place: int
    kind: str
    words: str
    value: float | None = None
    address: str = ""


@dataclass(frozen=True)
class Frame:
    """Where values and commits are in a figure.

    Attributes
    ----------
    n : int
        Commits; each has a strip of the same width.
    low, high : float
        The ends of the axis.
    log : bool
    width, height : float
    """

    n: int
    low: float
    high: float
    log: bool
    width: float = WIDTH
    height: float = HEIGHT

    @classmethod
    def of(
        cls, values: Iterable[float], n: int, width: float = WIDTH, height: float = HEIGHT
    ) -> Frame:
        """A frame that holds values; logarithmic if all of them are positive."""
        known = list(values) or [1.0]
        log = min(known) > 0
        ends = [math.log(each) if log else each for each in (min(known), max(known))]
        least = _LEAST_SPAN if log else 0.1 * max(1.0, *map(abs, ends))
        spare = max(least - (ends[1] - ends[0]), 0) / 2
        return cls(n, ends[0] - spare, ends[1] + spare, log, width, height)

    def x(self, place: float) -> float:
        """The left edge of the strip of a commit."""
        return _PAD + (self.width - 2 * _PAD) * place / self.n

    def y(self, value: float) -> float:
        """The height of a value."""
        share = ((math.log(value) if self.log else value) - self.low) / (self.high - self.low)
        return self.height - _PAD - (self.height - 2 * _PAD) * share


def sparkline(
    numbers: Numbers, marks: Sequence[Mark], label: str, said: Callable[[int, int], str]
) -> Markup:
    """A step line over commits with marks.

    Parameters
    ----------
    numbers : sequence of float or None
    marks : sequence of Mark
    label : str
        The figure in words, for those who do not see it.
    said : callable
        What a part of the line says when pointed at, from its first and last place.
    """
    frame = Frame.of((each for each in numbers if each is not None), len(numbers))
    parts = [_path(_steps(numbers, frame), "line"), *_strips(numbers, frame, said)]
    return _svg(frame, label, [*parts, *(_mark(each, frame) for each in marks)])


def ratio_figure(
    curves: Sequence[Numbers],
    mean: Numbers,
    marks: Sequence[Mark],
    label: str,
    *,
    neutral: float = 1.0,
) -> Markup:
    """Thin lines and a bold one of changes, with a line at no change.

    Parameters
    ----------
    curves : sequence of sequence of float or None
    mean : sequence of float or None
        The bold line.
    marks : sequence of Mark
    label : str
    neutral : float
        The value of no change.
    """
    values = [each for curve in (*curves, mean) for each in curve if each is not None]
    frame = Frame.of([*values, neutral], len(mean), 220, 72)
    # Many cells change alike; a line drawn once says the same.
    thin = dict.fromkeys(_steps(curve, frame) for curve in curves)
    unchanged = f"M{_PAD:g} {_short(frame.y(neutral))}H{frame.width - _PAD:g}"
    parts = [
        _path(unchanged, "base"),
        _path("".join(thin), "thin"),
        _path(_steps(mean, frame), "bold"),
    ]
    return _svg(frame, label, [*parts, *(_mark(each, frame) for each in marks)])


def _svg(frame: Frame, label: str, parts: Iterable[Markup]) -> Markup:
    size = f"0 0 {frame.width:g} {frame.height:g}"
    # A group and no image: the marks are links.
    return Markup('<svg class="spark" viewBox="{}" role="group" aria-label="{}">{}</svg>').format(
        size, label, Markup("").join(parts)
    )


def _path(drawn: str, style: str) -> Markup:
    return Markup('<path class="{}" d="{}"/>').format(style, drawn) if drawn else Markup("")


def _steps(numbers: Numbers, frame: Frame) -> str:
    """A line that is level at each value and vertical between commits; gaps stay open."""
    parts: list[str] = []
    open_ = False
    for first, last, value in _runs(numbers):
        if value is None:
            open_ = False
            continue
        y = _short(frame.y(value))
        parts.append(f"V{y}" if open_ else f"M{_short(frame.x(first))} {y}")
        parts.append(f"H{_short(frame.x(last + 1))}")
        open_ = True
    return "".join(parts)


def _strips(numbers: Numbers, frame: Frame, said: Callable[[int, int], str]) -> Iterable[Markup]:
    """Wide unseen lines along each level, to be pointed at."""
    for first, last, value in _runs(numbers):
        if value is not None:
            drawn = (
                f"M{_short(frame.x(first))} {_short(frame.y(value))}H{_short(frame.x(last + 1))}"
            )
            yield Markup('<path class="hit" d="{}"><title>{}</title></path>').format(
                drawn, said(first, last)
            )


def _runs(numbers: Numbers) -> Iterable[tuple[int, int, float | None]]:
    """First and last place of equal neighbours, and their value."""
    for value, places in groupby(range(len(numbers)), key=lambda place: numbers[place]):
        found = list(places)
        yield found[0], found[-1], value


def _mark(mark: Mark, frame: Frame) -> Markup:
    x = frame.x(mark.place) if mark.kind != "failed" else frame.x(mark.place + 0.5)
    y = frame.height - _PAD if mark.value is None else frame.y(mark.value)
    drawn = Markup('<path class="mark {}" d="{}"><title>{}</title></path>').format(
        mark.kind, _shape(mark.kind, x, y), mark.words
    )
    if not mark.address:
        return drawn
    # The same links stand in a table of the page, for the keyboard.
    return Markup('<a href="{}" tabindex="-1">{}</a>').format(mark.address, drawn)


def _shape(kind: str, x: float, y: float) -> str:
    at = f"M{_short(x)} {_short(y)}"
    if kind == "worse":  # a triangle that points up, as less is better
        return f"{at}m-4 3h8l-4-7z"
    if kind == "better":
        return f"{at}m-4-3h8l-4 7z"
    if kind == "blip":
        return f"{at}m0-4l4 4l-4 4l-4-4z"
    if kind == "known":
        return f"{at}m-3-3h6v6h-6z"
    return f"{at}m-3-3l6 6m0-6l-6 6"


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _key(kind: str) -> Markup:
    drawn = _path(_shape(kind, 7, 7), f"mark {kind}")
    return Markup('<svg class="spark" viewBox="0 0 14 14" aria-hidden="true">{}</svg>').format(
        drawn
    )


#: What the marks mean: a drawing of each, and words.
KEY = (
    (_key("worse"), "worse from here on"),
    (_key("better"), "better from here on"),
    (_key("known"), "known change"),
    (_key("blip"), "blip: one commit only"),
    (_key("failed"), "failed"),
)
