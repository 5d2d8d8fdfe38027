"""The commands about solvers: list, describe, compile, start and check them."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import EXIT_OK, EXIT_RUNS, SolverError, UserError
from .output import complain, help_only, print_table

if TYPE_CHECKING:
    from ..jobs import Executor
    from ..planning.preflight import SolverInfo

# Traits that the list shows.
_SUPPORTED = ("supports_bias", "supports_no_bias", "supports_sparse")

#: Commands of the application itself.
commands = typer.Typer()
new = typer.Typer(help="Start a solver of your own.", rich_markup_mode=None)
new.callback(invoke_without_command=True)(help_only)


@commands.command("solvers", help="List the solvers that studies can name.")
def _solvers(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    listed = listed_solvers()
    if as_json:
        typer.echo(json.dumps(listed, indent=2))
    else:
        rows: list[tuple[str, ...]] = [("NAME", "STUDIES", "BIAS", "NO BIAS", "SPARSE", "SUMMARY")]
        for item in listed:
            kinds, supports = item["kinds"], item["supports"]
            # Nothing is known of a class that was not imported.
            flags = ["?"] * 3
            if supports is not None:
                flags = ["yes" if supports[name] else "-" for name in _SUPPORTED]
            rows.append((item["name"], ", ".join(kinds or "?"), *flags, item["summary"]))
        print_table(rows)


def listed_solvers() -> list[dict[str, Any]]:
    """The solvers that studies can name.

    Solvers from elsewhere are not imported: of their ``kinds`` and ``supports`` nothing is known.
    """
    from ...solvers.registration import entries, missing_package, registry
    from ..imports import scientific_imports
    from ..loading import offers
    from ..study.model import KINDS
    from ..words import visible

    with scientific_imports():
        classes = {
            name: cls for kind in KINDS for name, cls in registry(kind, missing=True).items()
        }
    listed: list[dict[str, Any]] = []
    for name, cls in classes.items():
        package = missing_package(cls)
        needs = f" Needs {package}, which is not installed." if package else ""
        listed.append(
            {
                "name": name,
                "kinds": entries()[name].kinds,
                "target": f"{cls.__module__}:{name}",
                "distribution": "marginbench",
                "supports": {flag: bool(getattr(cls, flag, False)) for flag in _SUPPORTED},
                "summary": visible((cls.__doc__ or "").strip().partition("\n")[0] + needs),
            }
        )
    for offer in offers():
        listed.append(
            {
                "name": offer.name,
                "kinds": None,
                "target": offer.target,
                "distribution": offer.distribution,
                "supports": None,
                "summary": f"{offer.target}, from {offer.distribution}",
            }
        )
    return listed


@commands.command("solver", help="Describe a solver: its parameters, traits and source.")
def _solver(
    name: Annotated[
        str, typer.Argument(help="The name of a known solver, file.py:Class or module:Class.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    from ..execution.local import one_worker
    from ..words import visible

    with one_worker() as worker:
        kinds = {kind: _plain(info) for kind, info in _described(name, worker).items()}
    if as_json:
        typer.echo(json.dumps(kinds, indent=2))
        return
    first = next(iter(kinds.values()))
    rows: list[tuple[str, ...]] = [("studies", ", ".join(kinds))]
    rows += [("package", package) for package in [_origin(name)] if package]
    rows += [(key, visible(first[key])) for key in ("class", "source", "version")]
    for facts in kinds.values():
        rows += [(trait, visible(repr(value))) for trait, value in facts["traits"].items()]
    parameters: list[tuple[str, ...]] = [
        (f"  {key}", visible(repr(value))) for key, value in first["parameters"].items()
    ]
    typer.echo(first["summary"])
    print_table(rows)
    typer.echo("parameters:")
    print_table(parameters or [("  none",)])
    if first["citation"]:
        typer.echo(f"papers:\n{first['citation']}")


def _described(name: str, worker: Executor) -> dict[str, SolverInfo]:
    """The description of a solver's class for each kind of studies that takes it, from a worker."""
    from ...solvers.registration import entries
    from ..planning.preflight import described_solvers
    from ..study.model import (
        KINDS,
        Budget,
        SolverEntry,
        find,
        is_foreign,
        resolve_solver_name,
        run_limits,
    )

    infos: dict[str, SolverInfo] = {}
    problem: SolverError | None = None
    registered = find(name, entries())
    wanted = [
        kind
        for kind in KINDS
        if is_foreign(name) or registered is None or kind in entries()[registered].kinds
    ]
    for kind in wanted or KINDS[:1]:
        entry = SolverEntry(name=resolve_solver_name(name, kind), label="solver")
        try:
            (infos[kind],) = described_solvers(
                [entry], kind, run_limits(Budget()), worker, lambda line: None
            ).values()
        except SolverError as error:
            problem = problem or error
    if not infos:
        assert problem is not None
        raise problem
    return infos


