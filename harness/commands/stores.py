"""Results folders that a command line gives by URLs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marginbench.harness.remote.urls import local_folder


def results_folder(text: str) -> Path:
    """The results folder that an argument names; of a URL its mirror, brought up to date."""
    # A function of its own: its name is that of the argument in the help.
    return local_folder(text)


def pushed(page: Path) -> str:
    """Where a page is that has just been written: that of a mirror is pushed to its store."""
    from marginbench.harness.remote.opening import pushed_page

    return pushed_page(page)


#: An argument that is a results folder or a URL.
Results = Annotated[
    Path,
    typer.Argument(
        metavar="DIR|URL", parser=results_folder, help="A results folder, or the URL of one."
    ),
]
