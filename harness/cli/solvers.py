"""The commands about solvers: list, describe, compile, start and check them."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import EXIT_OK, EXIT_RUNS, SolverError, UserError
from .output import Json, complain, help_only, in_columns, show

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
def _solvers(as_json: Json = False) -> None:
    from ...solvers.registration import entries, missing_package, registry
    from ..imports import scientific_imports
    from ..study.model import KINDS
    from ..words import visible

    with scientific_imports():
        classes = {
            name: cls for kind in KINDS for name, cls in registry(kind, missing=True).items()
        }
    document = list[dict[str, Any]]()
    rows: list[tuple[str, ...]] = [("NAME", "STUDIES", "BIAS", "NO BIAS", "SPARSE", "SUMMARY")]
    for name, cls in classes.items():
        package, kinds = missing_package(cls), entries()[name].kinds
        needs = f" Needs {package}, which is not installed." if package else ""
        summary = visible((cls.__doc__ or "").strip().partition("\n")[0] + needs)
        supports = {flag: bool(getattr(cls, flag, False)) for flag in _SUPPORTED}
        item = {"name": name, "kinds": kinds, "target": f"{cls.__module__}:{name}"}
        document.append(item | {"supports": supports, "summary": summary})
        flags = ("yes" if has else "-" for has in supports.values())
        rows.append((name, ", ".join(kinds), *flags, summary))
    show(document, in_columns(rows), as_json=as_json)


@commands.command("solver", help="Describe a solver: its parameters, traits and source.")
def _solver(
    name: Annotated[
        str, typer.Argument(help="The name of a known solver, file.py:Class or module:Class.")
    ],
    as_json: Json = False,
) -> None:
    from ..execution.local import one_worker
    from ..words import visible

    with one_worker() as worker:
        kinds = {kind: _plain(info) for kind, info in _described(name, worker).items()}
    first = next(iter(kinds.values()))
    rows = [("studies", ", ".join(kinds))]
    rows += [(key, visible(first[key])) for key in ("class", "source", "version")]
    for facts in kinds.values():
        rows += [(trait, visible(repr(value))) for trait, value in facts["traits"].items()]
    parameters = [(f"  {key}", visible(repr(value))) for key, value in first["parameters"].items()]
    lines = [first["summary"], *in_columns([*rows])]
    lines += ["parameters:", *(in_columns([*parameters]) if parameters else ["  none"])]
    if first["citation"]:
        lines.append(f"papers:\n{first['citation']}")
    show(kinds, lines, as_json=as_json)


def _described(name: str, worker: Executor) -> dict[str, SolverInfo]:
    """The description of a solver's class for each kind of studies that takes it, from a worker."""
    from ..planning.preflight import described_solvers
    from ..study.model import Budget, SolverEntry, resolve_solver_name, run_limits

    infos: dict[str, SolverInfo] = {}
    problems = []
    for kind in _kinds_of(name):
        entry = SolverEntry(name=resolve_solver_name(name, kind), label="solver")
        try:
            (infos[kind],) = described_solvers(
                [entry], kind, run_limits(Budget()), worker, lambda line: None
            ).values()
        except SolverError as error:
            problems.append(error)
    if not infos:
        raise problems[0]
    return infos


def _kinds_of(solver: str) -> tuple[str, ...]:
    """The kinds of studies that a registered solver is for; all of them for any other."""
    from ...solvers.registration import entries
    from ..study.model import KINDS, find

    name = find(solver, entries())
    return KINDS if name is None else entries()[name].kinds


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
    from ..conformance.scaffold import write_solver

    solver, tests = write_solver(name, Path())
    typer.echo(f"wrote {solver} and {tests}; next:")
    for command in (
        f"marginbench check {solver}:{name}",
        f"marginbench run --solver {solver}:{name} --solver SMO",
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
    as_json: Json = False,
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
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    document = {"solver": solver, "checks": [asdict(finding) for finding in findings]}
    show(document, [f"{len(findings)} checks: {counts}"], as_json=as_json)
    return EXIT_RUNS if verdicts["fail"] else EXIT_OK


@commands.command("warm", help="Compile what studies need, so that no first run waits for it.")
def _warm(
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes that compile at the same time.", show_default="all cores"),
    ] = None,
    as_json: Json = False,
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
    kept = f"{plural(warmed.kept, 'function')} of {plural(warmed.solvers, 'solver')}"
    line = f"nothing to compile, {kept} are kept: {warmed.folder}"
    if warmed.compiled:
        line = f"compiled {warmed.compiled} of {kept} in {warmed.seconds:.0f} s: {warmed.folder}"
    show(asdict(warmed), [line], as_json=as_json)
    return EXIT_OK
