"""What holds over all tasks of a study together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ...harness.results.measures import Measure
from .. import formatting
from ..analysis import Analysis
from ..derived import ERROR_TARGET, OBJECTIVE_TARGET
from ..described import SvmTask
from ..drawing.figures import draw_profile, draw_trade
from ..formatting import plural
from ..frames import records
from ..naming import slug, unused
from ..statistics import pairwise, pareto, profiles, ranks
from ..statistics.integrity import times_compare
from ..statistics.pairwise import FEWEST_DATASETS
from ..statistics.running_time import expected_running_time
from ..statistics.targets import Target, bounds_median
from ..tables import NONE, Cell, Heading, Table
from ..view import Figure, Section, legend
from ..wording import capitalised

#: Targets for the objective and for the test error; problems are tasks with one of them.
FAMILIES: Mapping[str, tuple[Target, ...]] = {
    "suboptimality": (
        Target("suboptimality", 0.1),
        OBJECTIVE_TARGET,
        Target("suboptimality", 1e-3),
    ),
    "test_error": (
        Target("test_error", 0.0),
        Target("test_error", 0.005),
        ERROR_TARGET,
        Target("test_error", 0.02),
    ),
}
#: The families in words, with the preposition.
FAMILY_WORDS: Mapping[str, str] = {
    "suboptimality": f"within 10, 1 or 0.1{formatting.THIN}% of the optimum",
    "test_error": "within 0, 0.5, 1 or 2 points of the optimum's error",
}
_SMALL_P = 0.001


@dataclass(frozen=True)
class Question:
    """What it costs to stay at a target: one answer for each task and solver.

    Attributes
    ----------
    target : Target
    cost : str
        A column of the traces.
    words : str
        "Kernel evaluations to stay within 1 % of the optimum".
    """

    target: Target
    cost: str
    words: str


def comparable_costs(analysis: Analysis) -> list[str]:
    """The costs that may be compared: columns of the traces."""
    times = times_compare(analysis.runs, analysis.environments)
    return [*(["evaluations"] if analysis.counters else []), *(["cpu_s"] if times else [])]


def questions(analysis: Analysis) -> list[Question]:
    """Each target of the table of results, in each cost that may be compared."""
    return [
        Question(target, cost, f"{_cost_words(analysis, cost)} to stay within {target.words}")
        for cost in comparable_costs(analysis)
        for target in (OBJECTIVE_TARGET, ERROR_TARGET)
    ]


def datasets(analysis: Analysis) -> dict[str, str]:
    """The dataset of each task; a task without one is a dataset of its own."""
    return {task.label: task.dataset or task.label for task in analysis.tasks_of(SvmTask)}


def problems(analysis: Analysis, family: str, cost: str) -> pd.DataFrame:
    """The problems of a family of targets, for :meth:`.Analysis.ask`."""
    return profiles.problems(analysis.runs, analysis.traces, FAMILIES[family], cost)


def answers(analysis: Analysis, question: Question) -> pd.DataFrame:
    """The problems of one question."""
    family = question.target.value
    found = analysis.ask(problems, family, question.cost)
    return found[found["target"] == FAMILIES[family].index(question.target)]


def incomplete(analysis: Analysis) -> frozenset[tuple[str, str]]:
    """Tasks and solvers of which a run failed or is missing."""
    counts = analysis.counts
    bad = counts[(counts["n_failed"] > 0) | (counts["n_missing"] > 0)]
    return frozenset(zip(bad["task"], bad["solver"], strict=True))


# Short names of costs and of families of targets, for anchors.
_NAMES = {
    "evaluations": "evaluations",
    "cpu_s": "seconds",
    "suboptimality": "objective",
    "test_error": "error",
}


def across_section(analysis: Analysis) -> Iterator[Section]:
    """Profiles, pairwise wins, ranks, Pareto fronts and expected running times.

    Where two solvers and two tasks have results, and there are costs and targets.
    """
    ok, costs = analysis.runs[analysis.runs["ok"]], comparable_costs(analysis)
    if min(ok["task"].nunique(), ok["solver"].nunique()) < 2 or not costs:
        return
    if not ERROR_TARGET.levels(ok).notna().any():
        return
    known, asked = datasets(analysis), questions(analysis)
    fronts = pareto.fronts(analysis.runs, ("test_error", costs[-1], "n_support"))
    tables: list[Table] = []
    data = {
        "n_tasks": len(known),
        "n_datasets": len(set(known.values())),
        "fewest_datasets": FEWEST_DATASETS,
        "times": "cpu_s" in costs,
        "data_profiles": _with_legend(
            analysis,
            [_data_profile(analysis, family, cost) for cost in costs for family in FAMILIES],
        ),
        "solved": _named(tables, solved_table(analysis)),
        "performance_profiles": _with_legend(
            analysis, [_performance_profile(analysis, question) for question in asked]
        ),
        "asked": [
            (
                question.words,
                _named(tables, wins_table(analysis, question)),
                _named(tables, pairs_table(analysis, question)),
                _named(tables, running_time_table(analysis, question)),
            )
            for question in asked
        ],
        "ranks": _named(tables, rank_table(analysis)),
        "powerless": _powerless(analysis, asked),
        "rank_sentences": [rank_sentence(analysis, question) for question in asked],
        "trade": _with_legend(analysis, [_trade(analysis, fronts)]),
        "fronts": _named(tables, fronts_table(analysis, fronts)) if len(fronts) else None,
        "front_cost": analysis.measures[costs[-1]].words,
    }
    yield Section("across", "Across tasks", "across.html", data)


def _named(tables: list[Table], table: Table | None) -> Table | None:
    """The table with the name of its files, which no table before it has."""
    if table is not None:
        name = unused(f"across-{slug(table.label)}", [each.name for each in tables])
        table = replace(table, name=name)
        tables.append(table)
    return table


def _with_legend(analysis: Analysis, figures: list[Figure]) -> list[Figure]:
    """The figures with a legend of the solvers that one of them draws."""
    frames = [each.drawing.data for each in figures if each.drawing is not None]
    drawn = {str(label) for frame in frames for label in frame["solver"].unique()}
    entries = legend(analysis, dict.fromkeys(drawn, ""))
    return [replace(each, legend=entries) for each in figures]


def _data_profile(analysis: Analysis, family: str, cost: str) -> Figure:
    found = analysis.ask(problems, family, cost)
    words = analysis.measures[cost].words
    if cost == "evaluations":
        found, words = profiles.in_squares(found, analysis.runs), f"{words} in units of n²"
    steps = profiles.data_profile(found)
    shown = {
        label: style for label, style in analysis.styles.items() if label in set(found["solver"])
    }
    title = f"Problems solved {FAMILY_WORDS[family]}, against {words}"
    return Figure(
        f"across-data-{_NAMES[family]}-{_NAMES[cost]}",
        title,
        draw_profile(steps, shown, title, words),
        note=_solved_note(analysis, found, family, cost),
    )


def _solved_note(analysis: Analysis, found: pd.DataFrame, family: str, cost: str) -> str:
    """How many problems each solver solved, of how many, and who has none."""
    n_tasks = len(datasets(analysis))
    parts, absent = [], []
    for label in analysis.styles:
        mine = found[found["solver"] == label]
        if mine.empty:
            absent.append(f"{label} ({_why_absent(analysis, label, family, cost)})")
            continue
        tasks = mine["task"].nunique()
        some = f" on {tasks} of {n_tasks} tasks" if tasks < n_tasks else ""
        parts.append(f"{label} {int(np.isfinite(mine['value']).sum())} of {len(mine)}{some}")
    words = [f"Solved: {', '.join(parts)}."]
    words += [f"Not counted: {', '.join(absent)}."] if absent else []
    return " ".join([*words, *_bounds_note(found)])


def _bounds_note(problems: pd.DataFrame) -> list[str]:
    """How many costs are drawn at an upper bound, and whose; nothing without any."""
    counts = problems[problems["upper_bound"]].groupby("solver", sort=False).size()
    if counts.empty:
        return []
    listed = ", ".join(f"{solver} {count}" for solver, count in counts.items())
    return [f"Drawn at an upper bound, the cost of the first checkpoint: {listed}."]


def _why_absent(analysis: Analysis, label: str, family: str, cost: str) -> str:
    mine = analysis.runs[analysis.runs["solver"] == label]
    for status in ("skipped", "missing"):
        if (mine["status"] == status).all():
            return status
    if family == "suboptimality" and not mine["minimises"].any():
        return "objective not minimised"
    if cost == "evaluations" and not mine["instrumented"].any():
        return "not instrumented"
    return "no target or no count"


def _performance_profile(analysis: Analysis, question: Question) -> Figure:
    found = answers(analysis, question)
    middle = profiles.medians(found)
    ratios = profiles.performance_ratios(middle, analysis.ask(incomplete))
    known = set(ratios["solver"])
    shown = {label: style for label, style in analysis.styles.items() if label in known}
    title = f"{question.words}, as a ratio to the best"
    parts = [
        f"{row['solver']} {int(row['solved'])} of {plural(row['n'], 'task')}"
        for row in records(_solved_tasks(ratios))
    ]
    return Figure(
        f"across-performance-{_NAMES[question.target.value]}-{_NAMES[question.cost]}",
        title,
        draw_profile(
            profiles.performance_profile(ratios), shown, title, "ratio to the best of the task"
        ),
        note=" ".join([f"Solved: {', '.join(parts)}."] * bool(parts) + _bounds_note(found)),
    )


def _solved_tasks(ratios: pd.DataFrame) -> pd.DataFrame:
    found = ratios.assign(solved=np.isfinite(ratios["value"]))
    counts = found.groupby("solver", sort=False)["solved"].agg(["sum", "size"]).reset_index()
    return counts.set_axis(["solver", "solved", "n"], axis=1)


def _trade(analysis: Analysis, fronts: pd.DataFrame) -> Figure:
    cost = comparable_costs(analysis)[-1]
    words = analysis.measures[cost].words
    of_task = fronts.groupby("task")
    points = fronts[["task", "solver", "front"]].assign(
        ratio=fronts[cost] / of_task[cost].transform("min"),
        excess=fronts["test_error"] - of_task["test_error"].transform("min"),
    )
    points = points[np.isfinite(points["ratio"])]
    title = f"Test error above the lowest of the task, in points, against {words}"
    labels = (f"{words}, ratio to the lowest of the task", "points of test error")
    drawn = draw_trade(points, analysis.styles, title, labels)
    return Figure("across-front-error-cost", title, drawn)


def solved_table(analysis: Analysis) -> Table:
    """How many problems each solver solved at any cost, with the intervals of the shares."""
    found = {
        family: {
            row["solver"]: row
            for row in records(
                profiles.solved(analysis.ask(problems, family, "cpu_s"), datasets(analysis))
            )
        }
        for family in FAMILIES
    }
    rows = [
        [Cell(label), *(_solved_cell(found[family].get(label)) for family in FAMILIES)]
        for label in analysis.styles
        if any(label in rows for rows in found.values())
    ]
    headings = [Heading(capitalised(FAMILY_WORDS[family]), "number") for family in FAMILIES]
    return Table(
        "Problems solved at any cost", [Heading("Solver"), *headings], rows, style="matrix"
    )


def _solved_cell(row: Mapping[str, Any] | None) -> Cell:
    if row is None:
        return NONE
    return Cell(
        value=_percent(row["share"]),
        range=formatting.spread(_percent(row["low"]), _percent(row["high"])),
        note=f"{row['n_solved']} of {row['n']}, {plural(row['n_tasks'], 'task')}",
    )


def wins_table(analysis: Analysis, question: Question) -> Table | None:
    """How often the solver of a row is cheaper than that of a column; None without a pair."""
    wins = pairwise.wins(answers(analysis, question), datasets(analysis))
    if wins.empty:
        return None
    found = {(row["solver"], row["other"]): row for row in records(wins)}
    shown = [label for label in analysis.styles if label in set(wins["solver"])]
    most = int(wins["n_tasks"].max())
    rows = [
        [Cell(label), *(_win_cell(found.get((label, other)), most) for other in shown)]
        for label in shown
    ]
    headings = [Heading("Cheaper is"), *(Heading(f"than {label}", "number") for label in shown)]
    return Table(f"{question.words}: pairwise wins", headings, rows, style="matrix")


def _win_cell(row: Mapping[str, Any] | None, most: int) -> Cell:
    if row is None:
        return NONE
    return Cell(
        value=_percent(row["share"]),
        range=formatting.spread(_percent(row["low"]), _percent(row["high"])),
        note=plural(row["n_tasks"], "task") if row["n_tasks"] < most else "",
        best=bool(row["separable"]) and row["share"] > 0.5,
    )


def blocks(analysis: Analysis, question: Question) -> pd.DataFrame:
    """The costs that are ranked, for :meth:`.Analysis.ask`."""
    found = answers(analysis, question)
    return ranks.blocks(profiles.medians(found), datasets(analysis))


def rank_table(analysis: Analysis) -> Table | None:
    """The average ranks of the solvers for each question; None where nothing can be ranked."""
    headings, columns = [Heading("Solver")], []
    for question in questions(analysis):
        values = analysis.ask(blocks, question)
        if min(values.shape) > 1:
            found = ranks.average_ranks(values)
            columns.append({row["solver"]: row for row in records(found)})
            headings.append(Heading(f"{question.words} ({_datasets(len(values))})", "number"))
    if not columns:
        return None
    rows = [
        [Cell(label), *(_rank_cell(column.get(label)) for column in columns)]
        for label in analysis.styles
        if any(label in column for column in columns)
    ]
    return Table("Average ranks", headings, rows, style="matrix")


def _rank_cell(row: Mapping[str, Any] | None) -> Cell:
    if row is None:
        return NONE
    low, high = (f"{row[name]:.2f}" for name in ("low", "high"))
    return Cell(f"{row['rank']:.2f}", range=formatting.spread(low, high))


def rank_sentence(analysis: Analysis, question: Question) -> str:
    """What the tests of the ranks say, or how many datasets they would need."""
    values = analysis.ask(blocks, question)
    n_blocks, n_solvers = values.shape
    if min(values.shape) < 2:
        return (
            f"{question.words}: nothing to rank; at least two solvers need a cost on at least half "
            "of the tasks, and these tasks at least two datasets."
        )
    needed = ranks.needed_datasets(n_solvers)
    tested = ranks.friedman(values)
    parts = []
    if tested is not None:
        parts.append(f"Friedman χ² = {tested.statistic:.3g}, p {_p_words(tested.p)}")
    if n_blocks < needed:
        parts.append(
            f"insufficient power: a pair of {n_solvers} solvers can be told apart only on "
            f"{needed} datasets or more"
        )
    elif not _differ(values):
        parts.append("no solver has other ranks than the others, so pairs are not tested")
    else:
        parts.append("the tests of pairs are below")
    found = answers(analysis, question)
    bounded = found.loc[bounds_median(found, ["task", "solver"]), ["task", "solver"]]
    if len(bounded):
        parts.append(f"{plural(len(bounded.drop_duplicates()), 'median')} only known as a bound")
    return f"{question.words}, {_datasets(n_blocks)}: {'; '.join(parts)}."


def _powerless(analysis: Analysis, asked: list[Question]) -> str:
    """That there are too few datasets for any test of ranks; empty where one has power."""
    ranked = [analysis.ask(blocks, question).shape for question in asked]
    ranked = [shape for shape in ranked if min(shape) > 1]
    if not ranked:
        return (
            "Nothing can be ranked: at least two solvers need a cost on at least half of the "
            "tasks, and these tasks at least two datasets."
        )
    needed = [ranks.needed_datasets(n_solvers) for _, n_solvers in ranked]
    if any(n >= least for (n, _), least in zip(ranked, needed, strict=True)):
        return ""
    n, n_solvers = max(ranked)
    return (
        f"Ranks have insufficient power: a pair of {n_solvers} solvers can be told apart only on "
        f"{ranks.needed_datasets(n_solvers)} datasets or more, and {_datasets(n)} can be ranked. "
        "An export has the average ranks."
    )


def _differ(values: pd.DataFrame) -> bool:
    """Whether pairs are to be tested: Friedman's test says so, or there is one pair."""
    tested = ranks.friedman(values)
    return values.shape[1] == 2 if tested is None else tested.p < ranks.LEVEL


