"""The figures of a page: what each shows, in words and on a sheet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ...harness.results.measures import Measure
from .. import formatting
from ..described import capitalised
from ..frames import FEWEST_FOR_QUARTILES, of_task, records
from ..statistics.ranks import LEVEL
from .axes import padded, tick_label
from .canvas import (
    FONT,
    INK,
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
from .lines import Axis, Lines, shortened

Array = npt.NDArray[np.float64]
Styles = Mapping[str, SolverStyle]

_NEAR = 30.0  # the resolution is drawn if within this factor of the lowest suboptimality
# Ratios read as plain decimals, as seconds do: "0.3", not a multiple of a power of ten.
_RATIO = "seconds"
_FIGURE = {"cost": "x", "median": "y", "value": "y", "cost_low": "x_low", "cost_high": "x_high"}
# In points: two small figures fit beside each other on a phone.
_SMALL, _SMALL_MARGINS = (204.0, 164.0), (50.0, 12.0, 24.0, 9.0)
_ROW, _LOWEST = 1.7 * FONT, 90.0  # of the figure that has a row for each solver


def by_style(frame: pd.DataFrame, styles: Styles) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each solver that has some, in the drawing order."""
    for solver in styles:
        mine = frame[frame["solver"] == solver]
        if not mine.empty:
            yield solver, mine


# ---- traces: a value against what runs spend


@dataclass(frozen=True)
class Quantities:
    """The columns of the traces that a panel draws, and their measures.

    Attributes
    ----------
    cost, value : str
        A value against a cost.
    spent, shown : Measure
        Their measures.
    """

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
    found = frame.rename(columns=_FIGURE)
    return found if "low" in found else found.assign(low=found["y"], high=found["y"])


def _trace_sentences(quantities: Quantities, data: TraceCurves, styles: Styles) -> Iterator[str]:
    """Where the median of each solver ends, and how many of its runs failed."""
    failed = data.unfinished.groupby("solver")["seed"].nunique()
    for solver in styles:
        for frame in (data.curves, data.points):
            for _, rows in by_style(frame, {solver: styles[solver]}):
                last = rows.iloc[-1]
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
    """What the small figures of a value share.

    Attributes
    ----------
    shown : Measure
        The value.
    spent : str
        The cost in words.
    unit : str
        Stands behind a cost: "n²".
    x, y : tuple of float
        Limits of the axes.
    floor : float
        Where a value of zero is drawn.
    """

    shown: Measure
    spent: str
    unit: str
    x: tuple[float, float]
    y: tuple[float, float]
    floor: float


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
        Axis("", "seconds" if scale.unit == "s" else "", limits=scale.x, most=4),
        Axis("", scale.shown.format, limits=scale.y, most=6),
        styles,
        levels=[(level if level > 0 else scale.floor, "")] if np.isfinite(level) else [],
        floor=scale.floor,
        markers=0,
        named=False,
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
    """What the horizontal axis of a figure is.

    Attributes
    ----------
    words : str
        Below the axis, and in the caption.
    say : callable
        A place on it in words: "at 100 points".
    format : str
        How its ticks read: of :data:`marginbench.reports.formatting.FORMATS`.
    linear : bool
        Whether it has a linear scale; otherwise it has a logarithmic one.
    """

    words: str
    say: Callable[[float], str]
    format: str = "count"
    linear: bool = False


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

    ``steps`` is of :func:`marginbench.reports.statistics.profiles.data_profile`; ``solvers`` are
    those that have problems: one without a step has solved none.
    """
    positive = steps.loc[steps["cost"] > 0, "cost"].to_numpy(np.float64)
    if not len(positive):
        return None
    limits = low, high = padded(positive, 0.04, 0.06)
    sentences, curves = ["The horizontal axis is logarithmic."], []
    for solver in solvers:
        # From nothing at the left edge to the last share at the right edge.
        mine = steps[steps["solver"] == solver]
        costs = np.clip(mine["cost"].to_numpy(np.float64), low, None)
        shares = np.append(0.0, mine["share"].to_numpy(np.float64))
        curve = {"x": [low, *costs, high], "y": [*shares, shares[-1]]}
        curves.append(pd.DataFrame(curve).assign(solver=solver))
        sentences.append(_share_sentence(solver, mine))
    lines = Lines(
        pd.concat(curves, ignore_index=True),
        Axis(xlabel, _RATIO, limits=limits),
        Axis("", "share", log=False, limits=(-0.02, 1.03)),
        solvers,
        named=False,
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
        for solver, mine in by_style(points, styles):
            for front, chosen in mine.groupby("front"):
                axes.plot(
                    chosen["ratio"], 100 * chosen["excess"], ls="", marker=styles[solver].marker,
                    ms=6 * sheet.scale, mec=styles[solver].color, mew=1.2 * sheet.scale,
                    mfc=styles[solver].color if front else "none",
                )  # fmt: skip
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        return figure_of(axes)

    sentences = [
        f"{solver}: on the front of {mine['front'].sum()} of {len(mine)}."
        for solver, mine in by_style(points, styles)
    ]
    words = f"Vertically {labels[1]}. The horizontal axis is logarithmic."
    return Drawing(draw, title, " ".join([words, *sentences]), points)


def draw_ranks(ranks: pd.DataFrame, pairs: pd.DataFrame, styles: Styles, title: str) -> Drawing:
    """Average ranks on a line; a bar joins solvers of which no pair can be told apart.

    ``ranks`` is of :func:`marginbench.reports.statistics.ranks.average_ranks`, ``pairs`` of
    ``compared_pairs``.
    """
    places = {str(row["solver"]): float(row["rank"]) for row in records(ranks)}
    p = pd.DataFrame(1.0, index=list(places), columns=list(places))
    for row in records(pairs):
        p.loc[row["solver"], row["other"]] = p.loc[row["other"], row["solver"]] = row["p"]
    names = shortened(list(places))
    bars = _not_apart(p.to_numpy() >= LEVEL)
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
                [rank], [0], ls="", marker=styles[name].marker or "o", ms=6 * sheet.scale,
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


def _not_apart(alike: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The longest stretches, first and last place, in which all pairs are alike."""
    found: list[tuple[int, int]] = []
    for first in range(len(alike)):
        last = first
        while last + 1 < len(alike) and alike[first : last + 1, last + 1].all():
            last += 1
        if last > first and not (found and found[-1][1] >= last):
            found.append((first, last))
    return found


