"""Commands that read results: each module has ``add(app)``, which gives the application one.

Heavy modules are imported by the commands when they run.
"""

from __future__ import annotations

from typing import Protocol

import typer

from . import compare, export, publish, regressions, reproduce, watch


class _Command(Protocol):
    def add(self, app: typer.Typer) -> None: ...


#: In the order of the help.
COMMANDS: tuple[_Command, ...] = (export, compare, publish, reproduce, watch, regressions)
