"""Compare two sides, A and B: every cell, every measure; their verdicts and the exit code.

A side is a frame of runs and a frame of their values. Those of results folders come from
:mod:`.studies`, those of commits from :mod:`marginbench.reports.regressions.gate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ...harness.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_RUNS, StorageError
from ...harness.results.measures import Measure
from ..frames import RUN, by_solver
from ..results import Results
from ..statistics.errors import SolverErrors, first_folds
from . import change as changes
from .change import Change, Floats, Verdict

#: Of the frame of measures.
MEASURE_COLUMNS = [
    *("task", "solver", "measure", "verdict", "why", "beyond"),
    *(each.name for each in fields(Change) if each.name != "identical"),
]
SOLVER_COLUMNS = [
    *("solver", "measure", "verdict", "beyond", "n_tasks", "n_left_out", "scale", "mean", "low"),
    *("high", "n_worse", "n_better"),
]
_BOUNDED = "a cost is only an upper bound: at the target at the first checkpoint"


@dataclass(frozen=True)
class Compared:
    """A measure as comparisons take it. Less is better of all of them."""

    name: str
    measure: Measure
    bound: float  # the change that is accepted: a ratio, of errors a difference; infinite: any
    band: float = 1.0  # the ratio that the measurement itself does not tell
    absolute: float = 0.0  # the difference that is none
    advice: str = ""  # why it is shown and not judged; empty if it is judged
    sampled: bool = False  # whether it differs from one measurement to the next, as times do
    of_reference: bool = False  # whether it depends on the reference optimum of the task

    @property
    def is_error(self) -> bool:
        """Whether it is compared by its difference, in points."""
        return self.name == "test_error"


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str  # "A" or "B"
    words: str  # what it is, in a few words
    # Task, solver, seed, ok, status, reason, and what else determines the problem.
    runs: pd.DataFrame
    # Task, solver, seed, measure, value and upper_bound (it is only known to be at most this).
    values: pd.DataFrame
    deterministic: frozenset[str] = frozenset()  # the solvers that draw nothing
    solver: str = ""  # the solver it is reduced to; empty for all
    # The tasks of which each of so many seeds is a fold, another test set.
    folds: Mapping[str, int] = field(default_factory=dict)
    results: Results | None = None  # the results folder it is from


class Difference(NamedTuple):
    """A setting of the machine, the software or a solver that differs."""

    solver: str  # whose it is; empty for a setting of the environment
    field: str  # "processor", "libraries.numba", "params.tol"
    before: str  # the values of A and of B
    after: str
    disturbs: bool = False  # whether times are no evidence because of it


#: Task, solver, measure and ratio of a worsening -> why it is accepted; empty if it is not.
Accepted = Callable[[str, str, str, float], str]


def compared(
    before: Side,
    after: Side,
    measures: Mapping[str, Compared],
    accepted: Accepted = lambda task, solver, measure, ratio: "",
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The frames of a :class:`Comparison`: frame, cells, solvers and pairs.

    Pairs the runs of two sides, and judges each measure of each solver on each task.
    """
    a, b = before.runs, after.runs
    if before.solver != after.solver:
        a = changes.spread_single_runs(a, b) if before.deterministic else a
        b = changes.spread_single_runs(b, a) if after.deterministic else b
    pairs = changes.paired(a, b)
    rows = list(_changes((before, after), measures, pairs))
    incomplete = {(task, solver): _incomplete(group) for task, solver, group in by_solver(pairs)}
    frame = _judged(rows, measures, incomplete, accepted)
    return frame, _cells(pairs, frame), _over_tasks(frame, measures, incomplete), pairs


