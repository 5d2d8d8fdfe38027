"""How a study of SVM solvers measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .. import wording
from ..analysis import Analysis
from ..described import Study, SvmSolver, SvmTask
from ..results import SUMS
from ..statistics.curves import BAND
from . import Section


class SvmProtocol(Section):
    """What a run is, what is counted, and what curves and tables are."""

    anchor, title, place = "protocol", "Protocol", 55
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
            "folded": any(task.folds for task in analysis.tasks_of(SvmTask)),
            "run_once": _run_once(analysis.study),
            "several_counters": len(counted) > 1,
            "inner_products": "inner_products" in counted,
            "matvec_entries": "matvec_entries" in counted,
            "several_classes": bool((analysis.runs["n_classes"] > 2).any()),
            "other_problem": bool((analysis.runs["other_problem"] != "").any()),
            "predictions": bool((analysis.runs["judged_by"] == "predictions").any())
            or any(item.is_program for item in analysis.study.solvers),
            "band": BAND,
        }


def _run_once(study: Study) -> str:
    """The deterministic solvers of which one run stands for all seeds, in words."""
    counts = Counter((run.task, run.solver) for run in study.planned)
    most = max(counts.values(), default=0)
    runs = {label: count for (_, label), count in counts.items()}
    names = [
        solver.label
        for solver in study.solvers
        if isinstance(solver, SvmSolver)
        and solver.deterministic
        and 0 < runs.get(solver.label, 0) < most
    ]
    if not names:
        return ""
    return f"{', '.join(names)}: deterministic, run once on each task instead of with {most} seeds."