def _origin(name: str) -> str:
    """The package that a solver of this name comes from; empty for a file or a module."""
    from ...solvers.registration import entries
    from ..loading import offered
    from ..study.model import find, is_foreign

    if is_foreign(name):
        return ""
    if find(name, entries()) is not None:
        return "marginbench"
    offer = offered(name)
    return "" if offer is None else offer.distribution


def _plain(info: SolverInfo) -> dict[str, Any]:
    """A solver as JSON values; what JSON lacks goes by its ``repr``."""
    defaults = {name: _plain_value(value) for name, value in info.defaults.items()}
    return {
        "class": info.shown,
        "summary": info.summary,
        "parameters": {**dict.fromkeys(info.required, "required"), **defaults},
        "traits": dict(info.traits),
        "source": info.defined_in,
        "version": info.version,
        "citation": info.citation,
    }


def _plain_value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, bool | int | float | str | None) else repr(value)


@new.command("solver", help="Write a working solver and its tests into this folder.")
def _new(
    name: Annotated[
        str, typer.Argument(help="Its name, such as MySolver; the file is my_solver.py.")
    ],
) -> None:
    from ..conformance.scaffold import names_of, write_solver

    names = names_of(name, Path.cwd())
    solver, tests = write_solver(names, Path())
    typer.echo(f"wrote {solver} and {tests}; next:")
    for command in (
        f"marginbench check {names.solver}",
        f"marginbench run --solver {names.solver} --solver SMO",
        f"python -m pip install pytest && python -m pytest {tests}",
    ):
        typer.echo(f"  {command}")


@commands.command("check", help="Check a solver of your own against the contract.")
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
    from ..conformance.running import check_solver
    from ..planning.plan import kind_named
    from ..study.model import resolve_solver_name

    if not 0 < timeout < float("inf"):
        raise UserError(f"--timeout must be a number of seconds > 0, not {timeout:g}")
    kinds = _kinds_of(solver) if kind is None else (kind_named(kind).name,)
    name = resolve_solver_name(solver, kinds[0])
    findings = []
    for finding in check_solver(name, kinds, timeout=timeout):
        findings.append(finding)
        if not as_json:
            typer.echo(f"{finding.verdict:<14}  {finding.check:<15}  {finding.detail}".rstrip())
    verdicts = Counter(finding.verdict for finding in findings)
    if as_json:
        listed = [asdict(finding) for finding in findings]
        typer.echo(json.dumps({"solver": solver, "checks": listed}, indent=2))
    else:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        typer.echo(f"{len(findings)} checks: {counts}")
    return EXIT_RUNS if verdicts["fail"] else EXIT_OK


def _kinds_of(solver: str) -> tuple[str, ...]:
    """The kinds of studies that a registered solver is for; all of them for any other."""
    from ...solvers.registration import entries
    from ..study.model import KINDS, find

    registered = entries()
    name = find(solver, registered)
    return KINDS if name is None else registered[name].kinds


@commands.command("warm", help="Compile what studies need, so that no first run waits for it.")
def _warm(
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes that compile at the same time.", show_default="all cores"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    from ..execution import warming
    from ..execution.local import check_jobs
    from ..execution.progress import choose_progress
    from ..words import plural

    jobs = (os.cpu_count() or 1) if jobs is None else jobs
    check_jobs(jobs)
    try:
        warmed = warming.warm(jobs, None if as_json else choose_progress(jobs))
    except warming.NotKeptError as error:
        # Studies run all the same: this command has only nothing to do for them.
        return complain(str(error), EXIT_OK)
    if warmed.cut_short:
        cut = f"{plural(warmed.cut_short, 'run')} ended before everything was compiled"
        complain(f"{cut}; run the command again", EXIT_OK)
    if as_json:
        typer.echo(json.dumps(asdict(warmed), default=str))
        return EXIT_OK
    kept = f"{plural(warmed.kept, 'function')} of {plural(warmed.solvers, 'solver')}"
    if warmed.compiled:
        typer.echo(
            f"compiled {warmed.compiled} of {kept} in {warmed.seconds:.0f} s: {warmed.folder}"
        )
    else:
        typer.echo(f"nothing to compile, {kept} are kept: {warmed.folder}")
    return EXIT_OK
