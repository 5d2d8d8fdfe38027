"""Write a site: each study's report and records, then the pages that need all studies."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...harness.interrupts import interrupts_deferred, interrupts_raised
from ...harness.results.description import FILE_NAME
from ...harness.storage import exclusive
from ..analysis import Analysis
from ..described import Study, read_study
from ..errors import ReportError
from ..formatting import plural
from ..naming import slug
from ..page import render
from ..results import load_results
from . import PublishedSite, timings_page
from .data import data_files
from .further import check_pages, files_of, folders_of
from .history import FOLDER, SiteHistory, read_history
from .index import index_page
from .manifest import (
    clear_staging,
    read_manifest,
    replace_files,
    stage,
)
from .naming import SolverClass, numbered, solver_slugs
from .solver_pages import solver_page
from .studies import (
    StudyEntry,
    classes_of,
    damaged_records,
    study_entry,
    told_apart,
)
from .timings import read_timings


@dataclass(frozen=True)
class Request:
    """What a site is made of: see :func:`marginbench.reports.site.publish`."""

    folders: Sequence[Path]
    title: str = ""
    pages: Mapping[str, Path] | None = None
    timings: Mapping[str, Path] | None = None
    force: bool = False
    keep_going: bool = False
    history: Path | None = None
    repository: Path | None = None


@dataclass(frozen=True)
class _Planned:
    """A results folder and its place in the site."""

    folder: Path
    study: Study
    slug: str


def write_site(request: Request, site: Path) -> PublishedSite:
    """Write the site, as :func:`marginbench.reports.site.publish` describes."""
    pages = request.pages or {}
    further = folders_of(pages)
    check_pages(pages, site)
    made = _own_pages(request)
    history = _history(request, further)
    problems: list[str] = []
    planned = _planned(request, problems)
    # Ctrl-C leaves the site as it was, without the lock and without half of the new files.
    with interrupts_raised(), exclusive(site):
        before = read_manifest(site, force=request.force)
        clear_staging(site)
        try:
            studies, slugs = _stage_studies(
                site, planned, problems, history, keep=request.keep_going
            )
            for title, folder in further.items():
                for name, content in files_of(pages[title]):
                    stage(site, f"{folder}/{name}", content)
            for folder, content in made.values():
                stage(site, f"{folder}/index.html", content)
            for name, content in history.files(slugs) if history else ():
                stage(site, name, content)
            linked = {title: folder for title, (folder, _) in made.items()} | further
            index = index_page(studies, slugs, linked, request.title, history)
            stage(site, "index.html", index)
            with interrupts_deferred():
                changes = replace_files(site, before, _about(studies, slugs), force=request.force)
        finally:
            clear_staging(site)
    return PublishedSite(
        index=site / "index.html",
        studies=len(studies),
        solvers=len(slugs),
        written=changes.written,
        unchanged=changes.unchanged,
        removed=changes.removed,
        kept=changes.kept,
        left_out=tuple(problems),
    )


def _own_pages(request: Request) -> dict[str, tuple[str, bytes]]:
    """Pages that are made of something else than results, by title: their folder and content."""
    if not request.timings:
        return {}
    files = [read_timings(path, title) for title, path in request.timings.items()]
    return {timings_page.TITLE: (timings_page.FOLDER, timings_page.timings_page(files))}


def _history(request: Request, further: Mapping[str, str]) -> SiteHistory | None:
    """What was measured commit by commit, if it is to be part of the site."""
    if request.history is None:
        return None
    taken = next((title for title, folder in further.items() if folder == FOLDER), None)
    if taken is not None:
        raise ReportError(
            f"further pages {taken!r}: the history is in the folder {FOLDER}/; choose another title"
        )
    return read_history(request.history, request.repository)


def _planned(request: Request, problems: list[str]) -> list[_Planned]:
    """The studies in the order of their folders in the site, which depends on their records alone.

    Of several with the same name the one that was run first has the name without a number.
    """
    if not request.folders and not request.timings and request.history is None:
        raise ReportError("no results folder is given; 'marginbench run' makes one")
    found = []
    for folder in _distinct(request.folders):
        try:
            found.append((folder, read_study(folder)))
        except ReportError as error:
            _left_out(problems, error, keep=request.keep_going)
    bases = Counter(_base(study) for _, study in found)

    def place(item: tuple[Path, Study]) -> tuple[str, str, str]:
        folder, study = item
        base = _base(study)
        start = _first_start(folder) if bases[base] > 1 else ""
        return base, start, hashlib.sha256((folder / FILE_NAME).read_bytes()).hexdigest()

    found.sort(key=place)
    names = numbered([_base(study) for _, study in found])
    return [_Planned(*item, name) for item, name in zip(found, names, strict=True)]


def _base(study: Study) -> str:
    return slug(study.name, "study")


def _distinct(folders: Sequence[Path]) -> list[Path]:
    """The folders, each once."""
    return list({folder.resolve(): folder for folder in reversed(folders)}.values())


def _left_out(problems: list[str], error: ReportError, *, keep: bool) -> None:
    if not keep:
        raise error
    problems.append(str(error))


def _first_start(folder: Path) -> str:
    """When the first run of a study began; empty if none did."""
    return min(filter(None, load_results(folder).runs["started_at"]), default="")


def _stage_studies(
    site: Path,
    planned: Sequence[_Planned],
    problems: list[str],
    history: SiteHistory | None,
    *,
    keep: bool,
) -> tuple[list[StudyEntry], dict[SolverClass, str]]:
    """Write the pages and data of the studies, and those of their solvers, beside the site."""
    classes = {solver for item in planned for solver in classes_of(item.study.solvers)}
    slugs = solver_slugs(sorted(classes))
    studies = []
    for item in planned:
        try:
            studies.append(_stage_study(site, item, slugs, history))
        except ReportError as error:
            _left_out(problems, error, keep=keep)
    if problems and not studies:
        raise ReportError(f"no results folder can be published; the first problem: {problems[0]}")
    studies = told_apart(studies)
    shown = {item.solver for study in studies for item in study.solvers}
    slugs = {solver: name for solver, name in slugs.items() if solver in shown}
    for solver, name in slugs.items():
        over_time = history.address(solver) if history else ""
        stage(site, f"solvers/{name}.html", solver_page(solver, studies, slugs, over_time))
    return studies, slugs


def _stage_study(
    site: Path, item: _Planned, slugs: Mapping[SolverClass, str], history: SiteHistory | None
) -> StudyEntry:
    """Write one study beside the site; its results can go when this returns."""
    results = load_results(item.folder)
    analysis = Analysis(results)
    damaged = damaged_records(analysis)
    if damaged:
        raise ReportError(
            f"{item.folder}: {plural(len(damaged), 'record')} cannot be read ({damaged[0]}); run "
            "the study again to replace them"
        )
    entry = study_entry(analysis, item.slug)
    page = render(analysis, analysis.study.command, _navigation(entry, slugs, history))
    stage(site, f"{entry.folder}/index.html", page.encode())
    for name, content in data_files(results).items():
        stage(site, f"{entry.folder}/data/{name}", content)
    return entry


def _navigation(
    entry: StudyEntry, slugs: Mapping[SolverClass, str], history: SiteHistory | None
) -> dict[str, Any]:
    """What the report links to: the overview, the solvers with their history, and the data."""
    return {
        "overview": "../../index.html",
        "solvers": [
            (item.solver.title, f"../../solvers/{slugs[item.solver]}.html")
            for item in entry.solvers
        ],
        "history": [
            (item.solver.title, f"../../{address}")
            for item in entry.solvers
            if history and (address := history.address(item.solver))
        ],
        "data": [(name, f"data/{name}") for name in ("runs.parquet", "traces.parquet", FILE_NAME)],
    }


def _about(studies: Sequence[StudyEntry], slugs: Mapping[SolverClass, str]) -> dict[str, Any]:
    """What the manifest says of the site."""
    return {"studies": list(_listed(studies)), "solvers": dict(sorted(_names(slugs)))}


def _listed(studies: Sequence[StudyEntry]) -> Iterator[dict[str, Any]]:
    for study in studies:
        yield {
            "folder": study.folder,
            "kind": study.kind,
            "name": study.name,
            "title": study.title,
            "runs": dict(study.counts),
        }


def _names(slugs: Mapping[SolverClass, str]) -> Iterator[tuple[str, str]]:
    for solver, name in slugs.items():
        yield f"solvers/{name}.html", solver.name
