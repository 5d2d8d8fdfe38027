"""Make the files of an export in memory, each with the command that makes it again."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import matplotlib as mpl

from ...harness.environment import version
from ...harness.results.stores import local_folder
from ..analysis import Analysis
from ..drawing.canvas import SolverStyle
from ..errors import ReportError
from ..results import Results, load_results
from ..statistics import integrity
from . import DEFAULT_FORMATS, FORMATS, WIDTH, data, figures, tables
from .choosing import chosen, selected
from .contents import Contents, contents
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
            found = contents(self.analysis)
            figures_ = chosen("figure", asked.figures, found.figures)
            tables_ = chosen("table", asked.tables, found.tables)
            yield from self._figures(found, list(found.figures) if everything else figures_)
            yield from self._tables(found, list(found.tables) if everything else tables_)
        yield from self._data(list(data.TITLES) if everything else wanted)

    def _figures(self, found: Contents, names: list[str]) -> Iterator[Artefact]:
        drawn = tuple(name for name in self.formats if name in figures.DRAWN)
        for name in names:
            figure = found.figures[name]
            drawing = figure.panel.drawing
            assert drawing is not None
            files = figures.rendered(
                figure, self.styles, drawn, self.width, transparent=self.request.transparent
            )
            if "csv" in self.formats:
                files["csv"] = tables.csv_bytes(drawing.data)
            for format_, content in files.items():
                yield self._artefact("figure", name, figure.title, format_, content)

    def _tables(self, found: Contents, names: list[str]) -> Iterator[Artefact]:
        for name in names:
            item = found.tables[name]
            if "csv" in self.formats:
                content = tables.csv_bytes(tables.frame_of(item.table))
                yield self._artefact("table", name, item.title, "csv", content)
            if "tex" in self.formats:
                content = tabular(item.table, name).encode()
                yield self._artefact("table", name, item.title, "tex", content)

    def _data(self, names: list[str]) -> Iterator[Artefact]:
        frames = data.frames(self.analysis) if names else {}
        writers = {"parquet": data.parquet_bytes, "csv": tables.csv_bytes}
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
        digest.update(tables.csv_bytes(frame))
    return Origin(
        study=results.study.name,
        results=request.results,
        records=digest.hexdigest(),
        commits=tuple(integrity.commits(analysis.environments)),
        marginbench=version(),
        matplotlib=mpl.__version__,
    )
