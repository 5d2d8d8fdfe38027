"""Results folders on the command line, and the command that merges them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .output import complain

_Json = Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")]


def results_folder(text: str) -> Path:
    """The results folder that an argument names; of a URL its mirror, brought up to date."""
    # A function of its own: its name is that of the argument in the help.
    from ..results.stores import local_folder

    return local_folder(text)


#: An argument that is a results folder or a URL.
Results = Annotated[
    Path,
    typer.Argument(
        metavar="DIR|URL", parser=results_folder, help="A results folder, or the URL of one."
    ),
]


def add(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("merge", help="Merge results folders of one study, as of several machines.")(_merge)


def _merge(
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...", help="Results folders, or URLs of them.", show_default=False
        ),
    ],
    out: Annotated[
        str,
        typer.Option(metavar="DIR|URL", help="A new folder, or one of these.", show_default=False),
    ],
    prefer: Annotated[
        str,
        typer.Option(
            metavar="DIR|newest",
            help="Whose record is kept where two differ.",
            show_default=False,
        ),
    ] = "",
    as_json: _Json = False,
) -> int:
    from ..planning.merging import merge
    from ..results.stores import changeable, is_url, local_folder
    from ..words import plural

    sides = {text: local_folder(text) for text in folders}
    preferred = str(sides.get(prefer, prefer))
    with changeable(out) as folder:
        done = merge(list(sides.values()), folder, prefer=preferred)
    for line in done.damaged:
        complain(f"not merged: {line}", done.exit_code)
    if as_json:
        place = {"out": out} if is_url(out) else {}
        typer.echo(json.dumps(done.as_dict() | place | {"exit_code": done.exit_code}))
        return int(done.exit_code)
    for conflict in done.conflicts:
        typer.echo(f"{conflict.run}: {conflict.what}; decided by --prefer {prefer}")
    same = f"{plural(done.alike, 'run')} in several folders with the same values"
    typer.echo(f"{plural(done.records, 'record')} in {out}: {done.copied} copied; {same}")
    return int(done.exit_code)
