"""The figures of a page: what each shows, in words and on a sheet."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter

from ...harness.results.measures import Measure
from .. import formatting
from ..described import capitalised
from ..frames import FEWEST_FOR_QUARTILES, records
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


def log_ticks(
    low: float, high: float, fits: Callable[[list[float]], bool] = lambda ticks: len(ticks) <= 7
) -> list[float]:
    """Round positions that fit for ticks on a logarithmic axis from low to high.

    Powers of ten where there are at least three, or every second, third... of them; else their
    multiples; over a narrow range evenly spaced round numbers.
    """
    decades = 10.0 ** np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)

    def within(ticks: npt.ArrayLike) -> list[float]:
        each = np.asarray(ticks, dtype=np.float64).ravel()
        return [*each[(each >= low * (1 - 1e-9)) & (each <= high * (1 + 1e-9))]]

    powers = within(decades)
    if len(powers) >= _FEWEST:
        tried = [powers[::n] for n in range(1, len(powers) + 1)]
    else:
        tried = [within(np.outer(decades, few)) for few in _MULTIPLES]
        tried = [ticks for ticks in tried if len(ticks) >= _FEWEST]
        tried += [within(MaxNLocator(n).tick_values(low, high)) for n in range(5, 0, -1)]
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
        return [EngFormatter(sep="")(value) for value in values]
    return [
        f"{value / 10.0**n:.3g}{formatting.TIMES}{formatting.power_of_ten(n)}"
        for value, n in zip(values, exponents, strict=True)
    ]


def _decimal(value: float) -> str:
    """All digits that count, never as a power of ten."""
    return f"{value:.10f}".rstrip("0").rstrip(".") if value < 1 else f"{value:.6g}"


def set_log_axis(axes: Axes, which: str, low: float, high: float, format_: str) -> None:
    """Give the x or y axis a logarithmic scale from low to high with labelled round ticks."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    size, box = figure_of(axes).get_size_inches(), axes.get_position()
    points = 72 * (size[0] * box.width if which == "x" else size[1] * box.height)
    room = points / max(math.log(high / low), 1e-12)
    room *= FONT / float(axes.xaxis.get_label().get_fontsize())

    def fits(ticks: list[float]) -> bool:
        labels = tick_labels(ticks, format_)
        sizes = [text_width(each) + 0.5 * FONT if which == "x" else 1.15 * FONT for each in labels]
        apart = [room * math.log(after / before) for before, after in pairwise(ticks)]
        needed = [(one + other) / 2 for one, other in pairwise(sizes)]
        return len(ticks) <= _MOST[which] and all(map(operator.ge, apart, needed))

    ticks = log_ticks(low, high, fits)
    axis.set_ticks(ticks, tick_labels(ticks, format_))
    axis.set_ticks([], minor=True)


def padded(values: npt.NDArray[np.float64], below: float, above: float) -> tuple[float, float]:
    """Limits around positive values with a margin, in fractions of their logarithmic range."""
    low, high = float(values.min()), float(values.max())
    if high < _SAME * low:
        return low / _AROUND_ONE, high * _AROUND_ONE
    span = max(np.log10(high / low), 0.3)
    return low / 10 ** (below * span), high * 10 ** (above * span)


# ---- lines: a median with its band against a cost, a size or a share, for each solver

Array = npt.NDArray[np.float64]
Styles = Mapping[str, SolverStyle]

_MARKS = 6  # on a line of steps, apart from its end
# Ratios read as plain decimals, as seconds do: "0.3", not a multiple of a power of ten.
_RATIO = "seconds"
# What is drawn of the columns of statistics, as figures call it.
_DRAWN = {"cost": "x", "median": "y", "cost_low": "x_low", "cost_high": "x_high"}
_DRAWN |= {name: name for name in ("x", "y", "low", "high", "x_low", "x_high", "seed")}
# In points: two small figures fit beside each other on a phone.
_SMALL = (204.0, 164.0, (50.0, 12.0, 24.0, 9.0))
_ROW, _LOWEST = 1.7 * FONT, 90.0  # of the figure that has a row for each solver
_LONGEST = 15  # letters of a label beside a figure


