"""Write a site: each study's report and records, further pages, and the overview of all."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...harness.interrupts import interrupts_deferred, interrupts_raised
from ...harness.results.description import FILE_NAME
from ...harness.storage import exclusive
from ..analysis import Analysis
from ..described import Study, read_study
from ..errors import ReportError
from ..exports.data import parquet_bytes
from ..formatting import plural
from ..naming import slug
from ..page import render
from ..papers.page import judge, paper_pages
from ..papers.published import PAPERS, read_paper
from ..results import Results, load_results
from . import PublishedSite
from .history import FOLDER, read_history
from .manifest import clear_staging, read_manifest, replace_files, stage
from .overview import StudyEntry, index_page, study_entry, told_apart

_INDEX = "index.html"
# The folder of the pages of the papers, and what they are called.
_PAPERS, _PAPERS_TITLE = "papers", "What the papers print, and what was measured"


@dataclass(frozen=True)
class Request:
    """What a site is made of: see :func:`marginbench.reports.site.publish`."""

    folders: Sequence[Path]
    title: str = ""
    pages: Mapping[str, Path] | None = None
    force: bool = False
    keep_going: bool = False
    history: Path | None = None
    repository: Path | None = None


def write_site(request: Request, site: Path) -> PublishedSite:
    """Write the site, as :func:`marginbench.reports.site.publish` describes."""
    pages = request.pages or {}
    own = {"studies", _PAPERS, *([FOLDER] if request.history is not None else [])}
    further = _folders_of(pages, own)
    _check_pages(pages.values(), site)
    history = None
    if request.history is not None:
        history = read_history(request.history, request.repository)
    problems: list[str] = []
    planned = _planned(request, problems)
    # Ctrl-C leaves the site as it was, without the lock and without half of the new files.
    with interrupts_raised(), exclusive(site):
        before = read_manifest(site, force=request.force)
        clear_staging(site)
        try:
            studies = []
            for name, folder in planned.items():
                try:
                    studies.append(_stage_study(site, folder, name, history is not None))
                except ReportError as error:
                    _left_out(problems, error, keep=request.keep_going)
            if problems and not studies:
                raise ReportError(
                    f"no results folder can be published; the first problem: {problems[0]}"
                )
            for name, text in _paper_pages(planned, studies).items():
                stage(site, f"{_PAPERS}/{name}", text.encode())
                further |= {_PAPERS_TITLE: _PAPERS}
            studies = told_apart(studies)
            for title in pages:
                place = further[title]
                for name, content in _files_of(pages[title]):
                    stage(site, f"{place}/{name}", content)
            if history is not None:
                stage(site, f"{FOLDER}/{_INDEX}", history.page())
            stage(site, _INDEX, index_page(studies, further, request.title, history))
            with interrupts_deferred():
                changes = replace_files(site, before, _about(studies), force=request.force)
        finally:
            clear_staging(site)
    return PublishedSite(
        index=site / _INDEX,
        studies=len(studies),
        written=changes.written,
        unchanged=changes.unchanged,
        removed=changes.removed,
        kept=changes.kept,
        left_out=tuple(problems),
    )


def _planned(request: Request, problems: list[str]) -> dict[str, Path]:
    """The results folders by their names in the site, which depend on their records alone.

    Of several with the same name the one that was run first has the name without a number.
    """
    if not request.folders and request.history is None:
        raise ReportError("no results folder is given; 'marginbench run' makes one")
    found: list[tuple[str, Path]] = []
    for folder in {folder.resolve(): folder for folder in reversed(request.folders)}.values():
        try:
            found.append((_base(read_study(folder)), folder))
        except ReportError as error:
            _left_out(problems, error, keep=request.keep_going)
    bases = Counter(base for base, _ in found)

    def place(item: tuple[str, Path]) -> tuple[str, str, str]:
        base, folder = item
        starts: list[str] = []
        if bases[base] > 1:
            starts = [*load_results(folder).runs["started_at"]]
        digest = hashlib.sha256((folder / FILE_NAME).read_bytes()).hexdigest()
        return base, min(filter(None, starts), default=""), digest

    found.sort(key=place)
    return dict(
        zip(_numbered([base for base, _ in found]), [item[1] for item in found], strict=True)
    )


def _base(study: Study) -> str:
    return slug(study.name, "study")


def _numbered(bases: Sequence[str]) -> list[str]:
    """The names with a number after each that an earlier one has: "a", "a-2", "a-3"."""
    found: list[str] = []
    for base in bases:
        name, number = base, 1
        while name in found or (number > 1 and name in bases):
            number += 1
            name = f"{base}-{number}"
        found.append(name)
    return found


def _left_out(problems: list[str], error: ReportError, *, keep: bool) -> None:
    if not keep:
        raise error
    problems.append(str(error))


def _stage_study(site: Path, folder: Path, name: str, history: bool) -> StudyEntry:
    """Write one study beside the site; its results can go when this returns."""
    results = load_results(folder)
    damaged = results.runs.loc[results.runs["status"] == "damaged", "reason"]
    if len(damaged):
        raise ReportError(
            f"{folder}: {plural(len(damaged), 'record')} cannot be read ({damaged.iloc[0]}); run "
            "the study again to replace them"
        )
    analysis = Analysis(results)
    entry = study_entry(analysis, name)
    data = data_files(results)
    around = {
        "overview": "../../index.html",
        "history": f"../../{FOLDER}/{_INDEX}" if history else "",
        "data": [(file, f"data/{file}") for file in data],
    }
    page = render(analysis, analysis.study.command, around)
    stage(site, f"{entry.folder}/{_INDEX}", page.encode())
    for file, content in data.items():
        stage(site, f"{entry.folder}/data/{file}", content)
    return entry


def data_files(results: Results) -> dict[str, bytes]:
    """The runs and checkpoints of a study as Parquet, and its ``study.json``, by name."""
    return {
        "runs.parquet": parquet_bytes(results.runs, "zstd"),
        "traces.parquet": parquet_bytes(results.traces, "zstd"),
        FILE_NAME: (results.folder / FILE_NAME).read_bytes(),
    }


def _paper_pages(planned: Mapping[str, Path], studies: Sequence[StudyEntry]) -> dict[str, str]:
    """The pages of the papers, if a published study is one that a paper's numbers come from."""
    places = {each.name: f"../{each.folder}/{_INDEX}" for each in reversed(studies)}
    folders = {each.name: planned[each.slug] for each in reversed(studies)}
    sources = {source.study for name in PAPERS for source in read_paper(name).sources}
    return paper_pages(judge(folders), places) if sources & folders.keys() else {}


