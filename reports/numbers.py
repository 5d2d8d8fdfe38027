"""The numbers behind tables, for programs: plain columns with units."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import pandas as pd

from ..harness.results.measures import Format, Measure
from .described import SvmTask
from .frames import is_number

#: The unit of the stored values of a measure, by the name of its format.
UNITS: Mapping[Format, str] = MappingProxyType(
    {
        "percent": "fraction",
        "count": "count",
        "integer": "count",
        "seconds": "s",
        "scientific": "ratio",
        "number": "",
        "megabytes": "MB",
    }
)
#: What the columns low and high are.
RANGE, INTERVAL = "minimum to maximum", "95% interval of the mean"

_STATISTICS = (
    *("n", "n_reached", "median", "low", "high", "spread", "first", "upper_bound"),
    *("absent", "complete", "best"),
)


def measured(
    table: pd.DataFrame,
    measures: Mapping[str, Measure],
    counts: pd.DataFrame,
    intervals: Collection[str] = (),
) -> pd.DataFrame:
    """The rows of a table of results with what a reader of the numbers alone must know.

    Parameters
    ----------
    table : DataFrame
        Of :func:`marginbench.reports.statistics.summary.results_table`.
    measures : mapping of str to Measure
        Those of its rows.
    counts : DataFrame
        Of :func:`marginbench.reports.statistics.outcomes.run_counts`.
    intervals : collection of str
        The measures whose low and high are the 95 % interval of the mean, not the range.

    Returns
    -------
    DataFrame
        A row for each task, solver and measure: title, unit, n_planned (runs), n (with a value),
        n_reached (with a finite one), median, low, high, spread (what low and high are), first
        (the median cost of first touching a target), upper_bound (the median is only known to be
        at most this), absent (why there is no value), complete (no run failed) and best (bold on
        the page).
    """
    found = table.merge(counts[["task", "solver", "n_planned"]], on=["task", "solver"], how="left")
    names = found["measure"]
    found = found.assign(
        title=names.map({name: item.title for name, item in measures.items()}),
        unit=names.map({name: UNITS[item.format] for name, item in measures.items()}),
        spread=[INTERVAL if name in intervals else RANGE for name in names],
    )
    columns = ["task", "solver", "measure", "title", "unit", "n_planned", *_STATISTICS]
    return found[columns].reset_index(drop=True)


def kernel_parameters(tasks: Iterable[SvmTask], taken: Collection[str] = ()) -> pd.DataFrame:
    """The numbers among the parameters of each task's kernel, by label: ``kernel_gamma``, say."""
    rows = {
        task.label: {
            f"kernel_{name}": float(value)
            for name, value in task.kernel.items()
            if is_number(value) and f"kernel_{name}" not in taken
        }
        for task in tasks
    }
    return pd.DataFrame.from_dict(rows, orient="index")
