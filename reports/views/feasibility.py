"""A study of feasibility methods: what they solved, and what each needed on each problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .. import analysis, formatting
from ..analysis import once
from ..described import CellTask, Finding, ImagesTask, Task
from ..drawing.figures import Axis, draw_medians
from ..formatting import plural
from ..frames import RUN, SPREAD, medians, of_task, records
from ..measures import measured
from ..results import Results
from ..statistics import summary
from ..statistics.targets import data_profile
from ..tables import NONE, Cell, Column, Table, framed, measure_cell, number_cell, number_column
from ..view import Figure, Section, figures_of, task_section
from .across import profile

# ---- kappa: what methods need, where generated problems differ in it

_FEWEST = 3
_MEASURES = {
    "cpu_s": "Median CPU seconds",
    "n_iter": "Median iterations",
    "matvecs": "Median products with A or its transpose",
}
_KAPPA = Axis("κ", log=False)


def kappa_figures(results: Results, task: str) -> tuple[list[Figure], str]:
    """CPU seconds, iterations and products where there are at least three values of kappa."""
    kappas = {cell.label: cell.kappa for cell in results.tasks_of(CellTask)}
    if len(set(kappas.values())) < _FEWEST:
        return [], ""
    table = analysis.solved(results).table
    cells = table[table["task"].isin(kappas) & (table["n"] > 0)]
    cells = cells.assign(x=cells["task"].map(kappas)).sort_values("x", kind="stable")
    figures = []
    for name, title in _MEASURES.items():
        of_measure = cells[cells["measure"] == name]
        measure, styles = analysis.measures(results)[name], analysis.styles(results)
        drawing = draw_medians(of_measure, measure, _KAPPA, styles)
        figures += [] if drawing is None else [Figure(name, f"{title} against κ", drawing)]
    return figures, "Medians; bands from the least to the largest value."


# ---- images: test errors of classes against iterations and seconds

_AXES = {
    "n_iter": Axis("iterations for each class", padding=(0.03, 0.03)),
    "wall_s": Axis("seconds, without the kernel matrix", "seconds", padding=(0.03, 0.03)),
}


def image_figures(results: Results, task: str) -> tuple[list[Figure], str]:
    """The test error of images against iterations and against seconds."""
    if task not in {item.label for item in results.tasks_of(ImagesTask)}:
        return [], ""
    measure = analysis.measures(results)["test_error"]
    checkpoints = of_task(analysis.traces(results), task)
    figures = []
    for name, axis in _AXES.items():
        stages, styles = _error_stages(checkpoints, name), analysis.styles(results)
        drawn = draw_medians(stages, measure, axis, styles, task)
        if drawn is not None:
            figures.append(Figure(name, f"{task}: test error against {axis.words}", drawn))
    return figures, f"Lines are medians, bands {SPREAD}."


def _error_stages(traces: pd.DataFrame, name: str) -> pd.DataFrame:
    """The errors at each stage, at the median of a column over the runs."""
    keys = ["solver", "n_iter"]
    places = medians(traces, keys, name).rename(columns={"median": "x"})
    errors = medians(traces, keys, "test_error").merge(places[[*keys, "x"]], on=keys)
    return errors.sort_values("x", kind="stable")


# ---- profiles: the share of generated problems solved within a cost

_COSTS = ("n_iter", "matvecs")
_MARKS = (
    "Data profiles: an instance that was not solved counts as never; each problem counts once, its "
    "instances share the weight. A method that was skipped has fewer problems."
)


def solved_figures(results: Results, task: str) -> tuple[list[Figure], str]:
    """Data profiles of instances solved, of generated problems."""
    cells = [cell.label for cell in results.tasks_of(CellTask)]
    runs = analysis.solved(results).runs
    tried = runs[runs["task"].isin(cells) & ~runs["status"].isin(["skipped", "missing"])]
    if tried.empty:
        return [], ""
    return [_profile(results, tried, cost) for cost in _COSTS], _MARKS


def _profile(results: Results, tried: pd.DataFrame, cost: str) -> Figure:
    problems = tried[RUN].assign(target=0, value=tried[cost].where(tried["solved"], np.inf))
    problems, words = problems.dropna(subset="value"), analysis.measures(results)[cost].words
    name, steps = f"solved-{cost.replace('_', '-')}", data_profile(problems)
    return profile(results, name, (f"Instances solved, against {words}", words), problems, steps)


_IMAGES_NOTE = "Test errors after so many iterations for each class, training error at the end."
_CELL_CAPTION = (
    "Medians over the instances that a method solved, with the range below. Bold: the least median "
    "among methods that solved all of them."
)
_OF_STUDY = (kappa_figures, solved_figures)
_TERMS = (
    "Solved: with the certificate that the instance has, checked from scratch. Instances of all "
    "problems count alike; methods differ in what an iteration costs."
)


def fewest(results: Results, tasks: Iterable[str]) -> Finding | None:
    """Which methods needed the fewest iterations on how many instances of some tasks."""
    totals: Counter[str] = Counter()
    n = 0
    for task in tasks:
        counts, n_solved = summary.fewest_iterations(analysis.solved(results).runs, task)
        totals.update(counts)
        n += n_solved
    if not totals:
        return None
    (first, most), *rest = totals.most_common()
    listed = "".join(f"; {name} on {count}" for name, count in rest)
    shared = "; ties count for each" if totals.total() > n else ""
    words = f"{first} on {most} of {plural(n, 'solved instance')}"
    return Finding("Fewest iterations", words, listed + shared)


def fewest_sentence(results: Results, task: str) -> str:
    """Which methods needed the fewest iterations on how many instances of a task."""
    found = fewest(results, [task])
    return found.sentence if found else "No method solved an instance."


def gap_sentence(results: Results) -> str:
    """How mirror prox's residual compares with its bound; empty where nothing is recorded."""
    named = [solver.label for solver in results.study.solvers if solver.name == "MPLFP"]
    traces = analysis.traces(results)
    columns = {cell.label: cell.n for cell in results.tasks_of(CellTask)}
    ratio, n = summary.gap_ratio(traces[traces["solver"].isin(named)], columns)
    if not n:
        return ""
    return (
        f"MPLFP's residual times t / sqrt(2 log n), over {n:,} recorded iterations: at most "
        f"{ratio:.3f}. The theorem says 1."
    )