def pairs_table(analysis: Analysis, question: Question) -> Table | None:
    """The corrected tests of all pairs with the sizes of effects; None without power."""
    values = analysis.ask(blocks, question)
    enough = len(values) >= ranks.needed_datasets(values.shape[1])
    if min(values.shape) < 2 or not enough or not _differ(values):
        return None
    rows = [
        [
            Cell(f"{row['solver']} against {row['other']}"),
            Cell(_p(row["p"]), best=row["p"] < ranks.LEVEL),
            Cell(formatting.decimals(row["biserial"], 2)),
            Cell(
                _times(row["ratio"]),
                range=formatting.spread(_times(row["ratio_low"]), _times(row["ratio_high"])),
            ),
        ]
        for row in records(ranks.compared_pairs(values))
    ]
    titles = ("p (Wilcoxon, Holm)", "Rank biserial", "Median ratio of costs")
    headings = [Heading("Pair"), *(Heading(title, "number") for title in titles)]
    return Table(f"{question.words}: {_datasets(len(values))}", headings, rows, style="matrix")


def running_time_table(analysis: Analysis, question: Question) -> Table:
    """The expected running time of each solver on each task."""
    found = {
        (row["task"], row["solver"]): row
        for row in records(
            expected_running_time(
                answers(analysis, question), analysis.runs, analysis.traces, question.cost
            )
        )
    }
    measure = analysis.measures[question.cost]
    tasks = list(datasets(analysis))
    known = {label for _, label in found}
    rows = [
        [Cell(label), *(_running_time_cell(found.get((task, label)), measure) for task in tasks)]
        for label in analysis.styles
        if label in known
    ]
    headings = [Heading("Solver"), *(Heading(task, "number") for task in tasks)]
    return Table(f"{question.words}: expected running time", headings, rows, style="matrix")


