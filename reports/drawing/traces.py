"""The figure of traces: how a value changes with what runs spend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import seaborn as sns

from marginbench.harness.measures import Measure
from marginbench.reports import formatting
from marginbench.reports.drawing.axes import padded, set_log_axis
from marginbench.reports.drawing.canvas import (
    GROUND,
    Drawing,
    drawing,
    dress,
    labelled_line,
    panel_axes,
)
from marginbench.reports.drawing.styles import SolverStyle
from marginbench.reports.frames import FEWEST_FOR_QUARTILES, of_task, records

Array = npt.NDArray[np.float64]

_MARKERS_PER_CURVE = 6
_NEAR = 30.0  # the resolution is drawn if within this factor of the lowest suboptimality


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
    singles: pd.DataFrame
    points: pd.DataFrame
    unfinished: pd.DataFrame

    def of_task(self, task: str) -> TraceCurves:
        """The part of one task."""
        frames = (self.curves, self.singles, self.points, self.unfinished)
        return TraceCurves(*(of_task(frame, task) for frame in frames))

    def long(self) -> pd.DataFrame:
        """All of it in one frame; ``drawn`` says what a row is."""
        parts = {
            "median": self.curves,
            "run": self.singles,
            "end": self.points,
            "failed run": self.unfinished,
        }
        return pd.concat(
            [frame.assign(drawn=drawn) for drawn, frame in parts.items()], ignore_index=True
        )

    def solvers(self) -> set[str]:
        """The labels of the solvers that have something to draw."""
        return {
            str(solver)
            for frame in (self.curves, self.points, self.unfinished)
            for solver in frame["solver"].unique()
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
    if not data.solvers():
        return None
    canvas = _Canvas(quantities, data, reference)
    for place, (solver, style) in enumerate(styles.items()):
        canvas.draw_solver(solver, style, place / max(len(styles), 1))
    canvas.finish()
    title = f"{task}: {quantities.shown.words} against {quantities.spent.words}"
    return drawing(canvas.axes, title, _describe(quantities, data, styles), data.long())


def _describe(quantities: Quantities, data: TraceCurves, labels: Iterable[str]) -> str:
    """The panel in words: where the median of each solver ends."""
    sentences = ["Both axes are logarithmic."]
    for solver in labels:
        for frame in (data.curves, data.points):
            rows = frame[frame["solver"] == solver]
            if not rows.empty:
                last = rows.iloc[-1]
                spent = formatting.say(quantities.spent, last["cost"])
                if quantities.spent.format == "count":
                    spent += f" {quantities.spent.words}"
                sentences.append(
                    f"{solver} ends at a median of "
                    f"{formatting.say(quantities.shown, last['median'])} after {spent} "
                    f"({last['n_runs']} of {last['n_planned']} runs)."
                )
        failed = data.unfinished[data.unfinished["solver"] == solver]
        if not failed.empty:
            n = failed["seed"].nunique()
            sentences.append(f"{formatting.plural(n, 'run')} of {solver} failed on the way.")
    return " ".join(sentences)


class _Canvas:
    """One panel in the making."""

    def __init__(self, quantities: Quantities, data: TraceCurves, reference: Reference) -> None:
        self.quantities, self.data, self.reference = quantities, data, reference
        self.axes = panel_axes()
        self.floor = self._zero_floor()
        self._set_axes()

    def _zero_floor(self) -> float:
        """Where a value of zero is drawn: half a test error, half the least positive value."""
        if self.quantities.value == "test_error" and self.reference.n_test:
            return 0.5 / self.reference.n_test
        values = self._values()
        return float(values[values > 0].min(initial=1.0)) / 2

    def _values(self) -> Array:
        data = self.data
        parts = [
            frame[column] for frame in (data.curves, data.points) for column in ("low", "high")
        ]
        return np.concatenate([*parts, data.unfinished["value"]]).astype(float)

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
        values = np.append(self.drawn(self._values()), self._line_value())
        values = values[np.isfinite(values)]
        set_log_axis(axes, "y", *padded(values, 0.1, 0.05), self.quantities.shown.format)
        dress(axes, self.quantities.spent.words)

    def _line_value(self) -> float:
        """The value of the reference line; NaN where there is none."""
        reference, values = self.reference, self._values()
        if self.quantities.value == "test_error":
            value = reference.test_error
            return np.nan if value is None else float(self.drawn(np.array([value]))[0])
        value = reference.resolution
        # A line far below every curve would only squeeze them.
        if value is None or not value >= values[values > 0].min(initial=1.0) / _NEAR:
            return np.nan
        return value

    def drawn(self, values: Array | pd.Series) -> Array:
        """Values as drawn on the logarithmic axis, zeros at the floor."""
        array = np.asarray(values, dtype=np.float64)
        return np.where(array > 0, array, self.floor)

    def draw_solver(self, solver: str, style: SolverStyle, offset: float) -> None:
        curve = self.data.curves[self.data.curves["solver"] == solver]
        if not curve.empty:
            self._draw_curve(curve, style, offset)
        singles = self.data.singles[self.data.singles["solver"] == solver]
        for _, run in singles.groupby("seed"):
            self._draw_run(run, style, lw=0.5, alpha=0.45)
        for point in records(self.data.points[self.data.points["solver"] == solver]):
            self._draw_point(point, style)
        failed = self.data.unfinished[self.data.unfinished["solver"] == solver]
        for _, run in failed.groupby("seed"):
            self._draw_failed(run, style)

    def _draw_curve(self, curve: pd.DataFrame, style: SolverStyle, offset: float) -> None:
        cost = curve["cost"].to_numpy(float)
        low, high = self.drawn(curve["low"]), self.drawn(curve["high"])
        banded = curve["n_runs"].iloc[0] >= FEWEST_FOR_QUARTILES
        if banded and (high > low).any():
            self.axes.fill_between(
                cost, low, high, step="post", color=style.color, alpha=0.13, lw=0
            )
        sns.lineplot(
            x=cost,
            y=self.drawn(curve["median"]),
            ax=self.axes,
            # The statistics layer has aggregated already.
            estimator=None,
            sort=False,
            legend=False,
            drawstyle="steps-post",
            color=style.color,
            linewidth=1.5,
            linestyle=(0, style.dashes) if style.dashes else "-",
            marker=style.marker,
            markersize=4.6,
            markeredgewidth=0.7,
            markeredgecolor=GROUND,
            markevery=_marker_places(len(cost), offset),
        )

    def _draw_point(self, point: Mapping[str, Any], style: SolverStyle) -> None:
        x, y = point["cost"], float(self.drawn(np.array([point["median"]]))[0])
        low, high = self.drawn(np.array([point["low"], point["high"]]))
        line: dict[str, Any] = {"color": style.color, "lw": 1.0, "solid_capstyle": "butt"}
        self.axes.plot([point["cost_low"], point["cost_high"]], [y, y], **line)
        self.axes.plot([x, x], [low, high], **line)
        self.axes.plot(
            [x], [y], ls="", marker=style.marker, ms=8, color=style.color,
            markeredgecolor=GROUND, markeredgewidth=0.9,
        )  # fmt: skip

    def _draw_run(self, run: pd.DataFrame, style: SolverStyle, *, lw: float, alpha: float) -> float:
        """One run as a thin line; the last value that is drawn."""
        values = self.drawn(run["value"])
        self.axes.plot(
            run["cost"], values, drawstyle="steps-post", color=style.color, lw=lw, alpha=alpha
        )
        return float(values[-1])

    def _draw_failed(self, run: pd.DataFrame, style: SolverStyle) -> None:
        """One failed run as a thin line that ends in a cross."""
        last = self._draw_run(run, style, lw=0.8, alpha=0.65)
        self.axes.plot(
            [run["cost"].iloc[-1]], [last], ls="", color=style.color,
            marker="x", ms=6.5, markeredgewidth=1.6,
        )  # fmt: skip

    def finish(self) -> None:
        """Draw the labelled reference lines."""
        value = self._line_value()
        if self.quantities.value == "suboptimality":
            if np.isfinite(value):
                labelled_line(self.axes, value, "resolution of the certificate")
            return
        if np.isfinite(value):
            error = float(self.reference.test_error or 0.0)
            labelled_line(self.axes, value, f"reference optimum, {formatting.percent(error)}")
        if value != self.floor and (self._values() <= 0).any():
            labelled_line(self.axes, self.floor, "no test error")


def _marker_places(n: int, offset: float) -> list[int]:
    """Evenly spread indices of a curve, shifted from solver to solver, and its end."""
    step = max(n // _MARKERS_PER_CURVE, 1)
    return [*range(int(offset * step), n - 1, step), n - 1]
