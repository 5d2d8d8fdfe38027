"""What commands print: complaints on the error stream, tables on the output."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from ..errors import EXIT_DATA, EXIT_STORAGE

#: The option of most commands.
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def complain(message: str, code: int) -> int:
    """Print one line on the error stream; the exit code, for the caller to return."""
    from ..words import visible

    # A message that cannot be printed either leaves the exit code.
    with contextlib.suppress(OSError):
        print("marginbench: " + visible(message), file=sys.stderr, flush=True)
    return code


def data_code(error: Exception) -> int:
    """The exit code for an error of data_loaders; 0 for any other."""
    # Only what is imported can have raised it.
    module = sys.modules.get("marginbench.data_loaders.errors")
    if module is None or not isinstance(error, module.DataError):
        return 0
    return EXIT_STORAGE if isinstance(error, module.CacheError) else EXIT_DATA


def help_only(context: typer.Context) -> None:
    """Print the help of a group of commands without a subcommand."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def show(document: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print what a command has found: as JSON, or in lines for people."""
    if as_json:
        typer.echo(json.dumps(document, indent=2, default=str))
        return
    for line in lines:
        typer.echo(_fitting(line, indent=4))


def in_columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a table with these rows of cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pairs = (zip(row, widths, strict=True) for row in rows)
    lines = ("  ".join(cell.ljust(width) for cell, width in row).rstrip() for row in pairs)
    return [_fitting(line, indent=sum(widths[:-1]) + 2 * len(widths[:-1])) for line in lines]


def _fitting(text: str, *, indent: int) -> str:
    """The text; in a terminal, lines that are too long for it in several, indented."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    margin = " " * min(indent, columns - 20)
    return "\n".join(
        textwrap.fill(line, columns, subsequent_indent=margin, break_on_hyphens=False)
        for line in text.splitlines()
    )
