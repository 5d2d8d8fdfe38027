"""The commands that reorganise results folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marginbench.harness.commands.output import complain

if TYPE_CHECKING:
    from marginbench.harness.folders.compacting import Compaction

_Json = Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")]


def add(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("compact", help="Gather the records of a results folder into few files.")(_compact)
    app.command("merge", help="Merge results folders of one study, as of several machines.")(_merge)


def _compact(
    results: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder.")],
    as_json: _Json = False,
) -> int:
    from marginbench.harness.folders.compacting import compact

    done = compact(results, say=_say)
    for line in done.damaged:
        complain(f"not gathered: {line}", done.exit_code)
    typer.echo(
        json.dumps(done.as_dict() | {"exit_code": done.exit_code}) if as_json else _in_words(done)
    )
    return int(done.exit_code)


def _in_words(done: Compaction) -> str:
    from marginbench.harness.words import plural

    gathered = (
        f"{plural(done.gathered, 'record')} gathered" if done.gathered else "nothing to gather"
    )
    files = f"{plural(done.records, 'record')} in {plural(done.files, 'compacted file')}"
    sizes = f"{done.bytes_before / 1e6:.1f} MB before, {done.bytes_after / 1e6:.1f} MB now"
    return f"{gathered}; {files}; {sizes}"


def _merge(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Results folders.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="A new folder, or one of these.", show_default=False),
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
    from marginbench.harness.folders.merging import merge
    from marginbench.harness.words import plural

    done = merge(folders, out, prefer=prefer, say=_say)
    for line in done.damaged:
        complain(f"not merged: {line}", done.exit_code)
    if as_json:
        typer.echo(json.dumps(done.as_dict() | {"exit_code": done.exit_code}))
        return int(done.exit_code)
    for conflict in done.conflicts:
        typer.echo(f"{conflict.run}: {conflict.what}; decided by --prefer {prefer}")
    same = f"{plural(done.alike, 'run')} in several folders with the same values"
    typer.echo(f"{plural(done.records, 'record')} in {out}: {done.copied} copied; {same}")
    return int(done.exit_code)


def _say(line: str) -> None:
    typer.echo(line, err=True)
