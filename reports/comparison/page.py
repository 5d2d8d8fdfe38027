"""The page of a comparison: one HTML file without scripts, with a figure for each solver."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from markupsafe import Markup

from ...harness.environment import version
from ...harness.errors import StorageError
from .. import templating
from ..drawing.canvas import FONT, INK, MUTED, Drawing, drawing, new_axes
from ..drawing.figures import padded, set_log_axis
from ..formatting import plural
from ..frames import records
from ..view import Figure
from . import report
from .result import Comparison

# In points: the margins of a figure, and the height of a row.
_LEFT, _RIGHT, _BELOW, _ABOVE, _ROW = 163.0, 12.0, 36.0, 9.0, 19.0
# Ratios beyond this stand at the edge: one of them would press all others together.
_FARTHEST = 1000.0
_NARROWEST = 1.2
# Titles that fit beside the axis.
_SHORTER = {
    "Evaluations to stay within ": "Evals to ",
    "CPU time to stay within ": "CPU to ",
    " point of the optimum's error": " pt of error",
    " of the optimum": " of optimum",
}


def write_page(comparison: Comparison, path: Path) -> Path:
    """Write the page, atomically; a StorageError if that fails."""
    sides = comparison.before, comparison.after
    check_target(path, [side.results.folder for side in sides if side.results])
    return templating.write_page(path, render(comparison))


def check_target(path: Path, folders: Iterable[Path]) -> None:
    """Refuse a page that is no file, or that would stand in place of what a study recorded."""
    if not path.name or path.is_dir():
        raise StorageError(f"{path}: is a folder; give the page a file, such as comparison.html")
    target = path.resolve()
    for folder in map(Path.resolve, folders):
        recorded = [folder / name for name in ("study.json", "journal", "runs.parquet", "sources")]
        if any(target.is_relative_to(each) for each in recorded):
            raise StorageError(f"{path}: is part of the results in {folder}; give another file")


def render(comparison: Comparison) -> str:
    """The page as HTML text."""
    results = comparison.before.results
    kicker = Markup("regressions")
    if results:
        kicker = Markup("comparison of study <code>{}</code>").format(results.study.name)
    frame = comparison.frame
    counts = Counter(frame["verdict"])
    rows, means = report.changed(frame), comparison.solvers
    means = means[means["verdict"] != "identical"]
    rest = report.ordered(frame.drop(rows.index))
    return templating.page(
        templating.environment().get_template("comparison.html"),
        version=version(),
        kicker=kicker,
        comparison=comparison,
        key_figures=[
            ("verdict", comparison.verdict),
            *((label, str(counts[verdict])) for verdict, label in report.IN_WORDS.items()),
            ("beyond bounds", str(comparison.n_beyond)),
            ("failed in B only", str(comparison.n_newly_failed)),
            ("pairs of runs", str(comparison.n_compared)),
        ],
        headline=report.headline(comparison),
        notes=report.notes(comparison),
        panels=[
            Figure(f"changes-{index}", solver, solver_figure(comparison, solver))
            for index, solver in enumerate(dict.fromkeys(map(str, frame["solver"])))
        ],
        told=report.measures_table(comparison, rows, "Values that changed"),
        rest=report.measures_table(comparison, rest, "All other values"),
        means=report.solvers_table(comparison, means),
        means_words=report.MEANS,
        advice=report.measures_table(comparison, comparison.advice, report.ADVICE),
        outcomes=report.outcomes_table(comparison),
        environment=report.differences_table(comparison.environment, "Environments"),
        code=report.differences_table(comparison.code, "Solvers"),
        bounds=report.bounds_table(comparison),
    )


def solver_figure(comparison: Comparison, solver: str) -> Drawing | None:
    """The ratios of a solver's measures: a small dot for each task, a large one for their mean.

    None where all its values are identical, or none is a ratio.
    """
    frame = comparison.frame
    rows = frame[(frame["solver"] == solver) & (frame["scale"] == "ratio")]
    rows = rows[np.isfinite(rows["mean"]) & (rows["mean"] > 0)]
    changed = rows.loc[rows["mean"] != 1.0, "measure"]
    rows = rows[rows["measure"].isin(set(changed))]
    if rows.empty:
        return None
    means = comparison.solvers
    means = means[(means["solver"] == solver) & means["measure"].isin(set(rows["measure"]))]
    height = _ABOVE + len(means) * _ROW + _BELOW
    axes = new_axes(height=height, margins=(_LEFT, _RIGHT, _BELOW, _ABOVE))
    places = {name: place for place, name in enumerate(means["measure"])}
    dots = rows["mean"].clip(1 / _FARTHEST, _FARTHEST)
    ends = means[["low", "mean", "high"]].clip(1 / _FARTHEST, _FARTHEST).set_index(means["measure"])
    told = ends[ends["low"].notna()]
    told_places = [places[name] for name in told.index]
    axes.plot(dots, rows["measure"].map(places), ls="", marker="o", ms=3.4, color=MUTED, alpha=0.7)
    axes.plot(
        *(told[["low", "high"]].T, [told_places, told_places]),
        lw=2.0,
        color=INK,
        solid_capstyle="butt",
    )
    axes.plot(ends["mean"], range(len(means)), ls="", marker="D", ms=5.5, color=INK)
    titles = [comparison.measures[name].measure.title for name in means["measure"]]
    for long, short in _SHORTER.items():
        titles = [title.replace(long, short) for title in titles]
    axes.set_yticks(range(len(titles)), titles, fontsize=FONT - 1)
    axes.set_ylim(len(titles) - 0.5, -0.5)
    axes.axvline(1.0, color=MUTED, lw=0.9, dashes=(4, 3), zorder=1.5)
    axes.set_xlabel("B / A, less is better")
    values = np.hstack([dots, ends.to_numpy().ravel(), 1 / _NARROWEST, _NARROWEST])
    set_log_axis(axes, "x", *padded(values[np.isfinite(values)], 0.06, 0.06), "seconds")
    return drawing(axes, f"What changed for {solver}", _description(comparison, means), rows)


def _description(comparison: Comparison, means: pd.DataFrame) -> str:
    parts = [
        f"{comparison.measures[row['measure']].measure.words} {report.ratio(row['mean'])} over "
        f"{plural(row['n_tasks'], 'task')}"
        for row in records(means)
        if math.isfinite(row["mean"])
    ]
    return f"Ratios of B to A, means over tasks: {'; '.join(parts) or 'none'}."
