"""The results of SVM solvers on each task: panels and a table."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from .. import formatting, wording
from ..analysis import Analysis
from ..derived import derived_measures
from ..derived.to_target import (
    ERROR_TARGET,
    OBJECTIVE_TARGET,
    EvaluationsToError,
)
from ..described import SvmStudy, SvmTask
from ..frames import first_known, of_task, other_problem_solvers, records
from ..numbers import measured
from ..panels import gallery
from ..statistics import summary
from ..statistics.tuning import tuning_choices, tuning_sentences
from ..tables import Cell, Heading, Table, measure_cell, terminal_table
from . import Part, Section

_AT_THE_END = "At the end of the run"
# What a narrow terminal keeps: errors first, then costs; CPU time says most of all costs.
_WEIGHTS = {"test_error": 5, "cpu_s": 4, "evals_to_error": 3, "evaluations": 2, "suboptimality": 1}
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


class SvmTasks(Section):
    """A part for each task: its problem, its panels, and the table of results."""

    anchor, title, place = "results", "Results", 30
    template = "task.html"
    kinds = ("svm",)

    def parts(self, analysis: Analysis) -> Iterable[Part]:
        """One for each task, in the order of the study."""
        for task in analysis.tasks_of(SvmTask):
            name = analysis.slugs[task.label]
            data = {
                "problem": _problem(analysis.runs, task),
                "decided": task.decided,
                "gallery": gallery(analysis, f"task-{name}", task.label),
                "table": results(analysis, task.label, of_task(analysis.counts, task.label)),
                "note": " ".join(
                    [
                        *_tuning(analysis, task),
                        _target_sentence(analysis, task.label),
                        *_other_problems(analysis.runs, task.label),
                        *_program_times(analysis, task.label),
                        *_notes(analysis),
                    ]
                ),
            }
            yield Part(f"{self.anchor}-{name}", task.label, data)

    def key_figures(self, analysis: Analysis) -> list[tuple[str, str]]:
        """How many runs ended as planned."""
        return [("ended as planned", str(analysis.counts["n_ok"].sum()))]

    def terminal(self, analysis: Analysis) -> Iterable[RenderableType]:
        """The tables, without solvers that were skipped, and what their numbers are."""
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
        if table.loc[table["measure"] == EvaluationsToError.name, "upper_bound"].any():
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
                weight=_WEIGHTS.get(name, 0),
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
