"""What commands print: complaints on the error stream, tables on the output."""

from __future__ import annotations

import contextlib
import shutil
import sys
import textwrap
from collections.abc import Iterable

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
    """Print rows of cells in columns; in a terminal, the last column in lines that fit."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    print_lines(lines, indent=sum(widths[:-1]) + 2 * len(widths[:-1]))


def print_lines(lines: Iterable[str], *, indent: int = 4) -> None:
    """Print lines; a terminal gets those that are too long for it in several, indented."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    margin = " " * min(indent, columns - 20)
    for line in lines:
        typer.echo(textwrap.fill(line, columns, subsequent_indent=margin, break_on_hyphens=False))
