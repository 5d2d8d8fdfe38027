"""The figures of a page: what each shows, in words and on a sheet."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedFormatter,
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    PercentFormatter,
)

from ...harness.results.measures import Measure
from .. import formatting
from ..described import capitalised
from ..frames import FEWEST_FOR_QUARTILES, of_task, records
from ..statistics.ranks import LEVEL
from .canvas import (
    FONT,
    HEIGHT,
    INK,
    MARGINS,
    MUTED,
    RULE,
    WIDTH,
    Drawing,
    Sheet,
    SolverStyle,
    figure_of,
    new_axes,
    text_width,
)

# Multiples of a power of ten that are tried in turn once powers alone are too few.
_MULTIPLES = ((1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8))
# Ticks at least, and at most.
_FEWEST = 3
_MOST = {"x": 7, "y": 9}
# Decimals read better than powers of ten from a tenth of a millisecond to some hours.
_DECIMAL_SECONDS = (0.99e-4, 1e4)
# Values within this factor are one value, with this factor of room on both sides.
_SAME, _AROUND_ONE = 1.001, 1.6
_PERCENT = f"{formatting.THIN}%"


# ---- axes: logarithmic, with few, round, readable ticks


def length(axes: Axes, which: str) -> float:
    """The length of the x or y axis in points."""
    box = axes.get_position()
    width, height = figure_of(axes).get_size_inches()
    return float(72 * (box.width * width if which == "x" else box.height * height))


def log_ticks(
    low: float, high: float, fits: Callable[[list[float]], bool] = lambda ticks: len(ticks) <= 7
) -> list[float]:
    """Round positions that fit for ticks on a logarithmic axis from low to high.

    Powers of ten where there are at least three, or every second, third... of them; else their
    multiples; over a narrow range evenly spaced round numbers.
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    powers = [10.0**exponent for exponent in range(first, last + 1)]
    if len(powers) >= _FEWEST:
        tried = [powers[::n] for n in range(1, len(powers) + 1)]
    else:
        exponents = range(first - 1, last + 1)
        tried = [[float(f"{each}e{n}") for n in exponents for each in few] for few in _MULTIPLES]
        tried = [[tick for tick in ticks if low <= tick <= high] for ticks in tried]
        even = [[*map(float, MaxNLocator(n).tick_values(low, high))] for n in range(5, 0, -1)]
        tried = [ticks for ticks in tried if len(ticks) >= _FEWEST]
        tried += [[tick for tick in ticks if low <= tick <= high] for ticks in even]
    return next(filter(fits, tried), tried[-1])


def tick_labels(values: Sequence[float], format_: str) -> list[str]:
    """The texts of the ticks of one axis, all written in the same way."""
    if format_ == "percent":
        return [f"{_decimal(100 * value)}{formatting.THIN}%" for value in values]
    low, high = _DECIMAL_SECONDS
    if format_ == "seconds" and all(low < value < high for value in values):
        return [_decimal(value) for value in values]
    exponents = [math.floor(math.log10(value) + 1e-9) for value in values]
    if all(abs(value / 10.0**n - 1) < 1e-6 for value, n in zip(values, exponents, strict=True)):
        return [formatting.power_of_ten(exponent) for exponent in exponents]
    if format_ == "count" and min(values) >= 1:
        return [_counted(value) for value in values]
    return [
        f"{value / 10.0**n:.3g}{formatting.TIMES}{formatting.power_of_ten(n)}"
        for value, n in zip(values, exponents, strict=True)
    ]


def _decimal(value: float) -> str:
    """All digits that count, never as a power of ten."""
    return f"{value:.10f}".rstrip("0").rstrip(".") if value < 1 else f"{value:.6g}"


def _counted(value: float) -> str:
    for size, prefix in formatting.PREFIXES:
        if value >= size:
            return f"{value / size:g}{prefix}"
    return f"{value:g}"


