"""A study of SVM solvers: figures and results of each task, its data, and how it measures."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd

from ...harness.results.measures import Measure
from .. import analysis, described, formatting
from ..analysis import once
from ..described import Study, SvmStudy, SvmTask, capitalised
from ..drawing.canvas import Drawing
from ..drawing.figures import Axis, Styles, draw_distributions, draw_lines, padded
from ..formatting import decimals, plural
from ..frames import (
    FEWEST_FOR_QUARTILES,
    by_solver,
    first_known,
    json_object,
    of_task,
    other_problem_solvers,
    records,
)
from ..measures import (
    ERROR_TARGET,
    OBJECTIVE_TARGET,
    derived_measures,
    kernel_parameters,
    measured,
)
from ..results import SUMS, Results
from ..statistics import curves, summary
from ..statistics.curves import (
    BAND,
    FIRST_OF_SLOPE,
    bundle_gaps,
    gap_slopes,
    maintenance_curves,
    predicted_fractions,
)
from ..statistics.summary import resolution
from ..tables import (
    NONE,
    Cell,
    Column,
    Table,
    framed,
    hash_cell,
    measure_cell,
    number_column,
)
from ..view import Figure, Section, not_shown, table_section, task_section

# ---- traces: errors and suboptimality against what runs spend

#: A value against a cost (columns of the traces), in reading order.
PANELS = (
    ("evaluations", "test_error"),
    ("cpu_s", "test_error"),
    ("evaluations", "suboptimality"),
    ("cpu_s", "suboptimality"),
)

_MARKS = (
    f"Lines are medians over seeds, {BAND}. A lone marker with range bars is a solver that is seen "
    "only at its end; a thin line that ends in a cross is a failed run, which is in no median."
)


def trace_figures(results: Results, task: str) -> tuple[list[Figure], str]:
    """Two panels of the test error, and two of the suboptimality with a reference."""
    (described,) = (item for item in results.tasks_of(SvmTask) if item.label == task)
    reference, ended = references(results)[task], results.runs[results.runs["ok"]]
    figures = []
    for cost, value in PANELS:
        if described.reference or value != "suboptimality":
            spent, shown = (analysis.measures(results)[name] for name in (cost, value))
            frame = of_task(trace_curves(results, cost, value), task)
            title = capitalised(f"{shown.words} against {spent.words}")
            drawn = draw_traces(frame, spent, shown, analysis.styles(results), reference, task)
            note = not_shown(results, of_task(ended, task)["solver"], frame["solver"])
            figures.append(Figure(f"{value}-{cost}", title, drawn, note))
    return figures, _MARKS


@once
def trace_curves(results: Results, cost: str, value: str) -> pd.DataFrame:
    """A value against a cost on all tasks: :func:`.curves.along`."""
    return curves.along(results.runs, analysis.traces(results), cost, value)


@once
def references(results: Results) -> dict[str, dict[str, float]]:
    """The reference optima that the records of each task carry; of several folds their medians.

    Of each task reference_test_error, n_test and resolution, NaN where unknown.
    """
    columns = results.runs[["task", "reference_test_error", "n_test"]]
    optima = columns.assign(resolution=resolution(results.runs)).groupby("task").median()
    optima = optima.reindex([task.label for task in results.study.tasks])
    return cast("dict[str, dict[str, float]]", optima.to_dict("index"))


_NEAR = 30.0  # the resolution is drawn if within this factor of the lowest suboptimality


def draw_traces(
    frame: pd.DataFrame,
    spent: Measure,
    shown: Measure,
    styles: Styles,
    reference: Mapping[str, float],
    task: str,
) -> Drawing | None:
    """How a value of a task's runs (of :func:`.curves.along`) changes with what they spend.

    None if there is nothing to draw.
    """
    y = frame["median"].fillna(frame["value"])
    # Few runs are lines of their own; a band of them would hide that.
    few = (frame["drawn"] == "median") & (frame["n_runs"] < FEWEST_FOR_QUARTILES)
    low, high = (frame[name].mask(few, y) for name in ("low", "high"))
    floor, levels = None, []
    if shown.format == "percent":
        floor = 0.5 / reference["n_test"] if reference["n_test"] > 0 else None
        error = reference["reference_test_error"]
        if not math.isnan(error):
            levels.append((error, f"reference optimum, {formatting.percent(error)}"))
    # A line far below every curve would only squeeze them.
    elif reference["resolution"] >= min([*low[low > 0], *y[y > 0]], default=math.inf) / _NEAR:
        levels.append((reference["resolution"], "resolution of the certificate"))
    return draw_lines(
        frame.dropna(axis="columns", how="all"),
        Axis(spent.words, spent.format, padding=(0.025, 0.035)),
        Axis(format=shown.format, padding=(0.1, 0.05)),
        styles,
        f"{task}: {shown.words} against {spent.words}",
        frame=frame.assign(median=y, low=low, high=high),
        levels=levels,
        floor=floor,
    )


# ---- finals: how the test errors at the end of many runs are distributed

#: Of fewer runs of each solver, medians with their range say all that there is to say.
FEWEST_RUNS = 10


def final_figures(results: Results, task: str) -> tuple[list[Figure], str]:
    """The test error at the end of each run; nothing where no solver has ten runs."""
    task_runs = of_task(results.runs, task)
    finals = task_runs.loc[task_runs["ok"], ["solver", "seed", "test_error"]]
    finals = finals.rename(columns={"test_error": "value"}).dropna(subset="value")
    if not (finals["solver"].value_counts() >= FEWEST_RUNS).any():
        return [], ""
    measure = analysis.measures(results)["test_error"]
    level = references(results)[task]["reference_test_error"]
    note = (
        "Each thin stroke is a run; equal errors coincide. Boxes span the quartiles of "
        f"{FEWEST_FOR_QUARTILES} runs or more, with the median."
        + ("" if math.isnan(level) else " Dashed: the reference optimum.")
    )
    drawing = draw_distributions(finals, measure, level, analysis.styles(results), task)
    return [Figure("finals", "Test error at the end of each run", drawing, note)], ""


# ---- maintenance: how often models on a budget are brought back to it

# Which steps a class makes: the column of their prediction, and in words.
_STEPS = {"BSGD": ("primal_steps", "subgradient"), "BSCA": ("dual_steps", "coordinate")}
_MAINTENANCE_NOTE = (
    "Dashed: the fraction of iterations that add a point at the reference optimum, the sum of "
    "its dual variables over nC for subgradient steps (BSGD), and the part of them strictly "
    "between 0 and C for coordinate steps (BSCA)."
)


def maintenance_figures(results: Results, task: str) -> tuple[list[Figure], str]:
    """Maintenance events of solvers that keep a budget, by epoch."""
    classes = {solver.class_.rpartition(":")[2] for solver in results.study.solvers}
    drawn = draw_maintenance(
        maintenance_curves(of_task(analysis.epochs(results), task)),
        predicted_fractions(of_task(results.runs, task)),
        analysis.styles(results),
        task,
        classes,
    )
    title = "Budget maintenance: events per iteration, by epoch"
    return [Figure("maintenance", title, drawn, _MAINTENANCE_NOTE)] if drawn else [], ""


def draw_maintenance(
    curves: pd.DataFrame,
    predictions: pd.DataFrame,
    styles: Styles,
    task: str,
    classes: Collection[str] = tuple(_STEPS),
) -> Drawing | None:
    """Maintenance events per iteration in each epoch, and what Lemma 2 predicts for the optimum.

    ``classes`` are those of the study's solvers: what is predicted for the steps of others is not
    drawn. None if no solver of the task keeps a budget.
    """
    task_curves = of_task(curves, task)
    if task_curves.empty:
        return None
    levels = [
        (float(line[name]), f"predicted for {words} steps, {float(line[name]):.3g}")
        for line in records(of_task(predictions, task))
        for name, words in (_STEPS[name] for name in _STEPS if name in classes)
    ]
    top = 1.1 * max([float(task_curves["high"].max()), *(value for value, _ in levels)]) or 1.0
    return draw_lines(
        task_curves,
        Axis("epoch", "integer", log=False),
        Axis("", "percent", log=False, limits=(0.0, top)),
        styles,
        f"{task}: maintenance events per iteration, by epoch",
        frame=task_curves.rename(columns={"epoch": "x"}),
        levels=levels,
        steps=False,
    )


# ---- bundle: how far bundle methods are from the optimum, against their iterations

_GAMMA = "\N{GREEK SMALL LETTER GAMMA}"


_BUNDLE_NOTE = (
    f"In units of λ/2 ‖w‖² + mean loss. {_GAMMA} is the objective of an iterate less the best "
    "lower bound; dashed, ε: the same for the best iterate so far, where it differs."
)


def bundle_figures(results: Results, task: str) -> tuple[list[Figure], str]:
    """gamma_t and epsilon_t of bundle methods (BMRM07 section 3.2)."""
    gaps = of_task(_gaps(results), task)
    drawn, note = draw_bundle_gaps(gaps, analysis.styles(results), task), _BUNDLE_NOTE
    if drawn is None:
        return [], ""
    slopes = [f"{row['solver']} {decimals(row['slope'], 1)}" for row in records(gap_slopes(gaps))]
    if slopes:
        note += (
            f" Slopes of {_GAMMA} on these axes from iteration {FIRST_OF_SLOPE} on: "
            f"{'; '.join(slopes)} (the bound for the hinge loss has {decimals(-1.0, 1)})."
        )
    title = f"Gap {_GAMMA} of bundle methods against iterations"
    return [Figure("bundle", title, drawn, note)], ""


@once
def _gaps(results: Results) -> pd.DataFrame:
    return bundle_gaps(results.runs)


def draw_bundle_gaps(gaps: pd.DataFrame, styles: Styles, task: str) -> Drawing | None:
    """gamma_t of each bundle method as a line, epsilon_t dashed where it is another number.

    None if the task has no run of a bundle method.
    """
    task_gaps = of_task(gaps, task)
    task_gaps = task_gaps[(task_gaps["gamma"] > 0) & (task_gaps["epsilon"] > 0)]
    if task_gaps.empty:
        return None
    iterates = task_gaps[["solver", "n_iter", "gamma", "epsilon"]].rename(columns={"n_iter": "x"})
    differs = iterates.groupby("solver")[["gamma", "epsilon"]].transform("sum")
    best = iterates[differs["epsilon"] < differs["gamma"]]
    frame = [iterates.assign(y=iterates["gamma"]), best.assign(y=best["epsilon"], drawn="dashed")]
    return draw_lines(
        task_gaps,
        # Of few iterations, too, the axis has room for a slope.
        Axis("iteration t", limits=padded(np.append(iterates["x"], [1.0, 3.0]), 0.04, 0.07)),
        Axis("", "scientific"),
        styles,
        f"{task}: gamma_t against iterations",
        frame=pd.concat(frame, ignore_index=True).fillna({"drawn": "median"}),
        steps=False,
    )


_METHODS = {"grid": "grid search", "halving": "successive halving"}


def tuning(study: Study, task: SvmTask, runs: pd.DataFrame) -> list[str]:
    """How the solvers of a task were tuned, what each chose and what that cost."""
    assert isinstance(study, SvmStudy)
    tuned = of_task(runs, task.label)
    tuned = tuned[~tuned["tuning"].isin(["", "[]"])]
    if tuned.empty:
        return []
    folds = study.tuning.get("folds")
    held_out = f"{100 * study.tuning.get('validation', 0.25):g} % of the training part held out"
    split = f"{folds}-fold cross-validation on the training part" if folds else held_out
    choices = "; ".join(_choice_words(solver, runs) for _, solver, runs in by_solver(tuned))
    sentences = [
        f"Tuned by {_METHODS[study.tuning.get('method', 'grid')]} with {split}: {choices}."
    ]
    if task.tune:
        sentences.append(
            "Each solver has its own problem, so objectives are not compared and there is no "
            "reference optimum."
        )
    return sentences


def _choice_words(solver: str, tuned: pd.DataFrame) -> str:
    """ "SMO chose C = 1, gamma = 10 (3 runs), at 0.46 s and 3.6M evaluations a run"."""
    trials = [json.loads(text) for text in tuned["tuning"]]
    chosen = Counter(
        described.parameters({name: json_object(params).get(name) for name in tried[0]["params"]})
        for params, tried in zip(tuned["params"], trials, strict=True)
    )
    listed = [f"{words} ({plural(n, 'run')})" for words, n in chosen.most_common()]
    costs = [formatting.seconds(float(tuned["tuning_wall_s"].median()))]
    evaluations = float(tuned["tuning_evals"].median())
    if not math.isnan(evaluations):
        costs.append(f"{formatting.count(evaluations)} evaluations")
    words = f"{solver} chose {' or '.join(listed)}, at {' and '.join(costs)} a run"
    incomplete = sum(any(each["ended"] == "not tried" for each in tried) for tried in trials)
    if incomplete:
        of_runs = f"the tuning of {plural(incomplete, 'run')}"
        words += f" ({of_runs} ran out of its budget)"
    return words


_AT_THE_END = "At the end of the run"
_NOTE = (
    "“Runs” counts those that ended as planned, of those planned. “≤” marks a suboptimality at "
    "the resolution of the reference certificate, or the cost of a run that is at the target at "
    "its first checkpoint, and may have been there before."
)
_CAPTION = (
    "Medians over the runs that ended as planned (costs to targets: all that took place, of which "
    "those that failed never get there), with the range over these runs below; below a test error "
    "its 95 % interval. Bold: the best median of a column and all that cannot be told "
    "from it, except costs that are only known to be at most their value (≤)."
)


_FAMILIES = (trace_figures, final_figures, maintenance_figures, bundle_figures)


def task_sections(results: Results) -> Iterator[Section]:
    """A section for each task: its problem, its figures, and the table of results."""
    # What the columns of the table are, where their headings do not say.
    shown = analysis.shown(results)
    columns = [each.note for each in derived_measures(results.kind) if each.name in shown]
    for task in results.tasks_of(SvmTask):
        notes = [
            *tuning(results.study, task, results.runs),
            _target_sentence(results, task.label),
            *other_problems(results.runs, task.label),
            _NOTE,
            *filter(None, columns),
        ]
        counts = of_task(analysis.counts(results), task.label)
        yield task_section(
            results,
            task,
            _FAMILIES,
            results_table(results, task.label, counts),
            problem=_problem(results.runs, task),
            note=" ".join(notes),
            # Of several tasks the section at a glance shows the same curves.
            folded=len(results.study.tasks) > 1,
        )


def results_table(results: Results, task: str, counts: pd.DataFrame) -> Table:
    """The table of results of a task."""
    groups = {item.name: item.group for item in derived_measures(results.kind)}
    measures = analysis.shown(results)
    cells = {
        (row["solver"], row["measure"]): measure_cell(row, measures[row["measure"]])
        for row in records(of_task(analysis.table(results), task))
    }
    others = other_problem_solvers(results.runs, task)

    def solver(row: Mapping[str, Any]) -> Cell:
        note = summary.OTHER_PROBLEM if row["solver"] in others else ""
        return Cell(row["solver"], note=note)

    def runs(row: Mapping[str, Any]) -> Cell:
        some = row["n_failed"] + row["n_missing"] > 0
        return Cell(f"{row['n_ok']} / {row['n_planned']}", number=row["n_ok"], incomplete=some)

    def value(name: str, row: Mapping[str, Any]) -> Cell:
        return cells[row["solver"], name]

    table = of_task(analysis.table(results), task)
    shown = table[table["solver"].isin(counts["solver"])]
    intervals = ("test_error",) if "mistakes" in results.runs else ()
    columns = [
        Column("Solver", short="solver", of=solver),
        Column("Runs", "number", short="runs", of=runs),
        *(
            Column(
                item.title,
                "number",
                groups.get(name) or _AT_THE_END,
                item.short,
                name,
                partial(value, name),
            )
            for name, item in measures.items()
        ),
        Column("Status", "statuses", of="statuses"),
    ]
    return framed(
        f"Results on {task}",
        counts,
        columns,
        style="results",
        name=f"results-{analysis.slugs(results)[task]}",
        caption=_CAPTION,
        numbers=measured(shown, measures, counts, intervals),
    )


def other_problems(runs: pd.DataFrame, task: str) -> list[str]:
    """A sentence for each way in which solvers solve another problem than the task's."""
    solvers: dict[str, list[str]] = {}
    for solver, words in other_problem_solvers(runs, task).items():
        solvers.setdefault(words, []).append(solver)
    return [
        f"Another problem is solved by {', '.join(names)}: {words}. Objectives and support vectors "
        "are not compared."
        for words, names in solvers.items()
    ]


