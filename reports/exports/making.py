"""What an export writes: figures, tables, and runs and checkpoints in long format."""

from __future__ import annotations

import hashlib
import io
import re
import shlex
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...data_loaders import suggest
from ...harness.environment import version
from ...harness.planning.plan import kind_named
from ...harness.results.measures import columns_of, counter_measures
from ...harness.results.stores import local_folder
from ...harness.study.model import find
from ...harness.study.select import split_names
from ...harness.words import visible, visible_lines
from .. import analysis
from ..described import SvmTask
from ..drawing.canvas import (
    INK,
    SETTINGS,
    SMALLEST_FONT,
    Drawing,
    Sheet,
    SolverStyle,
    saved,
    text_width,
)
from ..errors import ReportError
from ..measures import kernel_parameters
from ..results import Results, load_results, part_of
from ..statistics import integrity
from ..tables import Table
from ..view import Figure as View
from ..views import sections
from . import FORMATS, WIDTH
from .latex import tabular
from .writing import File

#: The tables of data by name, and what a row of each is.
TITLES: Mapping[str, str] = {
    "runs": "One row for each planned run",
    "traces": "One row for each checkpoint of each run",
    "columns": "What the columns of runs and traces are",
}

# Columns that reports add to those of the records.
_ADDED: Mapping[str, str] = {
    "kind": "name of the kind of study",
    "ok": "whether the run ended as planned and has a result",
    "instrumented": "whether the solver counts what it evaluates",
    "minimises": "whether the solver minimises the objective of the task",
    "shows_model": "whether the run is judged by its model, not by its predictions alone",
    "evaluations": "sum of kernel entries, inner products and stored matrix entries",
    "evaluations_computed": "the same of those really computed",
    "checkpoint": "number of the checkpoint in its run, from 0",
    "resolution": "reference_gap / reference_primal: below it suboptimality is not known",
    "suboptimality_is_bound": "whether suboptimality is only known to be at most its value",
    "suboptimality": "(primal - reference) / reference; in traces not below the resolution",
    "status": 'how the run ended; "missing" or "damaged": it has no readable record',
}


def frames(results: Results) -> dict[str, pd.DataFrame]:
    """The tables of :data:`TITLES`."""
    runs, traces = results.runs, analysis.traces(results)
    parameters = kernel_parameters(results.tasks_of(SvmTask), runs.columns)
    runs = runs.join(parameters, on="task")
    return {"runs": runs, "traces": traces, "columns": _columns(results, runs, traces)}