def _running_time_cell(row: Mapping[str, Any] | None, measure: Measure) -> Cell:
    if row is None:
        return NONE
    signs = {
        (True, False): formatting.AT_LEAST,
        (False, True): formatting.AT_MOST,
        (True, True): f"~{formatting.THIN}",
    }
    sign = signs.get((row["lower_bound"], row["upper_bound"]), "") if row["n_reached"] else ""
    interval = ""
    if not math.isnan(row["low"]):
        ends = (formatting.say(measure, row[name]) for name in ("low", "high"))
        interval = formatting.spread(*ends)
    some = f"{row['n_reached']} of {plural(row['n'], 'run')}"
    return Cell(
        sign + formatting.say(measure, row["ert"]),
        range=interval,
        note="; ".join(filter(None, (some, row["censored"]))),
        absent=not row["n_reached"],
    )


def fronts_table(analysis: Analysis, fronts: pd.DataFrame) -> Table:
    """Who is on the front of each task, and by whom the others are dominated."""
    found = {(row["task"], row["solver"]): row for row in records(fronts)}
    tasks = list(datasets(analysis))
    absent = {
        (row["task"], row["solver"]): _why_not_compared(row) for row in records(analysis.counts)
    }
    rows = []
    for label in analysis.styles:
        if any((task, label) in found for task in tasks):
            cells = [
                _front_cell(found.get((task, label)), absent.get((task, label), ""))
                for task in tasks
            ]
            rows.append([Cell(label), *cells])
    headings = [Heading("Solver"), *(Heading(task) for task in tasks)]
    return Table("Pareto fronts", headings, rows, style="matrix")


