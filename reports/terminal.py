"""The results in short, for the terminal after a run."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from .analysis import Analysis
from .sections import sections_of


def summary(analysis: Analysis) -> RenderableType:
    """What the sections print, then what limits the comparison.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    RenderableType
        The same numbers as on the page.
    """
    printed = [item for section in sections_of(analysis) for item in section.terminal(analysis)]
    notes = [Text(f"note: {sentence}", style="yellow") for sentence in analysis.cautions]
    return Group(*printed, *notes)
