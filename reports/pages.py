"""The page of a study: what the template shows, in words and figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from marginbench.reports import (
    canvas,
    figures,
    formatting,
    integrity,
    scaling_section,
    statistics,
    wording,
)
from marginbench.reports.analysis import PANELS, Analysis, Panel
from marginbench.reports.cells import make_cell
from marginbench.reports.curves import BAND
from marginbench.reports.figures import AXIS_LABELS, Reference, SolverStyle
from marginbench.reports.frames import of_task, records
from marginbench.reports.panels import special_panels
from marginbench.reports.results import TaskDescription
from marginbench.reports.views import LegendEntry, PanelView, ResultRow, TaskView

_TEMPLATES = Path(__file__).parent / "templates"


def render(analysis: Analysis, command: str) -> str:
    """The page as HTML text.

    Parameters
    ----------
    analysis : Analysis
    command : str
        The command line that reproduces the results.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    study = analysis.results.study
    return environment.get_template("report.html").render(
        study=study,
        palette=canvas.PALETTE,
        key_figures=_key_figures(analysis),
        period=_period(analysis.results.runs),
        cautions=analysis.cautions,
        inner_products=analysis.results.counts_inner_products,
        late_spread=_late_epochs(analysis.table),
        budget={
            name: wording.with_unit(name, value)
            for name, value in study.budget.items()
            if value is not False
        },
        band=BAND,
        tasks=_task_views(analysis),
        families=scaling_section.views(analysis),
        failures=records(analysis.failures),
        skipped=records(analysis.skipped),
        datasets=_dataset_rows(analysis),
        sources=list({task.dataset: task for task in study.tasks}.values()),
        solvers=_solver_rows(analysis),
        settings=environment_rows(analysis.environments),
        environments=records(analysis.environments),
        command=command,
        commits=integrity.commits(analysis.environments),
    )


def _key_figures(analysis: Analysis) -> list[tuple[str, str]]:
    counts = analysis.counts
    figures_ = [
        ("runs planned", str(counts["n_planned"].sum())),
        ("ended as planned", str(counts["n_ok"].sum())),
        ("failed", str(counts["n_failed"].sum())),
    ]
    if counts["n_skipped"].sum():
        figures_.append(("skipped", str(counts["n_skipped"].sum())))
    seeds = len(analysis.results.study.seeds)
    return [
        *figures_,
        ("tasks", str(len(analysis.results.study.tasks))),
        ("solvers", str(len(analysis.results.study.solvers))),
        ("seeds", str(seeds)),
        ("machine", integrity.machine(analysis.environments)),
    ]


def _late_epochs(table: pd.DataFrame) -> int:
    """How many last epochs the late spread is of; 0 if no run has one."""
    known = table.loc[table["measure"] == "late_spread", "median"].notna()
    return statistics.LATE_EPOCHS if bool(known.any()) else 0


def _period(runs: pd.DataFrame) -> str:
    """The days on which the runs started."""
    days = sorted({str(text)[:10] for text in runs["started_at"] if text})
    if not days:
        return ""
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def reference_of(runs: pd.DataFrame, task: str) -> Reference:
    """The reference optimum that the records of a task carry."""
    mine = of_task(runs, task)
    return Reference(
        test_error=_first(mine["reference_test_error"]),
        resolution=_first(statistics.resolution(mine)),
        n_test=None if (n := _first(mine["n_test"])) is None else int(n),
    )


def _first(values: pd.Series) -> float | None:
    known = values.dropna()
    return None if known.empty else float(known.iloc[0])


def _task_views(analysis: Analysis) -> list[TaskView]:
    styles = figures.solver_styles([s.label for s in analysis.results.study.solvers])
    return [
        _task_view(analysis, task, f"task-{place}", styles)
        for place, task in enumerate(analysis.results.study.tasks)
    ]


def _task_view(
    analysis: Analysis, task: TaskDescription, anchor: str, styles: Mapping[str, SolverStyle]
) -> TaskView:
    counts = of_task(analysis.counts, task.label)
    shown = counts[counts["n_ok"] + counts["n_failed"] > 0]
    return TaskView(
        label=task.label,
        anchor=anchor,
        problem=_problem(analysis.results.runs, task),
        legend=[
            LegendEntry(
                label=str(row["solver"]),
                swatch=Markup(figures.swatch(styles[row["solver"]], f"{anchor}-key{place}")),
                note=_runs_note(row),
            )
            for place, row in enumerate(records(shown))
        ],
        panels=[
            *(
                _panel_view(analysis, task.label, panel, f"{anchor}-panel{place}", styles)
                for place, panel in enumerate(PANELS)
                if task.reference or panel.value != "suboptimality"
            ),
            *special_panels(analysis, task.label, anchor, styles),
        ],
        marks=_marks(analysis, task.label),
        rows=_result_rows(analysis.table, counts),
        target=_target_sentence(analysis.targets, task.label),
    )


def _runs_note(row: Mapping[str, Any]) -> str:
    if row["n_ok"] == row["n_planned"]:
        return ""
    return f"{row['n_ok']} of {row['n_planned']} runs"


def _panel_view(
    analysis: Analysis, task: str, panel: Panel, prefix: str, styles: Mapping[str, SolverStyle]
) -> PanelView:
    data = analysis.panels[panel].of_task(task)
    reference = reference_of(analysis.results.runs, task)
    svg = figures.draw_panel(panel, data, styles, reference, prefix, task)
    title = f"{AXIS_LABELS[panel.value]} against {data.cost}"
    return PanelView(
        title=title[0].upper() + title[1:],
        svg=None if svg is None else Markup(svg),
        note=_absent_note(analysis, task, panel, data.solvers()),
    )


