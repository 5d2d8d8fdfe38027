"""An interactive figure of what the checkpoints hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..analysis import Analysis
from ..explorer import explorer_data, explorer_json
from . import Section


class Explore(Section):
    """Curves and profiles whose axes, targets, tasks and solvers a reader chooses.

    The section is hidden where no script runs: it shows nothing that is not elsewhere.
    """

    anchor, title, place = "explore", "Explore", 25
    template = "explore.html"

    def applies(self, analysis: Analysis) -> bool:
        """Where a run has a checkpoint to draw."""
        return analysis.ask(explorer_data) is not None

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The checkpoints, as JSON, and what the study calls its tasks and solvers."""
        return {"data": analysis.ask(explorer_json), "words": analysis.words}
