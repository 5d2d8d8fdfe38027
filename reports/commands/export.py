"""The command that writes figures, tables and records as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..exports import DEFAULT_FORMATS, WIDTH

# More paths than this are only counted.
_MOST_SHOWN = 12

#: Of the command.
HELP = "Write figures, tables and records as files, for papers."


def export(
    results: Annotated[
        str, typer.Argument(metavar="DIR|URL", help="A results folder, or the URL of one.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write to (default: DIR/export).", show_default=False),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only these figures (repeat, or separate by commas)."),
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these tables.")
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these: runs, traces, columns.")
    ] = None,
    format: Annotated[
        list[str] | None,
        typer.Option(help=f"Formats ({','.join(DEFAULT_FORMATS)} by default; also png)."),
    ] = None,
    width: Annotated[str, typer.Option(help="Of figures: 3.4in, 86mm, 245pt.")] = WIDTH,
    task: Annotated[list[str] | None, typer.Option(help="Only these tasks.")] = None,
    solver: Annotated[list[str] | None, typer.Option(help="Only these solvers.")] = None,
    transparent: Annotated[
        bool, typer.Option("--transparent", help="Figures without a white ground.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that no export wrote.")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="Only list what there is, by name.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    from ...harness.cli.output import in_columns, show
    from ...harness.words import plural, visible
    from ..exports import export, listed

    if list_:
        found = listed(results)
        rows = [(item.what, item.name, visible(item.title)) for item in found]
        document = [{"kind": i.what, "name": i.name, "title": i.title} for i in found]
        show(document, in_columns([("KIND", "NAME", "TITLE"), *rows]), as_json=as_json)
        return
    done = export(
        results,
        out,
        figures=figure or (),
        tables=table or (),
        data=data or (),
        formats=format or DEFAULT_FORMATS,
        width=width,
        tasks=task or (),
        solvers=solver or (),
        transparent=transparent,
        force=force,
    )
    if as_json:
        written, unchanged = (list(map(str, paths)) for paths in (done.written, done.unchanged))
        content = {"folder": str(done.folder), "written": written, "unchanged": unchanged}
        typer.echo(json.dumps(content))
        return
    if len(done.written) <= _MOST_SHOWN:
        for path in done.written:
            typer.echo(str(path))
    counts = f"{plural(len(done.written), 'file')} written, {len(done.unchanged)} unchanged"
    typer.echo(f"{counts}: {done.folder}")
