"""The page of a results folder: one self-contained HTML file, made of the sections."""

from __future__ import annotations

import base64
import contextlib
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from . import analysis, templating
from .formatting import slug
from .results import Results
from .statistics import integrity
from .tables import Heading
from .templating import TEMPLATES, environment, page, page_script, script_source
from .views import sections
from .views.common import glossary
from .views.explorer import explorer_data


class Written(NamedTuple):
    """A page, and whether it had to be written."""

    path: Path
    changed: bool


def write_page(results: Results, command: str = "") -> Written:
    """Write the page, ``report.html`` in the results folder: see :func:`.templating.write_page`."""
    path = results.folder / "report.html"
    text = render(results, command or results.study.command)
    remedy = "mend that and write it with 'marginbench report'; the runs are recorded"
    return Written(path, templating.write_page(path, text, remedy=remedy))


def render(results: Results, command: str, site: Mapping[str, Any] | None = None) -> str:
    """The page as HTML text."""
    templates = environment()
    templates.globals |= {
        "command": command,
        "csv_link": csv_link,
        "results_argument": results_argument(command, results.study.name),
        **_definitions(results),
    }
    script = page_script("*")
    explored = explorer_data(results) is not None
    vega = (TEMPLATES / "vega.min.js").read_text(encoding="ascii") if explored else ""
    return page(
        templates.get_template("page.html"),
        study=results.study,
        site=site,
        vega=Markup(vega),
        script=Markup(script),
        script_source=script_source(vega, script),
        key_figures=_key_figures(results),
        period=integrity.period(results.runs),
        cautions=analysis.cautions(results),
        parts=[
            (each, Markup(templates.get_template(each.template).render(each.data)))
            for each in sections(results)
        ],
    )


def _definitions(results: Results) -> dict[str, Any]:
    """For templates: the term of a heading if it is defined, and those that headings lead to."""
    defined, linked = glossary(results), set[str]()

    def define(heading: Heading) -> str:
        term = heading.term or slug(heading.title)
        linked.update({term} & defined.keys())
        return term if term in defined else ""

    return {"define": define, "linked": linked}


def _key_figures(results: Results) -> list[tuple[str, str]]:
    counts, words = analysis.counts(results), analysis.words(results)
    skipped, missing = (int(counts[name].sum()) for name in ("n_skipped", "n_missing"))
    seeds = {run.seed for run in results.study.planned}
    return [
        ("runs planned", str(counts["n_planned"].sum())),
        *_ended(results),
        ("failed", str(counts["n_failed"].sum())),
        *([("missing", str(missing))] if missing else []),
        *([("skipped", str(skipped))] if skipped else []),
        _counted(words.task, len(results.study.tasks)),
        _counted(words.solver, len(results.study.solvers)),
        _counted(words.seed, len(seeds)),
        ("machine", integrity.machine(analysis.environments(results))),
    ]


def _ended(results: Results) -> list[tuple[str, str]]:
    """How many runs ended as planned; of feasibility methods with a certificate and without."""
    if results.kind == "svm":
        return [("ended as planned", str(analysis.counts(results)["n_ok"].sum()))]
    runs = analysis.solved(results).runs
    return [
        ("ended with a certificate", str(int(runs["solved"].sum()))),
        ("ended at a limit", str(int((runs["ok"] & ~runs["solved"]).sum()))),
    ]


def _counted(word: str, n: int) -> tuple[str, str]:
    return (word if n == 1 else f"{word}s", str(n))


# Bytes of a link. Larger numbers stay out of the page, which says how to export them.
_LARGEST = 20_000


def csv_link(data: pd.DataFrame) -> str:
    """The numbers of a figure as a link that holds them as CSV; empty if they are too many."""
    # Each number is at least a digit and a comma: most large frames need not be written.
    if 2 * data.size > _LARGEST:
        return ""
    text = data.to_csv(index=False, lineterminator="\n").encode()
    link = f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text).decode()}"
    return link if len(link) <= _LARGEST else ""


def results_argument(command: str, study: str) -> str:
    """The results folder for a command line, quoted: where the command that made them put them."""
    # A command may be damaged, or have no --out.
    with contextlib.suppress(ValueError, IndexError):
        words = shlex.split(command.replace(" --out=", " --out "))
        return shlex.quote(words[words.index("--out") + 1])
    return shlex.quote(f"results/{study}")
