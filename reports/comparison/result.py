"""Compare two results folders, or two solvers of one: every cell, every measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ...data_loaders import suggest
from ...harness.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_RUNS
from ...harness.results.measures import counter_measures
from ...harness.results.objects import local_folder
from ..described import SvmSolver, SvmTask
from ..errors import ReportError
from ..frames import by_solver, records
from ..results import SUMS, Results, load_results
from ..statistics.errors import SolverErrors
from . import measured, pairing, ratios, settings, verdicts
from .measured import Compared, compared_measures, parsed_bounds
from .ratios import Change
from .verdicts import Verdict

#: Of the frame of measures.
MEASURE_COLUMNS = [
    *("task", "solver", "measure", "verdict", "why", "beyond", "n", "before", "after", "scale"),
    *("mean", "median", "low", "high", "p", "q", "exact", "reached_before", "reached_after"),
    *("lost", "gained", "n_unknown", "n_runs"),
]
SOLVER_COLUMNS = [
    *("solver", "measure", "verdict", "beyond", "n_tasks", "n_left_out", "scale", "mean", "low"),
    *("high", "n_worse", "n_better"),
]
CELL_COLUMNS = ["task", "solver", "verdict", "n_compared", "outcomes"]

_BOUNDED = "a cost is only an upper bound: at the target at the first checkpoint"


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes
    ----------
    name : str
        "A" or "B".
    results : Results
        Its runs, with the solvers' common labels.
    solver : str
        The solver it is reduced to; empty for all.
    """

    name: str
    results: Results
    solver: str = ""

    @property
    def words(self) -> str:
        """What it is, in a few words."""
        folder = str(self.results.folder)
        return f"{self.solver} in {folder}" if self.solver else folder

    @property
    def deterministic(self) -> set[str]:
        """The solvers that draw nothing, by their label in this comparison."""
        return {
            solver.label
            for solver in self.results.study.solvers
            if isinstance(solver, SvmSolver) and solver.deterministic
        }


@dataclass(frozen=True)
class Tables:
    """What is compared.

    Attributes
    ----------
    pairs, measures, cells, solvers : DataFrame
        Of the runs (:func:`.pairing.paired`), of each measure of each solver on each task, of
        each solver on each task, and of each measure of each solver over tasks.
    """

    pairs: pd.DataFrame
    measures: pd.DataFrame
    cells: pd.DataFrame
    solvers: pd.DataFrame


def sides_of(
    before: Path, after: Path | None, solver: str | None, against: str | None
) -> tuple[Side, Side]:
    """Load the two sides.

    Raises
    ------
    ReportError
        If there is nothing to compare; the message says what to give.
    """
    if after is None and not (solver and against):
        raise ReportError(
            f"{before}: one folder has nothing to compare it with; give another folder, or two of "
            "its solvers: --solver NAME --against NAME"
        )
    if against is not None and solver is None:
        raise ReportError(f"--against {against!r}: give the solver to compare with it: --solver")
    if after is None and solver == against:
        raise ReportError(f"--solver and --against are both {solver!r}; give two solvers")
    first = load_results(before)
    second = first if after is None else load_results(after)
    if first.kind != second.kind:
        raise ReportError(
            f"{before} is a study of the kind {first.kind!r}, {second.folder} of the kind "
            f"{second.kind!r}; compare two of one kind"
        )
    if solver is None:
        return Side("A", first), Side("B", second)
    baseline = against or solver
    return (
        Side("A", _only(first, baseline, solver), baseline),
        Side("B", _only(second, solver, solver), solver),
    )


def _only(results: Results, solver: str, label: str) -> Results:
    """The results of one solver, under another label."""
    known = [item.label for item in results.study.solvers]
    if solver not in known:
        raise ReportError(f"{results.folder}: no solver {solver!r}{suggest(solver, known)}")
    chosen = [item for item in results.study.solvers if item.label == solver]
    study = results.study.model_copy(
        update={"solvers": tuple(item.model_copy(update={"label": label}) for item in chosen)}
    )
    runs, traces = (
        frame[frame["solver"] == solver].assign(solver=label).reset_index(drop=True)
        for frame in (results.runs, results.traces)
    )
    return replace(results, study=study, runs=runs, traces=traces)