def findings_section(results: Results) -> Iterator[Section]:
    """Which methods solved all instances, and which needed the fewest iterations on how many."""
    items = findings(results)
    if items:
        data = {"findings": items, "terms": _TERMS}
        yield Section("findings", "Findings", "findings.html", data)


def figures_section(results: Results) -> Iterator[Section]:
    """What the methods need, against what the problems differ in."""
    figures, marks = figures_of(results, "figures", _OF_STUDY)
    if figures:
        yield Section("figures", "Figures", "gallery.html", {"figures": figures, "marks": marks})


def task_sections(results: Results) -> Iterator[Section]:
    """A section for each problem: what it is, and what each method needed."""
    for task in results.study.tasks:
        images = isinstance(task, ImagesTask)
        yield task_section(
            results,
            task,
            (image_figures,),
            results_table(results, task.label),
            problem=problem_words(task),
            note=_IMAGES_NOTE if images else fewest_sentence(results, task.label),
            folded=False,
        )


def protocol_section(results: Results) -> Iterator[Section]:
    """What a run is, when a problem is solved, and what is counted."""
    data = {
        "limit": _limit_words(results),
        "source": results.study.source,
        "gap": gap_sentence(results),
    }
    yield Section("protocol", "Protocol", "feasibility_protocol.html", data)


def results_table(results: Results, label: str) -> Table:
    """The table of a problem, with a row for each method."""
    (task,) = (task for task in results.study.tasks if task.label == label)
    images = isinstance(task, ImagesTask)
    methods, columns, numbers = _of_images(results, task) if images else _of_cells(results, task)
    return framed(
        f"Results on {label}",
        methods,
        [Column("Method", short="method", of="solver"), *columns],
        name=f"results-{analysis.slugs(results)[label]}",
        caption=f"Medians over the runs. {_IMAGES_NOTE}" if images else _CELL_CAPTION,
        numbers=numbers,
    )


def problem_words(task: Task) -> str:
    if isinstance(task, ImagesTask):
        widths = ", ".join(f"{gamma:g}" for gamma in task.gammas)
        points = f"up to {task.n_train:,} training points, as many of each class"
        return f"{task.dataset}, {points}, widths {widths}"
    assert isinstance(task, CellTask)
    return f"m = {task.m:,}, n = {task.n:,}, κ = {task.kappa:g}, tolerance {task.tol:g}, " + (
        "separable" if task.generator == "ldfp" else "inseparable by construction"
    )


def _column(title: str, of: Callable[[Mapping[str, Any]], Cell], term: str = "") -> Column:
    return Column(title, "number", short=title, term=term, of=of)


