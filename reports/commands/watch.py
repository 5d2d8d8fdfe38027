"""The command that shows how far a study is while other commands run it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from ...harness.errors import UserError

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
            metavar="FILE",
            dir_okay=False,
            help="Write a page that reloads itself, too.",
            show_default=False,
        ),
    ] = None,
) -> None:
    if not every > 0:
        raise UserError(f"--every must be more than 0 seconds, not {every:g}")
    from rich.console import Console

    from ...harness.interrupts import interrupts_raised
    from ...harness.planning.status import Monitor
    from ...harness.words import visible

    in_place, last = not once and Console().is_terminal, ""
    with interrupts_raised():
        monitor = Monitor(results)
        while True:
            standing = monitor.look()
            if html is not None:
                from ..templating import environment, page, write_page

                shown = {"standing": standing, "reload": max(1, round(every))}
                write_page(html, page(environment().get_template("watch.html"), **shown))
            text = "\n".join(map(visible, standing.in_words()))
            if as_json:
                typer.echo(json.dumps(vars(standing), ensure_ascii=False))
            elif text != last:
                if last and in_place:
                    Console().clear()
                typer.echo(text)
                last = text
            if once or not standing.left:
                return
            time.sleep(every)
