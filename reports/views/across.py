"""What holds over all tasks of a study together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...harness.results.measures import Measure
from .. import analysis, formatting
from ..analysis import once
from ..described import SvmTask, capitalised
from ..drawing.figures import draw_profile, draw_ranks, draw_trade
from ..formatting import plural
from ..measures import ERROR_TARGET, OBJECTIVE_TARGET
from ..results import Results
from ..statistics import errors, ranks, targets
from ..statistics.ranks import FEWEST_DATASETS
from ..statistics.targets import Target, bounds_median, expected_running_time
from ..tables import Cell, Column, Table, framed, matrix
from ..view import Figure, Section, not_shown, with_legend

#: The families in words, with the preposition.
FAMILY_WORDS: Mapping[str, str] = {
    "suboptimality": f"within 10, 1 or 0.1{formatting.THIN}% of the optimum",
    "test_error": "within 0, 0.5, 1 or 2 points of the optimum's error",
}
_SMALL_P = 0.001


@dataclass(frozen=True)
class Question:
    """What it costs to stay at a target: one answer for each task and solver."""

    target: Target
    cost: str  # a column of the traces
    words: str  # "Kernel evaluations to stay within 1 % of the optimum"

    @property
    def name(self) -> str:
        """In the names of files: "objective-evaluations"."""
        return f"{_NAMES[self.target.value]}-{_NAMES[self.cost]}"


def comparable_costs(results: Results) -> list[str]:
    """The costs that may be compared: columns of the traces."""
    times = analysis.times_compare(results)
    return [*(["evaluations"] if analysis.counters(results) else []), *(["cpu_s"] if times else [])]


def questions(results: Results) -> list[Question]:
    """Each target of the table of results, in each cost that may be compared."""
    return [
        Question(target, cost, f"{words} to stay within {target.words}")
        for cost in comparable_costs(results)
        for words in [capitalised(analysis.measures(results)[cost].words)]
        for target in (OBJECTIVE_TARGET, ERROR_TARGET)
    ]


def datasets(results: Results) -> dict[str, str]:
    """The dataset of each task; a task without one is a dataset of its own."""
    return {task.label: task.dataset or task.label for task in results.tasks_of(SvmTask)}


def answers(results: Results, question: Question) -> pd.DataFrame:
    """The problems of one question."""
    family = question.target.value
    table = analysis.problems(results, family, question.cost)
    return table[table["target"] == analysis.FAMILIES[family].index(question.target)]


@once
def incomplete(results: Results) -> frozenset[tuple[str, str]]:
    """Tasks and solvers of which a run failed or is missing."""
    counts = analysis.counts(results)
    bad = counts[(counts["n_failed"] > 0) | (counts["n_missing"] > 0)]
    return frozenset(zip(bad["task"], bad["solver"], strict=True))


# Short names of costs and of families of targets, for anchors.
_NAMES = {
    "evaluations": "evaluations",
    "cpu_s": "seconds",
    "suboptimality": "objective",
    "test_error": "error",
}


def across_section(results: Results) -> Iterator[Section]:
    """Profiles, pairwise wins, ranks, Pareto fronts and expected running times.

    Where two solvers and two tasks have results, and there are costs and targets.
    """
    ok, costs = results.runs[results.runs["ok"]], comparable_costs(results)
    if min(ok["task"].nunique(), ok["solver"].nunique()) < 2 or not costs:
        return
    if not ERROR_TARGET.levels(ok).notna().any():
        return
    dataset_of, all_questions = datasets(results), questions(results)
    tested_once = errors.first_folds(results.runs, analysis.folds(results))
    fronts = errors.fronts(tested_once, ("test_error", costs[-1], "n_support"))
    data = {
        "n_tasks": len(dataset_of),
        "n_datasets": len(set(dataset_of.values())),
        "fewest_datasets": FEWEST_DATASETS,
        "times": "cpu_s" in costs,
        "data_profiles": with_legend(
            results,
            [
                _data_profile(results, family, cost)
                for cost in costs
                for family in analysis.FAMILIES
            ],
        ),
        "solved": solved_table(results),
        "performance_profiles": with_legend(
            results, [_performance_profile(results, question) for question in all_questions]
        ),
        "asked": [
            (
                question.words,
                wins_table(results, question),
                pairs_table(results, question),
                running_time_table(results, question),
            )
            for question in all_questions
        ],
        "ranks": rank_table(results),
        "ranked": with_legend(
            results,
            [
                _ranks_figure(results, question)
                for question in all_questions
                if not compared_pairs(results, question).empty
            ],
        ),
        "rank_sentences": [rank_sentence(results, question) for question in all_questions],
        "trade": with_legend(results, [_trade(results, fronts)]),
        "fronts": fronts_table(results, fronts) if len(fronts) else None,
        "front_cost": analysis.measures(results)[costs[-1]].words,
    }
    yield Section("across", "Across tasks", "across.html", data)


def _data_profile(results: Results, family: str, cost: str) -> Figure:
    problems = analysis.problems(results, family, cost)
    words = analysis.measures(results)[cost].words
    if cost == "evaluations":
        problems, words = targets.in_squares(problems, results.runs), f"{words} in units of n²"
    title = f"Problems solved {FAMILY_WORDS[family]}, against {words}"
    steps, bounded = targets.data_profile(problems), problems.loc[problems["upper_bound"], "solver"]
    name, among = f"across-data-{_NAMES[family]}-{_NAMES[cost]}", analysis.styles(results)
    return profile(results, name, (title, words), problems, steps, among, bounded)


def _performance_profile(results: Results, question: Question) -> Figure:
    problems = answers(results, question)
    ratios = targets.performance_ratios(targets.medians(problems), incomplete(results))
    words = (f"{question.words}, as a ratio to the best", "ratio to the best of the task")
    steps, name = targets.performance_profile(ratios), f"across-performance-{question.name}"
    bounded = problems.loc[problems["upper_bound"], "solver"]
    return profile(results, name, words, ratios, steps, (), bounded)


def profile(
    results: Results,
    name: str,
    words: tuple[str, str],
    problems: pd.DataFrame,
    steps: pd.DataFrame,
    among: Iterable[str] = (),
    bounded: Iterable[str] = (),
) -> Figure:
    """A profile of the solvers that have problems, with its title and the words of its axis.

    Below it stands how many problems each solved, whose costs are only bounds, and who of ``among``
    is not there.
    """
    groups = dict(iter(problems.groupby("solver")["value"]))
    shown = {label: style for label, style in analysis.styles(results).items() if label in groups}
    parts = [
        f"{label} {np.isfinite(groups[label]).sum()} of {groups[label].size}" for label in shown
    ]
    notes = [f"Solved: {', '.join(parts)}."] if parts else []
    if counts := Counter(bounded):
        listed = ", ".join(f"{solver} {n}" for solver, n in counts.items())
        notes.append(f"Drawn at an upper bound, the cost of the first checkpoint: {listed}.")
    notes.append(not_shown(results, among, shown))
    return Figure(name, words[0], draw_profile(steps, shown, *words), " ".join(filter(None, notes)))


def _trade(results: Results, fronts: pd.DataFrame) -> Figure:
    cost = comparable_costs(results)[-1]
    words = analysis.measures(results)[cost].words
    of_task = fronts.groupby("task")
    points = fronts[["task", "solver", "front"]].assign(
        ratio=fronts[cost] / of_task[cost].transform("min"),
        excess=fronts["test_error"] - of_task["test_error"].transform("min"),
    )
    points = points[np.isfinite(points["ratio"])]
    title = f"Test error above the lowest of the task, in points, against {words}"
    labels = (f"{words}, ratio to the lowest of the task", "points of test error")
    drawn = draw_trade(points, analysis.styles(results), title, labels)
    return Figure("across-front-error-cost", title, drawn)


def solved_table(results: Results) -> Table:
    """How many problems each solver solved at any cost, with the intervals of the shares."""
    parts = []
    for family in analysis.FAMILIES:
        problems = analysis.problems(results, family, "cpu_s")
        parts.append(targets.solved(problems, datasets(results)).assign(family=family))
    return matrix(
        "Problems solved at any cost",
        pd.concat(parts, ignore_index=True),
        ("solver", analysis.styles(results)),
        ("family", {name: capitalised(words) for name, words in FAMILY_WORDS.items()}),
        _solved_cell,
        name="across-solved",
    )


def _share_cell(row: Mapping[str, Any], note: str, *, best: bool = False) -> Cell:
    """A share with its interval."""
    spread = formatting.spread(_percent(row["low"]), _percent(row["high"]))
    return Cell(_percent(row["share"]), range=spread, note=note, best=best)


def _solved_cell(row: Mapping[str, Any]) -> Cell:
    return _share_cell(row, f"{row['n_solved']} of {row['n']}, {plural(row['n_tasks'], 'task')}")


def wins_table(results: Results, question: Question) -> Table | None:
    """How often the solver of a row is cheaper than that of a column; None without a pair."""
    wins = ranks.wins(answers(results, question), datasets(results))
    if wins.empty:
        return None
    shown = [label for label in analysis.styles(results) if label in set(wins["solver"])]
    most = int(wins["n_tasks"].max())
    return matrix(
        f"{question.words}: pairwise wins",
        wins,
        ("solver", shown),
        ("other", {label: f"than {label}" for label in shown}),
        lambda row: _win_cell(row, most),
        first="Cheaper is",
        name=f"across-wins-{question.name}",
    )


def _win_cell(row: Mapping[str, Any], most: int) -> Cell:
    note = plural(row["n_tasks"], "task") if row["n_tasks"] < most else ""
    return _share_cell(row, note, best=bool(row["separable"]) and row["share"] > 0.5)


@once
def blocks(results: Results, question: Question) -> pd.DataFrame:
    """The costs that are ranked."""
    return ranks.blocks(targets.medians(answers(results, question)), datasets(results))


def rank_table(results: Results) -> Table | None:
    """The average ranks of the solvers for each question; None where nothing can be ranked."""
    parts, headings = [], {}
    for question in questions(results):
        values = blocks(results, question)
        if min(values.shape) > 1:
            parts.append(ranks.average_ranks(values).assign(question=question.words))
            headings[question.words] = f"{question.words} ({plural(len(values), 'dataset')})"
    if not parts:
        return None
    frame, rows = pd.concat(parts, ignore_index=True), ("solver", analysis.styles(results))
    return matrix(
        "Average ranks", frame, rows, ("question", headings), _rank_cell, name="across-ranks"
    )


def _rank_cell(row: Mapping[str, Any]) -> Cell:
    low, high = (f"{row[name]:.2f}" for name in ("low", "high"))
    return Cell(f"{row['rank']:.2f}", range=formatting.spread(low, high))


def rank_sentence(results: Results, question: Question) -> str:
    """What the tests of the ranks say, or how many datasets they would need."""
    values = blocks(results, question)
    n_blocks, n_solvers = values.shape
    about = f"{question.words}, {plural(n_blocks, 'dataset')}"
    if min(values.shape) < 2:
        return (
            f"{about}: nothing to rank; that takes two solvers with a cost on at least half of the "
            "tasks, and two datasets."
        )
    needed, tested, parts = ranks.needed_datasets(n_solvers), ranks.friedman(values), []
    if tested is not None:
        sign = "" if tested.p < _SMALL_P else "= "
        parts.append(f"Friedman χ² = {tested.statistic:.3g}, p {sign}{_p(tested.p)}")
    if n_blocks < needed:
        parts.append(
            f"insufficient power: a pair of {n_solvers} solvers can be told apart only on "
            f"{needed} datasets or more"
        )
    else:
        parts.append("the tests of pairs are below" if _differ(values) else "pairs do not differ")
    problems = answers(results, question)
    bounded = problems.loc[bounds_median(problems, ["task", "solver"]), ["task", "solver"]]
    if n_bounded := len(bounded.drop_duplicates()):
        parts.append(f"{plural(n_bounded, 'median')} only known as a bound")
    return f"{about}: {'; '.join(parts)}."


def _differ(values: pd.DataFrame) -> bool:
    """Whether pairs are to be tested: Friedman's test says so, or there is one pair."""
    tested = ranks.friedman(values)
    return values.shape[1] == 2 if tested is None else tested.p < ranks.LEVEL


