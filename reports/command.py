"""The command ``marginbench``: the harness's command line, given the report to write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..harness.cli.app import build_app, run_app
from .commands import compare, export, publish, regressions, reproduce, watch

if TYPE_CHECKING:
    from rich.console import RenderableType

# Columns of the table in a file or a pipe, where nothing says how wide a line may be.
_WIDTH = 110


def main() -> None:
    """Run the command line and exit with its code."""
    app = build_app(write_report, import_report)
    add_commands(app)
    run_app(app)


def add_commands(app: typer.Typer) -> None:
    """Add the commands that read results to the application, in the order of the help."""
    for module in (export, compare, publish, reproduce, watch, regressions):
        name = module.__name__.rpartition(".")[2]
        app.command(name, help=module.HELP)(getattr(module, name))


def write_report(results: Path, command: str, where: str = "", *, quiet: bool = False) -> Path:
    """Write the page as :func:`marginbench.report` does, and print the same results."""
    # Imported here: the other commands write no report.
    import pandas as pd

    from .page import write_page
    from .results import load_results, narrowed
    from .terminal import summary

    # In the many small frames of a report columns of Arrow's strings cost more than of Python's.
    with pd.option_context("mode.string_storage", "python"):
        loaded = load_results(results, write=True)
        if where:
            loaded = narrowed(loaded, where)
        page = write_page(loaded, command)
        if quiet:
            return page.path
        print_tables(summary(loaded))
    if not page.changed:
        print("The report says the same already; its file stays as it is.")
    return page.path


def import_report() -> None:
    """Import what a report needs, which takes seconds."""
    from importlib import import_module

    for module in ("page", "results", "terminal"):
        import_module(f"marginbench.reports.{module}")


def print_tables(tables: RenderableType) -> None:
    """Print tables as wide as the terminal, or in a fixed width where there is none."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH
    # Captured: on a closed pipe rich would end the process with a code of its own.
    with console.capture() as text:
        console.print(tables)
    print(text.get(), end="")


if __name__ == "__main__":
    main()