def _about(studies: Sequence[StudyEntry]) -> dict[str, Any]:
    """What the manifest says of the site."""
    listed = [
        {"folder": study.folder, "kind": study.kind, "name": study.name, "title": study.title}
        | {"runs": dict(study.counts)}
        for study in studies
    ]
    return {"studies": listed}


def _folders_of(pages: Iterable[str], own: set[str]) -> dict[str, str]:
    """The folder of the site for further pages of each title."""
    found: dict[str, str] = {}
    for title in pages:
        folder = slug(title, "pages")
        if folder in {*own, *found.values()}:
            raise ReportError(
                f"further pages {title!r}: their folder {folder}/ is taken; choose another title"
            )
        found[title] = folder
    return found


def _check_pages(folders: Iterable[Path], site: Path) -> None:
    """Look at folders of further pages before anything is written."""
    for folder in folders:
        if not (folder / _INDEX).is_file():
            raise ReportError(f"{folder}: has no {_INDEX}; give a folder of static pages")
        here, there = folder.resolve(), site.resolve()
        if here.is_relative_to(there) or there.is_relative_to(here):
            raise ReportError(f"{folder}: and the site {site} must be apart; choose another folder")
        for path in _paths(folder):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise ReportError(f"{path}: is a link or no file; put a copy in its place")
            if not path.name.isprintable() or "\\" in path.name:
                raise ReportError(f"{str(path)!r}: no address can have this name; rename it")


def _files_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a folder of static pages, by their path in it; hidden ones are left out."""
    for path in filter(Path.is_file, _paths(folder)):
        try:
            yield path.relative_to(folder).as_posix(), path.read_bytes()
        except OSError as error:
            raise _unreadable(error) from None


def _paths(folder: Path) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        raise _unreadable(error) from None

    for base, subfolders, names in os.walk(folder, onerror=unreadable):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (Path(base, name) for name in sorted(names) if not name.startswith("."))
        yield from (Path(base, name) for name in subfolders)


def _unreadable(error: OSError) -> ReportError:
    return ReportError(f"{error.filename}: cannot be read ({error.strerror}); allow reading it")
