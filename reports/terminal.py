"""The results in short, for the terminal after a run."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from .analysis import Analysis
from .views import printed


def summary(analysis: Analysis) -> RenderableType:
    """The findings and tables, then what limits the comparison.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    RenderableType
        The same numbers as on the page.
    """
    notes = [Text(f"note: {sentence}", style="yellow") for sentence in analysis.cautions]
    return Group(*printed(analysis), *notes)