def _changes(
    sides: tuple[Side, Side], measures: Mapping[str, Compared], pairs: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """A row for each measure that some run of a solver on a task has."""
    both = pairs[pairs["outcome"] == changes.COMPARED].reset_index(drop=True)
    arrays = [_arrays(side, [*measures], both) for side in sides]
    by_cell = [dict(iter(side.runs.groupby(["task", "solver"]))) for side in sides]
    deterministic = sides[0].deterministic & sides[1].deterministic
    for task, solver, group in by_solver(both):
        runs = [
            cells[task, solver][cells[task, solver]["seed"].isin(group[seed])]
            for cells, seed in zip(by_cell, ("seed_a", "seed_b"), strict=True)
        ]
        fixed = solver in deterministic
        for place, (name, item) in enumerate(measures.items()):
            a, b = (values[group.index, place] for values, _ in arrays)
            if np.isnan(a).all() and np.isnan(b).all():
                continue
            barred = _barred(item, group, runs)
            if barred:
                change = Change()
            elif item.is_error and "n_test" in runs[0]:
                change = _errors(runs, sides[0].folds, by_chance=not fixed)
            else:
                change = changes.change(
                    a,
                    b,
                    exact=fixed and not item.sampled,
                    band=item.band,
                    absolute=item.absolute,
                    by_difference=item.is_error,
                    n_runs=min(map(len, runs)) if item.sampled else None,
                )
            # That one side gets there and the other never does is certain all the same.
            at_most = arrays[0][1][group.index, place] | arrays[1][1][group.index, place]
            bounded = "_to_" in name and (at_most & np.isfinite(a) & np.isfinite(b)).any()
            identity = {"task": task, "solver": solver, "measure": name, "barred": barred}
            advice = item.advice or (_BOUNDED if bounded else "")
            yield identity | {"change": change, "advice": advice}


def _arrays(
    side: Side, names: list[str], pairs: pd.DataFrame
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The values, and which are only upper bounds, shape (n_pairs, n_measures)."""
    seed = f"seed_{side.name.lower()}"
    keys = pd.MultiIndex.from_frame(pairs[["task", "solver", seed]], names=RUN)
    values, bounds = (
        side.values.pivot(index=RUN, columns="measure", values=each).reindex(
            index=keys, columns=names
        )
        for each in ("value", "upper_bound")
    )
    return values.to_numpy(np.float64), bounds.eq(True).to_numpy()


def _barred(item: Compared, pairs: pd.DataFrame, runs: Sequence[pd.DataFrame]) -> str:
    """Why a measure of a cell is not compared; empty if it is."""
    if item.of_reference and not pairs["same_reference"].all():
        return "the reference optima differ"
    problems = [set(side["other_problem"]) if "other_problem" in side else set() for side in runs]
    if item.name == "n_support" and problems[0] != problems[1]:
        return "they solve different problems"
    return ""


def _errors(runs: list[pd.DataFrame], folds: Mapping[str, int], *, by_chance: bool) -> Change:
    """The test errors of the runs of a task."""
    runs = [first_folds(side, folds) for side in runs]
    errors = [SolverErrors.of(side) for side in runs]
    if errors[0] is None or errors[1] is None or errors[0].n_test != errors[1].n_test:
        return Change()
    # The one run of a deterministic side is in every pair.
    pairs = max(map(len, runs))
    return changes.error_change(errors[0], errors[1], n=pairs, by_chance=by_chance)


def _judged(
    rows: list[dict[str, Any]],
    measures: Mapping[str, Compared],
    incomplete: Mapping[tuple[str, str], str],
    accepted: Accepted,
) -> pd.DataFrame:
    """The rows with verdicts, and p-values adjusted for how many each measure has."""
    q_values = changes.adjusted([row["measure"] for row in rows], [row["change"].p for row in rows])
    judged_rows = []
    for row, q in zip(rows, q_values, strict=True):
        change, item = replace(row["change"], q=q), measures[row["measure"]]
        verdict, why, beyond = changes.judged(
            change,
            bound=item.bound if item.is_error or change.scale == "ratio" else 0.0,
            band=item.band,
            advice=row["advice"],
            incomplete=incomplete[row["task"], row["solver"]],
        )
        # More than nothing is infinitely more.
        ratio = change.after / change.before if change.before > 0 else np.inf
        if beyond and (reason := accepted(row["task"], row["solver"], item.name, ratio)):
            why, beyond = f"{changes.KNOWN}{reason}", False
        verdicts = {"verdict": verdict, "why": row["barred"] or why, "beyond": beyond}
        judged_rows.append(row | vars(change) | verdicts)
    return pd.DataFrame(judged_rows, columns=MEASURE_COLUMNS)


def _incomplete(pairs: pd.DataFrame) -> str:
    """The only side of which runs failed or are missing; empty for none or both."""
    lacking = pairs.loc[pairs["outcome"].str.startswith(("failed", "no record")), "outcome"]
    sides = {str(outcome).rpartition(" ")[2] for outcome in lacking}
    return sides.pop() if sides in ({"A"}, {"B"}) else ""


def _cells(pairs: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    verdicts = {key: list(group["verdict"]) for key, group in frame.groupby(["task", "solver"])}
    rows = []
    for task, solver, group in by_solver(pairs):
        outcomes = Counter(map(str, group["outcome"]))
        verdict = changes.of_cell(verdicts.get((task, solver), ()), outcomes)
        rows.append((task, solver, verdict, outcomes[changes.COMPARED], dict(outcomes)))
    return pd.DataFrame(rows, columns=["task", "solver", "verdict", "n_compared", "outcomes"])


def _over_tasks(
    frame: pd.DataFrame,
    measures: Mapping[str, Compared],
    incomplete: Mapping[tuple[str, str], str],
) -> pd.DataFrame:
    """The means over the tasks where no side lacks a run, and all runs reach the target."""
    whole = frame[["reached_before", "reached_after"]].min(axis=1) == frame["n"]
    cells = zip(frame["task"], frame["solver"], strict=True)
    whole &= np.array([not incomplete[cell] for cell in cells], dtype=bool) & (frame["n"] > 0)
    rows: list[dict[str, Any]] = []
    for (solver, name), group in frame.groupby(["solver", "measure"], sort=False):
        item = measures[str(name)]
        scale = "difference" if item.is_error else "ratio"
        # A ratio below the range of floating point is 0, and has no logarithm.
        told = np.isfinite(group["mean"]) & ((group["mean"] > 0) | item.is_error)
        told &= whole[group.index] & (group["scale"] == scale)
        means = group.loc[told, "mean"].to_numpy(np.float64)
        estimated = changes.estimate(
            means if item.is_error else np.log(means), not item.is_error, item.band
        )
        rows.append(
            {"solver": solver, "measure": name, "scale": scale, "group": group, **estimated}
            | {"beyond": bool(group["beyond"].any())}
            | {"n_tasks": len(means), "n_left_out": len(group) - len(means)}
            | {"n_worse": int((group["verdict"] == "worsening").sum())}
            | {"n_better": int((group["verdict"] == "improvement").sum())}
            # Of tasks that are left out only where all are: it stands beside the mean.
            | {"verdicts": list(group.loc[told if told.any() else group.index, "verdict"])}
        )
    q_values = changes.adjusted([row["measure"] for row in rows], [row["p"] for row in rows])
    for row, q in zip(rows, q_values, strict=True):
        item = measures[row["measure"]]
        band = (0.0, 0.0) if item.is_error else (1 / item.band, item.band)
        row["verdict"] = changes.of_tasks(row["verdicts"], row, q, band)
        # What is accepted on every task is accepted on their mean.
        known = row["group"]["why"].str.startswith(changes.KNOWN).any()
        worse = row["verdict"] == "worsening" and row["n_tasks"] >= changes.FEWEST_TASKS
        row["beyond"] |= worse and not known and row["low"] > item.bound
    return pd.DataFrame(rows, columns=SOLVER_COLUMNS)


@dataclass(frozen=True, repr=False)
class Comparison:
    """What changed from A, the baseline, to B; of :func:`marginbench.compare`.

    Attributes
    ----------
    before, after : Side
        A and B.
    measures : mapping of str to Compared
        What is compared, with the bounds.
    frame : DataFrame
        One row for each task, solver and measure, in the order of A's study.

        ``verdict`` and ``why``; ``n`` pairs of runs; ``before`` and ``after``, the medians of A and
        B; ``mean`` with its 95 % interval ``low`` and ``high``: the geometric mean of the ratios
        B / A, or where ``scale`` is "difference" the mean of B - A; ``p`` and ``q``, the same
        adjusted for how many solvers and tasks the measure has; ``beyond``, whether the whole
        interval of a worsening is beyond its bound.
    cells : DataFrame
        One row for each task and solver: its verdict, and how its runs were paired.
    solvers : DataFrame
        One row for each solver and measure: the mean over tasks with its interval.
    pairs : DataFrame
        One row for each run of either side: whether it is compared, or why not.
    environment, code : list of Difference
        What differs between the environments, and between the solvers of one label.
    times : str
        Why times and memory are advice only; empty if they are judged.
    cautions : list of str
        What limits each side by itself, in sentences.
    title : str
        What both are of.
    commands : tuple of str
        The commands that measure again what is worse.
    """

    before: Side
    after: Side
    measures: Mapping[str, Compared]
    frame: pd.DataFrame
    cells: pd.DataFrame
    solvers: pd.DataFrame
    pairs: pd.DataFrame
    environment: list[Difference]
    code: list[Difference]
    times: str
    cautions: list[str]
    title: str
    commands: tuple[str, ...] = ()

    @property
    def advice(self) -> pd.DataFrame:
        """Rows that only advise and are shown all the same; none of results folders."""
        return self.frame.iloc[:0]

    def _count(self, outcome: str) -> int:
        """How many pairs, or where B has no result, how many runs of it: one may be in several."""
        pairs = self.pairs[self.pairs["outcome"] == outcome]
        of_b = outcome in (changes.FAILED_B, changes.MISSING_B)
        return len(pairs.drop_duplicates(["task", "solver", "seed_b"]) if of_b else pairs)

    @cached_property
    def n_newly_failed(self) -> int:
        """How many runs failed in B that did not in A."""
        return self._count(changes.FAILED_B)

    @cached_property
    def n_newly_missing(self) -> int:
        """How many runs have a record in A and are planned in B, but have none there to read."""
        return self._count(changes.MISSING_B)

    @cached_property
    def n_compared(self) -> int:
        """How many pairs of runs are compared."""
        return self._count(changes.COMPARED)

    @cached_property
    def n_beyond(self) -> int:
        """How many worsenings are beyond their bounds, means over tasks included."""
        # A mean counts where no task of it does.
        means = self.solvers["beyond"] & (self.solvers["n_worse"] == 0)
        return int(self.frame["beyond"].sum() + means.sum())

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
        return changes.combined([*self.frame["verdict"], *self.solvers["verdict"]])

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
        from .report import as_json

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
        from ..templating import write_page
        from .report import render

        if not Path(path).name:
            raise StorageError(f"{path}: is a folder; give the page a file")
        write_page(Path(path), render(self))
        return Path(path)

    def __repr__(self) -> str:
        from .report import headline

        return f"Comparison({self.verdict!r}: {headline(self)})"
