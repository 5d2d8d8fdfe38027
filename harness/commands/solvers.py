"""The commands about solvers: list and describe them, start and check one of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marginbench.harness.commands.output import help_only, print_table


def add(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("solvers", help="List the solvers that studies can name.")(_solvers)
    new = typer.Typer(help="Start a solver of your own.", rich_markup_mode=None)
    new.callback(invoke_without_command=True)(help_only)
    new.command("solver", help="Write a working solver and its tests into this folder.")(_new)
    app.add_typer(new, name="new")


def _solvers() -> None:
    from marginbench.harness.kinds import kind_names
    from marginbench.harness.words import visible
    from marginbench.solvers import registry

    found = {kind: registry(kind) for kind in kind_names()}
    classes = {name: cls for named in found.values() for name, cls in named.items()}
    rows: list[tuple[str, ...]] = [("NAME", "STUDIES", "BIAS", "NO BIAS", "SPARSE", "SUMMARY")]
    for name, cls in classes.items():
        kinds = ", ".join(kind for kind, named in found.items() if name in named)
        flags = ("supports_bias", "supports_no_bias", "supports_sparse")
        supported = ("yes" if getattr(cls, flag, False) else "-" for flag in flags)
        summary = visible((cls.__doc__ or "").strip().partition("\n")[0])
        rows.append((name, kinds, *supported, summary))
    print_table(rows)


def _new(
    name: Annotated[
        str, typer.Argument(help="Its name, such as MySolver; the file is my_solver.py.")
    ],
) -> None:
    from marginbench.harness.scaffold import names_of, write_solver

    names = names_of(name, Path.cwd())
    solver, tests = write_solver(names, Path())
    typer.echo(f"wrote {solver} and {tests}; next:")
    for command in (
        f"python -m pytest {tests}",
        f"marginbench check {names.solver}",
        f"marginbench run --solver {names.solver} --solver SMO",
    ):
        typer.echo(f"  {command}")
