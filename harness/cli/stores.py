"""Results folders that a command line gives by URLs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from ..results.remote.urls import StoreUrl, is_url, local_folder


def results_folder(text: str) -> Path:
    """The results folder that an argument names; of a URL its mirror, brought up to date."""
    # A function of its own: its name is that of the argument in the help.
    return local_folder(text)


@contextlib.contextmanager
def changeable(text: str, say: Callable[[str], None]) -> Iterator[Path]:
    """The results folder that an argument names, to be changed; of a URL its mirror.

    If the block ends well, what has changed is pushed.
    """
    if not is_url(text):
        yield Path(text)
        return
    from ..results.remote.opening import changing

    with changing(StoreUrl.parsed(text), say) as folder:
        yield folder


def pushed(page: Path) -> str:
    """Where a page is that has just been written: that of a mirror is pushed to its store."""
    return str(page)


#: An argument that is a results folder or a URL.
Results = Annotated[
    Path,
    typer.Argument(
        metavar="DIR|URL", parser=results_folder, help="A results folder, or the URL of one."
    ),
]