def _columns(results: Results, runs: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
    """A row for each column: table, column, type and meaning."""
    # Any: mypy takes classes of unfrozen dataclasses for unhashable, as their instances are.
    record: Any = kind_named(results.kind).record
    parameter = "parameter {} of the task's kernel"  # of kernel_gamma, say
    meanings = {
        **{name: f"count: {item.words}" for name, item in counter_measures().items()},
        **{name: item.doc for name, item in columns_of(record).items()},
        **_ADDED,
    }
    of_checkpoint = {name: item.doc for name, item in columns_of(record.checkpoint).items()}
    rows = [
        (table, column, _type(frame[column]), texts.get(column) or parameter.format(column[7:]))
        for table, frame, texts in (
            ("runs", runs, meanings),
            ("traces", traces, {**meanings, **of_checkpoint, **_ADDED}),
        )
        for column in frame.columns
    ]
    return pd.DataFrame(rows, columns=["table", "column", "type", "meaning"])


def _type(column: pd.Series) -> str:
    if pd.api.types.is_bool_dtype(column):
        return "boolean"
    return "number" if pd.api.types.is_numeric_dtype(column) else "text"


def parquet_bytes(frame: pd.DataFrame, compression: str = "snappy") -> bytes:
    """A frame as Parquet; the same frame gives the same bytes."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    sink = io.BytesIO()
    # The metadata of pandas name its version.
    pq.write_table(table.replace_schema_metadata(None), sink, compression=compression)
    return sink.getvalue()


_DPI = 300
_LINE = 1.3 * SMALLEST_FONT  # points
_KEY = 4.0 * SMALLEST_FONT  # points that the key of a legend needs, with the gap behind its words
_FONTS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def rendered(
    view: View,
    styles: Mapping[str, SolverStyle],
    formats: Sequence[str],
    width: float,
    *,
    transparent: bool = False,
) -> dict[str, bytes]:
    """A figure by format, in each of several; the same figure gives the same bytes."""
    drawing = view.drawing
    assert drawing is not None
    numbers = {"csv": csv_bytes(drawing.data)} if "csv" in formats else {}
    formats = [name for name in formats if name in _CANVASES]
    if not formats:
        return numbers
    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        # A letter that the font lacks is a box in PDF and PNG, and itself in SVG.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = _standalone(drawing, view.title, _legend_entries(view, styles), 72 * width)
        figure.patch.set(visible=not transparent, facecolor="white", edgecolor="none")
        return {name: _written(figure, drawing, name) for name in formats} | numbers


def _standalone(
    drawing: Drawing, title: str, entries: list[tuple[Line2D, str]], width: float
) -> Figure:
    """The figure drawn at a width in points, with its title and its legend."""
    longest = max((text_width(label, SMALLEST_FONT) for _, label in entries), default=0.0)
    columns = max(min(int(width / (longest + _KEY)), len(entries)), 1)
    letters = int((width - _KEY) / text_width("x", SMALLEST_FONT))
    words = ["\n".join(textwrap.wrap(visible(label), letters)) for _, label in entries]
    heading = textwrap.wrap(visible(title), letters)
    n_lines = len(heading) + sum(word.count("\n") + 1 for word in words) / columns + 1
    figure = drawing.on(Sheet(width, extra=_LINE * n_lines))
    # Vertical axes have no words of their own: the title says them.
    figure.suptitle("\n".join(heading), x=0.01, ha="left", fontsize=SMALLEST_FONT, color=INK)
    if entries:
        figure.legend(
            [key for key, _ in entries], words, loc="outside lower left", ncols=columns,
            fontsize=SMALLEST_FONT, labelcolor=INK, frameon=False, labelspacing=0.25,
            handlelength=1.9, handletextpad=0.5, columnspacing=1.1,
            borderaxespad=0.0, borderpad=0.2,
        )  # fmt: skip
    # The layout is the same in all formats, whichever are written.
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _legend_entries(view: View, styles: Mapping[str, SolverStyle]) -> list[tuple[Line2D, str]]:
    """The solvers of the page's legend that the figure shows, with the notes on their runs."""
    assert view.drawing is not None
    data, entries = view.drawing.data, []
    shown = set(data["solver"]) if "solver" in data else set(styles)
    for entry in view.legend:
        if entry.label in styles and entry.label in shown:
            style = styles[entry.label]
            key = Line2D(
                [], [], color=style.color, marker=style.marker, lw=1.2, ms=4.5,
                linestyle=(0, style.dashes) if style.dashes else "-",
            )  # fmt: skip
            entries.append((key, entry.label + (f" ({entry.note})" if entry.note else "")))
    return entries


def _written(figure: Figure, drawing: Drawing, format: str) -> bytes:
    canvas, description, metadata = _CANVASES[format]
    canvas(figure)
    about = {"Title": visible(drawing.title), **metadata}
    if description:
        about[description] = visible(drawing.description, 10_000)
    if format != "svg":
        return saved(figure, format, dpi=_DPI if format == "png" else "figure", metadata=about)
    # Releases of matplotlib write the font in one property or in several.
    text = saved(figure, "svg", metadata=about).decode()
    text = re.sub(r"(font: (?:\w+ )*?[\d.]+px) [^;\"]*", rf"\1 {_FONTS}", text)
    text = re.sub(r"font-family: [^;\"]*", f"font-family: {_FONTS}", text)
    return visible_lines(text, len(text) * 2).encode()


# By format: what draws it, the name of a description in it, and what else it says of itself.
_CANVASES: Mapping[str, tuple[Any, str, dict[str, str | None]]] = {
    "svg": (FigureCanvasSVG, "Description", {"Creator": "marginbench", "Date": None}),
    "pdf": (FigureCanvasPdf, "Subject", {"Creator": "marginbench", "CreationDate": None}),
    "png": (FigureCanvasAgg, "", {"Software": "marginbench"}),
}


def inches(text: str) -> float:
    """Inches of a width as LaTeX writes it: "3.4in", "8.6cm", "86mm", "245pt"; "3.4" are inches."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(in|cm|mm|pt|)\s*", text)
    if match is None:
        raise ValueError("give a number with in, cm, mm or pt, such as 3.4in")
    value = float(match[1]) / _UNITS[match[2] or "in"]
    if not 1.0 <= value <= 30.0:
        raise ValueError("it must be from 1in to 30in")
    return value


# To an inch.
_UNITS = {"in": 1.0, "cm": 2.54, "mm": 25.4, "pt": 72.27}


def made(
    results: str,
    out: str,
    wanted: Mapping[str, Sequence[str]],
    parts: Mapping[str, Sequence[str]],
    formats: Sequence[str],
    width: str,
    *,
    transparent: bool,
) -> list[File]:
    """The files of an export: see the parameters of :func:`marginbench.export`.

    ``wanted`` are names of each "figure", "table" and "data", ``parts`` those of "task" and
    "solver".
    """
    formats = chosen("format", formats, FORMATS)
    try:
        size = inches(width)
    except ValueError as error:
        raise ReportError(f"--width {width!r}: {error}") from None
    whole = load_results(local_folder(results))
    part = selected(whole, parts["task"], parts["solver"])
    origin = {
        "study": whole.study.name,
        "results": results,
        "records": _digest(whole),
        "commits": integrity.commits(analysis.environments(part)),
        "marginbench": version(),
        "matplotlib": mpl.__version__,
    }
    drawing = ["--width", width] * (width != WIDTH) + ["--transparent"] * transparent
    files = []
    for what, name, title, format_, content in _contents(part, wanted, formats, size, transparent):
        words = ["marginbench", "export", results, f"--{what}", name, "--format", format_]
        words += drawing if what == "figure" and format_ in _CANVASES else []
        words += [word for flag in parts for value in parts[flag] for word in (f"--{flag}", value)]
        command = shlex.join([*words, "--out", out])
        path = f"{what if what == 'data' else f'{what}s'}/{name}.{format_}"
        about = {"what": what, "name": name, "title": title, "command": command, **origin}
        files.append(File(path, content, about))
    if not files:
        raise ReportError(
            f"nothing to write as {', '.join(formats) or 'no format'}: figures can be svg, pdf, "
            "png and csv, tables csv and tex, data csv and parquet"
        )
    return files


def _contents(
    results: Results,
    wanted: Mapping[str, Sequence[str]],
    formats: Sequence[str],
    width: float,
    transparent: bool,
) -> Iterator[tuple[str, str, str, str, bytes]]:
    """What, name, title, format and content of figures, tables and data, all or those asked for."""
    everything = not any(wanted.values())
    # The page's figures are made for this, whichever of them are written.
    views = views_of(results) if everything or wanted["figure"] or wanted["table"] else ({}, {})
    options: dict[str, Mapping[str, Any]] = {
        "figure": views[0], "table": views[1], "data": TITLES,
    }  # fmt: skip
    names = {
        what: list(each) if everything else chosen(what, wanted[what], each)
        for what, each in options.items()
    }
    for name in names["figure"]:
        title, figure = views[0][name]
        drawn = rendered(figure, analysis.styles(results), formats, width, transparent=transparent)
        for format_, content in drawn.items():
            yield "figure", name, title, format_, content
    for name in names["table"]:
        table = views[1][name]
        if "csv" in formats:
            yield "table", name, table.label, "csv", csv_bytes(table.frame)
        if "tex" in formats:
            yield "table", name, table.label, "tex", tabular(table, name).encode()
    tables = frames(results) if names["data"] else {}
    writers = {"parquet": parquet_bytes, "csv": csv_bytes}
    for name in names["data"]:
        for format_ in (each for each in formats if each in writers):
            yield "data", name, TITLES[name], format_, writers[format_](tables[name])


def _digest(results: Results) -> str:
    """The SHA-256 of all that is recorded of the runs."""
    digest = hashlib.sha256()
    for frame in (results.runs, results.traces):
        digest.update(",".join(map(str, frame)).encode())
        digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A frame as CSV in UTF-8: an unknown value is empty, an infinite one "inf".

    Floats have as many digits as it takes to read the same numbers again.
    """
    return frame.to_csv(index=False, lineterminator="\n").encode()


def views_of(results: Results) -> tuple[dict[str, tuple[str, View]], dict[str, Table]]:
    """The figures of a page that show something, with their titles, and its tables, by name."""
    drawn: dict[str, tuple[str, View]] = {}
    listed: dict[str, Table] = {}
    for section in sections(results):
        for view in section.views:
            if isinstance(view, Table):
                listed[view.name] = view
            elif view.drawing is not None:
                drawn[view.name] = (f"{section.title}: {view.title}", view)
    return drawn, listed


def chosen(what: str, names: Iterable[str], options: Iterable[str]) -> list[str]:
    """The options that names select; a name may hold several, separated by commas."""
    options = list(options)
    matches = []
    for name in split_names(names, options):
        match = find(name, options)
        if match is None:
            near = suggest(name, options)
            listed = f" (--list shows each {what})"  # they are many
            near = near if near.startswith(" (did you mean") else listed
            raise ReportError(f"unknown {what} {name!r}{near}")
        matches.append(match)
    return list(dict.fromkeys(matches))


def selected(results: Results, tasks: Iterable[str], solvers: Iterable[str]) -> Results:
    """The results of some tasks and solvers alone, in the colours that solvers have on the page.

    What is selected is compared among itself, as in a study without the others.
    """
    study = results.study
    of_tasks = set(chosen("task", tasks, [item.label for item in study.tasks]))
    of_solvers = set(chosen("solver", solvers, [item.label for item in study.solvers]))
    if not of_tasks and not of_solvers:
        return results
    chosen_runs = {
        (run.task, run.solver, run.seed)
        for run in study.planned
        if (not of_tasks or run.task in of_tasks) and (not of_solvers or run.solver in of_solvers)
    }
    if not chosen_runs:
        raise ReportError("no run of these solvers on these tasks is planned")
    return analysis.styled_as(part_of(results, chosen_runs), results)
