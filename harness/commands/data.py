"""The commands about datasets."""

from __future__ import annotations

from typing import Annotated

import typer

from marginbench.harness.commands.output import complain, data_code, help_only, print_table
from marginbench.harness.errors import EXIT_DATA, UserError

_Names = Annotated[list[str] | None, typer.Argument(metavar="NAME...", show_default=False)]


def add(app: typer.Typer) -> None:
    """Add the commands to the application."""
    data = typer.Typer(help="List, fetch and verify datasets.", rich_markup_mode=None)
    data.callback(invoke_without_command=True)(help_only)
    data.command("list", help="List the datasets.")(_list)
    data.command("fetch", help="Fetch datasets into the cache.")(_fetch)
    data.command("verify", help="Check cached datasets; all of them without a name.")(_verify)
    app.add_typer(data, name="data")


def _list() -> None:
    from marginbench.data_loaders import sources

    rows: list[tuple[str, ...]] = [("NAME", "FORMAT", "SUMMARY")]
    rows.extend((source.name, source.format, source.summary) for source in sources())
    print_table(rows)


def _fetch(names: _Names = None) -> int:
    from marginbench.data_loaders import DataError, fetch
    from marginbench.harness.interrupts import interrupts_raised

    code = 0
    for name in _dataset_names(names or []):
        try:
            with interrupts_raised():
                path = fetch(name)
        except DataError as error:
            code = max(code, complain(str(error), data_code(error)))
        else:
            typer.echo(f"{name}: {path}")
    return code


def _verify(names: _Names = None) -> int:
    from marginbench.data_loaders import sources, verify
    from marginbench.harness.words import visible

    code = 0
    for name in _dataset_names(names or [source.name for source in sources()]):
        found = verify(name)
        typer.echo(visible(f"{name}: {found.state}: {found.detail}"))
        if found.state == "damaged":
            code = EXIT_DATA
    return code


def _dataset_names(names: list[str]) -> list[str]:
    """Names in the datasets' own spelling."""
    from marginbench.data_loaders import suggest
    from marginbench.harness.selection import dataset_names, find, split_names

    known = dataset_names()
    wanted = split_names(names)
    if not wanted:
        raise UserError(f"name a dataset{suggest('', known)}")
    found = []
    for name in wanted:
        match = find(name, known)
        if match is None:
            raise UserError(f"unknown dataset {name!r}{suggest(name, known)}")
        found.append(match)
    return found
