"""The command that writes a static site of results folders."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...harness.cli.output import complain
from ...harness.cli.running import results_folder
from ...harness.errors import EXIT_OK, EXIT_RUNS
from ..errors import ReportError
from .reproduce import ARCHIVE

#: Of the command.
HELP = "Write a static site of results folders, for any web server."


def publish(
    out: Annotated[
        Path, typer.Option(metavar="SITE", help="The site's folder.", show_default=False)
    ],
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR...",
            parser=results_folder,
            help="Results folders, or URLs of them.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="The heading of the overview.")] = "",
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="DIR:TITLE",
            help="A folder of further static pages, copied and linked (repeat).",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder that has other files.")
    ] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave out folders that cannot be published.")
    ] = False,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="asv's results, for pages of regressions commit by commit.",
            show_default=False,
        ),
    ] = None,
    repository: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The git checkout with the commits of --history, unless it is around it.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    from ...harness.words import plural
    from ..site import publish

    if repository is not None and history is None:
        raise ReportError("--repository: is for the commits of --history; give that, too")
    # `reproduce` leaves the pages of papers beside the studies behind them: they are made anew.
    studies = [each for each in folders or [] if not (each / ARCHIVE).is_file()]
    site = publish(
        studies,
        out,
        title=title,
        pages=_pages(with_ or []),
        force=force,
        keep_going=keep_going,
        history=history,
        repository=repository,
    )
    for problem in site.left_out:
        complain(f"left out: {problem}", EXIT_RUNS)
    if as_json:
        typer.echo(json.dumps(asdict(site), default=str))
        return EXIT_RUNS if site.left_out else EXIT_OK
    typer.echo(f"{plural(site.files, 'file')} written")
    typer.echo(f"site: {site.index}")
    return EXIT_RUNS if site.left_out else EXIT_OK


def _pages(texts: list[str]) -> dict[str, Path]:
    """The folders of further pages by title."""
    folders: dict[str, Path] = {}
    for text in texts:
        folder, _, title = text.rpartition(":")
        if not folder or not title.strip():
            raise ReportError(
                f"--with {text}: write DIR:TITLE, such as out/regressions:Regressions"
            )
        if title in folders:
            raise ReportError(f"--with {text}: another folder has this title; choose another one")
        folders[title] = Path(folder)
    return folders