@once
def compared_pairs(results: Results, question: Question) -> pd.DataFrame:
    """The corrected tests of all pairs; none without power."""
    values = blocks(results, question)
    tested = values if min(values.shape) > 1 and _differ(values) else values.iloc[:0]
    return ranks.compared_pairs(tested)


def _ranks_figure(results: Results, question: Question) -> Figure:
    """The critical-difference diagram of a question."""
    values = blocks(results, question)
    title = f"{question.words}: average ranks over {plural(len(values), 'dataset')}"
    drawn = draw_ranks(
        ranks.average_ranks(values),
        compared_pairs(results, question),
        analysis.styles(results),
        title,
    )
    return Figure(f"across-ranks-{question.name}", title, drawn)


def pairs_table(results: Results, question: Question) -> Table | None:
    """The corrected tests of all pairs with the sizes of effects; None without power."""
    pairs, n_datasets = compared_pairs(results, question), len(blocks(results, question))
    if pairs.empty:
        return None
    columns = [
        Column("Pair", of=lambda row: Cell(f"{row['solver']} against {row['other']}")),
        Column(
            "p (Wilcoxon, Holm)", "number",
            of=lambda row: Cell(_p(row["p"]), best=row["p"] < ranks.LEVEL),
        ),
        Column(
            "Rank biserial", "number",
            of=lambda row: Cell(formatting.decimals(row["biserial"], 2)),
        ),
        Column("Median ratio of costs", "number", of=_ratio_cell),
    ]  # fmt: skip
    title = f"{question.words}: {plural(n_datasets, 'dataset')}"
    name = f"across-pairs-{question.name}"
    return framed(title, pairs, columns, style="matrix", name=name)