def _of_cells(results: Results, task: Task) -> tuple[pd.DataFrame, list[Column], pd.DataFrame]:
    """The methods on generated problems, the columns of their table, and its numbers."""
    solved = analysis.solved(results)
    table, runs = (of_task(frame, task.label) for frame in (solved.table, solved.runs))
    published = task.published if isinstance(task, CellTask) else {}
    rows = {(row["solver"], row["measure"]): row for row in records(table)}
    runs = runs.assign(
        # That nothing separates is more than a small ||A x||.
        proven=runs["solved"] & (runs["found"] == "inseparable"),
        most=runs["n_iter"].where(runs["ok"]),
        mean=runs["wall_s"].where(runs["solved"]),
    )
    methods = runs.groupby("solver", sort=False, as_index=False).agg(
        n=("solved", "size"),
        n_solved=("solved", "sum"),
        whole=("ok", "all"),
        proven=("proven", "sum"),
        most=("most", "max"),
        mean=("mean", "mean"),
    )

    def count(row: Mapping[str, Any]) -> Cell:
        n = row["n_solved"]
        return Cell(f"{n} / {row['n']}", incomplete=not row["whole"], number=n)

    def needed(name: str, row: Mapping[str, Any]) -> Cell:
        if name == "n_iter" and not row["n_solved"] and not math.isnan(row["most"]):
            return Cell(f"no certificate in {formatting.count(row['most'])}", absent=True)
        return measure_cell(rows[row["solver"], name], solved.costs[name])

    def printed(row: Mapping[str, Any]) -> Cell:
        value = published.get(row["solver"], math.nan)
        return Cell(value) if isinstance(value, str) else number_cell(value, formatting.seconds)

    columns = [_column("Solved", count)]
    if isinstance(task, CellTask) and task.generator == "lap":
        proven = _column("Proven inseparable", lambda row: Cell(f"{row['proven']} / {row['n']}"))
        columns.append(proven)
    for name, measure in solved.costs.items():
        title = measure.title + (", median" if measure.format == "seconds" else "")
        columns.append(_column(title, partial(needed, name), name))
    title = "Wall time, mean"
    columns.append(number_column(title, "mean", formatting.seconds, short=title))
    numbers = measured(table, solved.costs, analysis.counts(results))
    if published:
        columns.append(_column("Published mean", printed))
        of_measure = numbers["solver"].map(dict(published)).where(numbers["measure"] == "wall_s")
        numbers = numbers.assign(published_mean=of_measure)
    return methods, columns, numbers


def _of_images(results: Results, task: Task) -> tuple[pd.DataFrame, list[Column], pd.DataFrame]:
    """The methods on classes of images, the columns of their table, and its numbers."""
    assert isinstance(task, ImagesTask)
    solved, measures = analysis.solved(results), analysis.measures(results)
    counters = [name for name in solved.costs if name in analysis.counters(results)]
    runs = of_task(solved.runs, task.label)
    ended = runs[runs["ok"]].groupby("solver")
    methods = runs.groupby("solver", sort=False)["ok"].agg(n="size", n_ok="sum")
    methods = methods.join(ended[["gamma", "train_error", *counters, "wall_s"]].median())
    methods = methods.join(ended["reason"].agg(lambda each: "; ".join(dict.fromkeys(each))))
    traces = of_task(analysis.traces(results), task.label)
    numbers = medians(traces, ["task", "solver", "n_iter"], "test_error")
    errors = {(row["solver"], row["n_iter"]): row["median"] for row in records(numbers)}

    def count(row: Mapping[str, Any]) -> Cell:
        n = row["n_ok"]
        return Cell(f"{n} / {row['n']}", incomplete=n < row["n"])

    def error(stage: int, row: Mapping[str, Any]) -> Cell:
        return number_cell(errors.get((row["solver"], stage), math.nan), formatting.percent)

    def reasons(row: Mapping[str, Any]) -> Cell:
        return Cell(row["reason"]) if row["reason"] else NONE

    def median(title: str, name: str, term: str = "") -> Column:
        say = partial(formatting.say, measures[name])
        return number_column(title, name, say, short=title, term=term)

    columns = [
        _column("Runs", count),
        median("Width", "gamma"),
        *(_column(f"Error, {stage}", partial(error, stage)) for stage in task.stages),
        median("Train error", "train_error", "train_error"),
        _column("At the end", reasons),
        *(median(measures[name].title, name, name) for name in counters),
        median("Wall time", "wall_s", "wall_s"),
    ]
    return methods.reset_index().fillna({"reason": ""}), columns, numbers


@once
def findings(results: Results) -> list[Finding]:
    """What the data say; nothing of fewer than two methods."""
    cells = {cell.label for cell in results.tasks_of(CellTask)}
    runs = analysis.solved(results).runs
    if not runs["task"].isin(cells).any() or len(results.study.solvers) < 2:
        return []
    fastest = fewest(results, (task.label for task in results.study.tasks if task.label in cells))
    runs = runs[runs["task"].isin(cells) & (runs["status"] != "skipped")]
    counts = runs.groupby("solver", sort=False)["solved"].agg(["sum", "size", "mean"])
    counts = counts.sort_values("mean", ascending=False, kind="stable")
    words = [f"{name} ({row['sum']:.0f} of {row['size']:.0f})" for name, row in counts.iterrows()]
    n_best = int((counts["mean"] == counts["mean"].max()).sum()) if counts["sum"].any() else 0
    others = "".join(f"; {each}" for each in words[n_best:])
    best = "; ".join(words[:n_best]) or "none by any method"
    solved = Finding("Instances solved", best, others)
    return [solved, fastest] if fastest else [solved]


def _limit_words(results: Results) -> str:
    """The limit of seconds that the runs were given; not always that of the last invocation."""
    limits = analysis.solved(results).runs["limit"].dropna()
    if limits.empty:
        return f"{results.study.budget.get('timeout', 0):g}"
    ends = sorted({f"{value:g}" for value in (limits.min(), limits.max())}, key=float)
    return " to ".join(ends)
