"""The figure of traces: how a value changes with what runs spend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ...harness.results.measures import Measure
from .. import formatting
from ..frames import FEWEST_FOR_QUARTILES, of_task
from .axes import padded, set_log_axis
from .canvas import (
    GROUND,
    Drawing,
    drawing,
    dress,
    panel_axes,
)
from .labels import end_labels, label_ends, reference_lines
from .styles import SolverStyle

Array = npt.NDArray[np.float64]

_MARKERS_PER_CURVE = 6
_NEAR = 30.0  # the resolution is drawn if within this factor of the lowest suboptimality
_POINT = ("cost", "cost_low", "cost_high", "median", "low", "high")


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


def columns_by_solver(frame: pd.DataFrame) -> dict[str, dict[str, Array]]:
    """The columns of each solver's rows, in order of first appearance; runs one after another."""
    columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    codes, names = pd.factorize(frame["solver"])
    found = {}
    for code, solver in enumerate(names):
        rows = np.flatnonzero(codes == code)
        if "seed" in columns:
            rows = rows[np.argsort(columns["seed"][rows], kind="stable")]
        found[str(solver)] = {name: values[rows] for name, values in columns.items()}
    return found


@dataclass(frozen=True)
class TraceCurves:
    """The statistics that a panel draws: :mod:`marginbench.reports.statistics.curves`."""

    curves: pd.DataFrame
    singles: pd.DataFrame
    points: pd.DataFrame
    unfinished: pd.DataFrame

    def of_task(self, task: str) -> TraceCurves:
        """The part of one task."""
        frames = (self.curves, self.singles, self.points, self.unfinished)
        return TraceCurves(*(of_task(frame, task) for frame in frames))

    @cached_property
    def columns(self) -> Mapping[str, dict[str, dict[str, Array]]]:
        """The columns of each frame by solver, of one task: :func:`columns_by_solver`."""
        return {
            "curves": columns_by_solver(self.curves),
            "singles": columns_by_solver(self.singles),
            "points": columns_by_solver(self.points),
            "unfinished": columns_by_solver(self.unfinished),
        }

    def long(self) -> pd.DataFrame:
        """All of it in one frame; ``drawn`` says what a row is."""
        parts = {
            "median": self.curves,
            "run": self.singles,
            "end": self.points,
            "failed run": self.unfinished,
        }
        return pd.concat(
            [frame.assign(drawn=drawn) for drawn, frame in parts.items() if not frame.empty],
            ignore_index=True,
        )

    def solvers(self) -> set[str]:
        """The labels of the solvers that have something to draw."""
        return {
            solver for name in ("curves", "points", "unfinished") for solver in self.columns[name]
        }


@dataclass(frozen=True)
class Reference:
    """A task's reference optimum, as its panels show it; None where unknown."""

    test_error: float | None
    resolution: float | None
    n_test: int | None


def draw_traces(
    quantities: Quantities,
    data: TraceCurves,
    styles: Mapping[str, SolverStyle],
    reference: Reference,
    task: str,
) -> Drawing | None:
    """Draw how a value of a task's runs changes with what they spend.

    Parameters
    ----------
    quantities : Quantities
        What is drawn against what.
    data : TraceCurves
        Of this task alone.
    styles : mapping of str to SolverStyle
        By solver label; also the drawing order.
    reference : Reference
        Drawn as a labelled line.
    task : str
        The task's label, for the title.

    Returns
    -------
    Drawing or None
        None if there is nothing to draw.
    """
    if not np.isfinite(_values(data)).any():
        return None
    canvas = _Canvas(quantities, data, styles, reference)
    canvas.draw_curves()
    canvas.draw_runs()
    canvas.draw_points()
    canvas.finish()
    title = f"{task}: {quantities.shown.words} against {quantities.spent.words}"
    return drawing(canvas.axes, title, _describe(quantities, data, styles), data.long())