def _target_sentence(results: Results, task: str) -> str:
    error = float(of_task(results.runs, task)["reference_test_error"].median())
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
    task_runs = of_task(runs, task.label)
    sizes = [
        f"{name} = {formatting.integer(value)}"
        for name, column in (("n", "n_train"), ("d", "n_features"))
        if (value := first_known(task_runs[column])) is not None
    ]
    n_classes = first_known(task_runs["n_classes"])
    if n_classes is not None and n_classes > 2:
        sizes.append(f"{formatting.integer(n_classes)} classes, each against the rest")
    folds = [] if task.folds is None else [f"{task.folds}-fold cross-validation"]
    unknown = [] if task.reference or task.tune else ["no reference optimum"]
    return ", ".join([*sizes, *described.kernel_words(task), *folds, *unknown])


_DATA_NUMBERS = (
    *("dataset", "n_train", "n_test", "n_features", "n_classes", "C", "kernel", "fit_intercept"),
    *("reference_primal", "reference_gap", "resolution", "reference_test_error", "fingerprint"),
)


def data_section(results: Results) -> Iterator[Section]:
    """What the records say of each task: sizes, reference optimum, fingerprint."""
    described_by = {task.label: task for task in results.tasks_of(SvmTask)}

    def dataset(row: Mapping[str, Any]) -> Cell:
        task = described_by[row["task"]]
        folds = "" if task.folds is None else f"seed 0 of {task.folds} folds"
        return Cell(task.dataset, range=described.parameters(task.dataset_params), note=folds)

    def problem(row: Mapping[str, Any]) -> Cell:
        return Cell(", ".join(described.kernel_words(described_by[row["task"]])))

    def fingerprint(row: Mapping[str, Any]) -> Cell:
        known = row["fingerprint"]
        return NONE if pd.isna(known) else hash_cell(known)

    sizes = {"n_train": "Train", "n_test": "Test", "n_features": "Features", "n_classes": "Classes"}
    columns = [
        Column("Task", of="task"),
        Column("Dataset", of=dataset),
        *(number_column(sizes[name], name, formatting.integer) for name in sizes),
        Column("Problem", "wide", of=problem),
        number_column("Reference optimum", "reference_primal", "{:.6g}".format),
        number_column("Certified relative gap", "resolution", formatting.scientific),
        number_column("Its test error", "reference_test_error", formatting.percent),
        Column("Fingerprint", of=fingerprint),
    ]
    numbers = _data_numbers(results)
    table = framed("Tasks and data", numbers, columns, cards=True, name="tasks")
    folded = "Sizes, problems and reference optima of the tasks"
    yield table_section("tasks", "Tasks and data", table, folded=folded)


