"""Whether a commit is worse than another: two snapshots as the two sides of a comparison.

A cell of a suite is a solver on a task, and a turn of a timing is a seed. Counts are exact, so that
each one that changes beyond its bound is reported; times and memory only advise.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
import pandas as pd

from ...harness.results.measures import Format, Measure
from ..comparison import change as changes
from ..comparison.change import Verdict, combined
from ..comparison.report import ordered
from ..comparison.result import Compared, Comparison, Side, compared
from ..comparison.studies import SESSION, differences, parsed_bounds
from ..formatting import plural, some
from ..frames import RUN
from .annotations import Annotation, chosen
from .asv_files import FAILED, Snapshot, cell_of, task_and_solver
from .repository import Commit

GONE = "gone"
#: Exit codes of the gate.
EXIT_SAME, EXIT_WORSE, EXIT_FAILED = 0, 1, 2
_TIMES = "the machine and the compiler have a part in them"
#: As of a bound that is met by rounding alone.
_ROUNDING = 1 + 1e-9
#: Suites that measure single cells on the command line.
_RUNNABLE = ("work", "shapes")


#: Measures of the suites -> bound and format. They are deterministic but for time and memory, so a
#: bound is there for changes that no one would call one, such as another order of a sum.
_MEASURES: Mapping[str, tuple[float, Format]] = MappingProxyType(
    {
        "unsolved": (1.0, "integer"),
        "evaluations": (1.01, "integer"),
        "evaluations_computed": (1.01, "integer"),
        "iterations": (1.01, "integer"),
        "products": (1.01, "integer"),
        "support_vectors": (1.02, "integer"),
        "test_error": (0.005, "percent"),
        "suboptimality": (1.1, "number"),
        # Of the exact solver on thousands of points: when it leaves a sub-problem depends on
        # rounding.
        "pairs_moved": (1.2, "integer"),
        "entries_asked": (1.2, "integer"),
        "violation": (1.1, "number"),
        "time": (math.inf, "seconds"),
        "memory": (math.inf, "megabytes"),
    }
)
#: The differences that are none, whatever the ratio.
_NO_CHANGE: Mapping[str, float] = MappingProxyType(
    {
        "support_vectors": 1.0,
        "test_error": 0.005,
        "suboptimality": 5e-4,
        "memory": 8 * 2**20 / 1e6,
    }
)
#: Kinds of asv's own -> what --bound calls them all.
_FAMILIES = {"time_": "time", "timeraw_": "time", "peakmem_": "memory", "mem_": "memory"}
#: asv has bytes and percent -> megabytes and fractions.
_UNITS = {"memory": 1e6, "test_error": 100.0}


def watched(name: str, bounds: Mapping[str, float] | None = None) -> Compared:
    """The measure of a benchmark, with the bounds of the user (:func:`bounds_of`)."""
    family, bounds = _family(name), bounds or {}
    words = name.replace("_", " ")
    bound, form = _MEASURES.get(name, _MEASURES.get(family, (1.01, "number")))
    absolute = _NO_CHANGE.get(name, _NO_CHANGE.get(family, 0.0))
    band = SESSION if math.isinf(bound) else bound * _ROUNDING
    if family != name:
        words = f"{'time' if family == 'time' else 'peak memory'}, {words.partition(' ')[2]}"
    measure = Measure(words[:1].upper() + words[1:], words, form)
    advice = _TIMES if math.isinf(bound) else ""
    item = Compared(name, measure, bound, band, absolute, advice, sampled=family == "time")
    wanted = bounds.get(name, bounds.get(family))
    if wanted is None:
        return item
    if math.isinf(wanted):
        return replace(item, bound=wanted, advice="it is not judged")
    if item.is_error:
        return replace(item, bound=wanted, absolute=wanted)
    return replace(item, bound=wanted, band=wanted * _ROUNDING, absolute=0.0, advice="")


def _family(name: str) -> str:
    return next((word for start, word in _FAMILIES.items() if name.startswith(start)), name)


def unit_of(name: str) -> float:
    """The unit of a measure in that of asv."""
    return _UNITS.get(_family(name), 1.0)


def bounds_of(texts: Iterable[str], measures: Iterable[str]) -> dict[str, float]:
    """Bounds from texts such as ``evaluations=1.05``, ``test_error=1pt`` and ``memory=off``."""
    names = {*measures, *_MEASURES} - {FAILED}
    return parsed_bounds(texts, names, {}, "evaluations=1.05 or test_error=1pt")


def moved(item: Compared, before: float, after: float) -> Verdict:
    """The verdict on one value against another."""
    change = changes.change(
        np.array([before]),
        np.array([after]),
        exact=True,
        absolute=item.absolute,
        by_difference=item.is_error,
    )
    return changes.judged(change, bound=math.inf, band=item.band).verdict


@dataclass(frozen=True, repr=False)
class Regressions(Comparison):
    """What a commit, B, made worse and better than its base, A."""

    @cached_property
    def n_gone(self) -> int:
        """How many cells are no more."""
        gone = self.pairs[self.pairs["outcome"] == changes.GONE]
        return len(gone[["task", "solver"]].drop_duplicates())

    @property
    def advice(self) -> pd.DataFrame:
        """Times and memory that changed beyond what sessions differ by."""
        rows = self.frame[(self.frame["verdict"] == "advice") & (self.frame["why"] == _TIMES)]
        return ordered(rows[(rows["low"] > SESSION) | (rows["high"] < 1 / SESSION)])

    @cached_property
    def verdict(self) -> Verdict:
        """The worst that is true of B; a cell that is gone is no pass."""
        if self.n_newly_failed:
            return "failed"
        worst = combined(self.frame["verdict"])
        return "gone" if self.n_gone and worst not in ("worsening", "mixed") else worst

    @property
    def exit_code(self) -> int:
        """2: cells fail that did not; 1: something else is worse and not a known change; else 0."""
        if self.verdict == "failed":
            return EXIT_FAILED
        return EXIT_WORSE if self.n_beyond or self.n_gone else EXIT_SAME


def regressions(
    before: Snapshot,
    after: Snapshot,
    commits: tuple[Commit, Commit] | None = None,
    *,
    annotations: Sequence[Annotation] = (),
    bounds: Mapping[str, float] | None = None,
    notes: Sequence[str] = (),
) -> Regressions:
    """Compare two snapshots, value by value."""
    both = before.versions.keys() & after.versions.keys()
    base, head = commits or (Commit(before.commit), Commit(after.commit))
    present = {name.rpartition(".")[2] for name in both} - {FAILED}
    names = sorted(present, key=lambda name: ([*_MEASURES, name].index(name), name))
    measures = {name: watched(name, bounds) for name in names}

    def accepted(task: str, solver: str, measure: str, ratio: float) -> str:
        annotation = chosen(annotations, cell_of(task, solver), measure, ratio)
        return annotation.why if annotation else ""

    def expected(cells: set[str], what: str) -> set[str]:
        return {cell for cell in cells if chosen(annotations, cell, what) is not None}

    # A known change that accepts the failure or the end of a cell leaves the cell out.
    gone = expected(before.cells - after.cells, GONE)
    broken = expected(after.failed, FAILED)
    # A turn of both is a pair of runs; what fails on a side is one run of each.
    turns = [each.values.groupby("cell")["seed"].max() for each in (before, after)]
    last = pd.concat(turns, axis=1).fillna(0).min(axis=1)
    last[last.index.isin(before.failed | after.failed)] = 0
    if not last.any():
        # A time of one turn has no interval; what asv recorded of it is compared.
        measures = {name: replace(item, sampled=False) for name, item in measures.items()}

    def side(name: str, snapshot: Snapshot, commit: Commit, excused: Set[str]) -> Side:
        rows = snapshot.values
        of_both = (rows["cell"].str.split(" ").str[0] + "." + rows["measure"]).isin(both)
        kept = of_both & ~rows["cell"].isin(gone) & (rows["seed"] <= rows["cell"].map(last))
        rows = rows[kept].sort_values(["cell", "seed"], kind="stable")
        named = [task_and_solver(cell) for cell in rows["cell"]]
        rows[["task", "solver"]] = pd.DataFrame(named, rows.index, ["task", "solver"])
        # Cells that fail have no result, but for the ones of which that is accepted.
        fails = rows["cell"].isin(snapshot.failed)
        status = fails.map({True: "failed", False: "measured"})
        ok = ~fails | rows["cell"].isin(excused)
        runs = rows.assign(status=status, ok=ok, reason="").drop_duplicates(RUN)
        values = rows[rows["value"].notna() & rows["measure"].isin(measures)]
        numbers = values["value"].astype(float) / [unit_of(each) for each in values["measure"]]
        words = f"{commit.short} {commit.date} {commit.subject}".rstrip()
        values = values.assign(value=numbers, upper_bound=False)
        return Side(name, words, runs, values, frozenset(runs["solver"]))

    a, b = side("A", before, base, frozenset()), side("B", after, head, broken)
    # Where a cell that works has a value no more, B never reaches it.
    advice = [name for name, item in measures.items() if item.advice]
    lost = a.values[~a.values["cell"].isin(broken) & ~a.values["measure"].isin(advice)]
    values = pd.concat([b.values, lost.assign(value=math.inf)], ignore_index=True)
    b = replace(b, values=values.drop_duplicates([*RUN, "measure"]))
    frame, cells, solvers, pairs = compared(a, b, measures, accepted)
    return Regressions(
        a,
        b,
        measures,
        *(frame, cells, solvers, pairs),
        environment=differences(_machine(before), _machine(after), ()),
        code=[],
        times=_TIMES if any(item.advice == _TIMES for item in measures.values()) else "",
        cautions=[*notes, *_accepted(frame), *_notes(before, after)],
        title="Regressions",
        commands=tuple(_commands(frame, pairs, head)),
    )


def _accepted(frame: pd.DataFrame) -> Iterator[str]:
    """Why worsenings are accepted, each reason once."""
    accepted = frame[frame["why"].str.startswith(changes.KNOWN)]
    for why, rows in accepted.groupby("why", sort=False):
        yield f"Known change, {plural(len(rows), 'value')}: {str(why).removeprefix(changes.KNOWN)}"


def _machine(snapshot: Snapshot) -> dict[str, str]:
    return dict(sorted({**snapshot.machine, "environment": snapshot.lane.environment}.items()))


def _notes(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """What a reader must know of how the two were measured."""
    other = [
        each
        for each, version in sorted(before.versions.items())
        if after.versions.get(each, version) != version
    ]
    if other:
        yield (
            f"The code of {some(other, 3)} differs between the two measurements: values may differ "
            "because of that."
        )
    one_sided = sorted(before.versions.keys() ^ after.versions.keys())
    if one_sided:
        yield f"{some(one_sided, 3)} ran on one side only: nothing is said of it."


def _commands(frame: pd.DataFrame, pairs: pd.DataFrame, head: Commit) -> Iterator[str]:
    """The commands that measure again what fails or is worse, in a checkout."""
    rows = [
        pairs[pairs["outcome"] == changes.FAILED_B],
        ordered(frame[frame["beyond"].astype(bool)]),
    ]
    both = pd.concat([each[["task", "solver"]] for each in rows]).drop_duplicates()
    for task, solver in both.itertuples(index=False):
        suite, _, cell = cell_of(task, solver).partition(" ")
        module, _, name = suite.partition(".")
        if module in _RUNNABLE:
            measured = f"python -m benchmarks.{module} {shlex.quote(cell)}"
        else:
            measured = f"asv run --python=same --bench {shlex.quote(f'^{module}.{name}')}"
        yield f"git switch --detach {head.short} && {measured}"
