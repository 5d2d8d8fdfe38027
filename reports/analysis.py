"""All statistics of one study's results, computed once and shared by page, figures and text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from marginbench.reports import bundle_gaps, curves, epochs, integrity, scaling, statistics
from marginbench.reports.results import StudyResults


@dataclass(frozen=True)
class Panel:
    """What one figure panel shows: a value against a cost (columns of the traces)."""

    cost: str
    value: str


#: The panels of each task, in reading order.
PANELS = (
    Panel("kernel_evals", "test_error"),
    Panel("wall_s", "test_error"),
    Panel("kernel_evals", "suboptimality"),
    Panel("wall_s", "suboptimality"),
)


@dataclass(frozen=True)
class PanelData:
    """The statistics that one kind of panel draws, for all tasks: :mod:`.curves`.

    ``cost`` says in words what is spent.
    """

    curves: pd.DataFrame
    points: pd.DataFrame
    unfinished: pd.DataFrame
    cost: str

    def of_task(self, task: str) -> PanelData:
        """The part of one task."""
        frames = (self.curves, self.points, self.unfinished)
        curve, point, failed = (frame[frame["task"] == task] for frame in frames)
        return PanelData(curve, point, failed, self.cost)

    def solvers(self) -> set[str]:
        """The labels of the solvers that have something to draw."""
        return {
            str(solver)
            for frame in (self.curves, self.points, self.unfinished)
            for solver in frame["solver"].unique()
        }


@dataclass(frozen=True)
class Analysis:
    """The statistics of a study; every field is documented by the function that makes it."""

    results: StudyResults
    counts: pd.DataFrame
    targets: pd.DataFrame
    table: pd.DataFrame
    failures: pd.DataFrame
    skipped: pd.DataFrame
    environments: pd.DataFrame
    cautions: list[str]
    panels: Mapping[Panel, PanelData]
    maintenance: pd.DataFrame
    predicted_fractions: pd.DataFrame
    families: pd.DataFrame
    scaling_runs: pd.DataFrame
    bundle_gaps: pd.DataFrame
    gap_slopes: pd.DataFrame


def analyse(results: StudyResults) -> Analysis:
    """Compute every statistic that a report shows."""
    runs = results.runs
    raw = statistics.trace_suboptimality(results.traces)
    traces = statistics.floor_suboptimality(raw)
    distinct = integrity.environments(runs)
    families = scaling.families(results.study.tasks, runs)
    gaps = bundle_gaps.bundle_gaps(runs)
    return Analysis(
        results=results,
        counts=statistics.run_counts(runs),
        targets=statistics.target_errors(runs),
        table=statistics.results_table(runs, traces),
        failures=statistics.failures(runs),
        skipped=statistics.skipped(runs),
        environments=distinct,
        cautions=integrity.cautions(runs, raw, distinct),
        maintenance=epochs.maintenance_curves(epochs.epochs_frame(runs)),
        predicted_fractions=epochs.predicted_fractions(runs),
        families=families,
        scaling_runs=scaling.scaling_runs(runs, families),
        bundle_gaps=gaps,
        gap_slopes=bundle_gaps.gap_slopes(gaps),
        panels={panel: _panel_data(results, traces, panel) for panel in PANELS},
    )


def _panel_data(results: StudyResults, traces: pd.DataFrame, panel: Panel) -> PanelData:
    runs = results.runs
    return PanelData(
        curves=curves.curves(runs, traces, panel.cost, panel.value),
        points=curves.points(runs, traces, panel.cost, panel.value),
        unfinished=curves.unfinished(traces, panel.cost, panel.value),
        cost=results.evaluations if panel.cost == "kernel_evals" else "solver seconds",
    )