def set_log_axis(axes: Axes, which: str, low: float, high: float, format_: str) -> None:
    """Give the x or y axis a logarithmic scale from low to high with labelled round ticks."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    room = length(axes, which) / max(math.log(high / low), 1e-12)
    room *= FONT / float(axes.xaxis.get_label().get_fontsize())

    def fits(ticks: list[float]) -> bool:
        labels = tick_labels(ticks, format_)
        sizes = [text_width(each) + 0.5 * FONT if which == "x" else 1.15 * FONT for each in labels]
        apart = [room * math.log(after / before) for before, after in pairwise(ticks)]
        needed = [(one + other) / 2 for one, other in pairwise(sizes)]
        return len(ticks) <= _MOST[which] and all(map(operator.ge, apart, needed))

    ticks = log_ticks(low, high, fits)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter(tick_labels(ticks, format_)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def padded(values: npt.NDArray[np.float64], below: float, above: float) -> tuple[float, float]:
    """Limits around positive values with a margin, in fractions of their logarithmic range."""
    low, high = float(values.min()), float(values.max())
    if high < _SAME * low:
        return low / _AROUND_ONE, high * _AROUND_ONE
    span = max(np.log10(high / low), 0.3)
    return low / 10 ** (below * span), high * 10 ** (above * span)


# ---- lines: a median with its band against a cost, a size or a share, for each solver

Array = npt.NDArray[np.float64]
Rows = Mapping[str, npt.NDArray[Any]]

_MARKERS_PER_CURVE = 6


@dataclass(frozen=True)
class Axis:
    """An axis of a figure; the words stand below it."""

    words: str = ""
    # Of FORMATS in reports/formatting.py; "share" for an axis from 0 to 100 %.
    format: str = "count"
    log: bool = True
    limits: tuple[float, float] | None = None  # by default those of the numbers
    # Room below and above the numbers, in fractions of their range.
    padding: tuple[float, float] = (0.03, 0.05)

    def set(self, axes: Axes, which: str, values: Array) -> None:
        """Give axes its scale, limits and ticks."""
        if self.log:
            limits = self.limits or padded(values[values > 0], *self.padding)
            set_log_axis(axes, which, *limits, self.format)
        elif self.limits:
            axes.set(**{f"{which}lim": self.limits})
        axis = axes.xaxis if which == "x" else axes.yaxis
        if self.format == "share":
            axis.set_major_locator(FixedLocator((0.0, 0.25, 0.5, 0.75, 1.0)))
            axis.set_major_formatter(PercentFormatter(1.0, 0, _PERCENT))
        elif self.format == "integer" and not self.log:
            axis.set_major_locator(MaxNLocator(integer=True))
        if which == "x":
            axes.set_xlabel(self.words)


@dataclass(frozen=True)
class Lines:
    """A figure of lines, to be drawn on a sheet."""

    # Columns solver, x and y; low and high for a band or a range, and drawn, which says what a row
    # is: "median" (by default), "run" (of seed, as a thin line), "failed run" (one that ends in a
    # cross), "end" (a lone marker, with x_low and x_high) or "dashed" (a thin dashed line).
    frame: pd.DataFrame
    x: Axis
    y: Axis
    styles: Mapping[str, SolverStyle]  # by solver label; also the drawing order
    steps: bool = True  # whether a value holds until the next x
    levels: Sequence[tuple[float, str]] = ()  # dashed horizontal lines with their words
    floor: float = 0.0  # where zero is drawn on a logarithmic axis
    markers: int = _MARKERS_PER_CURVE  # marks on a line, apart from its end
    size: tuple[float, float] = (WIDTH, HEIGHT)  # in points
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
        axes = self._axes(sheet)
        for index, solver in enumerate(shown):
            own = solvers == solver
            for kind in dict.fromkeys(kinds[own]):
                chosen = np.flatnonzero(own & (kinds == kind))
                rows = {name: values[chosen] for name, values in columns.items()}
                line = _Line(axes, self, self.styles[solver], sheet.scale, index / len(shown))
                line.draw(str(kind), rows)
        for index, (value, words) in enumerate(self.levels):
            _level(axes, value, words, sheet, at_left=index % 2 == 0)
        return figure_of(axes)

    def _axes(self, sheet: Sheet) -> Axes:
        axes = new_axes(sheet, *self.size, self.margins)
        x = [self.frame[name] for name in ("x", "x_low", "x_high") if name in self.frame]
        y = [self.frame[name] for name in ("low", "high") if name in self.frame]
        y += [self.frame["y"], pd.Series([value for value, _ in self.levels], dtype=float)]
        self.x.set(axes, "x", np.concatenate(x).astype(float))
        values = self.at(np.concatenate(y).astype(float))
        self.y.set(axes, "y", values[np.isfinite(values)])
        return axes

    def at(self, values: npt.ArrayLike) -> Array:
        """Values as drawn: on a logarithmic axis zero is at the floor."""
        numbers = np.asarray(values, dtype=np.float64)
        return np.where(numbers <= 0, self.floor, numbers) if self.y.log else numbers


@dataclass(frozen=True)
class _Line:
    """What a figure shows of one solver."""

    axes: Axes
    lines: Lines
    style: SolverStyle
    scale: float
    offset: float

    def draw(self, kind: str, rows: Rows) -> None:
        """Draw the rows of a kind."""
        x, y = rows["x"].astype(np.float64), self.lines.at(rows["y"])
        if kind == "median":
            self._median(rows, x, y)
        elif kind == "end":
            self._ends(rows, x, y)
        elif kind == "dashed":
            self.axes.plot(x, y, color=self.style.color, lw=1.1 * self.scale, dashes=(4, 1.8))
        else:
            self._runs(rows, x, y, failed=kind == "failed run")

    def _median(self, rows: Rows, x: Array, y: Array) -> None:
        style = self.style
        drawn = "steps-post" if self.lines.steps else "default"
        if "low" in rows:
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
        self.axes.plot(x, y, **line)

    def _runs(self, rows: Rows, x: Array, y: Array, *, failed: bool) -> None:
        """All runs as one line, with a gap where a run begins; failed ones end in a cross."""
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


Styles = Mapping[str, SolverStyle]

_NEAR = 30.0  # the resolution is drawn if within this factor of the lowest suboptimality
# Ratios read as plain decimals, as seconds do: "0.3", not a multiple of a power of ten.
_RATIO = "seconds"
_FIGURE = {"cost": "x", "median": "y", "value": "y", "cost_low": "x_low", "cost_high": "x_high"}
# In points: two small figures fit beside each other on a phone.
_SMALL, _SMALL_MARGINS = (204.0, 164.0), (50.0, 12.0, 24.0, 9.0)
_ROW, _LOWEST = 1.7 * FONT, 90.0  # of the figure that has a row for each solver
_LONGEST = 15  # letters of a label beside a figure


def by_style(frame: pd.DataFrame, styles: Styles) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each solver that has some, in the drawing order."""
    groups = dict(iter(frame.groupby("solver", sort=False)))
    for solver in styles:
        if solver in groups:
            yield solver, groups[solver]


