"""How the test errors of a solver's runs are distributed, where there are many runs."""

from __future__ import annotations

import numpy as np

from ..analysis import Analysis
from ..drawing.figures import draw_distributions
from ..frames import FEWEST_FOR_QUARTILES, of_task
from ..view import Figure
from .traces import reference_of

#: Of fewer runs of each solver, medians with their range say all that there is to say.
FEWEST_RUNS = 10


def final_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """The test error at the end of each run; nothing where no solver has ten runs."""
    mine = of_task(analysis.runs, task)
    finals = mine.loc[mine["ok"], ["solver", "seed", "test_error"]]
    finals = finals.rename(columns={"test_error": "value"}).dropna(subset="value")
    if not (finals["solver"].value_counts() >= FEWEST_RUNS).any():
        return [], ""
    measure = analysis.measures["test_error"]
    level = reference_of(analysis.runs, task).test_error
    drawing = draw_distributions(
        finals, measure, np.nan if level is None else level, analysis.styles, task
    )
    return [Figure("finals", "Test error at the end of each run", drawing, _note(level))], ""


def _note(level: float | None) -> str:
    dashed = "" if level is None else " Dashed: the reference optimum."
    return (
        "Each thin stroke is a run; equal errors coincide. Boxes span the quartiles of "
        f"{FEWEST_FOR_QUARTILES} runs or more, with the median.{dashed}"
    )
