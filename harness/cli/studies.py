"""The commands about studies."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from .output import Json, help_only, show

if TYPE_CHECKING:
    from ..planning.report import Overview

_Study = Annotated[str, typer.Argument(help="A study that ships with marginbench, or a TOML file.")]

_TEMPLATE = """\
# Every solver is run on every task with every seed. To run it: marginbench run {name}.toml
# docs/study-files.md explains all keys; "marginbench study show {name}.toml" lists the runs.
name = "{name}"
title = "SMO and Pegasos on digits"
seeds = 3                 # solvers that draw nothing, such as SMO, run once

[budget]
timeout = 30.0            # seconds of solving for each run
memory = 4096.0           # MB for each run

# A list makes a grid: these are two tasks, "digits, C=1" and "digits, C=10".
# "marginbench data list" lists the datasets.
[[task]]
dataset = "digits"
kernel = "rbf"
gamma = 0.1
C = [1, 10]

# "marginbench solvers" lists the solvers. Your own: name = "my_solver.py:MySolver".
[[solver]]
name = "SMO"

[[solver]]
name = "Pegasos"
params = {{ max_epochs = [5, 20] }}
"""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


study = typer.Typer(help="Begin, show and check study files.", rich_markup_mode=None)
study.callback(invoke_without_command=True)(help_only)


@study.command("new", help="Write NAME.toml, a small study to begin with.")
def _new(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Names the study and its file.", show_default=False),
    ],
) -> None:
    from ..storage import storing

    plain = name.removesuffix(".toml")
    if not _NAME.fullmatch(plain) or len(plain) > 100:
        raise UserError(
            f"{name!r} is no name for a study: it may have up to 100 letters, digits, '.', '_' and "
            "'-', none of the last three first"
        )
    path = Path(f"{plain}.toml")
    with storing(path):
        try:
            file = path.open("x", encoding="utf-8")
        except FileExistsError:
            raise UserError(f"{path} exists and is left as it is; choose another name") from None
        with file:
            file.write(_TEMPLATE.format(name=plain))
    typer.echo(f"{path} is written; run it: marginbench run {path}")


@study.command("show", help="List the tasks, solvers and runs of a study; nothing is run.")
def _show(study: _Study, as_json: Json = False) -> None:
    from ..words import visible

    shown = _overview(study)
    show(shown.as_dict(), map(visible, shown.lines()), as_json=as_json)


@study.command("validate", help="Say what is wrong with a study file, or that it is ok.")
def _validate(file: _Study, as_json: Json = False) -> None:
    shown = _overview(file)
    document = {"ok": True, "size": shown.size, "skips": list(shown.skips)}
    show(document, [f"ok: {shown.size}", *shown.skips], as_json=as_json)


def _overview(file: str) -> Overview:
    from ..execution.local import one_worker
    from ..planning.report import overview
    from ..study.toml import load_study

    with one_worker() as worker:
        return overview(load_study(file), worker, partial(typer.echo, err=True))
