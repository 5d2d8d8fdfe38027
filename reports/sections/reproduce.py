"""How to make the same results, and what to cite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..analysis import Analysis
from ..statistics import integrity
from . import Section


class Reproduce(Section):
    """The command, the software with its version, and the sources of the data."""

    anchor, title, place = "reproduce", "Reproduce and cite", 90
    template = "reproduce.html"

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """Commits and sources; the command is on the page already."""
        sources = {task.dataset: task for task in analysis.study.tasks if task.dataset}
        return {
            "study": analysis.study,
            "commits": integrity.commits(analysis.environments),
            "sources": list(sources.values()),
        }
