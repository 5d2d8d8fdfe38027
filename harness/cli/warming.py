"""The command that compiles before anything is timed."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

from ..errors import EXIT_OK
from .output import complain


def add(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("warm", help="Compile what studies need, so that no first run waits for it.")(_warm)


def _warm(
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes that compile at the same time.", show_default="all cores"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    from ..execution import warming
    from ..execution.local import check_jobs
    from ..execution.progress import choose_progress
    from ..words import plural

    jobs = (os.cpu_count() or 1) if jobs is None else jobs
    check_jobs(jobs)
    try:
        found = warming.warm(jobs, None if as_json else choose_progress(jobs))
    except warming.NotKeptError as error:
        # Studies run all the same: this command has only nothing to do for them.
        return complain(str(error), EXIT_OK)
    if found.cut_short:
        cut = f"{plural(found.cut_short, 'run')} ended before everything was compiled"
        complain(f"{cut}; run the command again", EXIT_OK)
    if as_json:
        typer.echo(json.dumps(asdict(found), default=str))
        return EXIT_OK
    kept = f"{plural(found.kept, 'function')} of {plural(found.solvers, 'solver')}"
    if found.compiled:
        typer.echo(f"compiled {found.compiled} of {kept} in {found.seconds:.0f} s: {found.folder}")
    else:
        typer.echo(f"nothing to compile, {kept} are kept: {found.folder}")
    return EXIT_OK
