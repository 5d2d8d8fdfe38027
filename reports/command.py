"""The command ``marginbench``: the harness's command line, given the report to write."""

from __future__ import annotations

from pathlib import Path

from harness.cli import build_app, run_app


def main() -> None:
    """Run the command line and exit with its code."""
    run_app(build_app(_report))


def _report(results: Path, command: str) -> Path:
    """Write the page, and print the same results as a table."""
    # Imported here: the other commands write no report.
    from rich.console import Console

    from reports.results import load_results
    from reports.site import write_report
    from reports.text import summary

    page = write_report(results, command)
    console = Console()
    # Captured: on a closed pipe rich would end the process with a code of its own.
    with console.capture() as text:
        console.print(summary(load_results(results)))
    print(text.get(), end="")
    return page


if __name__ == "__main__":
    main()
