"""The commands about solvers: list and describe them, start and check one of your own."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from marginbench.harness.commands.output import help_only, print_table
from marginbench.harness.errors import EXIT_OK, EXIT_RUNS, UserError


def add(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("solvers", help="List the solvers that studies can name.")(_solvers)
    new = typer.Typer(help="Start a solver of your own.", rich_markup_mode=None)
    new.callback(invoke_without_command=True)(help_only)
    new.command("solver", help="Write a working solver and its tests into this folder.")(_new)
    app.add_typer(new, name="new")
    app.command("check", help="Check a solver of your own against the contract.")(_check)


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


def _check(
    solver: Annotated[
        str, typer.Argument(help="file.py:Class, module:Class or the name of a known solver.")
    ],
    kind: Annotated[
        str | None,
        typer.Option(help="Check it for studies of this kind: svm or feasibility."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that each check may take.")] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    from marginbench.harness.checking.running import check_solver
    from marginbench.harness.kinds import kind_named
    from marginbench.harness.selection import resolve_solver_name

    if not 0 < timeout < float("inf"):
        raise UserError(f"--timeout must be a number of seconds > 0, not {timeout:g}")
    chosen = kind_named(kind or _kind_of(solver)).name
    name = resolve_solver_name(solver, chosen)
    findings = []
    for found in check_solver(name, chosen, timeout=timeout):
        findings.append(found)
        if not as_json:
            typer.echo(f"{found.verdict:<14}  {found.check:<15}  {found.detail}".rstrip())
    verdicts = Counter(found.verdict for found in findings)
    if as_json:
        listed = [asdict(found) for found in findings]
        typer.echo(json.dumps({"solver": solver, "kind": chosen, "checks": listed}, indent=2))
    else:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        typer.echo(f"{len(findings)} checks: {counts}")
    return EXIT_RUNS if verdicts["fail"] else EXIT_OK


def _kind_of(solver: str) -> str:
    """The kind of studies that a solver is for: a registered one says it, others are for "svm"."""
    from marginbench.harness.selection import find
    from marginbench.solvers.registration import entries

    known = entries()
    name = find(solver, known)
    return "svm" if name is None else known[name].kinds[0]