def _absent_note(analysis: Analysis, task: str, panel: Panel, drawn: set[str]) -> str:
    """Which solvers with results a panel does not show, and why."""
    runs = analysis.results.runs
    mine = of_task(runs, task)
    mine = mine[mine["ok"] & ~mine["solver"].isin(drawn)]
    reasons: dict[str, list[str]] = {}
    for solver, group in mine.groupby("solver", sort=False):
        if panel.value == "suboptimality" and not group["minimises"].any():
            reason = "does not minimise the SVM objective"
        elif panel.cost == "kernel_evals" and group["kernel_evals"].isna().all():
            reason = "not instrumented"
        elif (group[panel.cost] == 0).all():
            reason = f"spent no {analysis.panels[panel].cost}"
        else:
            reason = "nothing recorded"
        reasons.setdefault(reason, []).append(str(solver))
    listed = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
    return f"Not shown: {listed}." if listed else ""


def _marks(analysis: Analysis, task: str) -> str:
    """What the marks of a task's panels mean."""
    data = [panel.of_task(task) for panel in analysis.panels.values()]
    sentences = [f"Lines are medians over seeds, bands {BAND}."]
    if any(not panel.points.empty for panel in data):
        names = sorted({str(name) for panel in data for name in panel.points["solver"]})
        sentences.append(
            f"A lone marker with range bars is a solver that is seen only at its end "
            f"({', '.join(names)})."
        )
    if any(not panel.unfinished.empty for panel in data):
        sentences.append(
            "A thin line that ends in a cross is a failed run; it is in no median and no band."
        )
    return " ".join(sentences)


def _result_rows(table: pd.DataFrame, counts: pd.DataFrame) -> list[ResultRow]:
    rows = []
    for count in records(counts):
        mine = of_task(table, count["task"], count["solver"])
        rows.append(
            ResultRow(
                solver=count["solver"],
                runs=f"{count['n_ok']} / {count['n_planned']}",
                failed=count["n_failed"] > 0,
                statuses=_unbroken(count["statuses"]),
                cells={row["measure"]: make_cell(row) for row in records(mine)},
            )
        )
    return rows


def _unbroken(statuses: str) -> str:
    """Keep each count with its status when the line breaks."""
    return ", ".join(part.replace(" ", formatting.FIXED) for part in statuses.split(", "))


def _target_sentence(targets: pd.DataFrame, task: str) -> str:
    mine = of_task(targets, task)
    if mine.empty:
        return "No run ended as planned, so there is no target error."
    row = mine.iloc[0]
    best = formatting.percent(row["best_error"])
    if row["best_error"] == 0:
        return f"Target: no test error at all, as the median of {row['solvers']} reaches."
    return (
        f"Target: a test error of {formatting.percent(row['target_error'])}, "
        f"{statistics.TARGET_FACTOR} times the best median ({best}, {row['solvers']})."
    )


def _problem(runs: pd.DataFrame, task: TaskDescription) -> str:
    """The optimisation problem of a task in one line."""
    mine = of_task(runs, task.label)
    sizes = [
        f"{name} = {formatting.integer(value)}"
        for name, column in (("n", "n_train"), ("d", "n_features"))
        if (value := _first(mine[column])) is not None
    ]
    unknown = [] if task.reference else ["no reference optimum"]
    return ", ".join([*sizes, *wording.kernel_words(task), *unknown])


def _dataset_rows(analysis: Analysis) -> list[dict[str, Any]]:
    runs = analysis.results.runs
    rows = []
    for task in analysis.results.study.tasks:
        mine = of_task(runs, task.label)
        numbers = {
            name: formatting.DASH
            if (value := _first(mine[name])) is None
            else formatting.integer(value)
            for name in ("n_train", "n_test", "n_features")
        }
        reference = reference_of(runs, task.label)
        primal = _first(mine["reference_primal"])
        gap = reference.resolution
        error = reference.test_error
        fingerprints = [text for text in mine["fingerprint"] if text]
        rows.append(
            numbers
            | {
                "task": task,
                "params": wording.parameters(task.dataset_params),
                "problem": ", ".join(wording.kernel_words(task)),
                "primal": formatting.DASH if primal is None else f"{primal:.6g}",
                "gap": formatting.DASH if gap is None else formatting.scientific(gap),
                "error": formatting.DASH if error is None else formatting.percent(error),
                "fingerprint": fingerprints[0] if fingerprints else "",
            }
        )
    return rows


def _solver_rows(analysis: Analysis) -> list[dict[str, Any]]:
    return [
        {
            "solver": solver,
            "params": wording.parameters(solver.params),
            "objective": "yes" if solver.scalarization else "no",
            "certificate": solver.certificate or "none",
            "counts": "yes" if solver.instrumented else "no",
        }
        for solver in analysis.results.study.solvers
    ]


def environment_rows(distinct: pd.DataFrame) -> list[dict[str, Any]]:
    """One row per setting: its name, its value in each environment, whether they differ."""
    columns = [
        row["environment"] | {"threads per run": row["threads"], "runs at a time": row["jobs"]}
        for row in records(distinct)
    ]
    names = list(dict.fromkeys(name for column in columns for name in column))
    return [
        {
            "name": name,
            "values": (values := [column.get(name, formatting.DASH) for column in columns]),
            "differs": len(set(values)) > 1,
        }
        for name in names
    ]
