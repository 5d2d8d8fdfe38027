"""The commands that run studies and look at their results."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from marginbench.harness.commands.output import complain
from marginbench.harness.errors import EXIT_DATA, UserError

ReportWriter = Callable[[Path, str], Path]


def add(app: typer.Typer, write_report: ReportWriter) -> None:
    """Add the commands to the application.

    Parameters
    ----------
    app : typer.Typer
    write_report : callable
        ``write_report(results_folder, command) -> path`` turns a results folder into a report.
    """
    _add_run(app, write_report)
    _add_report(app, write_report)
    app.command("explain", help="Say why runs would be reused or repeated; nothing is run.")(
        _explain
    )


def _add_run(app: typer.Typer, write_report: ReportWriter) -> None:
    @app.command("run", help="Run a study and write its report; finished runs are not repeated.")
    def run(
        study: Annotated[
            str, typer.Argument(help="A study that ships with marginbench, or a TOML file.")
        ] = "quickstart",
        dataset: Annotated[
            list[str] | None,
            typer.Option(help="Only these tasks or datasets (repeat, or separate by commas)."),
        ] = None,
        solver: Annotated[
            list[str] | None,
            typer.Option(help="Only these solvers; file.py:Class takes one of your own."),
        ] = None,
        seeds: Annotated[int | None, typer.Option(help="Number of seeds.")] = None,
        jobs: Annotated[
            int, typer.Option(help="Runs at the same time; more than one disturbs the timings.")
        ] = 1,
        timeout: Annotated[
            float | None, typer.Option(help="Seconds of solving that each run may take.")
        ] = None,
        where: Annotated[
            str | None,
            typer.Option(help="Only runs for which this holds: 'C == 10 and solver != \"SBP\"'."),
        ] = None,
        out: Annotated[
            Path | None,
            typer.Option(help="Results folder (default: results/STUDY).", show_default=False),
        ] = None,
        retry_failed: Annotated[
            bool, typer.Option("--retry-failed", help="Run again what did not go as planned.")
        ] = False,
    ) -> int:
        if jobs < 1:
            raise UserError(f"--jobs must be at least 1, not {jobs}")
        command = _command_line(study, dataset, solver, seeds, jobs, timeout, out, where)
        from marginbench.harness.running import run as run_study
        from marginbench.harness.words import plural

        summary = run_study(
            study,
            out,
            datasets=dataset,
            solvers=solver,
            seeds=seeds,
            timeout=timeout,
            where=where,
            jobs=jobs,
            retry_failed=retry_failed,
            command=command,
            whole_command=_command_line(study, None, None, None, jobs, timeout, out),
        )
        report = write_report(summary.results, _command_of(summary.results))
        for reason in summary.data_errors:
            complain(reason, EXIT_DATA)
        counts = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
        typer.echo(f"{plural(summary.planned, 'run')}: {counts}")
        if summary.part:
            typer.echo(f"this was a part of the study: {summary.part}")
        typer.echo(f"report: {report}")
        return int(summary.exit_code)


def _add_report(app: typer.Typer, write_report: ReportWriter) -> None:
    @app.command("report", help="Write the report of a results folder again.")
    def report(
        results: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder.")],
    ) -> None:
        typer.echo(f"report: {write_report(results, _command_of(results))}")


def _explain(
    results: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder.")],
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="Only this run: a record's file, the beginning of a key, or TASK/SOLVER/SEED.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    from marginbench.harness import explaining

    found = explaining.explain(results, say=lambda line: typer.echo(line, err=True))
    if run is not None:
        found = explaining.chosen(found, run)
    if as_json:
        typer.echo(explaining.as_json(found))
        return
    for line in explaining.in_words(found):
        typer.echo(line)


def _command_of(results: Path) -> str:
    """The command line that makes the results, from their study.json."""
    from marginbench.harness.description import FILE_NAME, read_description

    found = read_description(results)
    if found is None:
        raise UserError(
            f"{results}: no results here ({FILE_NAME} is missing); 'marginbench run' makes them"
        )
    return str(found.get("command", ""))


def _command_line(
    study: str,
    dataset: list[str] | None,
    solver: list[str] | None,
    seeds: int | None,
    jobs: int,
    timeout: float | None,
    out: Path | None,
    where: str | None = None,
) -> str:
    """The command that makes the same results."""
    words = ["marginbench", "run", study]
    for flag, values in (("--dataset", dataset), ("--solver", solver)):
        for value in values or []:
            words += [flag, value]
    options: list[tuple[str, Any]] = [
        ("--seeds", seeds),
        ("--where", where),
        ("--timeout", timeout),
        ("--out", out),
    ]
    if jobs != 1:
        options.append(("--jobs", jobs))
    for flag, value in options:
        if value is not None:
            words += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)
