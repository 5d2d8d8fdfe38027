"""The history of regressions as a part of a site: read, placed, and linked both ways."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ...harness.interrupts import interrupts_deferred, interrupts_raised
from ...harness.results.description import FILE_NAME
from ...harness.storage import exclusive
from .. import analysis
from ..described import read_study
from ..drawing.canvas import PALETTE
from ..errors import ReportError
from ..exports.making import parquet_bytes
from ..formatting import plural, slug, unused
from ..page import render
from ..papers.page import judge, paper_pages
from ..papers.published import PAPERS, read_paper
from ..regressions.asv_files import Snapshot, read_results
from ..regressions.history import History, histories, render_history
from ..regressions.repository import Repository
from ..results import Results, load_results
from ..statistics import integrity
from ..templating import environment, page
from ..view import Figure
from ..views import sections
from ..views.feasibility import fewest_sentence
from ..views.findings import findings
from . import PublishedSite
from .manifest import exchange, owned_entries, stage, staging

#: The folder of the site.
FOLDER = "regressions"
_CONFIGURATION = "asv.conf.json"


def read_history(folder: Path, checkout: Path | None = None) -> tuple[list[History], bytes]:
    """What asv measured commit by commit, what is shown first at the head, and its page."""
    snapshots = read_results(folder)
    repository = Repository(checkout) if checkout else _repository_of(folder, snapshots)
    url = _commit_url(repository.root) if repository else ""
    lanes = list(histories(snapshots, repository))
    return lanes, render_history(lanes, "../index.html", url).encode()


def _repository_of(folder: Path, snapshots: Sequence[Snapshot]) -> Repository | None:
    commits = sorted({each.commit for each in snapshots})
    for start in (folder, Path.cwd()):
        try:
            repository = Repository(start)
        except ReportError:
            continue
        if repository.ordered(commits):
            return repository
    return None


def _commit_url(root: Path) -> str:
    """``show_commit_url`` of asv's configuration; empty unless it is an address of the web."""
    try:
        lines = (root / _CONFIGURATION).read_text(encoding="utf-8").splitlines()
        # asv allows lines of comments.
        content = json.loads("\n".join(line for line in lines if line.lstrip()[:2] != "//"))
    except (OSError, ValueError, RecursionError):
        return ""
    url = content.get("show_commit_url") if isinstance(content, dict) else None
    return url if isinstance(url, str) and url.startswith(("https://", "http://")) else ""


_KINDS: Mapping[str, str] = {"svm": "Studies of SVM solvers", "feasibility": "Feasibility methods"}


def study_entry(results: Results, slug: str) -> dict[str, Any]:
    """All that the overview says of a study, whose folder has this name.

    ``counts`` says how its runs ended, ``solvers`` are labels with the place of their colour in the
    figure, and ``figure`` is the first one of its page with caption and anchor.
    """
    study, runs = results.study, analysis.counts(results)
    commits = ", ".join(commit[:10] for commit in integrity.commits(analysis.environments(results)))
    counts = {
        words: int(runs[f"n_{name}"].sum())
        for name, words in (("ok", "ended as planned"), ("failed", "failed"))
    }
    counts = {"planned": int(runs["n_planned"].sum()), **counts}
    # That none failed is worth saying; that none is missing or skipped is not.
    others = {word: int(runs[f"n_{word}"].sum()) for word in ("missing", "skipped")}
    others = {word: n for word, n in others.items() if n}
    ended = [f"{counts['failed']} failed" if counts["failed"] else "none failed"]
    ended += [f"{n} {word}" for word, n in others.items()]
    facts = {
        "Runs": ", ".join([plural(counts["planned"], "run"), *ended]),
        "Date": integrity.period(results.runs),
        "Machine": integrity.machine(analysis.environments(results)),
        "marginbench": " ".join(filter(None, (study.marginbench, commits and f"({commits})"))),
    }
    places = {light: index for index, (light, _) in enumerate(PALETTE)}
    looks = analysis.styles(results).items()
    return {
        "slug": slug,
        "folder": f"studies/{slug}",
        "kind": study.kind,
        "name": study.name,
        "title": study.title or study.name,
        "description": study.description,
        "finding": _finding(results),
        "facts": [item for item in facts.items() if item[1]],
        "counts": counts | others,
        "solvers": [(name, places.get(look.color)) for name, look in looks],
        "figure": _figure(results, f"figure-{slug}"),
    }


