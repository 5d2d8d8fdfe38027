"""Figures of a site: what a study's page shows first, small, with one solver brought out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from marginbench.reports import formatting
from marginbench.reports.analysis import Analysis
from marginbench.reports.drawing.axes import padded, set_log_axis
from marginbench.reports.drawing.canvas import (
    FONT,
    INK,
    PALETTE,
    Drawing,
    drawing,
    dress,
    panel_axes,
)
from marginbench.reports.frames import of_task, records
from marginbench.reports.panels import PanelView, gallery
from marginbench.reports.solved import solved


@dataclass(frozen=True)
class SiteFigure:
    """A figure of a study, for pages other than its report.

    Attributes
    ----------
    task : str
        The label of the task that it shows; empty for the study as a whole.
    caption : str
    anchor : str
        Where it, or what it is about, stands in the report.
    svg : Markup
        Its ids are unique in the site.
    solvers : tuple of str
        The labels of the study's solvers, in the order of their colours.
    """

    task: str
    caption: str
    anchor: str
    svg: Markup
    solvers: tuple[str, ...]

    def only(self, labels: Collection[str]) -> str:
        """The style of an element that holds the figure with all but some solvers pale."""
        shown = {self.solvers.index(label) % len(PALETTE) for label in labels}
        pale = [place for place in range(len(PALETTE)) if place not in shown]
        return "".join(f"--solver-{place}:var(--pale);" for place in pale)

    def alike(self, labels: Sequence[str]) -> list[str]:
        """Other solvers that have the colours of these ones."""
        colors = {self.solvers.index(label) % len(PALETTE) for label in labels}
        return [
            label
            for place, label in enumerate(self.solvers)
            if place % len(PALETTE) in colors and label not in labels
        ]


def figures_of(analysis: Analysis, prefix: str) -> list[SiteFigure]:
    """The first figure of each task; of a study without these, its own first figure.

    Parameters
    ----------
    analysis : Analysis
    prefix : str
        Unique in the site, for the ids of the SVG.
    """
    labels = tuple(analysis.styles)
    tasks = {f"task-{analysis.slugs[task.label]}": task.label for task in analysis.study.tasks}
    views = {anchor: _first_view(analysis, anchor, task) for anchor, task in tasks.items()}
    if not any(views.values()):
        views = {"figures": _first_view(analysis, "figures", "")}
    found = []
    for place, (anchor, view) in enumerate(views.items()):
        if view is not None and view.drawing is not None:
            task = tasks.get(anchor, "")
            caption = f"{task}: {view.title}" if task else view.title
            svg = view.drawing.svg(f"figure-{prefix}-{place}")
            found.append(SiteFigure(task, caption, f"{anchor}-{view.name}", svg, labels))
    overview = None if found else draw_overview(analysis)
    anchor = f"results-{next(iter(analysis.slugs.values()), '')}"
    if overview is not None:
        found.append(
            SiteFigure("", overview.title, anchor, overview.svg(f"figure-{prefix}-0"), labels)
        )
    return found


def _first_view(analysis: Analysis, anchor: str, task: str) -> PanelView | None:
    """The first panel of a gallery in which something is drawn."""
    shown = gallery(analysis, anchor, task)
    panels = [] if shown is None else shown.panels
    return next((view for view in panels if view.drawing is not None), None)


def draw_overview(analysis: Analysis) -> Drawing | None:
    """The median iterations of each method on each problem, a line of markers for a problem.

    For studies whose problems differ in nothing that a figure could be drawn against.

    Returns
    -------
    Drawing or None
        None if nothing was solved, or the study is of another kind.
    """
    if analysis.kind != "feasibility":
        return None
    found = analysis.ask(solved)
    table = found.table[(found.table["measure"] == "n_iter") & (found.table["median"] > 0)]
    if table.empty:
        return None
    measure = found.costs["n_iter"]
    tasks = [task.label for task in analysis.study.tasks]
    axes = panel_axes()
    set_log_axis(axes, "x", *padded(table["median"].to_numpy(), 0.05, 0.05), "count")
    axes.set_ylim(len(tasks) - 0.5, -0.7)
    dress(axes, f"median {measure.words}")
    axes.set_yticks(range(len(tasks)), [""] * len(tasks))
    sentences = ["The horizontal axis is logarithmic."]
    for place, task in enumerate(tasks):
        axes.text(
            0.0, place - 0.14, task, transform=axes.get_yaxis_transform(), fontsize=FONT, color=INK
        )
        for row in records(of_task(table, task)):
            style = analysis.styles[row["solver"]]
            axes.plot([row["median"]], [place], ls="", marker=style.marker, ms=8, color=style.color)
            value = formatting.say(measure, row["median"])
            sentences.append(f"{row['solver']} on {task}: {value}.")
    title = f"Median {measure.words} on each {analysis.words.task}"
    columns = ["task", "solver", "median"]
    return drawing(axes, title, " ".join(sentences), pd.DataFrame(table[columns]))
