"""A study of SVM solvers: the results on each task, its data, and how it measures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator

import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from .. import formatting, wording
from ..analysis import Analysis
from ..derived import ERROR_TARGET, EVALUATIONS_TO_ERROR, OBJECTIVE_TARGET, derived_measures
from ..described import Study, SvmSolver, SvmStudy, SvmTask
from ..frames import first_known, of_task, other_problem_solvers, records
from ..numbers import kernel_parameters, measured
from ..panels.svm import bundle_figures, final_figures, maintenance_figures, trace_figures
from ..results import SUMS
from ..statistics import summary
from ..statistics.curves import BAND
from ..statistics.objective import resolution
from ..statistics.tuning import tuning_choices, tuning_sentences
from ..tables import NONE, Cell, Heading, Table, measure_cell, terminal_table
from ..view import Section, figures_of
from .findings import findings

_AT_THE_END = "At the end of the run"
_NOTE = (
    "“Runs” counts those that ended as planned, of those planned. “≤” marks a suboptimality at "
    "the resolution of the reference certificate, or the cost of a run that is at the target at "
    "its first checkpoint, and may have been there before."
)
_CAPTION = (
    "Medians over the runs that ended as planned, with the range over these runs below; below a "
    "test error its 95 % interval. Bold: the best median of a column and all that cannot be told "
    "from it, except costs that are only known to be at most their value (≤)."
)


_FAMILIES = (trace_figures, final_figures, maintenance_figures, bundle_figures)


def task_sections(analysis: Analysis) -> Iterator[Section]:
    """A section for each task: its problem, its figures, and the table of results."""
    for task in analysis.tasks_of(SvmTask):
        name = analysis.slugs[task.label]
        figures, marks = figures_of(analysis, f"task-{name}", _FAMILIES, task.label)
        notes = [
            *_tuning(analysis, task),
            _target_sentence(analysis, task.label),
            *_other_problems(analysis.runs, task.label),
            *_program_times(analysis, task.label),
            *_notes(analysis),
        ]
        data = {
            "problem": _problem(analysis.runs, task),
            "decided": task.decided,
            "label": task.label,
            "figures": figures,
            # Of several tasks the section at a glance shows the same curves.
            "folded": len(analysis.study.tasks) > 1,
            "marks": marks,
            "table": results(analysis, task.label, of_task(analysis.counts, task.label)),
            "note": " ".join(notes),
        }
        yield Section(f"results-{name}", task.label, "task.html", data)


def ended_figures(analysis: Analysis) -> list[tuple[str, str]]:
    """For the head of the page: how many runs ended as planned."""
    return [("ended as planned", str(analysis.counts["n_ok"].sum()))]


def printed(analysis: Analysis) -> Iterator[RenderableType]:
    """For the terminal: findings, tables without solvers that were skipped, and what they are."""
    found = analysis.ask(findings)
    if found:
        yield from (Text(finding.sentence) for finding in found)
        yield Text()
    for task in analysis.tasks_of(SvmTask):
        counts = of_task(analysis.counts, task.label)
        tried = counts[counts["n_skipped"] < counts["n_planned"]]
        yield terminal_table(results(analysis, task.label, tried), task.label)
        if tuning := _tuning(analysis, task):
            yield Text(" ".join(tuning), style="dim")
        for sentence in _other_problems(analysis.runs, task.label):
            yield Text(sentence, style="dim")
        yield Text()
    words = "Medians over seeds of the runs that ended as planned."
    table = analysis.table
    if table.loc[table["measure"] == EVALUATIONS_TO_ERROR, "upper_bound"].any():
        words += " ≤: at the target at the first checkpoint, perhaps before."
    yield Text(words, style="dim")


def results(analysis: Analysis, task: str, counts: pd.DataFrame) -> Table:
    """The table of results of a task.

    Parameters
    ----------
    analysis : Analysis
    task : str
        Its label.
    counts : DataFrame
        The rows of ``analysis.counts`` to show, all of this task.
    """
    groups = {item.name: item.group for item in derived_measures(analysis.kind)}
    measures = analysis.shown
    cells = {
        (row["solver"], row["measure"]): measure_cell(row, measures[row["measure"]])
        for row in records(of_task(analysis.table, task))
    }
    marks = dict.fromkeys(other_problem_solvers(analysis.runs, task), summary.OTHER_PROBLEM)
    rows = [
        [
            Cell(row["solver"], note=marks.get(row["solver"], "")),
            Cell(
                f"{row['n_ok']} / {row['n_planned']}",
                number=row["n_ok"],
                incomplete=row["n_failed"] + row["n_missing"] > 0,
            ),
            *(cells[row["solver"], name] for name in measures),
            Cell(_unbroken(row["statuses"])),
        ]
        for row in records(counts)
    ]
    headings = [
        Heading("Solver", short="solver", term="solver"),
        Heading("Runs", "number", short="runs", term="runs", weight=2),
        *(
            Heading(
                item.title,
                "number",
                groups.get(name) or _AT_THE_END,
                item.short,
                term=name,
                weight=item.weight,
            )
            for name, item in measures.items()
        ),
        Heading("Status", "statuses", term="status"),
    ]
    return Table(
        f"Results on {task}",
        headings,
        rows,
        style="results",
        name=f"results-{analysis.slugs[task]}",
        caption=_CAPTION,
        numbers=_numbers(analysis, task, counts),
    )


def _numbers(analysis: Analysis, task: str, counts: pd.DataFrame) -> pd.DataFrame:
    """What the table says of these solvers; of test errors with intervals where mistakes are."""
    table = of_task(analysis.table, task)
    intervals = ("test_error",) if "mistakes" in analysis.runs else ()
    shown = table[table["solver"].isin(counts["solver"])]
    return measured(shown, analysis.shown, counts, intervals)


def _notes(analysis: Analysis) -> list[str]:
    """What the columns of the table are, where their headings do not say."""
    shown = [item for item in derived_measures(analysis.kind) if item.name in analysis.shown]
    return [_NOTE, *(item.note for item in shown if item.note)]


def _tuning(analysis: Analysis, task: SvmTask) -> list[str]:
    """What the solvers of a tuned task chose, and at what cost; nothing of other tasks."""
    study = analysis.study
    assert isinstance(study, SvmStudy)
    return tuning_sentences(study, task, tuning_choices(of_task(analysis.runs, task.label)))


def _other_problems(runs: pd.DataFrame, task: str) -> list[str]:
    """A sentence for each way in which solvers solve another problem than the task's."""
    solvers: dict[str, list[str]] = {}
    for solver, words in other_problem_solvers(runs, task).items():
        solvers.setdefault(words, []).append(solver)
    return [
        f"Another problem is solved by {', '.join(names)}: {words}. Objectives and support vectors "
        "are not compared."
        for words, names in solvers.items()
    ]