def _describe(quantities: Quantities, data: TraceCurves, labels: Iterable[str]) -> str:
    """The panel in words: where the median of each solver ends."""
    sentences = ["Both axes are logarithmic."]
    frames = [data.columns["curves"], data.columns["points"]]
    failed = data.columns["unfinished"]
    for solver in labels:
        for rows in (frame[solver] for frame in frames if solver in frame):
            last = {name: values[-1] for name, values in rows.items()}
            spent = formatting.say(quantities.spent, last["cost"])
            if quantities.spent.format == "count":
                spent += f" {quantities.spent.words}"
            sentences.append(
                f"{solver} ends at a median of "
                f"{formatting.say(quantities.shown, last['median'])} after {spent} "
                f"({last['n_runs']} of {last['n_planned']} runs)."
            )
        if solver in failed:
            n = len(set(failed[solver]["seed"]))
            sentences.append(f"{formatting.plural(n, 'run')} of {solver} failed on the way.")
    return " ".join(sentences)


def _values(data: TraceCurves) -> Array:
    """All values that a panel shows."""
    parts = [frame[column] for frame in (data.curves, data.points) for column in ("low", "high")]
    return np.concatenate([*parts, data.unfinished["value"]]).astype(float)


class _Canvas:
    """One panel in the making."""

    def __init__(
        self,
        quantities: Quantities,
        data: TraceCurves,
        styles: Mapping[str, SolverStyle],
        reference: Reference,
    ) -> None:
        self.quantities, self.data, self.reference = quantities, data, reference
        self.styles, self.values = styles, _values(data)
        # Where the line of each solver ends.
        self.ends: dict[str, tuple[float, float]] = {}
        shown = data.solvers()
        self.axes = panel_axes(end_labels(filter(shown.__contains__, styles), styles))
        self.floor = self._zero_floor()
        self._set_axes()

    def _zero_floor(self) -> float:
        """Where a value of zero is drawn: half a test error, half the least positive value."""
        if self.quantities.value == "test_error" and self.reference.n_test:
            return 0.5 / self.reference.n_test
        values = self.values
        return float(values[values > 0].min(initial=1.0)) / 2

    def _set_axes(self) -> None:
        data, axes = self.data, self.axes
        costs = np.concatenate(
            [
                *(frame["cost"] for frame in (data.curves, data.points, data.unfinished)),
                data.points["cost_low"],
                data.points["cost_high"],
            ]
        ).astype(float)
        costs = costs[costs > 0]
        set_log_axis(axes, "x", *padded(costs, 0.025, 0.035), self.quantities.spent.format)
        values = np.append(self.drawn(self.values), self._line_value())
        values = values[np.isfinite(values)]
        set_log_axis(axes, "y", *padded(values, 0.1, 0.05), self.quantities.shown.format)
        dress(axes, self.quantities.spent.words)

    def _line_value(self) -> float:
        """The value of the reference line; NaN where there is none."""
        reference, values = self.reference, self.values
        if self.quantities.value == "test_error":
            value = reference.test_error
            return np.nan if value is None else float(self.drawn(np.array([value]))[0])
        value = reference.resolution
        # A line far below every curve would only squeeze them.
        if value is None or not value >= values[values > 0].min(initial=1.0) / _NEAR:
            return np.nan
        return value

    def drawn(self, values: Array) -> Array:
        """Values as drawn on the logarithmic axis, zeros at the floor; unknown ones are not."""
        return np.where(values <= 0, self.floor, values)

    def draw_curves(self) -> None:
        """The medians with their bands, by solver in the order of the styles."""
        curves = self.data.columns["curves"]
        for place, (solver, style) in enumerate(self.styles.items()):
            if solver in curves:
                self._draw_curve(solver, curves[solver], style, place / len(self.styles))

    def draw_runs(self) -> None:
        """Single runs as thin lines, and failed ones, which end in a cross."""
        for solver, runs in self.data.columns["singles"].items():
            self._draw_run(runs, self.styles[solver], lw=0.5, alpha=0.45)
        for solver, runs in self.data.columns["unfinished"].items():
            style = self.styles[solver]
            self._draw_run(runs, style, lw=0.8, alpha=0.4 if style.muted else 0.65)
            last = np.append(runs["seed"][1:] != runs["seed"][:-1], True)
            x, y = runs["cost"][last], self.drawn(runs["value"][last])
            self.axes.plot(x, y, ls="", color=style.color, marker="x", ms=6.5, markeredgewidth=1.6)
            self.ends.setdefault(solver, (float(x[-1]), float(y[-1])))

    def draw_points(self) -> None:
        """Solvers that are seen only at their end, as markers with range bars."""
        for solver, points in self.data.columns["points"].items():
            for place in range(len(points["cost"])):
                point = {name: float(points[name][place]) for name in _POINT}
                self._draw_point(point, self.styles[solver])
                self.ends[solver] = (point["cost"], float(self.drawn(points["median"])[place]))

    def _draw_curve(
        self, solver: str, curve: Mapping[str, Array], style: SolverStyle, offset: float
    ) -> None:
        cost, median = curve["cost"].astype(float), self.drawn(curve["median"])
        low, high = self.drawn(curve["low"]), self.drawn(curve["high"])
        banded = curve["n_runs"][0] >= FEWEST_FOR_QUARTILES and not style.muted
        if banded and (high > low).any():
            self.axes.fill_between(
                cost, low, high, step="post", color=style.color, alpha=0.13, lw=0
            )
        places = _marker_places(len(cost), offset)
        line = style.line(1.5, 4.6)
        self.axes.plot(cost, median, drawstyle="steps-post", markevery=places, **line)
        self.ends[solver] = (float(cost[-1]), float(median[-1]))

    def _draw_point(self, point: Mapping[str, float], style: SolverStyle) -> None:
        x = point["cost"]
        low, y, high = self.drawn(np.array([point[name] for name in ("low", "median", "high")]))
        line: dict[str, Any] = {"color": style.color, "lw": 1.0, "solid_capstyle": "butt"}
        if point["cost_high"] > point["cost_low"]:
            self.axes.plot([point["cost_low"], point["cost_high"]], [y, y], **line)
        if high > low:
            self.axes.plot([x, x], [low, high], **line)
        self.axes.plot(
            [x], [y], ls="", marker=style.marker or "o", color=style.color,
            ms=4 if style.muted else 8, markeredgecolor=GROUND, markeredgewidth=0.9,
        )  # fmt: skip

    def _draw_run(
        self, runs: Mapping[str, Array], style: SolverStyle, *, lw: float, alpha: float
    ) -> None:
        """All runs of a solver as one line, with a gap where a run begins."""
        if style.muted and lw < 0.6:
            return
        starts = np.flatnonzero(runs["seed"][1:] != runs["seed"][:-1]) + 1
        costs = np.insert(runs["cost"].astype(float), starts, np.nan)
        values = np.insert(self.drawn(runs["value"].astype(float)), starts, np.nan)
        self.axes.plot(costs, values, drawstyle="steps-post", color=style.color, lw=lw, alpha=alpha)

    def finish(self) -> None:
        """Write the names of lines, and draw the labelled reference lines."""
        label_ends(self.axes, self.ends, self.styles)
        value, lines = self._line_value(), []
        if self.quantities.value == "suboptimality":
            if np.isfinite(value):
                lines = [(value, "resolution of the certificate")]
            reference_lines(self.axes, lines)
            return
        if np.isfinite(value):
            error = float(self.reference.test_error or 0.0)
            lines.append((value, f"reference optimum, {formatting.percent(error)}"))
        if value != self.floor and (self.values <= 0).any():
            lines.append((self.floor, "no test error"))
        reference_lines(self.axes, lines)


def _marker_places(n: int, offset: float) -> list[int]:
    """Evenly spread indices of a curve, shifted from solver to solver, and its end."""
    step = max(n // _MARKERS_PER_CURVE, 1)
    return [*range(int(offset * step), n - 1, step), n - 1]
