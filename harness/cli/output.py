"""What commands print: complaints on the error stream, tables on the output."""

from __future__ import annotations

import contextlib
import sys

import typer

from ..errors import EXIT_DATA, EXIT_STORAGE


def complain(message: str, code: int) -> int:
    """Print one line on the error stream; the exit code, for the caller to return."""
    from ..words import visible

    # A message that cannot be printed either leaves the exit code.
    with contextlib.suppress(OSError):
        print("marginbench: " + visible(message), file=sys.stderr, flush=True)
    return code


def data_code(error: Exception) -> int:
    """The exit code for an error of data_loaders."""
    from ...data_loaders.errors import CacheError

    return EXIT_STORAGE if isinstance(error, CacheError) else EXIT_DATA


def help_only(context: typer.Context) -> None:
    """Print the help of a group of commands without a subcommand."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Print rows of cells in columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())
