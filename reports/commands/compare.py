"""The command that compares two results folders, or two solvers of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ...harness.cli.running import results_folder
from ...harness.errors import UserError

if TYPE_CHECKING:
    from ..comparison.result import Comparison

AsText = Annotated[bool, typer.Option("--text", help="Print text (the default).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Html = Annotated[
    Path | None,
    typer.Option(metavar="FILE", dir_okay=False, help="Write a page, too.", show_default=False),
]
#: Of the command.
HELP = (
    "Compare the runs of two results folders, or of two solvers in one; nothing is run. Exit code "
    "1: something is worse beyond its bound; 5: runs failed or are missing in B only, or nothing "
    "could be compared."
)


def compare(
    a: Annotated[
        Path,
        typer.Argument(metavar="A", parser=results_folder, help="A results folder: the baseline."),
    ],
    b: Annotated[
        Path | None,
        typer.Argument(
            metavar="B",
            parser=results_folder,
            help="The results folder to compare with it.",
            show_default=False,
        ),
    ] = None,
    solver: Annotated[str | None, typer.Option(help="Only this solver.")] = None,
    against: Annotated[
        str | None, typer.Option(help="The solver that is its baseline, in A.")
    ] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            help="An accepted change, such as evals=1.05, cpu=1.2, error=0.5pt or wall=off "
            "(repeat, or separate by commas)."
        ),
    ] = None,
    as_text: AsText = False,
    as_json: AsJson = False,
    html: Html = None,
    all_rows: Annotated[
        bool, typer.Option("--all", help="Print also the values without a change.")
    ] = False,
) -> None:
    if as_text and as_json:
        raise UserError("--text and --json are two forms of the same output; give one of them")
    from ..comparison.studies import compare

    comparison = compare(a, b, solver=solver, against=against, bounds=bound or ())
    show(comparison, html, as_json=as_json, all_rows=all_rows)


def show(comparison: Comparison, html: Path | None, *, as_json: bool, all_rows: bool) -> NoReturn:
    """Print a comparison, write its page if there is a place for one, and exit with its code."""
    from rich.console import Group

    from ..command import print_tables
    from ..comparison.report import in_words

    if html is not None:
        comparison.write_page(html)
    if as_json:
        typer.echo(comparison.to_json())
    else:
        print_tables(Group(*in_words(comparison, all_rows=all_rows)))
    if html is not None:
        typer.echo(f"page: {html}", err=as_json)
    raise typer.Exit(comparison.exit_code)
