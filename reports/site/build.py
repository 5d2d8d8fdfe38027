"""Write a site: its pages, the data of its studies and further files, as the records have it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ...harness.interrupts import interrupts_raised
from ...harness.results.description import FILE_NAME
from .. import analysis
from ..drawing.canvas import PALETTE
from ..errors import ReportError
from ..exports.making import parquet_bytes
from ..exports.writing import SUMS, File, write_all
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

_FORMAT = "marginbench site"
_INDEX, _HISTORY, _CONFIGURATION = "index.html", "regressions", "asv.conf.json"
# The folder of the pages of the papers, and what they are called.
_PAPERS, _PAPERS_TITLE = "papers", "What the papers print, and what was measured"
_KINDS: Mapping[str, str] = {"svm": "Studies of SVM solvers", "feasibility": "Feasibility methods"}


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
    further = _further(pages, site, {"studies", _PAPERS, *([_HISTORY] if asv[0] else [])})
    lanes, history = ([], b"") if asv[0] is None else _read_history(asv[0], asv[1])
    if not folders and not lanes:
        raise ReportError("no results folder is given; 'marginbench run' makes one")
    # Ctrl-C leaves the site as it was: nothing is written before all of it is known.
    with interrupts_raised():
        problems: list[str] = []
        studies = []
        for folder in dict.fromkeys(folder.resolve() for folder in folders):
            try:
                studies.append(_study(folder, bool(lanes)))
            except ReportError as error:
                if not keep_going:
                    raise
                problems.append(str(error))
        if problems and not studies:
            raise ReportError(
                f"no results folder can be published; the first problem: {problems[0]}"
            )
        _give_names(studies)
        files = [
            File(f"{study['folder']}/{file}", content)
            for study in studies
            for file, content in study.pop("files").items()
        ]
        for name, text in _paper_pages(studies).items():
            files.append(File(f"{_PAPERS}/{name}", text.encode()))
            further |= {_PAPERS_TITLE: _PAPERS}
        studies.sort(key=lambda study: (study["title"].casefold(), study["slug"]))
        for name, folder in pages.items():
            files += _files_of(folder, further[name])
        if lanes:
            files.append(File(f"{_HISTORY}/{_INDEX}", history))
        files.append(File(_INDEX, _index_page(studies, further, title, lanes)))
        files.sort(key=lambda item: item.path)
        sums = "".join(f"{item.digest}  {item.path}\n" for item in files)
        about = [
            {name: study[name] for name in ("folder", "kind", "name", "title")}
            | {"runs": study["counts"]}
            for study in studies
        ]
        listed = [*files, File(SUMS, sums.encode())]
        write_all(site, listed, _FORMAT, force=force, whole={"version": 1, "studies": about})
    return PublishedSite(site / _INDEX, len(studies), len(files), tuple(problems))


def _study(folder: Path, history: bool) -> dict[str, Any]:
    """All that the site says of a study; its results can go when this returns.

    ``counts`` says how its runs ended, ``solvers`` are labels with the place of their colour in the
    figure, and ``figure`` is the first one of its page.
    """
    results = load_results(folder)
    study, counts = results.study, analysis.counts(results)
    damaged = results.runs.loc[results.runs["status"] == "damaged", "reason"]
    if len(damaged):
        raise ReportError(
            f"{folder}: {plural(len(damaged), 'record')} cannot be read ({damaged.iloc[0]}); run "
            "the study again to replace them"
        )
    data = data_files(results)
    around = {
        "overview": "../../index.html",
        "history": f"../../{_HISTORY}/{_INDEX}" if history else "",
        "data": [(file, f"data/{file}") for file in data],
    }
    pages = {_INDEX: render(results, study.command, around).encode()}
    named = {"planned": "planned", "ended as planned": "ok", "failed": "failed"}
    ended = {words: int(counts[f"n_{name}"].sum()) for words, name in named.items()}
    # That none failed is worth saying; that none is missing or skipped is not.
    others = {word: int(counts[f"n_{word}"].sum()) for word in ("missing", "skipped")}
    others = {word: n for word, n in others.items() if n}
    words = [f"{n or 'none'} {word}" for word, n in {"failed": ended["failed"], **others}.items()]
    commits = ", ".join(commit[:10] for commit in integrity.commits(analysis.environments(results)))
    facts = {
        "Runs": ", ".join([plural(ended["planned"], "run"), *words]),
        "Date": integrity.period(results.runs),
        "Machine": integrity.machine(analysis.environments(results)),
        "marginbench": " ".join(filter(None, (study.marginbench, commits and f"({commits})"))),
    }
    places = {light: index for index, (light, _) in enumerate(PALETTE)}
    looks = analysis.styles(results).items()
    digest = hashlib.sha256(data[FILE_NAME]).hexdigest()
    return {
        "results": folder,
        "order": (min(filter(None, results.runs["started_at"]), default=""), digest),
        "files": pages | {f"data/{file}": content for file, content in data.items()},
        "kind": study.kind,
        "name": study.name,
        "title": study.title or study.name,
        "description": study.description,
        "finding": _finding(results),
        "facts": [item for item in facts.items() if item[1]],
        "counts": ended | others,
        "solvers": [(name, places.get(look.color)) for name, look in looks],
        "figure": _figure(results),
    }


def data_files(results: Results) -> dict[str, bytes]:
    """The runs and checkpoints of a study as Parquet, and its ``study.json``, by name."""
    return {
        "runs.parquet": parquet_bytes(results.runs, "zstd"),
        "traces.parquet": parquet_bytes(results.traces, "zstd"),
        FILE_NAME: (results.folder / FILE_NAME).read_bytes(),
    }


def _give_names(studies: list[dict[str, Any]]) -> None:
    """Name the studies' folders by their records alone; the one run first has no number."""
    studies.sort(key=lambda study: (slug(study["name"], "study"), study["order"]))
    bases = [slug(study["name"], "study") for study in studies]
    titles = Counter(study["title"] for study in studies)
    taken: list[str] = []
    for base, study in zip(bases, studies, strict=True):
        # A number that makes it a name which no other study has by itself.
        taken.append(unused(base, [*taken, *bases] if base in taken else []))
        study |= {"slug": taken[-1], "folder": f"studies/{taken[-1]}"}
        if titles[study["title"]] > 1:
            study["title"] = f"{study['title']} ({taken[-1]})"


