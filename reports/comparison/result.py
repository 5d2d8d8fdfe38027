"""A comparison as users hold it: its tables, its verdict, and what can be made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ...harness.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_RUNS
from ...harness.results.objects import local_folder
from . import pairing, settings, verdicts
from .comparing import (
    Comparing,
    Side,
    Tables,
    differences_of,
    sides_of,
    without_repeats,
)
from .measured import Compared, compared_measures, parsed_bounds
from .verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Comparison:
    """What changed from A, the baseline, to B; of :func:`compare`.

    Attributes
    ----------
    before, after : Side
        A and B.
    measures : mapping of str to Compared
        What is compared, with the bounds.
    tables : Tables
        The numbers.
    environment, code : list of Difference
        What differs between the environments, and between the solvers of one label.
    times : str
        Why times and memory are advice only; empty if they are judged.
    """

    before: Side
    after: Side
    measures: Mapping[str, Compared]
    tables: Tables
    environment: list[settings.Difference]
    code: list[settings.Difference]
    times: str

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each task, solver and measure, in the order of A's study.

        ``verdict`` and ``why``; ``n`` pairs of runs; ``before`` and ``after``, the medians of A and
        B; ``mean`` with its 95 % interval ``low`` and ``high``: the geometric mean of the ratios
        B / A, or where ``scale`` is "difference" the mean of B - A; ``p`` and ``q``, the same
        adjusted for how many solvers and tasks the measure has; ``beyond``, whether the whole
        interval of a worsening is beyond its bound.
        """
        return self.tables.measures

    @property
    def cells(self) -> pd.DataFrame:
        """One row for each task and solver: its verdict, and how its runs were paired."""
        return self.tables.cells

    @property
    def solvers(self) -> pd.DataFrame:
        """One row for each solver and measure: the mean over tasks with its bootstrap interval."""
        return self.tables.solvers

    @property
    def pairs(self) -> pd.DataFrame:
        """One row for each run of either side: whether it is compared, or why not."""
        return self.tables.pairs

    @cached_property
    def cautions(self) -> list[str]:
        """What limits the results of each side by themselves, in sentences."""
        return settings.cautions(self.before.results, self.after.results)

    @cached_property
    def n_newly_failed(self) -> int:
        """How many runs failed in B that did not in A."""
        return int((self.pairs["outcome"] == pairing.FAILED_B).sum())

    @cached_property
    def n_newly_missing(self) -> int:
        """How many runs have a record in A and are planned in B, but have none there to read."""
        return int((self.pairs["outcome"] == pairing.MISSING_B).sum())

    @cached_property
    def n_compared(self) -> int:
        """How many pairs of runs are compared."""
        return int((self.pairs["outcome"] == pairing.COMPARED).sum())

    @cached_property
    def n_beyond(self) -> int:
        """How many worsenings are beyond their bounds, means over tasks included."""
        cells = self.frame["beyond"].sum()
        # A mean counts where no task of it does.
        told = self.solvers["beyond"] & (self.solvers["n_worse"] == 0)
        return int(cells + told.sum())

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on B: the worst that is true of it.

        "failed" if a run failed in B that did not in A; "not compared" if no pair of runs could be
        compared; "no record" if a run left no readable record in B only; else "worsening",
        "improvement", "mixed", "no difference told", "identical", or "advice" if nothing that could
        be compared is to be judged.
        """
        if self.n_newly_failed:
            return "failed"
        if not self.n_compared:
            return "not compared"
        if self.n_newly_missing:
            return "no record"
        return verdicts.combined([*self.frame["verdict"], *self.solvers["verdict"]])

    @property
    def exit_code(self) -> int:
        """That of the command.

        5 if runs failed or left no record in B only, or none is compared; 1 if a worsening is
        beyond its bound; else 0.
        """
        if self.n_newly_failed or self.n_newly_missing or not self.n_compared:
            return EXIT_INCOMPLETE
        return EXIT_RUNS if self.n_beyond else EXIT_OK

    def to_json(self) -> str:
        """All of it as JSON text, which docs/comparing.md describes; the same in any call."""
        from .document import as_json

        return as_json(self)

    def write_page(self, path: Path | str) -> Path:
        """Write it as one self-contained HTML page, atomically, and return its path.

        Parameters
        ----------
        path : Path or str

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        from .page import write_page

        return write_page(self, Path(path))

    def __repr__(self) -> str:
        from .words import headline

        return f"Comparison({self.verdict!r}: {headline(self)})"


def compare(
    a: Path | str,
    b: Path | str | None = None,
    *,
    solver: str | None = None,
    against: str | None = None,
    bounds: Iterable[str] | str = (),
) -> Comparison:
    """Compare the runs of two results folders, or of two solvers in one, on the same problems.

    Parameters
    ----------
    a, b : Path or str
        The baseline and what is compared with it; without ``b`` two solvers of ``a``.
    solver : str, optional
        Only this solver.
    against : str, optional
        The solver that is its baseline; by default the same one.
    bounds : str or iterable of str, optional
        Changes that are accepted, such as "cpu=1.2" or "error=0.5pt".

    Returns
    -------
    Comparison

    Raises
    ------
    ReportError
        If a folder holds no results, a solver or bound is unknown, or the folders are of different
        kinds of studies.
    """
    accepted = parsed_bounds(bounds)
    before, after = sides_of(
        local_folder(a), None if b is None else local_folder(b), solver, against
    )
    known = compared_measures(before.results.kind, before.results, after.results, accepted)
    measures = without_repeats(known, before, after)
    environment, code = differences_of(before, after)
    times = settings.times_advice(before.results.runs, after.results.runs, environment)
    tables = Comparing(before, after, measures, times).tables()
    return Comparison(before, after, measures, tables, environment, code, times)
