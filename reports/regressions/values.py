"""What was measured at a commit: the values of benchmarks, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

#: The measure that says whether a cell failed; its other values are then left out.
FAILED = "failed"


class Cell(NamedTuple):
    """One combination of parameters of a suite, such as a solver on a task.

    Attributes
    ----------
    suite : str
        Module and class, such as ``work.Work``.
    name : str
        The parameters, such as ``SMO rbf dense bias``.
    """

    suite: str
    name: str

    @property
    def group(self) -> str:
        """The first word of the name: the solver, where a suite is about solvers."""
        return self.name.partition(" ")[0] or self.suite


class Key(NamedTuple):
    """What one value is of.

    Attributes
    ----------
    cell : Cell
    measure : str
        The method without ``track_``, such as ``evaluations``, or whole, such as ``time_fit``.
    """

    cell: Cell
    measure: str


class Benchmark(NamedTuple):
    """One method of a suite, which has a value for each cell.

    Attributes
    ----------
    suite, measure : str
        As in :class:`Cell` and :class:`Key`.
    """

    suite: str
    measure: str


@dataclass(frozen=True)
class Value:
    """One value.

    Attributes
    ----------
    number : float or None
        None: the benchmark failed.
    samples : tuple of float
        Independent timings: one for each turn that a commit had while the two of a comparison took
        turns. What one run of asv repeats is no sample: it all depends on that run's process and
        moment.
    quartiles : tuple of float or None
        Of what one run of asv repeated.
    """

    number: float | None
    samples: tuple[float, ...] = ()
    quartiles: tuple[float, float] | None = None


class Lane(NamedTuple):
    """Where values may be compared: one machine with one environment.

    Attributes
    ----------
    machine, environment : str
    """

    machine: str
    environment: str


@dataclass(frozen=True)
class Snapshot:
    """All values of one commit on one lane.

    Attributes
    ----------
    commit : str
        The full hash.
    date : int
        Of the commit, in milliseconds since 1970, as asv records it.
    lane : Lane
    machine : mapping of str to str
        What asv recorded of it: cpu, os, ram and so on.
    values : mapping of Key to Value
        Without those that were skipped.
    versions : mapping of Benchmark to str
        Of the code of all benchmarks that were run.
    units : mapping of str to str
        Of measures, where they are known.
    """

    commit: str
    date: int
    lane: Lane
    machine: Mapping[str, str]
    values: Mapping[Key, Value]
    versions: Mapping[Benchmark, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    def failed_cells(self) -> frozenset[Cell]:
        """The cells that say so themselves, or of which asv got no value."""
        return frozenset(
            key.cell
            for key, value in self.values.items()
            if value.number is None or (key.measure == FAILED and value.number > 0)
        )

    def unmeasured(self) -> tuple[str, ...]:
        """The suites of several cells of which asv got no value, so that nothing compares."""
        cells: dict[str, set[Cell]] = {}
        for key in self.values:
            cells.setdefault(key.cell.suite, set()).add(key.cell)
        measured = {
            key.cell.suite for key, value in self.values.items() if value.number is not None
        }
        return tuple(sorted(suite for suite in cells.keys() - measured if len(cells[suite]) > 1))

    def cells(self) -> frozenset[Cell]:
        """All cells."""
        return frozenset(key.cell for key in self.values)
