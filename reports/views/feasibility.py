"""A study of feasibility methods: what they solved, and what each needed on each problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from .. import formatting
from ..analysis import Analysis
from ..described import CellTask, ImagesTask, Task
from ..formatting import plural
from ..frames import by_solver, medians, of_task, records
from ..numbers import measured
from ..panels.feasibility import image_figures, kappa_figures, solved_figures
from ..solved import TIES, fewest_sentence, gap_sentence, solved
from ..statistics import certificates
from ..tables import NONE, Cell, Heading, Table, measure_cell, terminal_table
from ..view import Section, figures_of
from ..wording import Finding

# What a narrow terminal keeps: who solved what, then what it took.
_WEIGHTS = {"solved": 5, "runs": 5, "stage_error": 4, "cpu_s": 3, "n_iter": 2, "proven": 2}
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


def findings_section(analysis: Analysis) -> Iterator[Section]:
    """Which methods solved all instances, and which needed the fewest iterations on how many."""
    found = analysis.ask(findings)
    if found:
        data = {"findings": found, "terms": _TERMS}
        yield Section("findings", "Findings", "findings.html", data)


def figures_section(analysis: Analysis) -> Iterator[Section]:
    """What the methods need, against what the problems differ in."""
    figures, marks = figures_of(analysis, "figures", _OF_STUDY)
    if figures:
        yield Section("figures", "Figures", "gallery.html", {"figures": figures, "marks": marks})


def task_sections(analysis: Analysis) -> Iterator[Section]:
    """A section for each problem: what it is, and what each method needed."""
    for task in analysis.study.tasks:
        name = analysis.slugs[task.label]
        figures, marks = figures_of(analysis, f"task-{name}", (image_figures,), task.label)
        images = isinstance(task, ImagesTask)
        data = {
            "label": task.label,
            "folded": False,
            "problem": _problem(task),
            "decided": task.decided,
            "figures": figures,
            "marks": marks,
            "table": analysis.ask(results, task.label),
            "note": _IMAGES_NOTE if images else fewest_sentence(analysis, task.label),
        }
        yield Section(f"results-{name}", task.label, "task.html", data)


def protocol_section(analysis: Analysis) -> Iterator[Section]:
    """What a run is, when a problem is solved, and what is counted."""
    data = {
        "limit": _limit_words(analysis),
        "source": analysis.study.source,
        "gap": gap_sentence(analysis),
    }
    yield Section("protocol", "Protocol", "feasibility_protocol.html", data)


def ended_figures(analysis: Analysis) -> list[tuple[str, str]]:
    """For the head of the page: how many runs ended with a certificate, and how many without."""
    runs = analysis.ask(solved).runs
    return [
        ("ended with a certificate", str(int(runs["solved"].sum()))),
        ("ended at a limit", str(int((runs["ok"] & ~runs["solved"]).sum()))),
    ]


def printed(analysis: Analysis) -> Iterator[RenderableType]:
    """For the terminal: findings, tables, and how mirror prox compares with its bound."""
    found = analysis.ask(findings)
    if found:
        yield from (Text(finding.sentence) for finding in found)
        yield Text()
    for task in analysis.study.tasks:
        yield terminal_table(analysis.ask(results, task.label), f"{task.label}: {_problem(task)}")
        yield Text()
    gap = gap_sentence(analysis)
    if gap:
        yield Text(gap)


def results(analysis: Analysis, label: str) -> Table:
    """The table of a problem, for :meth:`.Analysis.ask`."""
    (task,) = (task for task in analysis.study.tasks if task.label == label)
    if isinstance(task, ImagesTask):
        table = _images_table(analysis, task)
    else:
        table = _cell_table(analysis, task)
    return replace(table, name=f"results-{analysis.slugs[label]}")


def _problem(task: Task) -> str:
    if isinstance(task, ImagesTask):
        widths = ", ".join(f"{gamma:g}" for gamma in task.gammas)
        return f"{task.dataset}, {task.n_train:,} training points, widths {widths}"
    assert isinstance(task, CellTask)
    return f"m = {task.m:,}, n = {task.n:,}, κ = {task.kappa:g}, tolerance {task.tol:g}, " + (
        "separable" if task.generator == "ldfp" else "inseparable by construction"
    )


def _cell_table(analysis: Analysis, task: Task) -> Table:
    found = analysis.ask(solved)
    published = task.published if isinstance(task, CellTask) else {}
    table = of_task(found.table, task.label)
    unseparated = isinstance(task, CellTask) and task.generator == "lap"
    rows = []
    for _, solver, group in by_solver(of_task(found.runs, task.label)):
        cells = {
            row["measure"]: measure_cell(row, found.costs[row["measure"]])
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
                *([_proven(group)] if unseparated else []),
                *(cells | _not_reached(group)).values(),
                _seconds(group.loc[group["solved"], "wall_s"].mean()),
                *([_published(published.get(solver))] if published else []),
            ]
        )
    columns = {"solved": "Solved"}
    if unseparated:
        columns["proven"] = "Proven inseparable"
    for name, measure in found.costs.items():
        columns[name] = measure.title + (", median" if measure.format == "seconds" else "")
    columns["wall_mean"] = "Wall time, mean"
    if published:
        columns["published"] = "Published mean"
    numbers = measured(table, found.costs, analysis.counts)
    if published:
        of_measure = numbers["solver"].map(dict(published)).where(numbers["measure"] == "wall_s")
        numbers = numbers.assign(published_mean=of_measure)
    drawn = _table(task, list(columns.items()), rows)
    return replace(drawn, caption=_CELL_CAPTION, numbers=numbers)


def _proven(runs: pd.DataFrame) -> Cell:
    """Of how many instances it is proven that nothing separates: more than a small ||A x||."""
    return Cell(f"{(runs['solved'] & (runs['found'] == 'inseparable')).sum()} / {len(runs)}")


def _not_reached(runs: pd.DataFrame) -> dict[str, Cell]:
    """In place of the iterations of a method that solved nothing: how far it came."""
    most = runs.loc[runs["ok"], "n_iter"].max()
    if runs["solved"].any() or math.isnan(most):
        return {}
    return {"n_iter": Cell(f"no certificate in {formatting.count(most)}", absent=True)}


def _seconds(value: float) -> Cell:
    return NONE if math.isnan(value) else Cell(formatting.seconds(value), number=value)


def _published(value: float | str | None) -> Cell:
    if value is None:
        return NONE
    return Cell(value) if isinstance(value, str) else _seconds(value)


def _images_table(analysis: Analysis, task: ImagesTask) -> Table:
    traces = of_task(analysis.traces, task.label)
    costs = analysis.ask(solved).costs
    counters = [name for name in costs if name in analysis.counters]
    rows = []
    for _, solver, group in by_solver(of_task(analysis.runs, task.label)):
        done = group[group["ok"]]
        mine = traces[traces["solver"] == solver]
        ends = "; ".join(dict.fromkeys(done["reason"]))
        stages = [mine.loc[mine["n_iter"] == stage, "test_error"] for stage in task.stages]
        rows.append(
            [
                Cell(solver),
                Cell(f"{len(done)} / {len(group)}", incomplete=len(done) < len(group)),
                _median(analysis, done, "gamma"),
                *(_percent(errors.median()) for errors in stages),
                _median(analysis, done, "train_error"),
                Cell(ends) if ends else NONE,
                *(_median(analysis, done, name) for name in (*counters, "wall_s")),
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
    return replace(drawn, caption=_IMAGES_CAPTION, numbers=_stages(traces))


def _stages(traces: pd.DataFrame) -> pd.DataFrame:
    """The test errors of each method at each stage, over its runs."""
    return medians(traces, ["task", "solver", "n_iter"], "test_error")


def _median(analysis: Analysis, runs: pd.DataFrame, name: str) -> Cell:
    value = float(runs[name].median())
    if math.isnan(value):
        return NONE
    return Cell(formatting.say(analysis.measures[name], value), number=value)


def _percent(value: float) -> Cell:
    return NONE if math.isnan(value) else Cell(formatting.percent(value), number=value)


def _short(title: str) -> str:
    """A heading for the terminal: "CPU time, median" is "CPU"."""
    return title.lower().replace(" time", "").removesuffix(", median").replace("cpu", "CPU")


def _table(task: Task, columns: list[tuple[str, str]], rows: list[list[Cell]]) -> Table:
    """The table with its columns: the term and the title of each."""
    headings = [Heading("Method", short="method", term="solver")]
    headings += [
        Heading(title, "number", short=_short(title), term=term, weight=_WEIGHTS.get(term, 0))
        for term, title in columns
    ]
    return Table(f"Results on {task.label}", headings, rows)


def findings(analysis: Analysis) -> list[Finding]:
    """What the data say, for :meth:`.Analysis.ask`; nothing of fewer than two methods."""
    cells = {cell.label for cell in analysis.tasks_of(CellTask)}
    runs = analysis.ask(solved).runs
    if not runs["task"].isin(cells).any() or len(analysis.study.solvers) < 2:
        return []
    return [_solved_finding(analysis, cells), *_fewest_finding(analysis, cells)]


def _solved_finding(analysis: Analysis, cells: set[str]) -> Finding:
    """Of how many instances that a method was to solve it found the certificate."""
    counts: dict[str, Counter[str]] = {}
    runs = analysis.ask(solved).runs
    for task, solver, group in by_solver(runs[runs["status"] != "skipped"]):
        if task in cells:
            found = counts.setdefault(solver, Counter())
            found.update(solved=int(group["solved"].sum()), runs=len(group))
    shares = {name: found["solved"] / found["runs"] for name, found in counts.items()}
    best = max(shares.values())
    words = {name: f"{name} ({n['solved']} of {n['runs']})" for name, n in counts.items()}
    order = sorted(shares, key=lambda name: -shares[name])
    others = "".join(f"; {words[name]}" for name in order if shares[name] < best)
    if not best:
        return Finding("Instances solved", "none by any method", others)
    return Finding(
        "Instances solved", "; ".join(words[name] for name in order if shares[name] == best), others
    )


def _fewest_finding(analysis: Analysis, cells: set[str]) -> list[Finding]:
    """Who needed the fewest iterations, over the instances of all problems."""
    totals: Counter[str] = Counter()
    n = 0
    for task in (task.label for task in analysis.study.tasks if task.label in cells):
        counts, n_solved = certificates.fewest_iterations(analysis.ask(solved).runs, task)
        totals.update(counts)
        n += n_solved
    if not totals:
        return []
    (first, most), *rest = totals.most_common()
    listed = "".join(f"; {name} on {count}" for name, count in rest)
    words = f"{first} on {most} of {plural(n, 'solved instance')}"
    shared = TIES if totals.total() > n else ""
    return [Finding("Fewest iterations", words, listed + shared)]


def _limit_words(analysis: Analysis) -> str:
    """The limit of seconds that the runs were given; not always that of the last invocation."""
    known = analysis.ask(solved).runs["limit"].dropna()
    if known.empty:
        return f"{analysis.study.budget.get('timeout', 0):g}"
    ends = sorted({f"{value:g}" for value in (known.min(), known.max())}, key=float)
    return " to ".join(ends)
