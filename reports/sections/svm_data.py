"""The tasks of a study of SVM solvers, their data and their reference optima."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from .. import formatting, wording
from ..analysis import Analysis
from ..described import SvmTask
from ..frames import first_known, of_task
from ..statistics.objective import resolution
from ..tables import NONE, Cell, Heading, Table
from . import Section

_HEADINGS = (
    Heading("Task", term="task"),
    Heading("Dataset", term="dataset"),
    Heading("Train", "number", term="n_train"),
    Heading("Test", "number", term="n_test"),
    Heading("Features", "number", term="n_features"),
    Heading("Classes", "number", term="n_classes"),
    Heading("Problem", "wide", term="problem"),
    Heading("Reference optimum", "number", term="reference"),
    Heading("Certified relative gap", "number", term="reference_gap"),
    Heading("Its test error", "number", term="reference_error"),
    Heading("Fingerprint", term="fingerprint"),
)
_NUMBERS = (
    *("dataset", "n_train", "n_test", "n_features", "n_classes", "C", "kernel", "fit_intercept"),
    *("reference_primal", "reference_gap", "resolution", "reference_test_error", "fingerprint"),
)


class SvmData(Section):
    """What the records say of each task: sizes, reference optimum, fingerprint."""

    anchor, title, place = "tasks", "Tasks and data", 60
    template = "table.html"
    kinds = ("svm",)

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The table of tasks."""
        rows = [_row(analysis, task) for task in analysis.tasks_of(SvmTask)]
        return {"table": Table(self.title, _HEADINGS, rows, cards=True, numbers=_numbers(analysis))}


def _numbers(analysis: Analysis) -> pd.DataFrame:
    """The first record of each task that knows them; of several folds that of the first seed."""
    runs = analysis.runs.assign(resolution=resolution(analysis.runs))
    return runs.groupby("task", sort=False)[list(_NUMBERS)].first().reset_index()


def _row(analysis: Analysis, task: SvmTask) -> list[Cell]:
    runs = of_task(analysis.runs, task.label)

    def known(name: str, say: Callable[[float], str]) -> Cell:
        value = first_known(resolution(runs) if name == "resolution" else runs[name])
        return NONE if value is None else Cell(say(value), number=value)

    fingerprint = next((text for text in runs["fingerprint"] if text), "")
    return [
        Cell(task.label),
        Cell(
            task.dataset,
            range=wording.parameters(task.dataset_params),
            note="" if task.folds is None else f"seed 0 of {task.folds} folds",
        ),
        *(
            known(name, formatting.integer)
            for name in ("n_train", "n_test", "n_features", "n_classes")
        ),
        Cell(", ".join(wording.kernel_words(task))),
        known("reference_primal", "{:.6g}".format),
        known("resolution", formatting.scientific),
        known("reference_test_error", formatting.percent),
        Cell(fingerprint[:12], code=True, hint=fingerprint) if fingerprint else NONE,
    ]
