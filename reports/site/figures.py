"""Figures of a site: what a study's page shows first, small, with one solver brought out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from .. import formatting
from ..analysis import Analysis
from ..drawing.axes import padded, set_log_axis
from ..drawing.canvas import (
    FONT,
    INK,
    PALETTE,
    Drawing,
    drawing,
    dress,
    panel_axes,
)
from ..frames import of_task, records
from ..panels import gallery
from ..solved import solved


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
    colors : mapping of str to (int or None)
        The labels of the study's solvers -> the place of their colour among those of the page;
        None: grey.
    shown : frozenset of str
        The labels of those that it shows.
    """

    task: str
    caption: str
    anchor: str
    svg: Markup
    colors: Mapping[str, int | None]
    shown: frozenset[str]

    def only(self, labels: Collection[str]) -> str:
        """The style of an element that holds the figure with all but some solvers pale."""
        shown = {self.colors[label] for label in labels}
        pale = [place for place in range(len(PALETTE)) if place not in shown]
        return "".join(f"--solver-{place}:var(--pale);" for place in pale)

    def alike(self, labels: Sequence[str]) -> list[str]:
        """Other solvers that have the colours of these ones."""
        colors = {self.colors[label] for label in labels}
        return [
            label
            for label, color in self.colors.items()
            if color in colors and label not in labels and label in self.shown
        ]


def figures_of(analysis: Analysis, prefix: str) -> list[SiteFigure]:
    """The first figure of each task, and further ones for solvers that this one does not show.

    Of a study without figures of its tasks, those of the study.

    Parameters
    ----------
    analysis : Analysis
    prefix : str
        Unique in the site, for the ids of the SVG.
    """
    tasks = {f"task-{analysis.slugs[task.label]}": task.label for task in analysis.study.tasks}
    views = {anchor: _views(analysis, anchor, task) for anchor, task in tasks.items()}
    if not any(views.values()):
        views = {"figures": _views(analysis, "figures", "")}
    found: list[SiteFigure] = []
    for anchor, shown in views.items():
        task = tasks.get(anchor, "")
        for name, title, drawn in shown:
            caption = f"{task}: {title}" if task else title
            place = f"figure-{prefix}-{len(found)}"
            found.append(_figure(analysis, task, caption, f"{anchor}-{name}", drawn, place))
    overview = None if found else draw_overview(analysis)
    anchor = f"results-{next(iter(analysis.slugs.values()), '')}"
    if overview is not None:
        place = f"figure-{prefix}-0"
        found.append(_figure(analysis, "", overview.title, anchor, overview, place))
    return found


def _views(analysis: Analysis, anchor: str, task: str) -> list[tuple[str, str, Drawing]]:
    """The first panels of a gallery that together show all solvers: name, title and drawing."""
    drawn = gallery(analysis, anchor, task)
    missing = set(analysis.styles)
    found: list[tuple[str, str, Drawing]] = []
    for view in [] if drawn is None else drawn.panels:
        if view.drawing is not None and missing & _shown(analysis, view.drawing):
            missing -= _shown(analysis, view.drawing)
            found.append((view.name, view.title, view.drawing))
    return found


def _shown(analysis: Analysis, drawn: Drawing) -> frozenset[str]:
    labels = set(analysis.styles)
    return frozenset(labels & set(drawn.data["solver"]) if "solver" in drawn.data else labels)


def _figure(
    analysis: Analysis, task: str, caption: str, anchor: str, drawn: Drawing, prefix: str
) -> SiteFigure:
    places = {light: place for place, (light, _) in enumerate(PALETTE)}
    colors = {label: places.get(style.color) for label, style in analysis.styles.items()}
    return SiteFigure(task, caption, anchor, drawn.svg(prefix), colors, _shown(analysis, drawn))


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
