"""Make the files of an export in memory, each with the command that makes it again."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import matplotlib as mpl
import pandas as pd

from ...data_loaders import suggest
from ...harness.environment import version
from ...harness.results.stores import local_folder
from ...harness.study.model import find
from ...harness.study.select import split_names
from ..analysis import Analysis
from ..drawing.canvas import SolverStyle
from ..errors import ReportError
from ..results import Results, load_results
from ..statistics import integrity
from ..tables import Table
from ..view import Figure
from ..views import sections
from . import DEFAULT_FORMATS, FORMATS, WIDTH, data, figures
from .latex import tabular
from .writing import Artefact, Origin


@dataclass(frozen=True)
class Request:
    """What is to be exported, as the user said it: see :func:`marginbench.export`."""

    results: str
    out: str
    figures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    formats: tuple[str, ...] = DEFAULT_FORMATS
    width: str = WIDTH
    tasks: tuple[str, ...] = ()
    solvers: tuple[str, ...] = ()
    transparent: bool = False

    def command(self, what: str, name: str, format_: str) -> str:
        """The command line that makes one file of this export again."""
        words = ["marginbench", "export", self.results, f"--{what}", name, "--format", format_]
        if what == "figure" and format_ in figures.DRAWN:
            words += ["--width", self.width] if self.width != WIDTH else []
            words += ["--transparent"] if self.transparent else []
        for flag, values in (("--task", self.tasks), ("--solver", self.solvers)):
            words += [word for value in values for word in (flag, value)]
        return shlex.join([*words, "--out", self.out])


def made(request: Request) -> tuple[list[Artefact], Origin]:
    """The files of a request, and what they are made from.

    Raises
    ------
    ReportError
        If the folder is not a results folder, or a name, format or width is unknown.
    """
    formats = chosen("format", request.formats, FORMATS)
    if not formats:
        raise ReportError(f"--format names none; there are {', '.join(FORMATS)}")
    try:
        width = figures.inches(request.width)
    except ValueError as error:
        raise ReportError(f"--width {request.width!r}: {error}") from None
    results = load_results(local_folder(request.results))
    analysis, styles = selected(results, request.tasks, request.solvers)
    maker = _Maker(request, tuple(formats), width, analysis, styles)
    found = list(maker.artefacts())
    if not found:
        raise ReportError(
            f"nothing to write as {', '.join(formats)}: figures can be svg, pdf, png and csv, "
            "tables csv and tex, data csv and parquet"
        )
    return found, _origin(request, results, analysis)


@dataclass(frozen=True)
class _Maker:
    """A request that has been understood."""

    request: Request
    formats: tuple[str, ...]
    width: float
    analysis: Analysis
    styles: dict[str, SolverStyle]

    def artefacts(self) -> Iterator[Artefact]:
        """Figures, tables and data in this order, those of the request or all."""
        asked = self.request
        everything = not (asked.figures or asked.tables or asked.data)
        wanted = chosen("data", asked.data, data.TITLES)
        if everything or asked.figures or asked.tables:
            # The page's figures are drawn for this, whichever of them are written.
            drawn, listed = views_of(self.analysis)
            for name in list(drawn) if everything else chosen("figure", asked.figures, drawn):
                yield from self._figure(*drawn[name])
            for name in list(listed) if everything else chosen("table", asked.tables, listed):
                yield from self._table(listed[name])
        yield from self._data(list(data.TITLES) if everything else wanted)

    def _figure(self, title: str, figure: Figure) -> Iterator[Artefact]:
        drawn = tuple(name for name in self.formats if name in figures.DRAWN)
        assert figure.drawing is not None
        files = figures.rendered(
            figure, self.styles, drawn, self.width, transparent=self.request.transparent
        )
        if "csv" in self.formats:
            files["csv"] = csv_bytes(figure.drawing.data)
        for format_, content in files.items():
            yield self._artefact("figure", figure.name, title, format_, content)

    def _table(self, table: Table) -> Iterator[Artefact]:
        if "csv" in self.formats:
            yield self._artefact("table", table.name, table.label, "csv", csv_bytes(table.frame))
        if "tex" in self.formats:
            content = tabular(table, table.name).encode()
            yield self._artefact("table", table.name, table.label, "tex", content)

    def _data(self, names: list[str]) -> Iterator[Artefact]:
        frames = data.frames(self.analysis) if names else {}
        writers = {"parquet": data.parquet_bytes, "csv": csv_bytes}
        for name in names:
            for format_ in (name for name in self.formats if name in writers):
                content = writers[format_](frames[name])
                yield self._artefact("data", name, data.TITLES[name], format_, content)

    def _artefact(self, what: str, name: str, title: str, format_: str, content: bytes) -> Artefact:
        folder = what if what == "data" else f"{what}s"
        return Artefact(
            path=f"{folder}/{name}.{format_}",
            what=what,
            name=name,
            title=title,
            command=self.request.command(what, name, format_),
            content=content,
        )


def _origin(request: Request, results: Results, analysis: Analysis) -> Origin:
    digest = hashlib.sha256()
    for frame in (results.runs, results.traces):
        digest.update(csv_bytes(frame))
    return Origin(
        study=results.study.name,
        results=request.results,
        records=digest.hexdigest(),
        commits=tuple(integrity.commits(analysis.environments)),
        marginbench=version(),
        matplotlib=mpl.__version__,
    )


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A frame as CSV in UTF-8: an unknown value is empty, an infinite one "inf".

    Floats have as many digits as it takes to read the same numbers again.
    """
    return frame.to_csv(index=False, lineterminator="\n").encode()


