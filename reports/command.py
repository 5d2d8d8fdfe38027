"""The command ``marginbench``: the harness's command line, given the report to write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from marginbench.harness.cli import build_app, run_app

if TYPE_CHECKING:
    from rich.console import RenderableType


# Columns of the table in a file or a pipe, where nothing says how wide a line may be.
_WIDTH = 110
_WIDEST = 1000


def main() -> None:
    """Run the command line and exit with its code."""
    run_app(build_app(_report))


def _report(results: Path, command: str) -> Path:
    """Write the page, and print the same results as a table."""
    # Imported here: the other commands write no report.
    from rich.console import Console
    from rich.measure import Measurement

    from marginbench.reports.site import write_report

    page = write_report(results, command)
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH
    tables = _summary(results)
    # Lines that are too long for a terminal wrap; what a table leaves out is lost.
    roomy = console.options.update(max_width=_WIDEST)
    console.width = max(console.width, Measurement.get(console, roomy, tables).minimum + 4)
    # Captured: on a closed pipe rich would end the process with a code of its own.
    with console.capture() as text:
        console.print(tables)
    print(text.get(), end="")
    return page


def _summary(results: Path) -> RenderableType:
    from marginbench.reports.feasibility import is_feasibility, load_feasibility

    if is_feasibility(results):
        from marginbench.reports import feasibility_page

        return feasibility_page.summary(load_feasibility(results))
    from marginbench.reports.results import load_results
    from marginbench.reports.text import summary

    return summary(load_results(results))


if __name__ == "__main__":
    main()
