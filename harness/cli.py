"""The command line. Heavy modules are imported by the commands that need them."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from marginbench.harness.errors import (
    EXIT_DATA,
    EXIT_INTERRUPTED,
    EXIT_STORAGE,
    EXIT_USAGE,
    UserError,
)

ReportWriter = Callable[[Path, str], Path]

# What a shell reports for a command that wrote into a closed pipe: 128 + SIGPIPE.
EXIT_PIPE = 141

_Names = Annotated[list[str] | None, typer.Argument(metavar="NAME...", show_default=False)]


def build_app(write_report: ReportWriter) -> typer.Typer:
    """The application with all its commands.

    Parameters
    ----------
    write_report : callable
        ``write_report(results_folder, command) -> path`` turns a results folder into a report.
    """
    app = typer.Typer(
        name="marginbench",
        help="Compare large-margin solvers fairly: on kernel evaluations, time and accuracy.",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        add_completion=False,
    )
    app.callback(invoke_without_command=True)(_main)
    _add_run(app, write_report)
    _add_report(app, write_report)
    app.command("explain", help="Say why runs would be reused or repeated; nothing is run.")(
        _explain
    )
    app.command("solvers", help="List the solvers that studies can name.")(_solvers)
    data = typer.Typer(help="List, fetch and verify datasets.", rich_markup_mode=None)
    data.callback(invoke_without_command=True)(_help_only)
    data.command("list", help="List the datasets.")(_data_list)
    data.command("fetch", help="Fetch datasets into the cache.")(_data_fetch)
    data.command("verify", help="Check cached datasets; all of them without a name.")(_data_verify)
    app.add_typer(data, name="data")
    return app


def run_app(app: typer.Typer, arguments: list[str] | None = None) -> NoReturn:
    """Run the application and exit; a user's mistake becomes one line, not a traceback.

    Parameters
    ----------
    app : typer.Typer
    arguments : list of str, optional
        Those of the process by default.
    """
    _open_closed_streams()
    try:
        code = _run(app, sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has enough.
        code = EXIT_PIPE
    except OSError as error:
        code = _complain_of_storage(error)
    _drop_what_cannot_be_printed()
    sys.exit(code)


def _run(app: typer.Typer, arguments: list[str]) -> int:
    # Not app(), which has exit codes of its own for Ctrl-C and for closed pipes.
    command = typer.main.get_command(app)
    try:
        with command.make_context("marginbench", list(arguments)) as context:
            result = command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except UserError as error:
        return _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", EXIT_INTERRUPTED)
    except OSError:
        raise
    except Exception as error:  # what remains is sorted by its type here, bugs are raised again
        if hasattr(error, "format_message"):  # the command line itself: click's own errors
            at = getattr(error, "ctx", None)
            where = f" (see '{at.command_path} --help')" if at is not None else ""
            return _complain(error.format_message().rstrip(".") + where, EXIT_USAGE)
        if _is_data_error(error):
            return _complain(str(error), _data_code(error))
        raise
    return result if isinstance(result, int) else 0


def _complain(message: str, code: int) -> int:
    from marginbench.harness.words import visible

    # A message that cannot be printed either leaves the exit code.
    with contextlib.suppress(OSError):
        print("marginbench: " + visible(message), file=sys.stderr, flush=True)
    return code


def _complain_of_storage(error: OSError) -> int:
    """A full disk where no code expected it, such as behind the output; other errors are bugs."""
    from marginbench.harness.storage import unforeseen

    known = unforeseen(error)
    if known is None:
        raise error
    return _complain(str(known), known.exit_code)


def _open_closed_streams() -> None:
    """A stream that the shell has closed (``>&-``) must not become the first file opened here."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest that is free; workers inherit it.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _drop_what_cannot_be_printed() -> None:
    """Python writes what is left of the output as it ends, and would complain again."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _is_data_error(error: Exception) -> bool:
    # An error of data_loaders can only come from an imported data_loaders.
    module = sys.modules.get("marginbench.data_loaders")
    return module is not None and isinstance(error, module.DataError)


def _data_code(error: Exception) -> int:
    """The exit code for an error of data_loaders."""
    from marginbench.data_loaders.errors import CacheError

    return EXIT_STORAGE if isinstance(error, CacheError) else EXIT_DATA


def _main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from marginbench.harness.environment import version as installed

        typer.echo(f"marginbench {installed()}")
        raise typer.Exit
    _help_only(context)


def _help_only(context: typer.Context) -> None:
    """Without a subcommand: the help."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


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
        command = _command_line(study, dataset, solver, seeds, jobs, timeout, out)
        from marginbench.harness.running import run as run_study
        from marginbench.harness.words import plural

        summary = run_study(
            study,
            out,
            datasets=dataset,
            solvers=solver,
            seeds=seeds,
            timeout=timeout,
            jobs=jobs,
            retry_failed=retry_failed,
            command=command,
            whole_command=_command_line(study, None, None, None, jobs, timeout, out),
        )
        report = write_report(summary.results, _command_of(summary.results))
        for reason in summary.data_errors:
            _complain(reason, EXIT_DATA)
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
    _print_table(rows)


def _data_list() -> None:
    from marginbench.data_loaders import sources

    rows: list[tuple[str, ...]] = [("NAME", "FORMAT", "SUMMARY")]
    rows.extend((source.name, source.format, source.summary) for source in sources())
    _print_table(rows)


def _data_fetch(names: _Names = None) -> int:
    from marginbench.data_loaders import DataError, fetch
    from marginbench.harness.interrupts import interrupts_raised

    code = 0
    for name in _dataset_names(names or []):
        try:
            with interrupts_raised():
                path = fetch(name)
        except DataError as error:
            code = max(code, _complain(str(error), _data_code(error)))
        else:
            typer.echo(f"{name}: {path}")
    return code


def _data_verify(names: _Names = None) -> int:
    from marginbench.data_loaders import sources, verify
    from marginbench.harness.words import visible

    code = 0
    for name in _dataset_names(names or [source.name for source in sources()]):
        found = verify(name)
        typer.echo(visible(f"{name}: {found.state}: {found.detail}"))
        if found.state == "damaged":
            code = EXIT_DATA
    return code


def _dataset_names(names: list[str]) -> list[str]:
    """Names in the datasets' own spelling."""
    from marginbench.data_loaders import suggest
    from marginbench.harness.selection import dataset_names, find, split_names

    known = dataset_names()
    wanted = split_names(names)
    if not wanted:
        raise UserError(f"name a dataset{suggest('', known)}")
    found = []
    for name in wanted:
        match = find(name, known)
        if match is None:
            raise UserError(f"unknown dataset {name!r}{suggest(name, known)}")
        found.append(match)
    return found


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def _command_line(
    study: str,
    dataset: list[str] | None,
    solver: list[str] | None,
    seeds: int | None,
    jobs: int,
    timeout: float | None,
    out: Path | None,
) -> str:
    """The command that makes the same results."""
    words = ["marginbench", "run", study]
    for flag, values in (("--dataset", dataset), ("--solver", solver)):
        for value in values or []:
            words += [flag, value]
    options: list[tuple[str, Any]] = [("--seeds", seeds), ("--timeout", timeout), ("--out", out)]
    if jobs != 1:
        options.append(("--jobs", jobs))
    for flag, value in options:
        if value is not None:
            words += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)
