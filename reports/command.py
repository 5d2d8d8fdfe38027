"""The command ``marginbench``: the harness's command line, given the report to write."""

from __future__ import annotations

from harness.cli import build_app, run_app
from reports.site import write_report


def main() -> None:
    """Run the command line and exit with its code."""
    run_app(build_app(write_report))


if __name__ == "__main__":
    main()