# ---- traces: a value against what runs spend


@dataclass(frozen=True)
class Quantities:
    """The columns of the traces that a panel draws, a value against a cost, and their measures."""

    cost: str
    value: str
    spent: Measure
    shown: Measure


@dataclass(frozen=True)
class TraceCurves:
    """The statistics that a panel draws: :mod:`marginbench.reports.statistics.curves`."""

    curves: pd.DataFrame
    points: pd.DataFrame
    singles: pd.DataFrame
    unfinished: pd.DataFrame

    def of_task(self, task: str) -> TraceCurves:
        """The part of one task."""
        frames = (self.curves, self.points, self.singles, self.unfinished)
        return TraceCurves(*(of_task(frame, task) for frame in frames))

    def long(self) -> pd.DataFrame:
        """All of it in one frame; ``drawn`` says what a row is."""
        parts = {
            "median": self.curves,
            "run": self.singles,
            "failed run": self.unfinished,
            "end": self.points,
        }
        return pd.concat(
            [frame.assign(drawn=drawn) for drawn, frame in parts.items() if not frame.empty]
            or [pd.DataFrame(columns=["solver"])],
            ignore_index=True,
        )

    def solvers(self) -> set[str]:
        """The labels of the solvers that have something to draw."""
        frames = (self.curves, self.points, self.unfinished)
        return {str(solver) for frame in frames for solver in frame["solver"]}


@dataclass(frozen=True)
class Reference:
    """A task's reference optimum, as its panels show it; None where unknown."""

    test_error: float | None
    resolution: float | None
    n_test: int | None