def _ratio_cell(row: Mapping[str, Any]) -> Cell:
    spread = formatting.spread(_times(row["ratio_low"]), _times(row["ratio_high"]))
    return Cell(_times(row["ratio"]), range=spread)


def running_time_table(results: Results, question: Question) -> Table:
    """The expected running time of each solver on each task."""
    times = expected_running_time(
        answers(results, question), results.runs, analysis.traces(results), question.cost
    )
    measure = analysis.measures(results)[question.cost]
    return matrix(
        f"{question.words}: expected running time",
        times,
        ("solver", analysis.styles(results)),
        ("task", {task: task for task in datasets(results)}),
        lambda row: _running_time_cell(row, measure),
        name=f"across-running-time-{question.name}",
    )


def _running_time_cell(row: Mapping[str, Any], measure: Measure) -> Cell:
    at_least, at_most = row["lower_bound"], row["upper_bound"]
    signs = [formatting.AT_LEAST] * at_least + [formatting.AT_MOST] * at_most
    sign = f"~{formatting.THIN}" if len(signs) > 1 else "".join(signs)
    interval = ""
    if not math.isnan(row["low"]):
        interval = formatting.spread(
            *(formatting.say(measure, row[name]) for name in ("low", "high"))
        )
    some = f"{row['n_reached']} of {plural(row['n'], 'run')}"
    return Cell(
        (sign if row["n_reached"] else "") + formatting.say(measure, row["ert"]),
        range=interval,
        note="; ".join(filter(None, (some, row["censored"]))),
        absent=not row["n_reached"],
    )


