"""What feasibility methods solved, as sections and panels of their studies show it."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ..harness.results.measures import Measure
from .analysis import Analysis
from .derived import derived_measures
from .described import CellTask
from .formatting import plural
from .statistics import certificates

#: Where the counts of instances add up to more than there are.
TIES = "; ties count for each"


@dataclass(frozen=True)
class Solved:
    """The runs of a study with their outcome, and what the solved ones needed.

    Attributes
    ----------
    runs : DataFrame
        Of :func:`marginbench.reports.statistics.certificates.with_outcome`.
    costs : dict of str to Measure
        What a run needs, in the order of the columns.
    table : DataFrame
        Of :func:`marginbench.reports.statistics.certificates.solved_table`.
    """

    runs: pd.DataFrame
    costs: dict[str, Measure]
    table: pd.DataFrame


def solved(analysis: Analysis) -> Solved:
    """The outcome of a study's runs, for :meth:`.Analysis.ask`."""
    runs = certificates.with_outcome(analysis.runs, analysis.study.tasks)
    derived = [item.name for item in derived_measures(analysis.kind)]
    names = ["n_iter", "matvecs", *analysis.counters, "cpu_s", "wall_s", *derived]
    costs = {name: analysis.measures[name] for name in names}
    # A counter of iterations says what the column of iterations says.
    titles = {measure.title: name for name, measure in reversed(costs.items())}
    costs = {name: measure for name, measure in costs.items() if titles[measure.title] == name}
    return Solved(runs, costs, certificates.solved_table(runs, costs, analysis.derived_values))


def fewest_sentence(analysis: Analysis, task: str) -> str:
    """Which methods needed the fewest iterations on how many instances of a task."""
    counts, n = certificates.fewest_iterations(analysis.ask(solved).runs, task)
    if not counts:
        return "No method solved an instance."
    if list(counts.values()) == [n]:
        (name,) = counts
        return f"{name} needed the fewest iterations on each of {plural(n, 'solved instance')}."
    listed = ", ".join(f"{name} on {count}" for name, count in counts.items())
    shared = TIES if sum(counts.values()) > n else ""
    return f"The fewest iterations, of {plural(n, 'solved instance')}: {listed}{shared}."


def gap_sentence(analysis: Analysis) -> str:
    """How mirror prox's residual compares with its bound; empty where nothing is recorded."""
    traces = analysis.traces[analysis.traces["solver"].isin(mirror_prox(analysis))]
    columns = {cell.label: cell.n for cell in analysis.tasks_of(CellTask)}
    ratio, n = certificates.gap_ratio(traces, columns)
    if not n:
        return ""
    return (
        f"MPLFP's residual times t / sqrt(2 log n), over {n:,} recorded iterations: at most "
        f"{ratio:.3f}. The theorem says 1."
    )


def mirror_prox(analysis: Analysis) -> list[str]:
    """The labels of the configurations of MPLFP."""
    return [solver.label for solver in analysis.study.solvers if solver.name == "MPLFP"]