def views_of(analysis: Analysis) -> tuple[dict[str, tuple[str, Figure]], dict[str, Table]]:
    """The figures of a page that show something, with their titles, and its tables, by name."""
    drawn: dict[str, tuple[str, Figure]] = {}
    listed: dict[str, Table] = {}
    for section in analysis.ask(sections):
        for view in section.views:
            if isinstance(view, Table):
                listed[view.name] = view
            elif view.drawing is not None:
                drawn[view.name] = (f"{section.title}: {view.title}", view)
    return drawn, listed


def chosen(what: str, names: Iterable[str], known: Iterable[str]) -> list[str]:
    """The known names among those given, each repeated or separated by commas, in their order.

    Raises
    ------
    ReportError
        If one is unknown; the message suggests the nearest.
    """
    known = list(known)
    found = []
    for name in split_names(names, known):
        match = find(name, known)
        if match is None:
            near = suggest(name, known)
            listed = f" (--list shows each {what})"  # they are many
            near = near if near.startswith(" (did you mean") else listed
            raise ReportError(f"unknown {what} {name!r}{near}")
        found.append(match)
    return list(dict.fromkeys(found))


def selected(
    results: Results, tasks: Iterable[str], solvers: Iterable[str]
) -> tuple[Analysis, dict[str, SolverStyle]]:
    """The analysis of some tasks and solvers alone, and the styles that solvers have on the page.

    What is selected is compared among itself, as in a study without the others.

    Parameters
    ----------
    results : Results
    tasks, solvers : iterable of str
        Labels; all of them if there is none.
    """
    analysis = Analysis(results)
    study = results.study
    of_tasks = set(chosen("task", tasks, [item.label for item in study.tasks]))
    of_solvers = set(chosen("solver", solvers, [item.label for item in study.solvers]))
    if not of_tasks and not of_solvers:
        return analysis, analysis.styles
    of_tasks = of_tasks or {item.label for item in study.tasks}
    of_solvers = of_solvers or {item.label for item in study.solvers}
    part = study.model_copy(
        update={
            "tasks": tuple(item for item in study.tasks if item.label in of_tasks),
            "solvers": tuple(item for item in study.solvers if item.label in of_solvers),
            "planned": tuple(
                run for run in study.planned if run.task in of_tasks and run.solver in of_solvers
            ),
        }
    )
    runs, traces = (
        frame[frame["task"].isin(of_tasks) & frame["solver"].isin(of_solvers)].reset_index(
            drop=True
        )
        for frame in (results.runs, results.traces)
    )
    if runs.empty:
        raise ReportError("no run of these solvers on these tasks is planned")
    of_part = Analysis(replace(results, study=part, runs=runs, traces=traces))
    # Panels take their colours from there: they are those of the page.
    styles = {label: style for label, style in analysis.styles.items() if label in of_solvers}
    of_part.__dict__["styles"] = styles
    return of_part, styles