def fronts_table(results: Results, fronts: pd.DataFrame) -> Table:
    """Who is on the front of each task, and by whom the others are dominated."""
    keys = ["task", "solver"]
    counts = analysis.counts(results)
    frame = counts[counts["solver"].isin(fronts["solver"])].merge(fronts, on=keys, how="left")
    return matrix(
        "Pareto fronts",
        frame,
        ("solver", analysis.styles(results)),
        ("task", {task: task for task in datasets(results)}),
        _front_cell,
        column_style="",
        name="across-fronts",
    )


def _front_cell(row: Mapping[str, Any]) -> Cell:
    if isinstance(row["dominated_by"], str):
        words, by = ("front", "") if row["front"] else ("dominated", f"by {row['dominated_by']}")
        return Cell(words, range=by, note=plural(int(row["n"]), "run"))
    reasons = (f"{row[f'n_{word}']} {word}" for word in ("failed", "missing", "skipped"))
    named = [words for words in reasons if not words.startswith("0 ")]
    return Cell(named[0] if named else "not counted", absent=True)


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.0f}{formatting.THIN}%"


def _times(ratio: float) -> str:
    if math.isinf(ratio):
        return formatting.NEVER
    return f"{np.format_float_positional(float(f'{ratio:.3g}'), trim='-')}{formatting.TIMES}"


def _p(p: float) -> str:
    return f"<{formatting.THIN}{_SMALL_P:g}" if p < _SMALL_P else f"{p:.3f}"
