"""How a study of feasibility methods measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..analysis import Analysis
from ..solved import gap_sentence, solved
from . import Section


class FeasibilityProtocol(Section):
    """What a run is, when a problem is solved, and what is counted."""

    anchor, title, place = "protocol", "Protocol", 55
    template = "feasibility_protocol.html"
    kinds = ("feasibility",)

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The limit of seconds, the source of published numbers, and mirror prox's residual."""
        return {
            "limit": _limit_words(analysis),
            "source": analysis.study.source,
            "gap": gap_sentence(analysis),
        }


def _limit_words(analysis: Analysis) -> str:
    """The limit of seconds that the runs were given; not always that of the last invocation."""
    known = analysis.ask(solved).runs["limit"].dropna()
    if known.empty:
        return f"{analysis.study.budget.get('timeout', 0):g}"
    ends = sorted({f"{value:g}" for value in (known.min(), known.max())}, key=float)
    return " to ".join(ends)