def index_page(
    studies: Sequence[dict[str, Any]],
    further: Mapping[str, str],
    title: str,
    history: Sequence[History] = (),
) -> bytes:
    """The page that a visitor sees first."""
    kinds = [kind for kind in _KINDS if kind in {study["kind"] for study in studies}]
    groups = [
        (
            f"studies-{kind}",
            _KINDS[kind] if len(kinds) > 1 else "Studies",
            [study for study in studies if study["kind"] == kind],
        )
        for kind in kinds
    ]
    planned = sum(study["counts"]["planned"] for study in studies)
    number = f"{len(studies)} studies" if len(studies) != 1 else "1 study"
    values = {
        "title": title or "Benchmark results",
        "groups": groups,
        "history": history,
        "further": [(name, f"{folder}/index.html") for name, folder in further.items()],
        "counts": [number, plural(planned, "run")] if studies else [],
    }
    return page(environment().get_template("site_index.html"), **values).encode()


def _finding(results: Results) -> str:
    """The first finding, as a sentence; empty where there is nothing to compare."""
    if results.kind == "svm":
        return next((finding.sentence for finding in findings(results)), "")
    task = results.study.tasks[0].label if results.study.tasks else ""
    return f"{task}: {fewest_sentence(results, task)}" if task else ""


def _figure(results: Results, prefix: str) -> tuple[Markup, str, str] | None:
    """The first figure of a task, else of the study; its caption and its anchor."""
    of_tasks = [each for each in sections(results) if each.anchor.startswith("results-")]
    of_study = [each for each in sections(results) if each.anchor == "figures"]
    for section in (*of_tasks, *of_study):
        for view in section.views:
            if isinstance(view, Figure) and view.drawing is not None:
                task = "" if section in of_study else f"{section.title}: "
                return view.drawing.svg(prefix), f"{task}{view.title}", view.name
    return None


_INDEX = "index.html"
# The folder of the pages of the papers, and what they are called.
_PAPERS, _PAPERS_TITLE = "papers", "What the papers print, and what was measured"


def write_site(
    folders: Sequence[Path],
    site: Path,
    title: str,
    pages: Mapping[str, Path],
    asv: tuple[Path | None, Path | None],
    *,
    force: bool,
    keep_going: bool,
) -> PublishedSite:
    """Write the site, as :func:`marginbench.reports.site.publish` describes.

    ``asv`` are its folder of results and the repository that has their commits.
    """
    own = {"studies", _PAPERS, *([FOLDER] if asv[0] is not None else [])}
    further = _folders_of(pages, own)
    _check_pages(pages.values(), site)
    lanes, history = ([], b"") if asv[0] is None else read_history(asv[0], asv[1])
    if not folders and not lanes:
        raise ReportError("no results folder is given; 'marginbench run' makes one")
    problems: list[str] = []
    planned = _planned(folders, problems, keep_going=keep_going)
    # Ctrl-C leaves the site as it was, without the lock and without half of the new files.
    with interrupts_raised(), exclusive(site):
        owned = owned_entries(site, force=force)
        with staging(site) as staged:
            studies = []
            for name, folder in planned.items():
                try:
                    studies.append(_stage_study(staged, folder, name, bool(lanes)))
                except ReportError as error:
                    _left_out(problems, error, keep=keep_going)
            if problems and not studies:
                raise ReportError(
                    f"no results folder can be published; the first problem: {problems[0]}"
                )
            for name, text in _paper_pages(planned, studies).items():
                stage(staged, f"{_PAPERS}/{name}", text.encode())
                further |= {_PAPERS_TITLE: _PAPERS}
            titles = Counter(study["title"] for study in studies)
            for study in studies:
                if titles[study["title"]] > 1:
                    study["title"] = f"{study['title']} ({study['slug']})"
            studies.sort(key=lambda study: (study["title"].casefold(), study["slug"]))
            for name, folder in pages.items():
                for path in _files_of(folder):
                    place = f"{further[name]}/{path.as_posix()}"
                    stage(staged, place, (folder / path).read_bytes())
            if lanes:
                stage(staged, f"{FOLDER}/{_INDEX}", history)
            stage(staged, _INDEX, index_page(studies, further, title, lanes))
            about = [
                {name: study[name] for name in ("folder", "kind", "name", "title")}
                | {"runs": study["counts"]}
                for study in studies
            ]
            with interrupts_deferred():
                n_files = exchange(site, staged, owned, {"studies": about}, force=force)
    return PublishedSite(site / _INDEX, len(studies), n_files, tuple(problems))