def draw_traces(
    quantities: Quantities, data: TraceCurves, styles: Styles, reference: Reference, task: str
) -> Drawing | None:
    """How a value of a task's runs changes with what they spend; None if there is nothing."""
    long = data.long()
    spread = [long[name].to_numpy(float) for name in ("low", "high") if name in long]
    values = np.concatenate([*spread, data.unfinished["value"].to_numpy(float)])
    if not np.isfinite(values).any():
        return None
    frame = _with_y(long)
    # Few runs are lines of their own; a band of them would hide that.
    few = (frame["drawn"] == "median") & (frame.get("n_runs", 0) < FEWEST_FOR_QUARTILES)
    frame.loc[few, ["low", "high"]] = frame.loc[few, ["y", "y"]].to_numpy()
    lowest = float(values[values > 0].min(initial=1.0))
    floor, levels = lowest / 2, []
    if quantities.value == "test_error":
        floor = 0.5 / reference.n_test if reference.n_test else floor
        error = reference.test_error
        if error is not None:
            words = f"reference optimum, {formatting.percent(error)}"
            levels.append((error if error > 0 else floor, words))
        if (values <= 0).any() and error != 0:
            levels.append((floor, "no test error"))
    elif reference.resolution is not None and reference.resolution >= lowest / _NEAR:
        # A line far below every curve would only squeeze them.
        levels.append((reference.resolution, "resolution of the certificate"))
    lines = Lines(
        frame,
        Axis(quantities.spent.words, quantities.spent.format, padding=(0.025, 0.035)),
        Axis(format=quantities.shown.format, padding=(0.1, 0.05)),
        styles,
        levels=levels,
        floor=floor,
    )
    title = f"{task}: {quantities.shown.words} against {quantities.spent.words}"
    sentences = ["Both axes are logarithmic.", *(f"Dashed: {words}." for _, words in levels)]
    sentences += _trace_sentences(quantities, data, styles)
    return Drawing(lines, title, " ".join(sentences), long)


