"""The panels that show all problems of a study of feasibility methods together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..analysis import Analysis
from ..panels import Gallery, gallery
from . import Section


class FeasibilityFigures(Section):
    """What the methods need, against what the problems differ in."""

    anchor, title, place = "figures", "Figures", 20
    template = "gallery.html"
    kinds = ("feasibility",)

    def applies(self, analysis: Analysis) -> bool:
        """Where there is a panel to show."""
        return analysis.ask(_figures) is not None

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The panels."""
        return {"gallery": analysis.ask(_figures)}


def _figures(analysis: Analysis) -> Gallery | None:
    return gallery(analysis, "figures")
