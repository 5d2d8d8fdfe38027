"""The command that shows how far a study is while other commands run it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...harness.errors import UserError

if TYPE_CHECKING:
    from ...harness.planning.status import Standing

_TEMPLATE = "watch.html"

#: Of the command.
HELP = "Show how far a study is while it runs, here or elsewhere."


def watch(
    results: Annotated[
        str, typer.Argument(metavar="DIR|URL", help="A results folder, or the URL of one.")
    ],
    every: Annotated[float, typer.Option(help="Seconds between two looks.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Look once.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each look.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a page that reloads itself, too.", show_default=False
        ),
    ] = None,
) -> None:
    if not every > 0:
        raise UserError(f"--every must be more than 0 seconds, not {every:g}")
    from ...harness.interrupts import interrupts_raised
    from ...harness.planning.status import Monitor

    lines = _Lines(in_place=not once)
    with interrupts_raised():
        monitor = Monitor(results)
        while True:
            standing = monitor.look()
            if html is not None:
                _write_page(html, standing, every)
            if as_json:
                typer.echo(json.dumps(vars(standing), ensure_ascii=False))
            else:
                lines.show(standing)
            if once or not standing.left:
                return
            time.sleep(every)


class _Lines:
    """Lines that are redrawn in place on a terminal; elsewhere they are printed as they change."""

    def __init__(self, *, in_place: bool) -> None:
        from rich.console import Console

        self._console = Console()
        self._in_place = in_place and self._console.is_terminal
        self._last: list[str] = []

    def show(self, standing: Standing) -> None:
        """Show how far the study is."""
        from ...harness.words import visible

        lines = [visible(line) for line in standing.in_words()]
        if lines == self._last:
            return
        if self._in_place and self._last:
            self._console.clear()
        self._last = lines
        typer.echo("\n".join(lines))


def _write_page(path: Path, standing: Standing, every: float) -> None:
    from ...data_loaders.atomic import replacing
    from ...harness.storage import storing
    from ..comparison.page import check_target
    from ..templating import environment, page

    check_target(path, [])
    text = page(
        environment().get_template(_TEMPLATE), standing=standing, reload=max(1, round(every))
    )
    with storing(path), replacing(path) as sink:
        sink.write(text.encode())
