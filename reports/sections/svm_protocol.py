"""How a study of SVM solvers measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marginbench.reports import wording
from marginbench.reports.analysis import Analysis
from marginbench.reports.results import SUMS
from marginbench.reports.sections import Section
from marginbench.reports.statistics.curves import BAND


class SvmProtocol(Section):
    """What a run is, what is counted, and what curves and tables are."""

    anchor, title, place = "protocol", "Protocol", 10
    template = "svm_protocol.html"
    kinds = ("svm",)

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The budget, and what the study's solvers count."""
        budget = analysis.study.budget
        counted = [name for name in SUMS["evaluations"] if name in analysis.counters]
        return {
            "budget": {
                name: wording.with_unit(name, value)
                for name, value in budget.items()
                if value is not False
            },
            "epoch_checkpoints": budget.get("epoch_checkpoints", False),
            "several_counters": len(counted) > 1,
            "inner_products": "inner_products" in counted,
            "matvec_entries": "matvec_entries" in counted,
            "several_classes": bool((analysis.runs["n_classes"] > 2).any()),
            "other_problem": bool((analysis.runs["other_problem"] != "").any()),
            "predictions": bool((analysis.runs["judged_by"] == "predictions").any())
            or any(item.is_program for item in analysis.study.solvers),
            "band": BAND,
        }
