"""The page of a results folder: one self-contained HTML file, made of the sections."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from ..data_loaders.atomic import replacing
from ..harness.interrupts import interrupts_deferred
from ..harness.storage import storing
from .analysis import Analysis
from .definitions import glossary
from .explorer import explorer_data
from .links import csv_link, results_argument
from .statistics import integrity
from .templating import TEMPLATES, environment, page, page_script, script_source
from .views import key_figures, sections


class Written(NamedTuple):
    """A page, and whether it had to be written."""

    path: Path
    changed: bool


def write_page(analysis: Analysis, command: str = "") -> Written:
    """Write the page, ``report.html`` in the results folder, atomically.

    A file that is the same page already stays as it is, with its time of change.

    Parameters
    ----------
    analysis : Analysis
    command : str
        The command line that reproduces the results; by default the one that made them.

    Returns
    -------
    Written

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    path = analysis.results.folder / "report.html"
    text = render(analysis, command or analysis.study.command).encode()
    if _holds(path, text):
        return Written(path, changed=False)
    remedy = "mend that and write it with 'marginbench report'; the runs are recorded"
    with interrupts_deferred(), storing(path, remedy), replacing(path) as sink:
        sink.write(text)
    return Written(path, changed=True)


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file has this content; one that cannot be read has not."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def render(analysis: Analysis, command: str, site: Mapping[str, Any] | None = None) -> str:
    """The page as HTML text.

    Parameters
    ----------
    analysis : Analysis
    command : str
        The command line that reproduces the results.
    site : mapping, optional
        What the page links to as a part of a site: see ``templates/site_navigation.html``.
    """
    templates = environment()
    templates.globals |= {
        "command": command,
        "csv_link": csv_link,
        "results_argument": results_argument(command, analysis.study.name),
        **_definitions(analysis),
    }
    script = page_script("*")
    explored = analysis.ask(explorer_data) is not None
    vega = (TEMPLATES / "vega.min.js").read_text(encoding="ascii") if explored else ""
    return page(
        templates.get_template("page.html"),
        study=analysis.study,
        site=site,
        vega=Markup(vega),
        script=Markup(script),
        script_source=script_source(vega, script),
        key_figures=_key_figures(analysis),
        period=integrity.period(analysis.runs),
        cautions=analysis.cautions,
        parts=[
            (each, Markup(templates.get_template(each.template).render(each.data)))
            for each in analysis.ask(sections)
        ],
    )


def _definitions(analysis: Analysis) -> dict[str, Any]:
    """For templates: whether a term is defined, and the terms that headings above lead to."""
    known, linked = analysis.ask(glossary), set()

    def define(term: str) -> bool:
        if term in known:
            linked.add(term)
        return term in known

    return {"define": define, "linked": linked}


def _key_figures(analysis: Analysis) -> list[tuple[str, str]]:
    counts, words = analysis.counts, analysis.words
    skipped, missing = (int(counts[name].sum()) for name in ("n_skipped", "n_missing"))
    seeds = {run.seed for run in analysis.study.planned}
    return [
        ("runs planned", str(counts["n_planned"].sum())),
        *key_figures(analysis),
        ("failed", str(counts["n_failed"].sum())),
        *([("missing", str(missing))] if missing else []),
        *([("skipped", str(skipped))] if skipped else []),
        _counted(words.task, len(analysis.study.tasks)),
        _counted(words.solver, len(analysis.study.solvers)),
        _counted(words.seed, len(seeds)),
        ("machine", integrity.machine(analysis.environments)),
    ]


def _counted(word: str, n: int) -> tuple[str, str]:
    return (word if n == 1 else f"{word}s", str(n))
