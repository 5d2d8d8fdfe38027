"""The commands that reorganise results folders."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ..results.remote.urls import is_url, local_folder
from .output import complain
from .stores import changeable

_Json = Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")]


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
    from ..results.merging import merge
    from ..words import plural

    sides = {text: local_folder(text) for text in folders}
    preferred = str(sides.get(prefer, prefer))
    with changeable(out, _say) as folder:
        done = merge(list(sides.values()), folder, prefer=preferred)
    for line in done.damaged:
        complain(f"not merged: {line}", done.exit_code)
    if as_json:
        typer.echo(json.dumps(done.as_dict() | _named("out", out) | {"exit_code": done.exit_code}))
        return int(done.exit_code)
    for conflict in done.conflicts:
        typer.echo(f"{conflict.run}: {conflict.what}; decided by --prefer {prefer}")
    same = f"{plural(done.alike, 'run')} in several folders with the same values"
    typer.echo(f"{plural(done.records, 'record')} in {out}: {done.copied} copied; {same}")
    return int(done.exit_code)


def _named(key: str, place: str) -> dict[str, str]:
    """A store by its URL, in the place of its mirror."""
    return {key: place} if is_url(place) else {}


def _say(line: str) -> None:
    typer.echo(line, err=True)
