"""Commands that read results: a module for each, with its function and its help.

Heavy modules are imported by the commands when they run.
"""

from __future__ import annotations

import typer

from . import compare, export, publish, regressions, reproduce, watch


def add_commands(app: typer.Typer) -> None:
    """Add all of them to the application, in the order of the help."""
    for module in (export, compare, publish, reproduce, watch, regressions):
        name = module.__name__.rpartition(".")[2]
        app.command(name, help=module.HELP)(getattr(module, name))
