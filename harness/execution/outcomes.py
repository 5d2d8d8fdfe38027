"""How the runs of a study ended, for whoever called for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ..errors import EXIT_DATA, EXIT_OK, EXIT_RUNS
from ..planning.forecast import recorded_seconds
from ..results.journal import Entry
from ..results.records import EXPECTED_STATUSES, RecordBase, Status
from ..words import REASON_LIMIT, visible


@dataclass(frozen=True, repr=False)
class RunSummary:
    """How the runs of a study ended.

    Attributes
    ----------
    results : Path
        The results folder.
    planned : int
        Runs of the study.
    already_recorded : int
        Runs that had been finished before.
    statuses : dict
        Status -> number of planned runs that ended so, whenever they did.
    unexpected : tuple of str
        A line for each run that did not go as planned.
    data_errors : tuple of str
        Datasets that could not be loaded, and why.
    part : str
        How much of the study this was, as "1 of 3 tasks"; empty for all of it.
    store : str
        The URL of the results, if they are in a store; ``results`` is then their mirror here.
    """

    results: Path
    planned: int
    already_recorded: int
    statuses: dict[str, int]
    unexpected: tuple[str, ...] = ()
    data_errors: tuple[str, ...] = ()
    part: str = ""
    store: str = ""

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.statuses.items())
        runs = f"{sum(self.statuses.values())} of {self.planned} runs"
        return f"{type(self).__name__}({str(self.results)!r}: {runs}; {counts})"

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON takes it."""
        return {
            "results": self.store or str(self.results),
            "planned": self.planned,
            "already_recorded": self.already_recorded,
            "statuses": dict(self.statuses),
            "failures": list(self.unexpected),
            "data_errors": list(self.data_errors),
            "part": self.part,
        }

    @property
    def exit_code(self) -> int:
        """3 if data could not be loaded, else 1 if a run did not go as planned, else 0."""
        if self.data_errors:
            return EXIT_DATA
        return EXIT_RUNS if self.unexpected else EXIT_OK


@dataclass(frozen=True, slots=True)
class Ending:
    """What a command remembers of a recorded run: a record is too large to keep thousands of.

    Attributes
    ----------
    status : str
    failure : str
        A line if it did not go as planned, else empty.
    seconds : float
        All of it took so long.
    solving_s : float or None
        Of these inside the solver; None if it was not run.
    """

    status: Status
    failure: str
    seconds: float
    solving_s: float | None

    @classmethod
    def of(cls, record: RecordBase | Entry) -> Self:
        """How the run of a record ended."""
        failure = "" if record.status in EXPECTED_STATUSES else failure_line(record)
        return cls(record.status, failure, recorded_seconds(record), record.wall_s)


def failure_line(record: RecordBase | Entry) -> str:
    """One line for a run that did not go as planned."""
    reason = f" ({visible(record.reason, REASON_LIMIT)})" if record.reason else ""
    return f"{record.task} / {record.solver} / seed {record.seed}: {record.status}{reason}"