def _program_times(analysis: Analysis, task: str) -> list[str]:
    """A sentence on what the times of programs are, if any has one."""
    mine = of_task(analysis.runs, task)
    timed = set(mine.loc[mine["ok"], "solver"])
    names = [item.label for item in analysis.study.solvers if item.is_program]
    names = [name for name in names if name in timed]
    if not names:
        return []
    return [f"The times of {', '.join(names)} include reading the data from a file."]


def _unbroken(statuses: str) -> str:
    """Keep each count with its status when the line breaks."""
    return ", ".join(part.replace(" ", formatting.FIXED) for part in statuses.split(", "))


def _target_sentence(analysis: Analysis, task: str) -> str:
    runs = of_task(analysis.runs, task)
    error = float(runs["reference_test_error"].median())
    if math.isnan(error):
        return "Without a reference optimum the task has no targets."
    level = error + ERROR_TARGET.margin
    return (
        f"Targets come from the reference optimum: a test error of at most "
        f"{formatting.percent(level)} (its {formatting.percent(error)} plus "
        f"{100 * ERROR_TARGET.margin:g} point), and an objective within {OBJECTIVE_TARGET.words}. "
        "A cost counts up to the checkpoint from which a run stays there; “first at” is the cost "
        "of touching the target before that."
    )


def _problem(runs: pd.DataFrame, task: SvmTask) -> str:
    """The optimisation problem of a task in one line."""
    mine = of_task(runs, task.label)
    sizes = [
        f"{name} = {formatting.integer(value)}"
        for name, column in (("n", "n_train"), ("d", "n_features"))
        if (value := first_known(mine[column])) is not None
    ]
    n_classes = first_known(mine["n_classes"])
    if n_classes is not None and n_classes > 2:
        sizes.append(f"{formatting.integer(n_classes)} classes, each against the rest")
    folds = [] if task.folds is None else [f"{task.folds}-fold cross-validation"]
    unknown = [] if task.reference or task.tune else ["no reference optimum"]
    return ", ".join([*sizes, *wording.kernel_words(task), *folds, *unknown])


