"""The page and the terminal summary of a study of feasibility methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from marginbench.reports import canvas, figures, formatting, integrity
from marginbench.reports.feasibility import (
    FeasibilityResults,
    fewest_iterations,
    gap_ratio,
    load_feasibility,
    results_table,
)
from marginbench.reports.feasibility_figures import Curve, draw_curves
from marginbench.reports.frames import records
from marginbench.reports.pages import environment_rows

_TEMPLATES = Path(__file__).parent / "templates"
_NONE = formatting.DASH


@dataclass(frozen=True)
class Entry:
    """One entry of a table: the method itself, or a value with its range."""

    value: str
    range: str = ""
    head: bool = False
    best: bool = False
    incomplete: bool = False


def write_feasibility_report(folder: Path, command: str) -> Path:
    """Read a results folder and write its page, ``report.html``, atomically.

    Parameters
    ----------
    folder : Path
    command : str
        The command line that reproduces the results.
    """
    from marginbench.data_loaders.atomic import replacing

    page = render(load_feasibility(folder), command)
    path = folder / "report.html"
    with replacing(path) as sink:
        sink.write(page.encode())
    return path


def render(results: FeasibilityResults, command: str) -> str:
    """The page as HTML text.

    Parameters
    ----------
    results : FeasibilityResults
    command : str
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    runs, study = results.runs, results.study
    environments = integrity.environments(runs[runs["environment"].notna()])
    failed = runs[~runs["ended"]]
    return environment.get_template("feasibility.html").render(
        study=study,
        palette=canvas.PALETTE,
        key_figures=[
            ("runs planned", str(len(runs))),
            ("ended with a certificate", str(int(runs["solved"].sum()))),
            ("ended at a limit", str(int((runs["ended"] & ~runs["solved"]).sum()))),
            ("failed", str(len(failed))),
            ("machine", integrity.machine(environments)),
        ],
        limit=_limit_words(runs, study["budget"]["timeout"]),
        legend=_legend(study),
        figures=_figures(results),
        parts=[_part_view(results, part) for part in study["parts"]],
        gap=_gap_sentence(results),
        failures=records(failed),
        environments=records(environments),
        settings=environment_rows(environments),
        commits=integrity.commits(environments),
        command=command,
    )


def _limit_words(runs: pd.DataFrame, planned: float) -> str:
    """The limit of seconds that the runs were given; not always that of the last invocation."""
    known = runs["limit"].dropna()
    ends = sorted({f"{value:g}" for value in (known.min(), known.max())}, key=float)
    return " to ".join(ends) if len(known) else f"{planned:g}"


def summary(results: FeasibilityResults) -> RenderableType:
    """The tables for the terminal.

    Parameters
    ----------
    results : FeasibilityResults
    """
    parts: list[RenderableType] = []
    for part in results.study["parts"]:
        view = _part_view(results, part)
        title = Text(f"{part['label']}: {view['problem']}", style="bold")
        table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
        for place, heading in enumerate(view["headings"]):
            # Words break between them where the terminal is narrow; nothing is cut.
            words = [word for row in view["rows"] for word in row[place].value.split(" ")]
            table.add_column(
                heading.lower(),
                justify="left" if heading == "Method" else "right",
                min_width=max(map(len, words), default=0),
            )
        for row in view["rows"]:
            table.add_row(*(Text(entry.value) for entry in row))
        parts += [table, Text()]
    failed = results.runs[~results.runs["ended"]]
    parts += [
        Text(f"{row['part']} · {row['method']} · instance {row['seed']}: {row['status']} "
             f"{row['reason']}", style="red")
        for row in records(failed)
    ]  # fmt: skip
    gap = _gap_sentence(results)
    return Group(*parts, *([Text(gap)] if gap else []))


def _legend(study: dict[str, Any]) -> list[tuple[str, Markup]]:
    styles = figures.solver_styles([method["label"] for method in study["methods"]])
    return [
        (label, Markup(figures.swatch(style, f"key{place}")))
        for place, (label, style) in enumerate(styles.items())
    ]


def _part_view(results: FeasibilityResults, part: dict[str, Any]) -> dict[str, Any]:
    view = _images_view if part["type"] == "images" else _cell_view
    return {"label": part["label"], **view(results, part)}


def _cell_view(results: FeasibilityResults, part: dict[str, Any]) -> dict[str, Any]:
    published = part["published"]
    rows = []
    for row in records(results_table(results, part["label"])):
        none = row["n_solved"] == 0
        reached = f"no certificate in {formatting.count(row['most_iter'])}" if (
            none and not math.isnan(row["most_iter"])
        ) else _NONE  # fmt: skip
        cells = [
            Entry(row["method"], head=True),
            Entry(f"{row['n_solved']} / {row['n']}", incomplete=row["n_ended"] < row["n"]),
            _median(row, "n_iter", formatting.integer, reached),
            _median(row, "matvecs", formatting.integer),
            _median(row, "cpu_s", formatting.seconds),
            _median(row, "solve_s", formatting.seconds),
            Entry(_NONE if none else formatting.seconds(row["mean_s"])),
        ]
        if published:
            value = published.get(row["method"], _NONE)
            cells.append(Entry(value if isinstance(value, str) else formatting.seconds(value)))
        rows.append(cells)
    headings = [
        "Method",
        "Solved",
        "Iterations",
        "Products",
        "CPU, median",
        "Time, median",
        "Time, mean",
    ]
    return {
        "problem": f"m = {part['m']:,}, n = {part['n']:,}, κ = {part['kappa']:g}, "
        f"tolerance {part['tol']:g}, "
        + ("separable" if part["generator"] == "ldfp" else "inseparable"),
        "headings": headings + (["Published mean"] if published else []),
        "rows": rows,
        "note": _winner(results, part),
    }


