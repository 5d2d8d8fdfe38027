"""Figures of lines: a median with its band against a cost, a size or a share, for each solver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from .. import formatting
from .axes import length, padded, set_log_axis
from .canvas import (
    FONT,
    HEIGHT,
    MARGINS,
    MUTED,
    WIDTH,
    Sheet,
    SolverStyle,
    figure_of,
    new_axes,
    text_width,
)

Array = npt.NDArray[np.float64]
Rows = Mapping[str, npt.NDArray[Any]]

#: More labels beside a panel than this would make it higher than it is wide.
MOST_LABELS = 24
#: Height of a label at the end of a line, in units of its font.
LABEL = 1.08
# Between the end of the axes and the labels of the lines that end there.
_LEADER = 9.0
_MOST_CHARACTERS = 15
# How many characters of a long label may stay before the gap, in the order in which they are tried.
_HEADS = (9, 14, 4, 12, 0, 7)
_MARKERS_PER_CURVE = 6


@dataclass(frozen=True)
class Axis:
    """An axis of a figure.

    Attributes
    ----------
    words : str
        Below it.
    format : str
        How its ticks read: of :data:`marginbench.reports.formatting.FORMATS`; "share" for one from
        0 to 100 %.
    log : bool
    limits : (float, float), optional
        By default those of the numbers.
    padding : (float, float)
        Room below and above the numbers, in fractions of their range.
    most : int, optional
        Ticks at most.
    """

    words: str = ""
    format: str = "count"
    log: bool = True
    limits: tuple[float, float] | None = None
    padding: tuple[float, float] = (0.03, 0.05)
    most: int | None = None

    def set(self, axes: Axes, which: str, values: Array) -> None:
        """Give axes its scale, limits and ticks."""
        if self.log:
            limits = self.limits or padded(values[values > 0], *self.padding)
            set_log_axis(axes, which, *limits, self.format, self.most)
        elif self.limits:
            axes.set(**{f"{which}lim": self.limits})
        axis = axes.xaxis if which == "x" else axes.yaxis
        if self.format == "share":
            axis.set_major_locator(FixedLocator((0.0, 0.25, 0.5, 0.75, 1.0)))
            axis.set_major_formatter(FuncFormatter(_percent))
        elif self.format == "integer" and not self.log:
            axis.set_major_locator(MaxNLocator(integer=True))
        if which == "x":
            axes.set_xlabel(self.words)


def _percent(share: float, _: object) -> str:
    return f"{100 * share:g}{formatting.THIN}%"


@dataclass(frozen=True)
class Lines:
    """A figure of lines, to be drawn on a sheet.

    Attributes
    ----------
    frame : DataFrame
        Columns solver, x and y; low and high for a band or a range, and drawn, which says what a
        row is: "median" (by default), "run" (of seed, as a thin line), "failed run" (one that ends
        in a cross), "end" (a lone marker, with x_low and x_high) or "dashed" (a thin dashed line).
    x, y : Axis
    styles : mapping of str to SolverStyle
        By solver label; also the drawing order.
    steps : bool
        Whether a value holds until the next x.
    levels : sequence of (float, str)
        Dashed horizontal lines with their words.
    floor : float
        Where zero is drawn on a logarithmic axis.
    markers : int
        Marks on a line, apart from its end.
    named : bool
        Whether muted solvers are named beside the figure.
    size : (float, float)
        Of the figure, in points.
    margins : tuple of float
    """

    frame: pd.DataFrame
    x: Axis
    y: Axis
    styles: Mapping[str, SolverStyle]
    steps: bool = True
    levels: Sequence[tuple[float, str]] = ()
    floor: float = 0.0
    markers: int = _MARKERS_PER_CURVE
    named: bool = True
    size: tuple[float, float] = (WIDTH, HEIGHT)
    margins: tuple[float, float, float, float] = MARGINS

    def __call__(self, sheet: Sheet) -> Figure:
        """Draw it."""
        frame = self.frame
        if "seed" in frame:
            # Single runs come first, below their medians.
            frame = frame.sort_values("seed", kind="stable")
        columns = {str(name): frame[name].to_numpy() for name in frame}
        solvers = columns["solver"]
        kinds = columns.get("drawn", np.full(len(solvers), "median", dtype=object))
        shown = [solver for solver in self.styles if solver in set(solvers)]
        named = _names(shown, self.styles) if self.named else {}
        axes = self._axes(sheet, list(named.values()))
        ends: dict[str, tuple[float, float]] = {}
        for place, solver in enumerate(shown):
            mine = solvers == solver
            for kind in dict.fromkeys(kinds[mine]):
                chosen = np.flatnonzero(mine & (kinds == kind))
                rows = {name: values[chosen] for name, values in columns.items()}
                line = _Line(axes, self, self.styles[solver], sheet.scale, place / len(shown))
                end = line.draw(str(kind), rows)
                if kind not in ("run", "dashed"):
                    ends[solver] = end
        for place, (value, words) in enumerate(self.levels):
            _level(axes, value, words, sheet, at_left=place % 2 == 0)
        _label_ends(
            axes, {solver: ends[solver] for solver in named if solver in ends}, named, sheet
        )
        return figure_of(axes)

    def _axes(self, sheet: Sheet, named: list[str]) -> Axes:
        left, right, bottom, top = self.margins
        width, height = self.size
        if named:
            right += _LEADER + max(map(text_width, named))
            height = max(height, LABEL * FONT * len(named) + bottom + top)
        axes = new_axes(sheet, width, height, (left, right, bottom, top))
        x = [self.frame[name] for name in ("x", "x_low", "x_high") if name in self.frame]
        y = [self.frame[name] for name in ("low", "high") if name in self.frame]
        y += [self.frame["y"], pd.Series([value for value, _ in self.levels], dtype=float)]
        self.x.set(axes, "x", np.concatenate(x).astype(float))
        values = self.at(np.concatenate(y).astype(float))
        self.y.set(axes, "y", values[np.isfinite(values)])
        return axes

    def at(self, values: npt.ArrayLike) -> Array:
        """Values as drawn: on a logarithmic axis zero is at the floor."""
        found = np.asarray(values, dtype=np.float64)
        return np.where(found <= 0, self.floor, found) if self.y.log else found


@dataclass(frozen=True)
class _Line:
    """What a figure shows of one solver."""

    axes: Axes
    lines: Lines
    style: SolverStyle
    scale: float
    offset: float

    def draw(self, kind: str, rows: Rows) -> tuple[float, float]:
        """Draw the rows of a kind; where they end."""
        x, y = rows["x"].astype(np.float64), self.lines.at(rows["y"])
        if kind == "median":
            self._median(rows, x, y)
        elif kind == "end":
            self._ends(rows, x, y)
        elif kind == "dashed":
            self.axes.plot(x, y, color=self.style.color, lw=1.1 * self.scale, dashes=(4, 1.8))
        else:
            self._runs(rows, x, y, failed=kind == "failed run")
        return float(x[-1]), float(y[-1])

    def _median(self, rows: Rows, x: Array, y: Array) -> None:
        style = self.style
        banded = "low" in rows and not style.muted
        drawn = "steps-post" if self.lines.steps else "default"
        if banded:
            low, high = self.lines.at(rows["low"]), self.lines.at(rows["high"])
            if (high > low).any():
                kept = _changes(self.lines.steps, low, high)
                self.axes.fill_between(
                    x[kept], low[kept], high[kept], step="post" if self.lines.steps else None,
                    color=style.color, alpha=0.13, lw=0,
                )  # fmt: skip
        kept = _changes(self.lines.steps, y)
        x, y = x[kept], y[kept]
        step = max(len(x) // max(self.lines.markers, 1), 1)
        marked = range(int(self.offset * step), len(x) - 1, step) if self.lines.markers else ()
        line = style.line(1.5 * self.scale, 4.8 * self.scale)
        self.axes.plot(x, y, drawstyle=drawn, markevery=[*marked, len(x) - 1], **line)

    def _ends(self, rows: Rows, x: Array, y: Array) -> None:
        """Medians as lone markers with range bars."""
        bars: dict[str, Any] = {"color": self.style.color, "lw": self.scale}
        self.axes.hlines(y, rows["x_low"], rows["x_high"], **bars)
        self.axes.vlines(x, self.lines.at(rows["low"]), self.lines.at(rows["high"]), **bars)
        line = self.style.line(1.0, 8 * self.scale) | {"ls": "", "dashes": (None, None)}
        self.axes.plot(x, y, **line | ({"marker": "o", "ms": 4} if self.style.muted else {}))

    def _runs(self, rows: Rows, x: Array, y: Array, *, failed: bool) -> None:
        """All runs as one line, with a gap where a run begins; failed ones end in a cross."""
        if self.style.muted and not failed:
            return
        starts = np.flatnonzero(np.diff(rows["seed"]) != 0) + 1
        lasts = [*(starts - 1), len(x) - 1]
        look: dict[str, Any] = {"lw": 0.8, "alpha": 0.65} if failed else {"lw": 0.5, "alpha": 0.45}
        if failed:
            self.axes.plot(
                x[lasts], y[lasts], ls="", color=self.style.color, marker="x",
                ms=6.5 * self.scale, mew=1.6 * self.scale,
            )  # fmt: skip
        self.axes.plot(
            np.insert(x, starts, np.nan), np.insert(y, starts, np.nan), drawstyle="steps-post",
            color=self.style.color, **look,
        )  # fmt: skip


def _changes(steps: bool, *columns: Array) -> npt.NDArray[np.bool_]:
    """Which points of a step curve are seen: its ends, and those where it changes."""
    kept = np.ones(len(columns[0]), dtype=bool)
    if steps and len(kept) > 2:
        kept[1:-1] = np.any([np.diff(column)[:-1] != 0 for column in columns], axis=0)
    return kept


def _level(axes: Axes, value: float, words: str, sheet: Sheet, *, at_left: bool) -> None:
    """A dashed horizontal line with its words above it."""
    axes.axhline(value, color=MUTED, lw=0.9 * sheet.scale, dashes=(4, 3), zorder=1.5)
    axes.annotate(
        words, xy=(0.008 if at_left else 0.992, value), xycoords=("axes fraction", "data"),
        xytext=(0, 2), textcoords="offset points", ha="left" if at_left else "right", va="bottom",
        fontsize=sheet.font, color=MUTED,
    )  # fmt: skip


def _names(solvers: Iterable[str], styles: Mapping[str, SolverStyle]) -> dict[str, str]:
    """The muted solvers, which are named beside the panel -> their short names."""
    return shortened([solver for solver in solvers if styles[solver].muted][:MOST_LABELS])


def shortened(labels: Sequence[str]) -> dict[str, str]:
    """Labels without their middle where they are long, told apart if some cut can."""
    found: dict[str, str] = {}
    for head in _HEADS:
        found = {label: _without_middle(label, head) for label in labels}
        if len(set(found.values())) == len(found):
            break
    return found


def _without_middle(label: str, head: int) -> str:
    if len(label) <= _MOST_CHARACTERS:
        return label
    return f"{label[:head]}…{label[len(label) - (_MOST_CHARACTERS - 1 - head) :]}"


def _label_ends(
    axes: Axes, ends: Mapping[str, tuple[float, float]], names: Mapping[str, str], sheet: Sheet
) -> None:
    """Write names beside the panel, each led from where its line ends."""
    if not ends:
        return
    height, gap = length(axes, "y"), LABEL * sheet.font
    if sheet.width is not None:
        # What will be left of the figure once there are its title, its legend and its axis.
        height = 72 * figure_of(axes).get_figheight() - sheet.extra - 3.5 * sheet.font
    points = axes.transData.transform(np.array(list(ends.values())))
    fractions = axes.transAxes.inverted().transform(points)
    places = pushed_apart(fractions[:, 1] * height, gap, gap / 2, height - gap / 2) / height
    leader = _LEADER / length(axes, "x")
    shared: dict[str, Any] = {"transform": axes.transAxes, "color": MUTED, "clip_on": False}
    for solver, (x, y), place in zip(ends, fractions, places, strict=True):
        axes.plot(
            [x, 1.0, 1 + 0.7 * leader], [y, y, place], lw=0.6, dashes=(1, 1.6), zorder=1.4, **shared
        )
        axes.text(
            1 + leader, place, names[solver], fontsize=sheet.font, va="center_baseline", **shared
        )


def pushed_apart(wanted: Array, gap: float, low: float, high: float) -> Array:
    """Places at least a gap apart, as near to the wanted ones as can be (least squares).

    In the order of ``wanted``; equal wishes keep their order.
    """
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    # Less a gap for each label below, they have only to ascend: pool those that do not.
    pools: list[tuple[float, int]] = []
    for value in wanted[order] - steps:
        mean, size = float(value), 1
        while pools and pools[-1][0] > mean:
            other, n = pools.pop()
            mean, size = (mean * size + other * n) / (size + n), size + n
        pools.append((mean, size))
    ascending = np.concatenate([np.full(size, mean) for mean, size in pools])
    places = np.empty(len(wanted))
    places[order] = np.clip(ascending, low, max(high - steps[-1], low)) + steps
    return places