@dataclass(frozen=True)
class Axis:
    """An axis of a figure; the words stand below it."""

    words: str = ""
    # Of FORMATS in reports/formatting.py; "share" for an axis from 0 to 100 %.
    format: str = "count"
    log: bool = True
    limits: tuple[float, float] | None = None  # by default those of the numbers
    # Room below and above the numbers, in fractions of their logarithmic range.
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
            axis.set_ticks((0.0, 0.25, 0.5, 0.75, 1.0))
            axis.set_major_formatter(PercentFormatter(1.0, 0, _PERCENT))
        elif self.format == "integer" and not self.log:
            axis.set_major_locator(MaxNLocator(integer=True))
        if which == "x":
            axes.set_xlabel(self.words)

    def say(self, value: float) -> str:
        """A number on it in words."""
        say = cast("Mapping[str, Callable[[float], str]]", formatting.FORMATS).get(self.format)
        return say(value) if say else f"{value:.3g}"


def draw_lines(
    data: pd.DataFrame,
    x: Axis,
    y: Axis,
    styles: Styles,
    title: str,
    *,
    frame: pd.DataFrame | None = None,
    levels: Sequence[tuple[float, str]] = (),
    floor: float | None = None,
    steps: bool = True,
    small: bool = False,
    description: str = "",
) -> Drawing | None:
    """A line for each solver, in the order of their styles; None where nothing can be drawn.

    ``frame``, by default the data, has the columns solver, x (or cost) and y (or median); low and
    high for a band or a range, and drawn, which says what a row is: "median" (by default), "run"
    (of seed, as a thin line), "failed run" (one that ends in a cross), "end" (a lone marker, with
    the range of its cost) or "dashed" (a thin dashed line). ``levels`` are dashed horizontal lines
    with their words, ``floor`` is where zero is drawn on a logarithmic axis, by default below all
    other values. With ``steps`` a value holds until the next x.
    """
    frame = data if frame is None else frame
    rows: dict[str, Array] = {
        _DRAWN[name]: frame[name].to_numpy(np.float64, na_value=np.nan)
        for name in map(str, frame)
        if name in _DRAWN
    }
    values = np.concatenate([rows[name] for name in ("low", "high", "y") if name in rows])
    values = np.append(values[np.isfinite(values)], [value for value, _ in levels])
    if not np.isfinite(rows["y"]).any() or (x.log and not (rows["x"] > 0).any()):
        return None
    if y.log:
        if floor is None and not (values > 0).any():
            return None
        floor = float(values[values > 0].min()) / 2 if floor is None else floor
        if (values <= 0).any() and not any(value <= 0 for value, _ in levels):
            levels = [*levels, (0.0, "zero")]
        levels = [(value if value > 0 else floor, words) for value, words in levels]
        values = np.where(values > 0, values, floor)
        rows |= {
            name: np.where(rows[name] <= 0, floor, rows[name])
            for name in ("low", "high", "y")
            if name in rows
        }
    solvers = frame["solver"].to_numpy()
    kinds = frame["drawn"].to_numpy() if "drawn" in frame else np.full(len(frame), "median")
    # Single runs come first, below their medians.
    order = np.argsort(rows["seed"], kind="stable") if "seed" in rows else np.arange(len(frame))
    places = {solver: order[solvers[order] == solver] for solver in styles}
    places = {solver: own for solver, own in places.items() if len(own)}

    def draw(sheet: Sheet) -> Figure:
        axes = sheet.axes(*(_SMALL if small else (WIDTH, HEIGHT, MARGINS)))
        costs = [rows[name] for name in ("x", "x_low", "x_high") if name in rows]
        x.set(axes, "x", np.concatenate(costs))
        y.set(axes, "y", values)
        marks = 0 if small else _MARKS if steps else 2 * _MARKS
        for index, (solver, own) in enumerate(places.items()):
            start = index / len(places)
            for kind in dict.fromkeys(kinds[own]):
                of_kind = {name: column[own[kinds[own] == kind]] for name, column in rows.items()}
                _draw_rows(axes, kind, of_kind, styles[solver], sheet.scale, steps, (marks, start))
        for index, (value, words) in enumerate(levels):
            _level(axes, value, words, sheet, at_left=index % 2 == 0)
        return figure_of(axes)

    logs = [name for axis, name in ((x, "horizontal"), (y, "vertical")) if axis.log]
    sentences = [f"Logarithmic: the {' and the '.join(logs)} axis."] if logs else []
    sentences += [f"Dashed: {words}." for _, words in levels if words]
    for solver, own in places.items():
        medians = own[np.isin(kinds[own], ("median", "end"))]
        if len(medians):
            ends = [tuple(float(rows[name][end]) for name in "yx") for end in medians[[0, -1]]]
            said = [f"{y.say(value)} at {x.say(cost)}" for value, cost in ends]
            sentences.append(f"{solver}: {' to '.join(dict.fromkeys(said))}.")
    return Drawing(draw, title, description or " ".join(sentences), data)


