"""The command that runs what a paper printed and writes the page of it."""

from __future__ import annotations

import json
import math
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...harness.errors import EXIT_OK

if TYPE_CHECKING:
    from ...harness.planning.report import Preview
    from ..papers.published import Paper
    from ..papers.verdicts import Verdict

_PAPERS = "sbp12, bsca18, mpfp14, cuts08 or bmrm07"

#: Of the command.
HELP = "Run what the papers print, and show it beside their numbers."
#: The journals behind the pages of the papers, packed, in the folder of these pages.
ARCHIVE = "journals.tar"


def reproduce(
    papers: Annotated[
        list[str] | None,
        typer.Argument(metavar="PAPER...", help=f"{_PAPERS}; all by default.", show_default=False),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="small: minutes, on less data; full: what the papers did, hours.")
    ] = "small",
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only rows whose name begins so: table2, figure1/ (repeat for more).",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Runs at the same time; more than one disturbs the timings.")
    ] = 1,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder with the results folders of studies.")
    ] = Path("results"),
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print nothing but errors, verdicts and the page's path."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be run, and for how long.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdicts as one JSON object.")
    ] = False,
) -> int:
    from ...harness.execution import runner
    from ..errors import ReportError
    from ..papers.published import PAPERS, read_paper

    if scale not in ("small", "full"):
        raise ReportError(f"--scale {scale}: choose small or full")
    names = [*dict.fromkeys(papers or PAPERS)]
    read = [read_paper(name) for name in names]
    begun = tuple(only or [""])
    selections = _selections(read, scale, begun)
    if dry_run or scale == "full":
        shown = {
            study: runner.preview(study, out / study, where=where, jobs=jobs)
            for study, where in selections.items()
        }
        if dry_run and as_json:
            typer.echo(json.dumps({study: each.as_dict() for study, each in shown.items()}))
        else:
            _forecast(shown, err=not dry_run)
    if dry_run:
        return EXIT_OK
    codes = [
        _run(study, where, out / study, jobs, quiet=quiet or as_json)
        for study, where in selections.items()
    ]
    return max([*codes, _show(names, begun, out, as_json=as_json)])


def _selections(papers: Sequence[Paper], scale: str, only: tuple[str, ...]) -> dict[str, str]:
    """The studies to run, and which of their runs, as ``--where`` takes it.

    A row is run by the first source of its scale that has its tasks and solvers.
    """
    solvers: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for paper in papers:
        sources = [source for source in paper.sources if source.scale == scale]
        for row in paper.chosen(only):
            able = ((each, paper.pairs(each, row)) for each in sources if row.measure)
            for source, sides in [each for each in able if each[1] is not None][:1]:
                for task, solver in sides or ():
                    solvers[source.study, source.where, task].append(solver)
    chosen: dict[str, list[str]] = defaultdict(list)
    for (study, where, task), labels in solvers.items():
        words = (json.dumps(each, ensure_ascii=False) for each in (task, [*dict.fromkeys(labels)]))
        part = "task == {} and solver in {}".format(*words)
        chosen[study].append(f"({part} and ({where}))" if where else f"({part})")
    return {study: " or ".join(parts) for study, parts in chosen.items()}


def _forecast(previews: Mapping[str, Preview], *, err: bool) -> None:
    """Say what would be run of each study, and how long all of it may take."""
    from ...harness.planning.forecast import span
    from ...harness.study.toml import load_study

    for study, shown in previews.items():
        whole = f"{study} (all of it: {load_study(study).cost})"
        typer.echo("\n".join([whole, *shown.lines()]), err=err)
    seconds = sum(each.solving_s for each in previews.values())
    typer.echo(f"all together at most {span(seconds)} of solving by the timeouts", err=err)


def _run(study: str, where: str, folder: Path, jobs: int, *, quiet: bool) -> int:
    """Run a part of a study as ``marginbench run`` does, and write its page."""
    from ...harness.execution import runner
    from .. import report

    part = shlex.join(["marginbench", "run", study, "--where", where, "--out", str(folder)])
    whole = shlex.join(["marginbench", "run", study, "--out", str(folder)])
    options: dict[str, Any] = {"where": where, "jobs": jobs, "quiet": quiet}
    summary = runner.run(study, folder, command=part, **options)
    if summary.changed or not (folder / "report.html").exists():
        report(folder, whole)
    return int(summary.exit_code)


def _show(names: Sequence[str], only: tuple[str, ...], out: Path, *, as_json: bool) -> int:
    """Write the pages of the papers and print how many rows have which verdict."""
    from ..papers.page import judge, paper_pages, write_journals
    from ..papers.verdicts import FAILED, counts_words, number
    from ..templating import write_page

    folders = {path.parent.name: path.parent for path in out.glob("*/study.json")}
    links = {name: f"../{name}/report.html" for name in folders}
    judged = judge(folders)
    feeding = {source.study for each in judged for source in each.paper.sources}
    journals = {name: folder for name, folder in folders.items() if name in feeding}
    archive = write_journals(out / "papers" / ARCHIVE, journals)
    for name, text in paper_pages(judged, links, archive).items():
        write_page(out / "papers" / name, text)
    chosen = {
        each.paper.name: [each.found[row.id] for row in each.paper.chosen(only)]
        for each in judged
        if each.paper.name in names
    }

    def number_of(verdict: Verdict, name: str) -> float | str | None:
        value = getattr(verdict.estimate, name, None)
        return value if value is None or math.isfinite(value) else str(float(value))

    if as_json:
        rows: list[dict[str, Any]] = [
            {"paper": name, "row": each.row.id, "verdict": each.verdict, "words": each.words}
            | {"printed": each.row.printed, "study": each.study}
            | {name: number_of(each, name) for name in ("value", "low", "high", "n")}
            for name, verdicts in chosen.items()
            for each in verdicts
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return EXIT_OK
    for name, verdicts in chosen.items():
        typer.echo(f"{name}: {counts_words(verdicts)}")
        for each in verdicts:
            if each.verdict == FAILED or (any(only) and each.estimate):
                assert each.estimate is not None
                value = number(each.estimate.value)
                typer.echo(f"  {each.row.id}: {each.verdict}: {value}, {each.row.says}")
    (name, *others) = names
    typer.echo(f"page: {out / 'papers' / ('index' if others else name)}.html")
    return EXIT_OK