# ---- distributions: every run as a stroke, with boxes of quartiles


def draw_distributions(
    finals: pd.DataFrame, measure: Measure, level: float, styles: Styles, task: str
) -> Drawing | None:
    """The values of all runs (columns solver, value), a row for each solver; None without any."""
    known = finals[np.isfinite(finals["value"].to_numpy(np.float64))]
    order = [solver for solver, _ in by_style(known, styles)]
    if not order:
        return None
    names = shortened(order)

    def draw(sheet: Sheet) -> Figure:
        # Slow to load, and most pages have too few runs for this figure.
        import seaborn as sns

        margins = (8.0 + max(map(text_width, names.values())), 14.0, 45.0, 6.0)
        height = max(_ROW * len(order), _LOWEST) + margins[2] + margins[3]
        axes = new_axes(sheet, WIDTH, height, margins)
        palette = {solver: styles[solver].color for solver in order}
        shared = {"x": "value", "y": "solver", "order": order, "ax": axes, "legend": False}
        shared |= {"hue": "solver", "hue_order": order, "palette": palette}
        # Runs are not scattered at random: the same records give the same figure.
        sns.stripplot(
            known, **shared, jitter=False, marker="|", size=9 * sheet.scale, linewidth=1.2,
            alpha=0.75,
        )  # fmt: skip
        sns.boxplot(
            _boxes(known), **shared, width=0.62, fill=False, linewidth=0.8, showcaps=False,
            whis=0, showfliers=False, medianprops={"color": INK, "lw": 1.8 * sheet.scale},
        )  # fmt: skip
        axes.set(xlabel=measure.words, ylabel="")
        axes.set_yticks(range(len(order)), [names[solver] for solver in order])
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", color=RULE, lw=0.6)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: tick_label(value, measure.format) if value > 0 else "0")
        )
        if np.isfinite(level):
            axes.axvline(level, color=MUTED, lw=0.9, dashes=(4, 3), zorder=1.5)
        return figure_of(axes)

    sentences = [
        _range_sentence(solver, mine["value"], measure) for solver, mine in by_style(known, styles)
    ]
    title = f"{task}: {measure.words} at the end of each run"
    return Drawing(draw, title, " ".join(sentences), known)


def _boxes(finals: pd.DataFrame) -> pd.DataFrame:
    """The runs of solvers with enough of them for quartiles."""
    n_runs = finals.groupby("solver")["value"].transform("size")
    return finals[n_runs >= FEWEST_FOR_QUARTILES]


def _range_sentence(solver: str, values: pd.Series, measure: Measure) -> str:
    said = (formatting.say(measure, value) for value in (values.min(), values.max()))
    low, high = said
    middle = formatting.say(measure, values.median())
    return f"{solver}: {low} to {high}, median {middle}, {formatting.plural(len(values), 'run')}."