_DATA_HEADINGS = (
    Heading("Task", term="task"),
    Heading("Dataset", term="dataset"),
    Heading("Train", "number", term="n_train"),
    Heading("Test", "number", term="n_test"),
    Heading("Features", "number", term="n_features"),
    Heading("Classes", "number", term="n_classes"),
    Heading("Problem", "wide", term="problem"),
    Heading("Reference optimum", "number", term="reference"),
    Heading("Certified relative gap", "number", term="reference_gap"),
    Heading("Its test error", "number", term="reference_error"),
    Heading("Fingerprint", term="fingerprint"),
)
_DATA_NUMBERS = (
    *("dataset", "n_train", "n_test", "n_features", "n_classes", "C", "kernel", "fit_intercept"),
    *("reference_primal", "reference_gap", "resolution", "reference_test_error", "fingerprint"),
)


def data_section(analysis: Analysis) -> Iterator[Section]:
    """What the records say of each task: sizes, reference optimum, fingerprint."""
    table = Table(
        "Tasks and data",
        _DATA_HEADINGS,
        [_data_row(analysis, task) for task in analysis.tasks_of(SvmTask)],
        cards=True,
        name="tasks",
        numbers=_data_numbers(analysis),
    )
    folded = "Sizes, problems and reference optima of the tasks"
    yield Section("tasks", "Tasks and data", "table.html", {"table": table, "folded": folded})


def _data_numbers(analysis: Analysis) -> pd.DataFrame:
    """The first record of each task that knows them; of several folds that of the first seed."""
    runs = analysis.runs.assign(resolution=resolution(analysis.runs))
    found = runs.groupby("task", sort=False)[list(_DATA_NUMBERS)].first().reset_index()
    return found.join(kernel_parameters(analysis.tasks_of(SvmTask), found.columns), on="task")


def _data_row(analysis: Analysis, task: SvmTask) -> list[Cell]:
    runs = of_task(analysis.runs, task.label)

    def known(name: str, say: Callable[[float], str]) -> Cell:
        value = first_known(resolution(runs) if name == "resolution" else runs[name])
        return NONE if value is None else Cell(say(value), number=value)

    fingerprint = next((text for text in runs["fingerprint"] if text), "")
    return [
        Cell(task.label),
        Cell(
            task.dataset,
            range=wording.parameters(task.dataset_params),
            note="" if task.folds is None else f"seed 0 of {task.folds} folds",
        ),
        *(
            known(name, formatting.integer)
            for name in ("n_train", "n_test", "n_features", "n_classes")
        ),
        Cell(", ".join(wording.kernel_words(task))),
        known("reference_primal", "{:.6g}".format),
        known("resolution", formatting.scientific),
        known("reference_test_error", formatting.percent),
        Cell(fingerprint[:12], code=True, hint=fingerprint) if fingerprint else NONE,
    ]


def protocol_section(analysis: Analysis) -> Iterator[Section]:
    """What a run is, what is counted, and what curves and tables are."""
    budget = analysis.study.budget
    counted = [name for name in SUMS["evaluations"] if name in analysis.counters]
    data = {
        "budget": {
            name: wording.with_unit(name, value)
            for name, value in budget.items()
            if value is not False
        },
        "epoch_checkpoints": budget.get("epoch_checkpoints", False),
        "folded": any(task.folds for task in analysis.tasks_of(SvmTask)),
        "run_once": _run_once(analysis.study),
        "several_counters": len(counted) > 1,
        "inner_products": "inner_products" in counted,
        "matvec_entries": "matvec_entries" in counted,
        "several_classes": bool((analysis.runs["n_classes"] > 2).any()),
        "other_problem": bool((analysis.runs["other_problem"] != "").any()),
        "predictions": bool((analysis.runs["judged_by"] == "predictions").any())
        or any(item.is_program for item in analysis.study.solvers),
        "band": BAND,
    }
    yield Section("protocol", "Protocol", "svm_protocol.html", data)


def _run_once(study: Study) -> str:
    """The deterministic solvers of which one run stands for all seeds, in words."""
    counts = Counter((run.task, run.solver) for run in study.planned)
    most = max(counts.values(), default=0)
    runs = {label: count for (_, label), count in counts.items()}
    names = [
        solver.label
        for solver in study.solvers
        if isinstance(solver, SvmSolver)
        and solver.deterministic
        and 0 < runs.get(solver.label, 0) < most
    ]
    if not names:
        return ""
    return f"{', '.join(names)}: deterministic, run once on each task instead of with {most} seeds."