class Comparing:
    """Computes the tables of a comparison.

    Parameters
    ----------
    before, after : Side
    measures : mapping of str to Compared
    times : str
        Why times are advice only; empty if they are judged.
    """

    def __init__(
        self, before: Side, after: Side, measures: Mapping[str, Compared], times: str
    ) -> None:
        self.sides = before, after
        self.measures, self.times = measures, times
        self.between_solvers = before.solver != after.solver
        self.deterministic = before.deterministic & after.deterministic
        self.folds = {
            task.label: task.folds
            for task in before.results.study.tasks
            if isinstance(task, SvmTask) and task.folds is not None
        }

    def tables(self) -> Tables:
        """All of them."""
        pairs = self._pairs()
        compared = pairs[pairs["outcome"] == pairing.COMPARED].reset_index(drop=True)
        values = [
            _wide(side, self.measures, compared, f"seed_{side.name.lower()}") for side in self.sides
        ]
        runs = [dict(iter(side.results.runs.groupby(["task", "solver"]))) for side in self.sides]
        rows = [
            row
            for task, solver, group in by_solver(compared)
            for row in self._cell_rows(group, values, [side[task, solver] for side in runs])
        ]
        frame = self._judged(pd.DataFrame(rows), pairs)
        return Tables(pairs, frame, _cells(pairs, frame), self._over_tasks(frame))

    def _pairs(self) -> pd.DataFrame:
        before, after = (side.results.runs for side in self.sides)
        if self.between_solvers:
            single = {side.name for side in self.sides if side.deterministic}
            before, after = pairing.spread_single_runs(before, after, single)
        return pairing.paired(before, after)

    def _cell_rows(
        self, pairs: pd.DataFrame, values: list[dict[str, pd.DataFrame]], runs: list[pd.DataFrame]
    ) -> Iterator[dict[str, Any]]:
        """A row for each measure that some run of a solver on a task has."""
        task, solver = map(str, pairs[["task", "solver"]].iloc[0])
        seeds = pairs["seed_a"], pairs["seed_b"]
        runs = [side[side["seed"].isin(mine)] for side, mine in zip(runs, seeds, strict=True)]
        distinct = min(len(side) for side in runs)
        for name, item in self.measures.items():
            a, b = (side["value"][name].to_numpy(np.float64)[pairs.index] for side in values)
            if np.isnan(a).all() and np.isnan(b).all():
                continue
            barred = _barred(item, pairs, runs)
            if barred:
                found = Change()
            elif item.is_error:
                found = self._errors(task, solver, runs, len(pairs))
            else:
                found = self._change(solver, item, a, b, distinct)
            bounds = [side["upper_bound"][name].eq(True).to_numpy()[pairs.index] for side in values]
            # That one side gets there and the other never does is certain all the same.
            bounded = ((bounds[0] | bounds[1]) & np.isfinite(a) & np.isfinite(b)).any()
            identity = {"task": task, "solver": solver, "measure": name, "barred": barred}
            yield identity | {"change": found, "bounded": bounded and "_to_" in name}

    def _change(
        self,
        solver: str,
        item: Compared,
        a: npt.NDArray[np.float64],
        b: npt.NDArray[np.float64],
        distinct: int,
    ) -> Change:
        exact = solver in self.deterministic and not item.of_machine
        n = distinct if item.of_machine else None
        return ratios.change(a, b, exact=exact, band=item.band, n_runs=n)

    def _errors(self, task: str, solver: str, runs: list[pd.DataFrame], n: int) -> Change:
        """The test errors; of cross-validations the first, as others test on the same points."""
        if task in self.folds:
            runs = [side[side["seed"] < self.folds[task]] for side in runs]
        found = [SolverErrors.of(side) for side in runs]
        if found[0] is None or found[1] is None or found[0].n_test != found[1].n_test:
            return Change()
        by_chance = solver not in self.deterministic
        return ratios.error_change(found[0], found[1], n=n, by_chance=by_chance)

    def _judged(self, frame: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
        """The rows with adjusted p-values and verdicts."""
        if frame.empty:
            return pd.DataFrame(columns=MEASURE_COLUMNS)
        incomplete = {
            (task, solver): _incomplete(group) for task, solver, group in by_solver(pairs)
        }
        q = _adjusted(frame)
        rows = []
        for row, adjusted in zip(records(frame), q, strict=True):
            change, item = row["change"], self.measures[row["measure"]]
            found = verdicts.judged(
                change,
                adjusted,
                bound=item.bound if item.is_error or change.scale == "ratio" else 0.0,
                band=item.band,
                advice=self._advice(item) or (_BOUNDED if row["bounded"] else ""),
                incomplete=incomplete[row["task"], row["solver"]],
            )
            why = row["barred"] or found.why
            told = {"verdict": found.verdict, "why": why, "beyond": found.beyond, "q": adjusted}
            rows.append(row | vars(change) | told)
        return pd.DataFrame(rows)[MEASURE_COLUMNS]

    def _advice(self, item: Compared) -> str:
        if item.of_machine and self.times:
            return self.times
        # Methods of feasibility all end with the same certificate.
        ranked = self.sides[0].results.kind != "svm" or not self.between_solvers
        return "" if ranked or not item.is_total else "solvers end at different accuracies"

    def _over_tasks(self, frame: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for (solver, name), group in frame.groupby(["solver", "measure"], sort=False):
            item = self.measures[str(name)]
            scale: ratios.Scale = "difference" if item.is_error else "ratio"
            whole = group[(group["scale"] == scale) & (group["lost"] + group["gained"] == 0)]
            means = whole.loc[np.isfinite(whole["mean"]) & (whole["n"] > 0), "mean"]
            mean, low, high = ratios.mean_over_tasks(means.to_numpy(np.float64), scale)
            unchanged = (0.0, 0.0) if item.is_error else (1 / item.band, item.band)
            verdict = verdicts.of_tasks(
                list(group["verdict"]), low, high, unchanged=unchanged, n=len(means)
            )
            told = verdict == "worsening" and len(means) >= verdicts.FEWEST_TASKS
            rows.append(
                {
                    "solver": solver,
                    "measure": name,
                    "verdict": verdict,
                    "beyond": bool(group["beyond"].any()) or (told and low > item.bound),
                    "n_tasks": len(means),
                    "n_left_out": len(group) - len(means),
                    "scale": scale,
                    "mean": mean,
                    "low": low,
                    "high": high,
                    "n_worse": int((group["verdict"] == "worsening").sum()),
                    "n_better": int((group["verdict"] == "improvement").sum()),
                }
            )
        return pd.DataFrame(rows, columns=SOLVER_COLUMNS)


def _wide(
    side: Side, measures: Mapping[str, Compared], pairs: pd.DataFrame, seed: str
) -> dict[str, pd.DataFrame]:
    """The values of the runs of each pair, and which are upper bounds.

    Each has a row for each pair and a column for each measure.
    """
    values = measured.values_of(side.results, measures)
    keys = pd.MultiIndex.from_frame(pairs[["task", "solver", seed]], names=pairing.KEYS)
    return {
        column: values.pivot(index=pairing.KEYS, columns="measure", values=column).reindex(
            index=keys, columns=list(measures)
        )
        for column in ("value", "upper_bound")
    }


def without_repeats(
    measures: Mapping[str, Compared], before: Side, after: Side
) -> dict[str, Compared]:
    """The measures without counters that nothing counted, or that are all of a sum."""
    frames = [side.results.runs for side in (before, after)]
    names = [name for name in counter_measures() if name in measures]
    dropped = {
        name
        for name in names
        if not any((frame[name] > 0).any() for frame in frames)
        or any(
            name in parts and all(frame[name].equals(frame[total]) for frame in frames)
            for total, parts in SUMS.items()
        )
    }
    return {name: item for name, item in measures.items() if name not in dropped}


def _adjusted(frame: pd.DataFrame) -> pd.Series:
    """The p-values, adjusted for how many each measure has."""
    p_values = frame["change"].map(lambda change: change.p)
    parts = [
        pd.Series(verdicts.adjusted(list(group)), index=group.index, dtype=float)
        for _, group in p_values.groupby(frame["measure"], sort=False)
    ]
    return pd.concat(parts).reindex(frame.index)


def _barred(item: Compared, pairs: pd.DataFrame, runs: list[pd.DataFrame]) -> str:
    """Why a measure of a cell is not compared; empty if it is."""
    if item.of_reference and not pairs["same_reference"].all():
        return "the reference optima differ"
    if item.name == "n_support" and _problems(runs[0]) != _problems(runs[1]):
        return "they solve different problems"
    return ""


def _problems(runs: pd.DataFrame) -> set[str]:
    return set(runs["other_problem"]) if "other_problem" in runs else set()


def _incomplete(pairs: pd.DataFrame) -> str:
    """The only side of which runs failed or are missing; empty for none or both."""
    outcomes = set(pairs["outcome"])
    both = {pairing.FAILED_BOTH, pairing.MISSING_BOTH}
    sides = {
        "A": outcomes & {pairing.FAILED_A, pairing.MISSING_A, *both},
        "B": outcomes & {pairing.FAILED_B, pairing.MISSING_B, *both},
    }
    lacking = [name for name, found in sides.items() if found]
    return lacking[0] if len(lacking) == 1 else ""


def _cells(pairs: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    found = {key: list(group["verdict"]) for key, group in frame.groupby(["task", "solver"])}
    rows = []
    for task, solver, group in by_solver(pairs):
        outcomes = Counter(map(str, group["outcome"]))
        rows.append(
            {
                "task": task,
                "solver": solver,
                "verdict": verdicts.of_cell(found.get((task, solver), ()), outcomes),
                "n_compared": outcomes[pairing.COMPARED],
                "outcomes": dict(outcomes),
            }
        )
    return pd.DataFrame(rows, columns=CELL_COLUMNS)


def differences_of(before: Side, after: Side) -> tuple[list[settings.Difference], ...]:
    """The settings of the environment that differ, and those of the code of solvers."""
    runs = before.results.runs, after.results.runs
    environment = settings.environment_differences(*runs)
    if before.solver != after.solver:
        return environment, []
    folders = before.results.folder, after.results.folder
    return environment, settings.code_differences(*runs, folders)


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
        from .page import write_page

        return write_page(self, Path(path))

    def __repr__(self) -> str:
        from .report import headline

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
