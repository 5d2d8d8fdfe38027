"""Panels of a task's page that only some kinds of solvers have something for."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from marginbench.reports.analysis import Analysis
from marginbench.reports.bundle_figure import draw_bundle_gaps
from marginbench.reports.bundle_gaps import FIRST_OF_SLOPE
from marginbench.reports.figures import SolverStyle
from marginbench.reports.formatting import one_decimal
from marginbench.reports.frames import of_task, records
from marginbench.reports.maintenance_figure import draw_maintenance
from marginbench.reports.views import PanelView

_GAMMA = "\N{GREEK SMALL LETTER GAMMA}"


def special_panels(
    analysis: Analysis, task: str, anchor: str, styles: Mapping[str, SolverStyle]
) -> list[PanelView]:
    """The panels of a task that belong to the solvers in it; often none."""
    return [
        *_maintenance_view(analysis, task, f"{anchor}-maintenance", styles),
        *_bundle_view(analysis, task, f"{anchor}-bundle", styles),
    ]


def _maintenance_view(
    analysis: Analysis, task: str, prefix: str, styles: Mapping[str, SolverStyle]
) -> list[PanelView]:
    """How often models on a budget are brought back to it; nothing where there are none."""
    classes = {solver.class_.rpartition(":")[2] for solver in analysis.results.study.solvers}
    svg = draw_maintenance(
        analysis.maintenance, analysis.predicted_fractions, styles, prefix, task, classes
    )
    if svg is None:
        return []
    title = "Budget maintenance: events per iteration, by epoch"
    note = (
        "Dashed: the fraction of iterations that add a point at the reference optimum, the sum of "
        "its dual variables over nC for subgradient steps (BSGD), and the part of them strictly "
        "between 0 and C for coordinate steps (BSCA)."
    )
    return [PanelView(title, Markup(svg), note)]


def _bundle_view(
    analysis: Analysis, task: str, prefix: str, styles: Mapping[str, SolverStyle]
) -> list[PanelView]:
    """How fast bundle methods close their gap; nothing where there are none."""
    svg = draw_bundle_gaps(analysis.bundle_gaps, styles, prefix, task)
    if svg is None:
        return []
    note = (
        f"In units of λ/2 ‖w‖² + mean loss. {_GAMMA} is the objective of an iterate less the best "
        "lower bound; dashed, ε: the same for the best iterate so far, where it differs."
    )
    slopes = [
        f"{row['solver']} {one_decimal(row['slope'])}"
        for row in records(of_task(analysis.gap_slopes, task))
    ]
    if slopes:
        note += (
            f" Slopes of {_GAMMA} on these axes from iteration {FIRST_OF_SLOPE} on: "
            f"{'; '.join(slopes)} (the bound for the hinge loss has {one_decimal(-1.0)})."
        )
    return [PanelView(f"Gap {_GAMMA} of bundle methods against iterations", Markup(svg), note)]
