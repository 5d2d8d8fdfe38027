"""A study of feasibility methods: what they solved, and what each needed on each problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from .. import analysis, formatting
from ..analysis import once
from ..described import CellTask, Finding, ImagesTask, Task
from ..drawing.figures import Axis, draw_medians, draw_profile
from ..formatting import plural
from ..frames import SPREAD, by_solver, medians, of_task, records
from ..measures import measured
from ..results import Results
from ..statistics import summary
from ..statistics.targets import data_profile
from ..tables import NONE, Cell, Heading, Table, measure_cell, number_cell
from ..view import Figure, Section, figures_of

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
        drawing = draw_medians(of_measure, measure, _KAPPA, "at κ = {:g}".format, styles)
        figures += [] if drawing is None else [Figure(name, f"{title} against κ", drawing)]
    return figures, "Medians; bands from the least to the largest value."


# ---- images: test errors of classes against iterations and seconds

_AXES = {
    "n_iter": (
        Axis("iterations for each class", padding=(0.03, 0.03)),
        lambda n: f"after {formatting.integer(n)} iterations",
    ),
    "wall_s": (
        Axis("seconds, without the kernel matrix", "seconds", padding=(0.03, 0.03)),
        lambda seconds: f"after {formatting.seconds(seconds)}",
    ),
}


def image_figures(results: Results, task: str) -> tuple[list[Figure], str]:
    """The test error of images against iterations and against seconds."""
    if task not in {item.label for item in results.tasks_of(ImagesTask)}:
        return [], ""
    measure = analysis.measures(results)["test_error"]
    checkpoints = of_task(analysis.traces(results), task)
    figures = []
    for name, (axis, place) in _AXES.items():
        stages, styles = _error_stages(checkpoints, name), analysis.styles(results)
        drawn = draw_medians(stages, measure, axis, place, styles, task)
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
# Of one method, or one problem, the table says it all.
_FEWEST_TO_COMPARE = 2


_MARKS = (
    "Data profiles: an instance that was not solved counts as never; each problem counts once, its "
    "instances share the weight. A method that was skipped has fewer problems."
)


def solved_figures(results: Results, task: str) -> tuple[list[Figure], str]:
    """Data profiles of instances solved, where there are several methods and several problems."""
    cells = [cell.label for cell in results.tasks_of(CellTask)]
    runs = analysis.solved(results).runs
    tried = runs[runs["task"].isin(cells) & ~runs["status"].isin(["skipped", "missing"])]
    if min(tried["task"].nunique(), tried["solver"].nunique()) < _FEWEST_TO_COMPARE:
        return [], ""
    return [_view(results, tried, cost) for cost in _COSTS], _MARKS


def _view(results: Results, tried: pd.DataFrame, cost: str) -> Figure:
    values = tried[cost].where(tried["solved"], np.inf)
    problems = tried[["task", "solver", "seed"]].assign(target=0, value=values)
    problems = problems[values.notna()]
    names = set(problems["solver"])
    shown = {label: style for label, style in analysis.styles(results).items() if label in names}
    words = analysis.measures(results)[cost].words
    title = f"Instances solved, against {words}"
    parts = []
    for label in shown:
        attempts = problems[problems["solver"] == label]
        n_solved = int(np.isfinite(attempts["value"]).sum())
        parts.append(f"{label} {n_solved} of {plural(len(attempts), 'instance')}")
    return Figure(
        f"solved-{cost.replace('_', '-')}",
        title,
        draw_profile(data_profile(problems), shown, title, words),
        note=f"Solved: {', '.join(parts)}." if parts else "",
    )


_IMAGES_NOTE = "Test errors after so many iterations for each class, training error at the end."
_CELL_CAPTION = (
    "Medians over the instances that a method solved, with the range below. Bold: the least median "
    "among methods that solved all of them."
)
_IMAGES_CAPTION = f"Medians over the runs. {_IMAGES_NOTE}"


_OF_STUDY = (kappa_figures, solved_figures)
_TERMS = (
    "Solved: with the certificate that the instance has, checked from scratch. Instances of all "
    "problems count alike; methods differ in what an iteration costs."
)


# Where the counts of instances add up to more than there are.
_TIES = "; ties count for each"


def fewest_sentence(results: Results, task: str) -> str:
    """Which methods needed the fewest iterations on how many instances of a task."""
    counts, n = summary.fewest_iterations(analysis.solved(results).runs, task)
    if not counts:
        return "No method solved an instance."
    if list(counts.values()) == [n]:
        (name,) = counts
        return f"{name} needed the fewest iterations on each of {plural(n, 'solved instance')}."
    listed = ", ".join(f"{name} on {count}" for name, count in counts.items())
    shared = _TIES if sum(counts.values()) > n else ""
    return f"The fewest iterations, of {plural(n, 'solved instance')}: {listed}{shared}."


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
        name = analysis.slugs(results)[task.label]
        figures, marks = figures_of(results, f"task-{name}", (image_figures,), task.label)
        images = isinstance(task, ImagesTask)
        data = {
            "label": task.label,
            "folded": False,
            "problem": problem_words(task),
            "decided": task.decided,
            "figures": figures,
            "marks": marks,
            "table": results_table(results, task.label),
            "note": _IMAGES_NOTE if images else fewest_sentence(results, task.label),
        }
        yield Section(f"results-{name}", task.label, "task.html", data)


def protocol_section(results: Results) -> Iterator[Section]:
    """What a run is, when a problem is solved, and what is counted."""
    data = {
        "limit": _limit_words(results),
        "source": results.study.source,
        "gap": gap_sentence(results),
    }
    yield Section("protocol", "Protocol", "feasibility_protocol.html", data)


def ended_figures(results: Results) -> list[tuple[str, str]]:
    """For the head of the page: how many runs ended with a certificate, and how many without."""
    runs = analysis.solved(results).runs
    return [
        ("ended with a certificate", str(int(runs["solved"].sum()))),
        ("ended at a limit", str(int((runs["ok"] & ~runs["solved"]).sum()))),
    ]


def results_table(results: Results, label: str) -> Table:
    """The table of a problem."""
    (task,) = (task for task in results.study.tasks if task.label == label)
    if isinstance(task, ImagesTask):
        table = _images_table(results, task)
    else:
        table = _cell_table(results, task)
    return replace(table, name=f"results-{analysis.slugs(results)[label]}")


def problem_words(task: Task) -> str:
    if isinstance(task, ImagesTask):
        widths = ", ".join(f"{gamma:g}" for gamma in task.gammas)
        points = f"up to {task.n_train:,} training points, as many of each class"
        return f"{task.dataset}, {points}, widths {widths}"
    assert isinstance(task, CellTask)
    return f"m = {task.m:,}, n = {task.n:,}, κ = {task.kappa:g}, tolerance {task.tol:g}, " + (
        "separable" if task.generator == "ldfp" else "inseparable by construction"
    )


def _cell_table(results: Results, task: Task) -> Table:
    solved = analysis.solved(results)
    published = task.published if isinstance(task, CellTask) else {}
    table = of_task(solved.table, task.label)
    unseparated = isinstance(task, CellTask) and task.generator == "lap"
    rows = []
    for _, solver, group in by_solver(of_task(solved.runs, task.label)):
        # That nothing separates is more than a small ||A x||.
        proven = group["solved"] & (group["found"] == "inseparable")
        cells = {
            row["measure"]: measure_cell(row, solved.costs[row["measure"]])
            for row in records(table[table["solver"] == solver])
        }
        rows.append(
            [
                Cell(solver),
                Cell(
                    f"{group['solved'].sum()} / {len(group)}",
                    incomplete=not group["ok"].all(),
                    number=group["solved"].sum(),
                ),
                *([Cell(f"{proven.sum()} / {len(group)}")] if unseparated else []),
                *(cells | _not_reached(group)).values(),
                number_cell(group.loc[group["solved"], "wall_s"].mean(), formatting.seconds),
                *([_published(published.get(solver))] if published else []),
            ]
        )
    columns = {"solved": "Solved"}
    if unseparated:
        columns["proven"] = "Proven inseparable"
    for name, measure in solved.costs.items():
        columns[name] = measure.title + (", median" if measure.format == "seconds" else "")
    columns["wall_mean"] = "Wall time, mean"
    if published:
        columns["published"] = "Published mean"
    numbers = measured(table, solved.costs, analysis.counts(results))
    if published:
        of_measure = numbers["solver"].map(dict(published)).where(numbers["measure"] == "wall_s")
        numbers = numbers.assign(published_mean=of_measure)
    drawn = _table(task, list(columns.items()), rows)
    return replace(drawn, caption=_CELL_CAPTION, numbers=numbers)


def _not_reached(runs: pd.DataFrame) -> dict[str, Cell]:
    """In place of the iterations of a method that solved nothing: how far it came."""
    most = runs.loc[runs["ok"], "n_iter"].max()
    if runs["solved"].any() or math.isnan(most):
        return {}
    return {"n_iter": Cell(f"no certificate in {formatting.count(most)}", absent=True)}


def _published(value: float | str | None) -> Cell:
    if value is None:
        return NONE
    return Cell(value) if isinstance(value, str) else number_cell(value, formatting.seconds)


def _images_table(results: Results, task: ImagesTask) -> Table:
    traces = of_task(analysis.traces(results), task.label)
    costs = analysis.solved(results).costs
    counters = [name for name in costs if name in analysis.counters(results)]
    rows = []
    for _, solver, group in by_solver(of_task(results.runs, task.label)):
        done = group[group["ok"]]
        trace = traces[traces["solver"] == solver]
        ends = "; ".join(dict.fromkeys(done["reason"]))
        stages = [trace.loc[trace["n_iter"] == stage, "test_error"] for stage in task.stages]
        rows.append(
            [
                Cell(solver),
                Cell(f"{len(done)} / {len(group)}", incomplete=len(done) < len(group)),
                _median(results, done, "gamma"),
                *(number_cell(errors.median(), formatting.percent) for errors in stages),
                _median(results, done, "train_error"),
                Cell(ends) if ends else NONE,
                *(_median(results, done, name) for name in (*counters, "wall_s")),
            ]
        )
    columns = [
        ("runs", "Runs"),
        ("gamma", "Width"),
        *(("stage_error", f"Error, {stage}") for stage in task.stages),
        ("train_error", "Train error"),
        ("ended", "At the end"),
        *((name, costs[name].title) for name in counters),
        ("wall_s", "Wall time"),
    ]
    drawn = _table(task, columns, rows)
    numbers = medians(traces, ["task", "solver", "n_iter"], "test_error")
    return replace(drawn, caption=_IMAGES_CAPTION, numbers=numbers)


def _median(results: Results, runs: pd.DataFrame, name: str) -> Cell:
    measure = analysis.measures(results)[name]
    return number_cell(runs[name].median(), lambda value: formatting.say(measure, value))


def _table(task: Task, columns: list[tuple[str, str]], rows: list[list[Cell]]) -> Table:
    """The table with its columns: the term and the title of each."""
    headings = [Heading("Method", short="method", term="solver")]
    for term, title in columns:
        # In the terminal "CPU time, median" is "CPU".
        short = title.lower().replace(" time", "").removesuffix(", median").replace("cpu", "CPU")
        headings.append(Heading(title, "number", short=short, term=term))
    return Table(f"Results on {task.label}", headings, rows)


@once
def findings(results: Results) -> list[Finding]:
    """What the data say; nothing of fewer than two methods."""
    cells = {cell.label for cell in results.tasks_of(CellTask)}
    runs = analysis.solved(results).runs
    if not runs["task"].isin(cells).any() or len(results.study.solvers) < 2:
        return []
    return [_solved_finding(results, cells), *_fewest_finding(results, cells)]


def _solved_finding(results: Results, cells: set[str]) -> Finding:
    """How many of its instances each method solved."""
    counts: dict[str, Counter[str]] = {}
    runs = analysis.solved(results).runs
    for task, solver, group in by_solver(runs[runs["status"] != "skipped"]):
        if task in cells:
            counter = counts.setdefault(solver, Counter())
            counter.update(solved=int(group["solved"].sum()), runs=len(group))
    shares = {name: counter["solved"] / counter["runs"] for name, counter in counts.items()}
    best = max(shares.values())
    words = {name: f"{name} ({n['solved']} of {n['runs']})" for name, n in counts.items()}
    order = sorted(shares, key=lambda name: -shares[name])
    others = "".join(f"; {words[name]}" for name in order if shares[name] < best)
    if not best:
        return Finding("Instances solved", "none by any method", others)
    return Finding(
        "Instances solved", "; ".join(words[name] for name in order if shares[name] == best), others
    )


def _fewest_finding(results: Results, cells: set[str]) -> list[Finding]:
    """Who needed the fewest iterations, over the instances of all problems."""
    totals: Counter[str] = Counter()
    n = 0
    for task in (task.label for task in results.study.tasks if task.label in cells):
        counts, n_solved = summary.fewest_iterations(analysis.solved(results).runs, task)
        totals.update(counts)
        n += n_solved
    if not totals:
        return []
    (first, most), *rest = totals.most_common()
    listed = "".join(f"; {name} on {count}" for name, count in rest)
    words = f"{first} on {most} of {plural(n, 'solved instance')}"
    shared = _TIES if totals.total() > n else ""
    return [Finding("Fewest iterations", words, listed + shared)]


def _limit_words(results: Results) -> str:
    """The limit of seconds that the runs were given; not always that of the last invocation."""
    limits = analysis.solved(results).runs["limit"].dropna()
    if limits.empty:
        return f"{results.study.budget.get('timeout', 0):g}"
    ends = sorted({f"{value:g}" for value in (limits.min(), limits.max())}, key=float)
    return " to ".join(ends)