def _median(
    row: dict[str, Any], name: str, say: Callable[[float], str], absent: str = _NONE
) -> Entry:
    if math.isnan(row[name]):
        return Entry(absent)
    low, high = say(row[f"{name}_low"]), say(row[f"{name}_high"])
    return Entry(say(row[name]), formatting.spread(low, high), best=bool(row[f"best_{name}"]))


def _winner(results: FeasibilityResults, part: dict[str, Any]) -> str:
    ours, ahead = fewest_iterations(results, part["label"])
    if not ours:
        return ""
    if not ahead:
        return f"{ours} needed the fewest iterations on every instance."
    return f"On some instance as few iterations as {ours} or fewer: {', '.join(ahead)}."


def _images_view(results: FeasibilityResults, part: dict[str, Any]) -> dict[str, Any]:
    mine = results.runs[results.runs["part"] == part["label"]]
    traces = _of_part(results, part)
    rows = []
    for method, group in mine.groupby("method", sort=False):
        done = group[group["ended"]]
        known = len(done) > 0
        entries = [
            Entry(str(method), head=True),
            Entry(f"{len(done)} / {len(group)}", incomplete=len(done) < len(group)),
            Entry(formatting.plain(done["gamma"].median()) if known else _NONE),
        ]
        for stage in part["stages"]:
            at = traces[(traces["method"] == method) & (traces["iteration"] == stage)]
            error = at["test_error"].median()
            entries.append(Entry(_NONE if at.empty else formatting.percent(error)))
        entries += [
            Entry(formatting.percent(done["train_error"].median()) if known else _NONE),
            Entry("; ".join(dict.fromkeys(done["reason"])) if known else _NONE),
            Entry(formatting.seconds(done["solve_s"].median()) if known else _NONE),
        ]
        rows.append(entries)
    return {
        "problem": f"{part['dataset']}, {part['n_train']:,} training points, "
        f"widths {', '.join(f'{gamma:g}' for gamma in part['gammas'])}",
        "headings": ["Method", "Runs", "Width", *(f"Error, {stage}" for stage in part["stages"]),
                     "Train error", "At the end", "Time"],
        "rows": rows,
        "note": "Test errors after so many iterations for each class, training error at the end.",
    }  # fmt: skip


def _of_part(results: FeasibilityResults, part: dict[str, Any]) -> pd.DataFrame:
    traces = results.traces
    return traces if traces.empty else traces[traces["part"] == part["label"]]


def _figures(results: FeasibilityResults) -> list[dict[str, Any]]:
    """Against kappa where cells differ in it; errors against iterations and time for images."""
    drawn = []
    cells = [part for part in results.study["parts"] if part["type"] == "cell"]
    labels = [method["label"] for method in results.study["methods"]]
    if len({part["kappa"] for part in cells}) > 2:
        tables = {part["kappa"]: results_table(results, part["label"]) for part in cells}
        for measure, title in (("cpu_s", "Median CPU seconds"), ("n_iter", "Median iterations"),
                               ("matvecs", "Median products with A or its transpose")):  # fmt: skip
            curves = [_against_kappa(tables, label, measure) for label in labels]
            drawn.append((title + " against κ", curves, ("κ", "kappa"), measure))
    for part in results.study["parts"]:
        if part["type"] != "images":
            continue
        traces = _of_part(results, part)
        for measure, words in (("iteration", "iterations for each class"),
                               ("seconds", "seconds, without the kernel matrix")):  # fmt: skip
            curves = [_of_stages(traces, label, measure) for label in labels]
            title = f"{part['label']}: test error against {words}"
            drawn.append((title, curves, (words, measure), "test_error"))
    styles = figures.solver_styles(labels)
    return [
        {
            "title": title,
            "svg": Markup(draw_curves(curves, styles, x, measure, f"figure{place}", title)),
        }
        for place, (title, curves, x, measure) in enumerate(drawn)
        if any(len(curve.x) for curve in curves)
    ]


def _against_kappa(tables: dict[float, pd.DataFrame], label: str, measure: str) -> Curve:
    points = [
        (kappa, row)
        for kappa, table in sorted(tables.items())
        for row in records(table[table["method"] == label])
        if row["n_solved"]
    ]
    return Curve(
        label,
        [kappa for kappa, _ in points],
        *([row[f"{measure}{end}"] for _, row in points] for end in ("", "_low", "_high")),
    )


def _of_stages(traces: pd.DataFrame, label: str, measure: str) -> Curve:
    if traces.empty:
        return Curve(label, [], [], [], [])
    stages = traces[traces["method"] == label].groupby("iteration", sort=True)
    errors = stages["test_error"]
    columns: Sequence[pd.Series] = (errors.median(), errors.min(), errors.max())
    x = stages[measure].median() if measure != "iteration" else pd.Series(stages.groups)
    at = list(x.index) if measure == "iteration" else list(x)
    return Curve(label, [float(value) for value in at], *(list(column) for column in columns))


def _gap_sentence(results: FeasibilityResults) -> str:
    ratio, n = gap_ratio(results)
    if not n:
        return ""
    return (
        f"MPLFP's residual times t / sqrt(2 log n), over {n:,} recorded iterations: at most "
        f"{ratio:.3f}. The theorem says 1."
    )
