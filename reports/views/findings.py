"""The findings of a study: who is first, how sure that is, and all tasks side by side."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ...harness.results.measures import Measure
from .. import analysis, formatting
from ..analysis import once
from ..described import Finding, SvmTask, capitalised
from ..drawing.figures import Axis, draw_lines, padded
from ..formatting import plural, slug
from ..frames import of_task
from ..measures import ERROR_TARGET, OBJECTIVE_TARGET
from ..results import Results
from ..statistics import targets
from ..statistics.targets import Target
from ..tables import NONE, Cell, Table, matrix, narrow
from ..view import Figure, Section, not_shown, with_legend
from .across import comparable_costs, incomplete
from .svm import references, trace_curves

# A study of one task shows it whole.
_FEWEST_TASKS = 2
_VALUES = ("suboptimality", "test_error")
# Far from the optimum solvers differ by powers of ten that say nothing of where they end.
_HIGHEST = {"suboptimality": 100.0}


def overview_section(results: Results) -> Iterator[Section]:
    """The medians of every task on shared axes, where there are tasks to compare."""
    if len(results.tasks_of(SvmTask)) < _FEWEST_TASKS:
        return
    rows = [row for value in _VALUES if (row := _row(results, value)) is not None]
    if rows:
        every = with_legend(results, [figure for _, _, figures in rows for figure in figures])
        counted = bool(analysis.counters(results))
        squares = "n is the number of training points of the task. " if counted else ""
        marks = (
            "Each line is a median over the runs that ended as planned, up to the end of the "
            f"longest. All figures of a row have the same logarithmic axes. {squares}"
            "Choose the name of a task for its full results."
        )
        yield Section(
            "glance",
            "At a glance",
            "overview.html",
            {"rows": rows, "legend": every[0].legend, "marks": marks},
        )


def _cost(results: Results) -> tuple[str, str, str]:
    """The cost that the figures share: its column, its words, its unit."""
    if not analysis.counters(results):
        return "cpu_s", "CPU seconds", "s"
    return "evaluations", f"{analysis.measures(results)['evaluations'].words} in units of n²", "n²"


@once
def _medians(results: Results, value: str) -> pd.DataFrame:
    """The medians of all tasks, costs in units that tasks share."""
    cost, _, _ = _cost(results)
    drawn = trace_curves(results, cost, value)
    drawn = drawn.loc[drawn["drawn"].isin(["median", "end"]), ["task", "solver", "cost", "median"]]
    if analysis.counters(results):
        n = results.runs.groupby("task")["n_train"].first()
        drawn = drawn.assign(cost=drawn["cost"] / drawn["task"].map(n).astype(float) ** 2)
    return drawn.replace(np.inf, np.nan).dropna()


def _row(results: Results, value: str) -> tuple[str, str, list[Figure]] | None:
    """The title and note of a value and its figures, one for each task; None if all are empty."""
    _, spent, unit = _cost(results)
    medians, measure = _medians(results, value), analysis.measures(results)[value]
    optima = references(results) if value == "test_error" else {}
    levels = {task: item["reference_test_error"] for task, item in optima.items()}
    values = np.append(medians["median"].to_numpy(np.float64), list(levels.values()))
    values, costs = values[values >= 0], medians["cost"].to_numpy(np.float64)
    if not (costs > 0).any() or not values.size:
        return None
    floor = float(values[values > 0].min(initial=1.0)) / 2
    highest = max(_HIGHEST.get(value, np.inf), 2 * floor)
    x = Axis("", "seconds" if unit == "s" else "", limits=padded(costs[costs > 0], 0.03, 0.05))
    y = Axis("", measure.format, limits=padded(np.clip(values, floor, highest), 0.08, 0.06))
    styles, figures = analysis.styles(results), []
    for task, name in analysis.slugs(results).items():
        level = levels.get(task, math.nan)
        drawn = draw_lines(
            of_task(medians, task), x, y, styles, f"{task}: {measure.words} against {spent}",
            levels=[] if math.isnan(level) else [(level, "")], floor=floor, small=True,
        )  # fmt: skip
        anchor = f"results-{name}"
        figures.append(Figure(f"glance-{value}-{anchor}", task, drawn, link=anchor))
    notes = ["Dashed: the test error of the reference optimum."] * (value == "test_error")
    if (medians["median"] > highest).any():
        notes.append(f"Curves are cut off above {highest:g}.")
    ended = results.runs.loc[results.runs["ok"], "solver"]
    notes.append(not_shown(results, ended, medians["solver"]))
    note = " ".join(filter(None, notes))
    return f"{capitalised(measure.words)} against {spent}", note, with_legend(results, figures)


_TARGETS = (
    OBJECTIVE_TARGET,
    Target("suboptimality", 0.1),
    Target("suboptimality", 0.001),
    ERROR_TARGET,
    Target("test_error", 0.0),
)
# Shades of a cell: up to these ratios to the best.
_SHADES = (1.0, 1.5, 3.0, 10.0, 100.0)
# Budgets in seconds, and in units of the kernel matrix.
_SECONDS = (0.01, 0.1, 1.0, 10.0)
_SQUARES = (0.1, 1.0)
# More leaders than this are a crowd.
_MOST_NAMED = 2


def findings_section(results: Results) -> Iterator[Section]:
    """Sentences from the data: who is first, on how many tasks, and how sure that is."""
    items = findings(results)
    if items:
        data = {"findings": items, "terms": _TERMS}
        yield Section("findings", "Findings", "findings.html", data)


def targets_section(results: Results) -> Iterator[Section]:
    """Who is first to which target, and who leads at which budget.

    Where some run has a result, and there is more than one solver to compare.
    """
    if not results.runs["ok"].any() or len(results.study.solvers) < 2:
        return
    costs = _costs(results)
    tables = [_matrix_table(results, target, cost) for target in _TARGETS for cost in costs]
    # Where no task has a target, as where all are tuned, there is nothing to compare.
    cells = [cell for table in tables for row in table.rows for cell in row[1:]]
    some = any(cell.number is not None or cell.value == formatting.NEVER for cell in cells)
    budgets = budget_table(results)
    if some or budgets is not None:
        data = {"matrices": tables if some else [], "budgets": budgets}
        yield Section("targets", "Costs to targets", "targets.html", data)


@once
def findings(results: Results) -> list[Finding]:
    """What the data say, in two or three sentences."""
    if not results.runs["ok"].any() or len(results.study.solvers) < 2:
        return []
    firsts = [_first_finding(results, target) for target in (OBJECTIVE_TARGET, ERROR_TARGET)]
    return [finding for finding in (*firsts, _error_finding(results)) if finding]


_TERMS = (
    "Solvers with a failed or missing run, or whose cost is not counted, do not compete. First: "
    "all of its runs are cheaper than every run of any other competitor whose median run gets "
    "there. Times ahead: the ratio of medians; over several tasks the geometric mean. By more than "
    f"chance: the 95{formatting.THIN}% interval of the paired difference in test error does not "
    "reach zero."
)


def _within(target: Target) -> str:
    """The target with its preposition: "within 1 % of the optimum"."""
    return f"{'within' if target.margin else 'at'} {target.words}"


def _costs(results: Results) -> dict[str, str]:
    """The costs that have matrices: columns of the traces, and their names."""
    counted = {"evaluations": analysis.measures(results)["evaluations"].words}
    return (counted if analysis.counters(results) else {}) | {"cpu_s": "CPU seconds"}


def _first_finding(results: Results, target: Target) -> Finding | None:
    """Who is first to a target, on how many tasks, and by what factor."""
    cost, words = next(iter(_costs(results).items()))
    if cost == "cpu_s" and not analysis.times_compare(results):
        return None
    table = analysis.target_costs(results, target, cost)
    firsts: dict[str, list[Mapping[str, Any]]] = {}
    n_tasks = 0
    for _, rows in table[table["competes"]].groupby("task"):
        if len(rows) > 1:
            n_tasks += 1
            leaders = rows[rows["first"]]
            several = "several solvers may be first" if len(leaders) else "no competitor gets there"
            answer = f"{leaders['solver'].iloc[0]} is first" if len(leaders) == 1 else several
            next_ones = rows[~rows["first"] & np.isfinite(rows["median"])]
            # How many times ahead of the next; NaN if it costs nothing.
            lead = next_ones["ratio"].min() if len(next_ones) else math.inf
            bounded = leaders["upper_bound"].any()
            firsts.setdefault(answer, []).append({"lead": lead, "bounded": bounded})
    # What holds on most tasks comes first.
    parts = [
        (f"{answer} on {len(leads)}", _ahead(leads) if answer.endswith(" is first") else "")
        for answer, leads in sorted(firsts.items(), key=lambda item: -len(item[1]))
    ]
    if not parts:
        return None
    (answer, detail), *others = parts
    rest = "".join(f"; {words}{more}" for words, more in others)
    question = f"To stay {_within(target)}, in {words}"
    return Finding(question, f"{answer} of {plural(n_tasks, 'task')}", detail + rest)


def _ahead(leads: Sequence[Mapping[str, Any]]) -> str:
    """How far ahead: the factor of a lead with its range over the tasks, and where it is alone.

    Of one whose cost is only an upper bound the factor is a lower one.
    """
    table = pd.DataFrame(leads)
    alone, free = np.isinf(table["lead"]), table["lead"].isna()
    parts = {"no other competitor gets there": alone.sum(), "at no cost": free.sum()}
    if len(finite := table[~alone & ~free]):
        low, high = (f"{each:.2g}" for each in finite["lead"].agg(["min", "max"]))
        spread = f" ({low}{formatting.DASH}{high}{formatting.TIMES})" if low != high else ""
        bound = "at least " if finite["bounded"].any() else ""
        factor = f"{bound}{targets.geometric_mean(finite['lead']):.2g}{formatting.TIMES}{spread}"
        parts = {f"{factor} ahead of the next": len(finite)} | parts
    listed = [f"{words} on {n}" if n < len(table) else words for words, n in parts.items() if n]
    return f" ({', '.join(listed)})"


def _error_finding(results: Results) -> Finding | None:
    """Whom the test errors tell apart."""
    table, bad = analysis.errors(results), incomplete(results)
    pairs = zip(table["task"], table["solver"], strict=True)
    table = table[[pair not in bad for pair in pairs]]
    table = table[table.groupby("task")["solver"].transform("nunique") > 1]
    if table.empty:
        return None
    worse = table[~table["best"]].groupby("solver", sort=False)["task"].nunique()
    worse = worse.sort_values(ascending=False, kind="stable")
    listed = ", ".join(f"{name} on {count}" for name, count in worse.items())
    words = f"worse than the best by more than chance: {listed}"
    question = f"Test error, on {plural(table['task'].nunique(), 'task')}"
    return Finding(question, words if listed else "no solver can be told from the best")


def _matrix_table(results: Results, target: Target, cost: str) -> Table:
    """The costs of all solvers to a target on each task, as ratios to the lowest."""
    table = analysis.target_costs(results, target, cost)
    ranked = cost != "cpu_s" or analysis.times_compare(results)
    competing = table[table["competes"]].groupby("task")["solver"].nunique()
    several = set(competing.index[competing > 1])  # a lone solver is not the best
    tasks = [task.label for task in results.tasks_of(SvmTask)]
    tried = table.loc[table["absent"] != targets.SKIPPED, "solver"]
    title = f"{capitalised(_costs(results)[cost])} to stay {_within(target)}"
    measure = analysis.measures(results)[cost]
    whole = matrix(
        title,
        table[table["solver"].isin(tried)],
        ("solver", [solver.label for solver in results.study.solvers]),
        ("task", {task: task for task in tasks}),
        lambda row: _ratio_cell(row, measure, several if ranked else ()),
    )
    return replace(
        narrow(whole),
        name=f"findings-{cost}-{slug(f'{target.value}-{target.margin:g}')}",
        caption=f"{title}: the median as a ratio to the lowest of the task, whose cost stands "
        "below 1.00, with the range over the runs. Solvers with a failed run are not the lowest.",
        numbers=table.assign(cost=cost, target=_within(target)),
    )


def _ratio_cell(row: Mapping[str, Any], measure: Measure, ranked: Collection[str]) -> Cell:
    if row["absent"] == targets.SKIPPED:
        return NONE
    failed = ", ".join(
        f"{row[name]} of {row['n']} {word}"
        for name, word in (("n_failed", "failed"), ("n_missing", "missing"))
        if row[name]
    )
    bounded, open_ended = row["upper_bound"], row["best_is_bound"] and row["ratio"] != 1
    if row["absent"]:
        return Cell(str(row["absent"]), note=failed, absent=True)
    if not math.isfinite(row["median"]):
        some = f"{row['n_reached']} of {row['n']} runs do" if row["n_reached"] else ""
        return Cell(formatting.NEVER, note=failed or some, absent=True)
    if math.isnan(row["ratio"]):
        return Cell(formatting.DASH, note=failed, absent=True)
    if bounded and open_ended:
        return Cell(formatting.DASH, note="both costs are bounds", absent=True)
    value, low, high = (_ratio(row[name]) for name in ("ratio", "ratio_low", "ratio_high"))
    at_most = bounded and not row["best_is_bound"]
    sign = formatting.AT_MOST if at_most else formatting.AT_LEAST if open_ended else ""
    cost = (formatting.AT_MOST if bounded else "") + formatting.say(measure, row["median"])
    notes = (f"1 is {cost}" if row["ratio"] == 1 else "", failed)
    return Cell(
        value=sign + value,
        range=formatting.spread(low, high),
        note=", ".join(filter(None, notes)),
        best=bool(row["first"]) and row["task"] in ranked and not bounded,
        number=row["ratio"],
        shade=int(np.searchsorted(_SHADES, row["ratio"] * (1 - 1e-9))),
    )


def _ratio(value: float) -> str:
    if not math.isfinite(value):
        return formatting.NEVER
    return f"{value:.2f}" if value < 9.995 else f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def budget_table(results: Results) -> Table | None:
    """Who has the lowest test error after so many evaluations, or seconds."""
    parts = [
        targets.leaders(results.runs, analysis.traces(results), cost, _budgets(results, cost))
        for cost in comparable_costs(results)
    ]
    numbers = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if numbers.empty:
        return None
    key = ["budget", "task"]
    first = numbers[numbers["first"]].groupby(key, sort=False)
    table = matrix(
        "Lowest median test error after a budget",
        first.agg({"solver": list, "error": "first"}).reset_index(),
        ("budget", dict.fromkeys(numbers["budget"])),
        ("task", {task.label: task.label for task in results.tasks_of(SvmTask)}),
        _leader_cell,
        first="After",
        column_style="",
        style="",
        name="findings-budgets",
        caption="Of the solvers without a failed run.",
    )
    return narrow(replace(table, numbers=numbers))


def _budgets(results: Results, cost: str) -> pd.DataFrame:
    """The budgets of each task, and the names that they have in the table."""
    sizes = results.runs.groupby("task")["n_train"].first()
    if cost == "cpu_s":
        named = [
            (f"{value:g}{formatting.THIN}s of CPU time", value, sizes**0) for value in _SECONDS
        ]
    else:
        named = [(f"{share:g} n² evaluations", share, sizes**2) for share in _SQUARES]
    rows = [
        (task.label, name, amount * unit[task.label])
        for task in results.tasks_of(SvmTask)
        for name, amount, unit in named
    ]
    return pd.DataFrame(rows, columns=["task", "budget", "amount"]).dropna()


def _leader_cell(row: Mapping[str, Any]) -> Cell:
    error = float(row["error"])
    names = formatting.some(map(str, row["solver"]), _MOST_NAMED)
    return Cell(names, range=formatting.percent(error), number=error)