def _planned(folders: Sequence[Path], problems: list[str], *, keep_going: bool) -> dict[str, Path]:
    """The results folders by their names in the site, which depend on their records alone.

    Of several with the same name the one that was run first has the name without a number.
    """
    named: list[tuple[str, Path]] = []
    for folder in {folder.resolve(): folder for folder in reversed(folders)}.values():
        try:
            named.append((slug(read_study(folder).name, "study"), folder))
        except ReportError as error:
            _left_out(problems, error, keep=keep_going)
    bases = Counter(base for base, _ in named)

    def sort_key(item: tuple[str, Path]) -> tuple[str, str, str]:
        base, folder = item
        starts: list[str] = []
        if bases[base] > 1:
            starts = [*load_results(folder).runs["started_at"]]
        digest = hashlib.sha256((folder / FILE_NAME).read_bytes()).hexdigest()
        return base, min(filter(None, starts), default=""), digest

    named.sort(key=sort_key)
    planned: dict[str, Path] = {}
    for base, folder in named:
        # A number that makes it a name which no other study has by itself.
        planned[unused(base, [*planned, *bases] if base in planned else [])] = folder
    return planned


def _left_out(problems: list[str], error: ReportError, *, keep: bool) -> None:
    if not keep:
        raise error
    problems.append(str(error))


def _stage_study(staged: Path, folder: Path, name: str, history: bool) -> dict[str, Any]:
    """Write one study; its results can go when this returns."""
    results = load_results(folder)
    damaged = results.runs.loc[results.runs["status"] == "damaged", "reason"]
    if len(damaged):
        raise ReportError(
            f"{folder}: {plural(len(damaged), 'record')} cannot be read ({damaged.iloc[0]}); run "
            "the study again to replace them"
        )
    entry = study_entry(results, name)
    data = data_files(results)
    around = {
        "overview": "../../index.html",
        "history": f"../../{FOLDER}/{_INDEX}" if history else "",
        "data": [(file, f"data/{file}") for file in data],
    }
    page = render(results, results.study.command, around)
    stage(staged, f"{entry['folder']}/{_INDEX}", page.encode())
    for file, content in data.items():
        stage(staged, f"{entry['folder']}/data/{file}", content)
    return entry


def data_files(results: Results) -> dict[str, bytes]:
    """The runs and checkpoints of a study as Parquet, and its ``study.json``, by name."""
    return {
        "runs.parquet": parquet_bytes(results.runs, "zstd"),
        "traces.parquet": parquet_bytes(results.traces, "zstd"),
        FILE_NAME: (results.folder / FILE_NAME).read_bytes(),
    }


def _paper_pages(planned: Mapping[str, Path], studies: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The pages of the papers, if a published study is one that a paper's numbers come from."""
    places = {each["name"]: f"../{each['folder']}/{_INDEX}" for each in reversed(studies)}
    folders = {each["name"]: planned[each["slug"]] for each in reversed(studies)}
    sources = {source.study for name in PAPERS for source in read_paper(name).sources}
    return paper_pages(judge(folders), places) if sources & folders.keys() else {}


def _folders_of(pages: Iterable[str], own: set[str]) -> dict[str, str]:
    """The folder of the site for further pages of each title."""
    folders: dict[str, str] = {}
    for title in pages:
        folder = slug(title, "pages")
        if folder in {*own, *folders.values()}:
            raise ReportError(
                f"further pages {title!r}: their folder {folder}/ is taken; choose another title"
            )
        folders[title] = folder
    return folders


def _check_pages(folders: Iterable[Path], site: Path) -> None:
    """Look at folders of further pages before anything is written."""
    for folder in folders:
        if not (folder / _INDEX).is_file():
            raise ReportError(f"{folder}: has no {_INDEX}; give a folder of static pages")
        here, there = folder.resolve(), site.resolve()
        if here.is_relative_to(there) or there.is_relative_to(here):
            raise ReportError(f"{folder}: and the site {site} must be apart; choose another folder")
        _files_of(folder)


def _files_of(folder: Path) -> list[Path]:
    """The files of a folder of static pages, by their path in it; hidden ones are left out."""
    files = []
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if any(part.startswith(".") for part in inner.parts):
            continue
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ReportError(f"{path}: is a link or no file; put a copy in its place")
        if not path.name.isprintable() or "\\" in path.name:
            raise ReportError(f"{str(path)!r}: no address can have this name; rename it")
        if not os.access(path, os.R_OK):
            raise ReportError(f"{path}: cannot be read; allow reading it")
        files += [inner] if path.is_file() else []
    return files