def _finding(results: Results) -> str:
    """The first finding, as a sentence; empty where there is nothing to compare."""
    if results.kind == "svm":
        return next((finding.sentence for finding in findings(results)), "")
    task = results.study.tasks[0].label if results.study.tasks else ""
    return f"{task}: {fewest_sentence(results, task)}" if task else ""


def _figure(results: Results) -> tuple[Figure, str] | None:
    """The first figure of a task, else of the study, and its caption."""
    of_tasks = [each for each in sections(results) if each.anchor.startswith("results-")]
    of_study = [each for each in sections(results) if each.anchor == "figures"]
    for section in (*of_tasks, *of_study):
        for view in section.views:
            if isinstance(view, Figure) and view.drawing is not None:
                return view, view.title if section in of_study else f"{section.title}: {view.title}"
    return None


def _index_page(
    studies: Sequence[dict[str, Any]],
    further: Mapping[str, str],
    title: str,
    history: Sequence[History],
) -> bytes:
    """The page that a visitor sees first."""

    def drawn(study: Mapping[str, Any]) -> Markup:
        drawing: Markup = study["figure"][0].drawing.svg(f"figure-{study['slug']}")
        return drawing

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
        "drawn": drawn,
        "history": history,
        "further": [(name, f"{folder}/{_INDEX}") for name, folder in further.items()],
        "counts": [number, plural(planned, "run")] if studies else [],
    }
    return page(environment().get_template("site_index.html"), **values).encode()


def _paper_pages(studies: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The pages of the papers, if a study is one that a paper's numbers come from."""
    places = {each["name"]: f"../{each['folder']}/{_INDEX}" for each in reversed(studies)}
    folders = {each["name"]: each["results"] for each in reversed(studies)}
    sources = {source.study for name in PAPERS for source in read_paper(name).sources}
    return paper_pages(judge(folders), places) if sources & folders.keys() else {}


def _further(pages: Mapping[str, Path], site: Path, own: set[str]) -> dict[str, str]:
    """The folder of the site for further pages of each title."""
    folders: dict[str, str] = {}
    for title, folder in pages.items():
        if not (folder / _INDEX).is_file():
            raise ReportError(f"{folder}: has no {_INDEX}; give a folder of static pages")
        here, there = folder.resolve(), site.resolve()
        if here.is_relative_to(there) or there.is_relative_to(here):
            raise ReportError(f"{folder}: and the site {site} must be apart; choose another folder")
        folders[title] = unused(slug(title, "pages"), {*own, *folders.values()})
    return folders


def _files_of(folder: Path, name: str) -> Iterator[File]:
    """The files of a folder of static pages but hidden ones."""
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if any(part.startswith(".") for part in inner.parts):
            continue
        if path.is_symlink():
            raise ReportError(f"{path}: is a link; put a copy in its place")
        if not path.name.isprintable() or "\\" in path.name:
            raise ReportError(f"{str(path)!r}: no address can have this name; rename it")
        if path.is_file():
            yield File(f"{name}/{inner.as_posix()}", path.read_bytes())


def _read_history(folder: Path, checkout: Path | None) -> tuple[list[History], bytes]:
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