def _front_cell(row: Mapping[str, Any] | None, absent: str) -> Cell:
    if row is None:
        return Cell(absent, absent=True) if absent else NONE
    if row["front"]:
        return Cell("front", note=plural(row["n"], "run"))
    return Cell("dominated", range=f"by {row['dominated_by']}", note=plural(row["n"], "run"))


def _why_not_compared(counts: Mapping[str, Any]) -> str:
    for name, word in (("n_failed", "failed"), ("n_missing", "missing"), ("n_skipped", "skipped")):
        if counts[name]:
            return word if word == "skipped" else f"{counts[name]} {word}"
    return "not counted"


def _cost_words(analysis: Analysis, cost: str) -> str:
    return capitalised(analysis.measures[cost].words)


def _datasets(n: int) -> str:
    return plural(n, "dataset")


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.0f}{formatting.THIN}%"


def _times(ratio: float) -> str:
    if math.isinf(ratio):
        return formatting.NEVER
    return f"{np.format_float_positional(float(f'{ratio:.3g}'), trim='-')}{formatting.TIMES}"


def _p(p: float) -> str:
    return f"<{formatting.THIN}{_SMALL_P:g}" if p < _SMALL_P else f"{p:.3f}"


def _p_words(p: float) -> str:
    return _p(p) if p < _SMALL_P else f"= {_p(p)}"