def _draw_rows(
    axes: Axes,
    kind: str,
    rows: Mapping[str, npt.NDArray[Any]],
    style: SolverStyle,
    scale: float,
    steps: bool,
    marks: tuple[int, float],
) -> None:
    """Draw the rows of a kind of one solver, with so many marks from a part of their step on."""
    x, y, color = rows["x"], rows["y"], style.color
    if kind == "dashed":
        axes.plot(x, y, color=color, lw=1.1 * scale, dashes=(4, 1.8))
    elif kind == "end":
        axes.hlines(y, rows["x_low"], rows["x_high"], color=color, lw=scale)
        axes.vlines(x, rows["low"], rows["high"], color=color, lw=scale)
        axes.plot(x, y, **style.line(1.0, 8 * scale) | {"ls": "", "dashes": (None, None)})
    elif kind == "median":
        if "low" in rows and (rows["high"] > rows["low"]).any():
            kept = changes(rows["low"], rows["high"]) if steps else slice(None)
            axes.fill_between(
                x[kept], rows["low"][kept], rows["high"][kept], color=color, alpha=0.13, lw=0,
                step="post" if steps else None,
            )  # fmt: skip
        kept = changes(y) if steps else slice(None)
        n = len(y[kept])
        step_of = max(n // max(marks[0], 1), 1)
        marked = range(int(marks[1] * step_of), n - 1, step_of) if marks[0] else ()
        axes.plot(
            x[kept], y[kept], drawstyle="steps-post" if steps else "default",
            markevery=[*marked, n - 1], **style.line(1.5 * scale, 4.8 * scale),
        )  # fmt: skip
    else:
        # All runs are one line, with a gap where a run begins.
        starts = np.flatnonzero(np.diff(rows["seed"]) != 0) + 1
        failed = kind == "failed run"
        if failed:
            lasts = [*(starts - 1), len(x) - 1]
            cross: dict[str, Any] = {"marker": "x", "ms": 6.5 * scale, "mew": 1.6 * scale}
            axes.plot(x[lasts], y[lasts], ls="", color=color, **cross)
        axes.plot(
            np.insert(x, starts, np.nan), np.insert(y, starts, np.nan), drawstyle="steps-post",
            color=color, lw=0.8 if failed else 0.5, alpha=0.65 if failed else 0.45,
        )  # fmt: skip


def changes(*columns: Array) -> npt.NDArray[np.bool_]:
    """Which points of a step curve are seen: its ends, and those where it changes."""
    kept = np.ones(len(columns[0]), dtype=bool)
    if len(kept) > 2:
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


def by_style(frame: pd.DataFrame, styles: Styles) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each solver that has some, in the drawing order."""
    groups = dict(iter(frame.groupby("solver", sort=False)))
    for solver in styles:
        if solver in groups:
            yield solver, groups[solver]


def draw_medians(
    medians: pd.DataFrame, measure: Measure, x: Axis, styles: Styles, subject: str = ""
) -> Drawing | None:
    """Medians (columns solver, x, median, low, high; ascending in x); None if none is positive."""
    title = f"{capitalised(measure.words)} against {x.words}"
    title = f"{subject}: {title}" if subject else title
    return draw_lines(
        medians, x, Axis("", measure.format, padding=(0.08, 0.05)), styles, title, steps=False
    )


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
        half = solver_steps.loc[solver_steps["share"] >= shares[-1] / 2, "cost"].min()
        within = f", half of it within {half:.3g}" if shares[-1] else ""
        sentences.append(f"{solver}: {100 * shares[-1]:.0f} %{within}.")
    x = Axis(xlabel, _RATIO, limits=limits)
    y = Axis("", "share", log=False, limits=(-0.02, 1.03))
    frame = pd.concat(curves, ignore_index=True)
    return draw_lines(steps, x, y, solvers, title, frame=frame, description=" ".join(sentences))


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
        axes.yaxis.set_major_formatter("{x:g}")
        return figure_of(axes)

    sentences = [
        f"{solver}: on the front of {rows['front'].sum()} of {len(rows)}."
        for solver, rows in by_style(points, styles)
    ]
    words = f"Vertically {labels[1]}. The horizontal axis is logarithmic."
    return Drawing(draw, title, " ".join([words, *sentences]), points)


# ---- a row for each solver


def _row_axes(sheet: Sheet, labels: Sequence[str], words: str) -> Axes:
    """Axes with a row for each label, of which long ones lose their middle; words stand below."""
    names = [
        label if len(label) <= _LONGEST else f"{label[:9]}…{label[9 - _LONGEST + 1 :]}"
        for label in labels
    ]
    margins = (8.0 + max(map(text_width, names)), 14.0, 45.0, 6.0)
    height = max(_ROW * len(names), _LOWEST) + margins[2] + margins[3]
    axes = new_axes(sheet, WIDTH, height, margins)
    axes.set(xlabel=words, ylim=(len(names) - 0.5, -0.5))
    axes.set_yticks(range(len(names)), names)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=RULE, lw=0.6)
    return axes


def draw_ranks(ranks: pd.DataFrame, pairs: pd.DataFrame, styles: Styles, title: str) -> Drawing:
    """Average ranks, a row for each solver; a bar joins solvers of which no pair is separable.

    ``ranks`` is of :func:`marginbench.reports.statistics.ranks.average_ranks`, ``pairs`` of
    ``compared_pairs``.
    """
    places = dict(zip(ranks["solver"], ranks["rank"], strict=True))
    p = pd.DataFrame(1.0, index=list(places), columns=list(places))
    for row in records(pairs):
        p.loc[row["solver"], row["other"]] = p.loc[row["other"], row["solver"]] = row["p"]
    bars = _inseparable(p.to_numpy() >= LEVEL)

    def draw(sheet: Sheet) -> Figure:
        axes = _row_axes(sheet, list(places), "average rank")
        n = len(places)
        mark: dict[str, Any] = {"ls": "", "ms": 7 * sheet.scale}
        axes.set(xlim=(0.8, n + 0.3 + 0.12 * len(bars)), xticks=range(1, n + 1))
        for place, (name, rank) in enumerate(places.items()):
            axes.plot([rank], [place], marker=styles[name].marker, color=styles[name].color, **mark)
            axes.annotate(
                f"{rank:.2f}", xy=(rank, place), xytext=(7, 0), textcoords="offset points",
                va="center", fontsize=sheet.font, color=INK,
            )  # fmt: skip
        for index, (first, last) in enumerate(bars):
            column = [n + 0.3 + 0.12 * index] * 2
            axes.plot(column, [first - 0.2, last + 0.2], color=INK, lw=2.5 * sheet.scale)
        return figure_of(axes)

    ordered = ", ".join(f"{name} {rank:.2f}" for name, rank in places.items())
    joined = [f"{row['solver']} and {row['other']}" for row in records(pairs) if row["p"] >= LEVEL]
    apart = f"Not told apart: {', '.join(joined)}." if joined else "All pairs are told apart."
    return Drawing(draw, title, f"Average ranks: {ordered}. {apart}", ranks)


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


def draw_distributions(
    finals: pd.DataFrame, measure: Measure, level: float, styles: Styles, task: str
) -> Drawing | None:
    """The values of all runs (columns solver, value), with boxes of quartiles; None without any."""
    finite = finals[np.isfinite(finals["value"].to_numpy(np.float64))]
    order = [solver for solver, _ in by_style(finite, styles)]
    if not order:
        return None

    def draw(sheet: Sheet) -> Figure:
        # Slow to load, and most pages have too few runs for this figure.
        import seaborn as sns

        axes = _row_axes(sheet, order, measure.words)
        names = axes.get_yticklabels()
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
            finite[enough], **shared, width=0.62, fill=False, color=MUTED, linewidth=0.8, whis=0,
            showcaps=False, showfliers=False, medianprops={"color": INK, "lw": 1.8 * sheet.scale},
        )  # fmt: skip
        axes.set(xlabel=measure.words, ylabel="")
        axes.set_yticks(range(len(order)), [name.get_text() for name in names])
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