def _data_numbers(results: Results) -> pd.DataFrame:
    """The first record of each task that knows them; of several folds that of the first seed."""
    runs = results.runs.assign(resolution=resolution(results.runs))
    known = runs[["task", *_DATA_NUMBERS]]
    numbers = known.where(known != "").groupby("task", sort=False).first().reset_index()
    return numbers.join(kernel_parameters(results.tasks_of(SvmTask), numbers.columns), on="task")


def protocol_section(results: Results) -> Iterator[Section]:
    """What a run is, what is counted, and what curves and tables are."""
    budget = results.study.budget
    # Of a deterministic solver one run may stand for all seeds.
    n_runs = analysis.counts(results).groupby("solver")["n_planned"].max()
    singles = set(n_runs.index[n_runs < n_runs.max()])
    run_once = [each.label for each in results.study.solvers if each.deterministic]
    counted = [name for name in SUMS["evaluations"] if name in analysis.counters(results)]
    data = {
        "budget": {
            name: described.with_unit(name, value)
            for name, value in budget.items()
            if value is not False
        },
        "epoch_checkpoints": budget.get("epoch_checkpoints", False),
        "folded": any(task.folds for task in results.tasks_of(SvmTask)),
        "run_once": [label for label in run_once if label in singles],
        "several_counters": len(counted) > 1,
        "inner_products": "inner_products" in counted,
        "matvec_entries": "matvec_entries" in counted,
        "several_classes": bool((results.runs["n_classes"] > 2).any()),
        "other_problem": bool((results.runs["other_problem"] != "").any()),
        "predictions": bool((results.runs["judged_by"] == "predictions").any()),
        "band": BAND,
    }
    yield Section("protocol", "Protocol", "svm_protocol.html", data)
