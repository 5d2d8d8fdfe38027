"""Results in Python: data frames, a summary, and what a notebook shows of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from ..harness.execution.runner import RunSummary, run as _run
from ..harness.results.description import read_description
from ..harness.results.stores import local_folder
from ..harness.words import plural
from . import report as _report
from .exports import Exported, export

if TYPE_CHECKING:
    import pandas as pd

    from ..harness.study.model import StudyBase
    from .results import Results

_P = ParamSpec("_P")

_STATISTICS = ("median", "low", "high", "n")


class StudyResults:
    """What is recorded of a study, as data frames; of :func:`load_results`.

    Parameters
    ----------
    data : Results
        As reports take them.
    """

    def __init__(self, data: Results) -> None:
        self._data = data

    @property
    def folder(self) -> Path:
        """The results folder."""
        return self._data.folder

    @property
    def runs(self) -> pd.DataFrame:
        """One row for each planned run: the columns of its record, and a column for each counter.

        A run without a readable record has the status "missing" or "damaged". Fractions are in
        [0, 1], times in seconds, objectives in C units; ``ok`` says whether the run ended as
        planned and has a result.
        """
        return self._data.runs

    @property
    def checkpoints(self) -> pd.DataFrame:
        """One row for each checkpoint of each run: task, solver, seed, counters, clocks, scores."""
        return self._data.traces

    @cached_property
    def study(self) -> StudyBase:
        """The study, as ``run`` takes it.

        Raises
        ------
        ReportError
            If an early release wrote the folder: it did not store the study.
        """
        from .results import stored_study

        return stored_study(self.folder, self._data.kind)

    def summary(self) -> pd.DataFrame:
        """Medians over the runs that ended as planned, for each task and solver.

        Returns
        -------
        DataFrame
            The rows are (task, solver). The columns are (measure, statistic), with the statistics
            ``median``, ``low`` (minimum), ``high`` (maximum) and ``n`` (runs with a value). Of test
            errors ``low`` and ``high`` are the 95 % interval of the mean. A cost to a target that
            the median run never reaches is infinite, an unknown value NaN.
        """
        from . import analysis

        table = analysis.table(self._data).pivot(
            index=["task", "solver"], columns="measure", values=list(_STATISTICS)
        )
        order = self.runs[["task", "solver"]].drop_duplicates().apply(tuple, axis=1)
        columns = [(name, each) for name in analysis.shown(self._data) for each in _STATISTICS]
        wide = table.swaplevel(axis=1).reindex(index=list(order), columns=columns)
        return wide.astype({(name, "n"): "Int64" for name in analysis.shown(self._data)})

    def report(self) -> Path:
        """Write the page again, and return its path."""
        described = read_description(self.folder)
        return _report(self.folder, str((described or {}).get("command", "")))

    def export(self, out: Path | str | None = None, **options: Any) -> Exported:
        """Write figures, tables and records as files: :func:`marginbench.export` of the folder."""
        return export(self.folder, out, **options)

    def __repr__(self) -> str:
        ok = int(self.runs["ok"].sum())
        count = plural(len(self.runs), "run")
        return f"StudyResults({str(self.folder)!r}: {count}, {ok} with a result)"

    def _repr_html_(self) -> str:
        """The medians of the summary, as the page formats them; everything is escaped."""
        import pandas as pd

        from . import analysis
        from .frames import records
        from .measures import derived_measures
        from .tables import measure_cell

        measures = analysis.shown(self._data)
        groups = {item.name: item.group for item in derived_measures(self._data.kind)}
        table = analysis.table(self._data)
        texts = [
            "" if math.isnan(row["median"]) else measure_cell(row, measures[row["measure"]]).value
            for row in records(table)
        ]
        keys = ["task", "solver"]
        wide = table.assign(text=texts).pivot(index=keys, columns="measure", values="text")
        runs = self.runs.groupby(keys, sort=False)["ok"].agg(["sum", "size"])
        shown = pd.DataFrame({"Runs": [f"{ok} / {n}" for ok, n in runs.to_numpy()]}, runs.index)
        for name, measure in measures.items():
            group = f"{groups[name]}: " if groups.get(name) else ""
            shown[f"{group}{measure.title}"] = wide[name]
        return shown.to_html(escape=True, border=0)


@dataclass(frozen=True, repr=False)
class RunResults(RunSummary):
    """How the runs of a study ended, and their records; a notebook shows the summary."""

    @cached_property
    def records(self) -> StudyResults:
        """All that is recorded: :func:`load_results` of the folder."""
        return load_results(self.results)

    def report(self) -> Path:
        """Write the page, and return its path."""
        return self.records.report()

    def _repr_html_(self) -> str:
        return self.records._repr_html_()


def load_results(folder: Path | str) -> StudyResults:
    """Load a results folder as data frames.

    Parameters
    ----------
    folder : Path or str
        A folder with ``study.json`` and ``journal/``, or the URL of one.

    Returns
    -------
    StudyResults

    Raises
    ------
    ReportError
        If the folder has no ``study.json`` that this release can read.
    """
    from . import results

    return StudyResults(results.load_results(local_folder(folder)))


def _with_records(function: Callable[_P, RunSummary]) -> Callable[_P, RunResults]:
    """The function with results that can load their records."""

    @wraps(function)
    def returning_records(*args: _P.args, **kwargs: _P.kwargs) -> RunResults:
        summary = function(*args, **kwargs)
        return RunResults(**{item.name: getattr(summary, item.name) for item in fields(summary)})

    return returning_records


run = _with_records(_run)
