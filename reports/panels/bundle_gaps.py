"""How far bundle methods are from the optimum, against their iterations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..drawing.axes import padded
from ..drawing.canvas import Drawing, SolverStyle
from ..drawing.figures import by_style
from ..drawing.lines import Axis, Lines
from ..formatting import decimals
from ..frames import of_task, records
from ..statistics.bundle_gaps import FIRST_OF_SLOPE, bundle_gaps, gap_slopes
from ..view import Figure

_GAMMA = "\N{GREEK SMALL LETTER GAMMA}"


def bundle_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """gamma_t and epsilon_t of bundle methods (BMRM07 section 3.2)."""
    drawn = draw_bundle_gaps(analysis.ask(_gaps), analysis.styles, task)
    if drawn is None:
        return [], ""
    title = f"Gap {_GAMMA} of bundle methods against iterations"
    return [Figure("bundle", title, drawn, _note(of_task(analysis.ask(_slopes), task)))], ""


def _gaps(analysis: Analysis) -> pd.DataFrame:
    return bundle_gaps(analysis.runs)


def _slopes(analysis: Analysis) -> pd.DataFrame:
    return gap_slopes(analysis.ask(_gaps))


def _note(slopes: pd.DataFrame) -> str:
    note = (
        f"In units of λ/2 ‖w‖² + mean loss. {_GAMMA} is the objective of an iterate less the best "
        "lower bound; dashed, ε: the same for the best iterate so far, where it differs."
    )
    said = [f"{row['solver']} {decimals(row['slope'], 1)}" for row in records(slopes)]
    if not said:
        return note
    return (
        f"{note} Slopes of {_GAMMA} on these axes from iteration {FIRST_OF_SLOPE} on: "
        f"{'; '.join(said)} (the bound for the hinge loss has {decimals(-1.0, 1)})."
    )


def draw_bundle_gaps(
    gaps: pd.DataFrame, styles: Mapping[str, SolverStyle], task: str
) -> Drawing | None:
    """gamma_t of each bundle method as a line, epsilon_t dashed where it is another number.

    None if the task has no run of a bundle method.
    """
    mine = of_task(gaps, task)
    mine = mine[(mine["gamma"] > 0) & (mine["epsilon"] > 0)]
    if mine.empty:
        return None
    iterates = mine[["solver", "n_iter", "gamma", "epsilon"]].rename(columns={"n_iter": "x"})
    differs = iterates.groupby("solver")[["gamma", "epsilon"]].transform("sum")
    best = iterates[differs["epsilon"] < differs["gamma"]]
    frame = [iterates.assign(y=iterates["gamma"]), best.assign(y=best["epsilon"], drawn="dashed")]
    lines = Lines(
        pd.concat(frame, ignore_index=True).fillna({"drawn": "median"}),
        # Of few iterations, too, the axis has room for a slope.
        Axis("iteration t", limits=padded(np.append(iterates["x"], [1.0, 3.0]), 0.04, 0.07)),
        Axis("", "scientific"),
        styles,
        steps=False,
    )
    sentences = [
        f"{solver} ends at {formatting.scientific(float(last['gamma']))} after "
        f"{formatting.integer(float(last['n_iter']))} iterations."
        for solver, curve in by_style(mine, styles)
        for last in records(curve.tail(1))
    ]
    return Drawing(lines, f"{task}: gamma_t against iterations", " ".join(sentences), mine)