def _with_y(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of statistics as figures call them: a median and a value are both y."""
    if "median" in frame and "value" in frame:
        frame = frame.assign(median=frame["median"].fillna(frame["value"])).drop(columns="value")
    renamed = frame.rename(columns=_FIGURE)
    return renamed if "low" in renamed else renamed.assign(low=renamed["y"], high=renamed["y"])


def _trace_sentences(quantities: Quantities, data: TraceCurves, styles: Styles) -> Iterator[str]:
    """Where the median of each solver ends, and how many of its runs failed."""
    failed = data.unfinished.groupby("solver")["seed"].nunique()
    ends = [
        {row["solver"]: row for row in records(frame.drop_duplicates("solver", keep="last"))}
        for frame in (data.curves, data.points)
    ]
    for solver in styles:
        for last in (frame[solver] for frame in ends if solver in frame):
            spent = formatting.say(quantities.spent, last["cost"])
            if quantities.spent.format == "count":
                spent += f" {quantities.spent.words}"
            yield (
                f"{solver} ends at a median of "
                f"{formatting.say(quantities.shown, last['median'])} after {spent} "
                f"({last['n_runs']} of {last['n_planned']} runs)."
            )
        if solver in failed:
            yield f"{formatting.plural(int(failed[solver]), 'run')} of {solver} failed on the way."


# ---- small multiples: one value on each task, on axes that all of them share


@dataclass(frozen=True)
class Scale:
    """What the small figures of a value share."""

    shown: Measure
    spent: str  # the cost in words
    unit: str  # stands behind a cost: "n²"
    x: tuple[float, float]  # limits of the axes
    y: tuple[float, float]
    floor: float  # where a value of zero is drawn


def shared_scale(
    medians: Sequence[pd.DataFrame],
    levels: Sequence[float],
    shown: Measure,
    spent: str,
    unit: str,
    highest: float = np.inf,
) -> Scale | None:
    """The scale on which the medians of all tasks can be seen; None if nothing can be drawn."""
    parts = [frame["median"].to_numpy(np.float64) for frame in medians]
    values = np.concatenate([*parts, np.asarray(levels, dtype=np.float64)])
    costs = np.concatenate([frame["cost"].to_numpy(np.float64) for frame in medians])
    costs = costs[np.isfinite(costs) & (costs > 0)]
    values = values[np.isfinite(values) & (values >= 0)]
    if not costs.size or not values.size:
        return None
    floor = float(values[values > 0].min(initial=1.0)) / 2
    drawn = np.minimum(np.where(values > 0, values, floor), max(highest, 2 * floor))
    limits = padded(costs, 0.03, 0.05), padded(drawn, 0.08, 0.06)
    return Scale(shown, spent, unit, *limits, floor)


def draw_small(
    medians: pd.DataFrame, level: float, scale: Scale, styles: Styles, task: str
) -> Drawing | None:
    """The medians of a task's solvers (columns solver, cost, median); None without any.

    ``level`` is the value of a dashed line, NaN for none.
    """
    if medians.empty:
        return None
    lines = Lines(
        medians.rename(columns=_FIGURE),
        Axis("", "seconds" if scale.unit == "s" else "", limits=scale.x),
        Axis("", scale.shown.format, limits=scale.y),
        styles,
        levels=[(level if level > 0 else scale.floor, "")] if np.isfinite(level) else [],
        floor=scale.floor,
        markers=0,
        size=_SMALL,
        margins=_SMALL_MARGINS,
    )
    sentences = [
        f"{solver} ends at a median of {formatting.say(scale.shown, rows['median'].iloc[-1])} "
        f"after {rows['cost'].iloc[-1]:.2g} {scale.unit}."
        for solver, rows in by_style(medians, styles)
    ]
    title = f"{task}: {scale.shown.words} against {scale.spent}"
    return Drawing(lines, title, " ".join(["Both axes are logarithmic.", *sentences]), medians)


# ---- medians against anything


@dataclass(frozen=True)
class Against:
    """What the horizontal axis of a figure is."""

    words: str  # below the axis, and in the caption
    say: Callable[[float], str]  # a place on it in words: "at 100 points"
    format: str = "count"  # of FORMATS in reports/formatting.py
    linear: bool = False  # otherwise its scale is logarithmic


def draw_medians(
    medians: pd.DataFrame,
    measure: Measure,
    against: Against,
    styles: Styles,
    subject: str = "",
) -> Drawing | None:
    """Medians (columns solver, x, median, low, high; ascending in x); None if none is positive."""
    values = medians[["low", "high"]].to_numpy(np.float64).ravel()
    if not (np.isfinite(values) & (values > 0)).any():
        return None
    # A logarithmic axis has no zero: no error at all is drawn below the least one.
    floor = float(values[values > 0].min()) / 2
    places = medians["x"].to_numpy(np.float64)
    limits = (places.min() - 0.3, places.max() + 0.3) if against.linear else None
    lines = Lines(
        medians.rename(columns=_FIGURE),
        Axis(against.words, against.format, not against.linear, limits, (0.03, 0.03)),
        Axis("", measure.format, padding=(0.08, 0.05)),
        styles,
        steps=False,
        levels=[(floor, "none at all")] if (values <= 0).any() else [],
        floor=floor,
        markers=len(medians),
    )
    sentences = [f"{'The vertical axis is' if against.linear else 'Both axes are'} logarithmic."]
    for solver, rows in by_style(medians, styles):
        ends = [
            f"{formatting.say(measure, row['median'])} {against.say(row['x'])}"
            for _, row in rows.iloc[[0, -1] if len(rows) > 1 else [0]].iterrows()
        ]
        sentences.append(f"{solver}: {', '.join(ends)}.")
    title = f"{capitalised(measure.words)} against {against.words}"
    title = f"{subject}: {title}" if subject else title
    return Drawing(lines, title, " ".join(sentences), medians)


# ---- all tasks together


def draw_profile(steps: pd.DataFrame, solvers: Styles, title: str, xlabel: str) -> Drawing | None:
    """The share of problems that each solver solved within a cost; None if none was solved.

    ``steps`` is of :func:`marginbench.reports.statistics.targets.data_profile`; ``solvers`` are
    those that have problems: one without a step has solved none.
    """
    positive = steps.loc[steps["cost"] > 0, "cost"].to_numpy(np.float64)
    if not len(positive):
        return None
    limits = low, high = padded(positive, 0.04, 0.06)
    sentences, curves = ["The horizontal axis is logarithmic."], []
    for solver in solvers:
        # From nothing at the left edge to the last share at the right edge.
        solver_steps = steps[steps["solver"] == solver]
        costs = np.clip(solver_steps["cost"].to_numpy(np.float64), low, None)
        shares = np.append(0.0, solver_steps["share"].to_numpy(np.float64))
        curve = {"x": [low, *costs, high], "y": [*shares, shares[-1]]}
        curves.append(pd.DataFrame(curve).assign(solver=solver))
        sentences.append(_share_sentence(solver, solver_steps))
    lines = Lines(
        pd.concat(curves, ignore_index=True),
        Axis(xlabel, _RATIO, limits=limits),
        Axis("", "share", log=False, limits=(-0.02, 1.03)),
        solvers,
    )
    return Drawing(lines, title, " ".join(sentences), steps)


def _share_sentence(solver: str, curve: pd.DataFrame) -> str:
    if curve.empty:
        return f"{solver}: none."
    last = float(curve["share"].iloc[-1])
    half = float(curve.loc[curve["share"] >= last / 2, "cost"].iloc[0])
    return f"{solver}: {100 * last:.0f} %, half of it within {half:.3g}."


def draw_trade(
    points: pd.DataFrame, styles: Styles, title: str, labels: tuple[str, str]
) -> Drawing | None:
    """By how much each solver misses the lowest error of a task, against its cost; None of none.

    ``points`` has the columns task, solver, ratio (of its cost to the lowest of the task), excess
    (of its error, as a fraction of the test points) and front (drawn filled).
    """
    if points.empty:
        return None

    def draw(sheet: Sheet) -> Figure:
        axes = new_axes(sheet)
        ratios = points["ratio"].to_numpy(np.float64)
        Axis(labels[0], _RATIO, padding=(0.04, 0.06)).set(axes, "x", ratios)
        for solver, rows in by_style(points, styles):
            for front, chosen in rows.groupby("front"):
                axes.plot(
                    chosen["ratio"], 100 * chosen["excess"], ls="", marker=styles[solver].marker,
                    ms=6 * sheet.scale, mec=styles[solver].color, mew=1.2 * sheet.scale,
                    mfc=styles[solver].color if front else "none",
                )  # fmt: skip
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        return figure_of(axes)

    sentences = [
        f"{solver}: on the front of {rows['front'].sum()} of {len(rows)}."
        for solver, rows in by_style(points, styles)
    ]
    words = f"Vertically {labels[1]}. The horizontal axis is logarithmic."
    return Drawing(draw, title, " ".join([words, *sentences]), points)


def draw_ranks(ranks: pd.DataFrame, pairs: pd.DataFrame, styles: Styles, title: str) -> Drawing:
    """Average ranks on a line; a bar joins solvers of which no pair is separable.

    ``ranks`` is of :func:`marginbench.reports.statistics.ranks.average_ranks`, ``pairs`` of
    ``compared_pairs``.
    """
    places = {str(row["solver"]): float(row["rank"]) for row in records(ranks)}
    p = pd.DataFrame(1.0, index=list(places), columns=list(places))
    for row in records(pairs):
        p.loc[row["solver"], row["other"]] = p.loc[row["other"], row["solver"]] = row["p"]
    names = {name: _shortened(name) for name in places}
    bars = _inseparable(p.to_numpy() >= LEVEL)
    n_left, n = (len(names) + 1) // 2, len(names)
    first_row = 0.5 * len(bars) + 1.0

    def draw(sheet: Sheet) -> Figure:
        side = 14.0 + max(map(text_width, names.values())) + text_width(" (1.23)")
        rows = first_row + n_left
        axes = new_axes(sheet, WIDTH, _ROW * (rows + 1), (side, side, 8.0, 2.0 * FONT))
        pad = 0.04 * n
        axes.set(xlim=(1 - pad, n + pad), ylim=(rows, 0.0), xticks=range(1, n + 1))
        axes.yaxis.set_visible(False)
        axes.xaxis.tick_top()
        axes.spines["top"].set(visible=True, color=MUTED)
        axes.spines["bottom"].set_visible(False)
        for place, (name, rank) in enumerate(places.items()):
            at_left = place < n_left
            row = first_row + (place if at_left else n - 1 - place)
            end, color = 1 - pad if at_left else n + pad, styles[name].color
            axes.plot([rank, rank, end], [0, row, row], color=color, lw=1.1 * sheet.scale)
            axes.plot(
                [rank], [0], ls="", marker=styles[name].marker, ms=6 * sheet.scale,
                color=color, clip_on=False, zorder=3,
            )  # fmt: skip
            axes.annotate(
                f"{names[name]} ({rank:.2f})", xy=(end, row), xytext=(-4 if at_left else 4, 0),
                textcoords="offset points", ha="right" if at_left else "left", va="center",
                fontsize=sheet.font, color=INK,
            )  # fmt: skip
        for place, (low, high) in enumerate(bars):
            ends = [list(places.values())[low] - 0.03, list(places.values())[high] + 0.03]
            axes.plot(ends, [0.5 * (place + 1)] * 2, color=INK, lw=2.5 * sheet.scale)
        return figure_of(axes)

    ordered = ", ".join(f"{name} {rank:.2f}" for name, rank in places.items())
    joined = [f"{row['solver']} and {row['other']}" for row in records(pairs) if row["p"] >= LEVEL]
    apart = f"Not told apart: {', '.join(joined)}." if joined else "All pairs are told apart."
    return Drawing(draw, title, f"Average ranks: {ordered}. {apart}", ranks)


def _shortened(label: str) -> str:
    """A label beside a figure, without its middle where it is long."""
    return label if len(label) <= _LONGEST else f"{label[:9]}…{label[9 - _LONGEST + 1 :]}"


def _inseparable(alike: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The longest ranges, as first and last index, in which all pairs are alike."""
    groups: list[tuple[int, int]] = []
    for first in range(len(alike)):
        last = first
        while last + 1 < len(alike) and alike[first : last + 1, last + 1].all():
            last += 1
        if last > first and not (groups and groups[-1][1] >= last):
            groups.append((first, last))
    return groups


# ---- distributions: every run as a stroke, with boxes of quartiles


def draw_distributions(
    finals: pd.DataFrame, measure: Measure, level: float, styles: Styles, task: str
) -> Drawing | None:
    """The values of all runs (columns solver, value), a row for each solver; None without any."""
    finite = finals[np.isfinite(finals["value"].to_numpy(np.float64))]
    order = [solver for solver, _ in by_style(finite, styles)]
    if not order:
        return None
    names = {solver: _shortened(solver) for solver in order}

    def draw(sheet: Sheet) -> Figure:
        # Slow to load, and most pages have too few runs for this figure.
        import seaborn as sns

        margins = (8.0 + max(map(text_width, names.values())), 14.0, 45.0, 6.0)
        height = max(_ROW * len(order), _LOWEST) + margins[2] + margins[3]
        axes = new_axes(sheet, WIDTH, height, margins)
        shared = {"x": "value", "y": "solver", "order": order, "ax": axes, "legend": False}
        # Runs are not scattered at random: the same records give the same figure.
        sns.stripplot(
            finite, **shared, jitter=False, marker="|", size=9 * sheet.scale, linewidth=1.2,
            alpha=0.75,
        )  # fmt: skip
        # Colours come afterwards: with a hue, seaborn takes twice as long.
        for solver, strokes in zip(order, axes.collections, strict=True):
            strokes.set_color(styles[solver].color)
        enough = finite.groupby("solver")["value"].transform("size") >= FEWEST_FOR_QUARTILES
        sns.boxplot(
            finite[enough], **shared, width=0.62, fill=False, linewidth=0.8, showcaps=False,
            whis=0, showfliers=False, medianprops={"color": INK, "lw": 1.8 * sheet.scale},
        )  # fmt: skip
        boxed = [solver for solver in order if enough[finite["solver"] == solver].all()]
        containers: Any = axes.containers
        for boxes in containers:
            for index, solver in enumerate(boxed):
                for part in (boxes.boxes[index], *boxes.whiskers[2 * index : 2 * index + 2]):
                    part.set_color(styles[solver].color)
        axes.set(xlabel=measure.words, ylabel="")
        axes.set_yticks(range(len(order)), [names[solver] for solver in order])
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", color=RULE, lw=0.6)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=_PERCENT))
        if np.isfinite(level):
            axes.axvline(level, color=MUTED, lw=0.9, dashes=(4, 3), zorder=1.5)
        return figure_of(axes)

    sentences = []
    for solver, rows in by_style(finite, styles):
        ends = rows["value"].agg(["min", "max", "median"])
        low, high, middle = (formatting.say(measure, value) for value in ends)
        n_runs = formatting.plural(len(rows), "run")
        sentences.append(f"{solver}: {low} to {high}, median {middle}, {n_runs}.")
    title = f"{task}: {measure.words} at the end of each run"
    return Drawing(draw, title, " ".join(sentences), finite)
