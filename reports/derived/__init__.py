"""Measures that are derived from the checkpoints of a run: one module for each, or for a few.

A measure defined in a module of this package is a column of the table of results.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import ClassVar

import pandas as pd

from ...harness.results.measures import Measure
from ..discovery import members


class Derived:
    """A measure of a run that its record does not hold.

    Attributes
    ----------
    name : str
        Unique among all measures.
    measure : Measure
        With its place in the table.
    kinds : tuple of str
        Names of the kinds of studies that have it.
    group : str
        What its column stands under, with others of the group.
    note : str
        A sentence below the tables that have the column.
    titled_as : str
        The name of the measure whose title it takes; empty: it has its own.
    """

    name: ClassVar[str]
    measure: ClassVar[Measure]
    kinds: ClassVar[tuple[str, ...]]
    group: ClassVar[str] = ""
    note: ClassVar[str] = ""
    titled_as: ClassVar[str] = ""

    def values(self, runs: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
        """The values of runs.

        Parameters
        ----------
        runs, traces : DataFrame
            Of :class:`marginbench.reports.results.Results`.

        Returns
        -------
        DataFrame
            As of :func:`marginbench.reports.statistics.summary.run_values`, without ``measure``.
        """
        raise NotImplementedError

    def title_among(self, measures: Mapping[str, Measure]) -> str:
        """The heading of its column."""
        return measures[self.titled_as].title if self.titled_as else self.measure.title


@cache
def derived_measures(kind: str) -> tuple[Derived, ...]:
    """The derived measures of a kind of studies."""
    return tuple(item for item in members(__name__, Derived) if kind in item.kinds)
