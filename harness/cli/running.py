"""The commands that run studies, and those on their results folders."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import EXIT_DATA, EXIT_OK, EXIT_RUNS, InterruptedRunError, UserError, first_line
from ..interrupts import interrupts_raised
from .output import Json, complain, show

if TYPE_CHECKING:
    from ..execution.runner import RunSummary


#: Writes the page of a results folder, made by a command, or of the runs that match ``where``; its
#: path. Unless it is to be ``quiet``, it prints the tables.
ReportWriter = Callable[..., Path]

_Json = Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")]
_Quiet = Annotated[
    bool, typer.Option("--quiet", help="Print nothing but errors and the report's path.")
]


def results_folder(text: str) -> Path:
    """The results folder that an argument names; of a URL its mirror, brought up to date."""
    # A function of its own: its name is that of the argument in the help.
    from ..results.stores import local_folder

    return local_folder(text)


#: An argument that is a results folder or a URL.
Results = Annotated[
    Path,
    typer.Argument(
        metavar="DIR|URL", parser=results_folder, help="A results folder, or the URL of one."
    ),
]


def add(
    app: typer.Typer,
    write_report: ReportWriter,
    import_report: Callable[[], None],
) -> None:
    """Add the commands to the application."""

    @app.command("run", help="Run a study and write its report; finished runs are not repeated.")
    def run(
        study: Annotated[
            str | None,
            typer.Argument(
                help="A study that ships with marginbench, or a TOML file (default: quickstart; if "
                "--dataset names other data, a new study of those data only).",
                show_default=False,
            ),
        ] = None,
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
            str | None,
            typer.Option(
                metavar="DIR|URL",
                help="Results folder (default: results/STUDY), or s3://, gs://, az:// or file://.",
                show_default=False,
            ),
        ] = None,
        retry_failed: Annotated[
            bool, typer.Option("--retry-failed", help="Rerun failed runs.")
        ] = False,
        dry_run: Annotated[
            bool, typer.Option("--dry-run", help="Only say what would be run, and for how long.")
        ] = False,
        quiet: _Quiet = False,
        as_json: _Json = False,
        log_json: Annotated[
            bool, typer.Option("--log-json", help="Write one JSON object per event to stderr.")
        ] = False,
        scheduler: Annotated[
            str | None,
            typer.Option(help="Run on the workers of this Dask scheduler: tcp://HOST:PORT."),
        ] = None,
        cluster: Annotated[
            str | None,
            typer.Option(help="Run on a cluster started by slurm, pbs, lsf, sge or kubernetes."),
        ] = None,
        cluster_options: Annotated[
            Path | None, typer.Option(help="TOML file with options of --cluster.")
        ] = None,
        timing: Annotated[
            bool, typer.Option("--timing", help="Only like machines of a cluster, one run on each.")
        ] = False,
    ) -> int:
        if quiet and log_json:
            raise UserError("--quiet shows nothing while --log-json logs events; give one")
        options: dict[str, Any] = {
            "datasets": dataset,
            "solvers": solver,
            "seeds": seeds,
            "timeout": timeout,
            "where": where,
            "jobs": jobs,
            "retry_failed": retry_failed,
            "quiet": quiet,
        }
        from ..execution import runner

        engine = None
        if timing or (scheduler, cluster, cluster_options) != (None, None, None):
            from ..execution.cluster import chosen_engine

            engine = chosen_engine(scheduler, cluster, cluster_options, timing=timing, jobs=jobs)
        if dry_run:
            if engine is not None:
                engine.check_options()
            shown = runner.preview(study, out, **options)
            line = json.dumps(shown.as_dict())
            typer.echo(line if as_json else "\n".join(shown.lines()))
            return 0
        words: dict[str, Any] = {
            "dataset": dataset,
            "solver": solver,
            "seeds": seeds,
            "where": where,
        }
        words |= {"timeout": timeout, "out": out, "jobs": None if jobs == 1 else jobs}
        options |= {"log_json": log_json, "engine": engine}
        options["command"] = _command_line(study, words)
        options["meanwhile"] = import_report
        try:
            summary = runner.run(study, out, **options)
        except InterruptedRunError as error:
            if error.summary is not None:
                page = _page_of_a_part(error.summary, write_report, quiet=quiet)
                if as_json:
                    _show_json(error.summary, page, error.exit_code)
            raise
        from ..results.stores import PAGE, pushed_page

        written = summary.results / PAGE
        if summary.changed or not _is_current(written):
            command = _command_of(summary.results)
            try:
                with interrupts_raised():
                    written = write_report(summary.results, command, quiet=quiet or as_json)
            except KeyboardInterrupt:
                if as_json:
                    _show_json(summary, None, exit_code=InterruptedRunError.exit_code)
                again = shlex.join(["marginbench", "report", out or str(summary.results)])
                kept = f"interrupted; the results are kept; to write the report: {again}"
                raise InterruptedRunError(kept, summary) from None
            os.utime(written)  # of all that is beside it, also where it says the same as before
        elif not quiet and not as_json:
            typer.echo("nothing new: the report is as it was ('marginbench report' writes it anew)")
        written_to = pushed_page(written)
        for reason in summary.data_errors:
            complain(reason, EXIT_DATA)
        if as_json:
            _show_json(summary, written_to, summary.exit_code)
        elif quiet:
            for line in summary.unexpected:
                complain(line, summary.exit_code)
            typer.echo(written_to)
        else:
            for line in _lines(summary):
                typer.echo(line)
            typer.echo(f"report: {written_to}")
        return int(summary.exit_code)

    @app.command("report", help="Write the report of a results folder again.")
    def report(
        results: Results,
        where: Annotated[
            str,
            typer.Option(
                metavar="EXPR",
                help="Show only runs that match the expression (see run --where).",
                show_default=False,
            ),
        ] = "",
        quiet: _Quiet = False,
        as_json: Json = False,
    ) -> None:
        from ..results.stores import pushed_page

        command = _command_of(results)
        written = write_report(results, command, where=where, quiet=quiet or as_json)
        page = str(pushed_page(written))
        typer.echo(json.dumps({"report": page}) if as_json else f"report: {page}")

    app.command("explain", help="Say why runs would be reused or repeated; nothing is run.")(
        _explain
    )
    app.command("merge", help="Merge results folders of one study, as of several machines.")(_merge)


def _is_current(page: Path) -> bool:
    """Whether a page is of this version and of all the records beside it."""
    from ..environment import version
    from ..results.description import FILE_NAME
    from ..results.journal import FOLDER, segments_in

    inputs = [page.parent / FILE_NAME, *segments_in(page.parent / FOLDER)]
    try:
        made, content = page.stat().st_mtime_ns, page.read_bytes()
        is_newest = all(path.stat().st_mtime_ns < made for path in inputs)
    except FileNotFoundError:
        return False
    return is_newest and f"marginbench {version()}".encode() in content


def _lines(summary: RunSummary) -> Iterator[str]:
    """How the runs ended."""
    from ..words import plural

    counts = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    yield f"{plural(summary.planned, 'run')}: {counts}"
    if summary.part:
        yield f"this was a part of the study: {summary.part}"


def _show_json(summary: RunSummary, report: str | None, exit_code: int) -> None:
    """One JSON object on one line."""
    outcome = {**summary.as_dict(), "report": report, "exit_code": exit_code}
    typer.echo(json.dumps(outcome))


def _page_of_a_part(summary: RunSummary, write_report: ReportWriter, *, quiet: bool) -> str | None:
    """Write the page of the runs that are recorded when the user interrupts; None without any.

    Another Ctrl-C ends the process at once: no failure here may hide how to resume.
    """
    from ..results.stores import pushed_page

    if not summary.statuses:
        return None
    say = partial(typer.echo, err=True)
    if not quiet:
        say("interrupted; writing the report of what is recorded (Ctrl-C again to end at once)")
    try:
        command = _command_of(summary.results)
        page = pushed_page(write_report(summary.results, command, quiet=True))
    except Exception as problem:  # noqa: BLE001 - a bug too: 'report' shows it in full
        say(f"no report: {first_line(problem)}")
        return None
    say(f"report: {page}")
    return page


def _explain(
    results: Results,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="Only this run: the beginning of a key, or TASK/SOLVER/SEED.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    from ..execution.local import one_worker
    from ..planning import report as explaining

    with one_worker() as worker:
        explained = explaining.explain(results, worker, lambda line: typer.echo(line, err=True))
    if run is not None:
        explained = explaining.chosen(explained, run)
    document = [asdict(item) for item in explained]
    show(document, explaining.in_words(explained), as_json=as_json)


def _command_of(results: Path) -> str:
    """The command line that makes the results, from their study.json."""
    from ..results.description import FILE_NAME, read_description

    description = read_description(results)
    if description is None:
        raise UserError(
            f"{results}: no results here ({FILE_NAME} is missing); 'marginbench run' makes them"
        )
    return str(description.get("command", ""))


def _command_line(study: str | None, options: Mapping[str, Any]) -> str:
    """The command that makes the same results."""
    from ..study.grid import short

    words = ["marginbench", "run", *([study] if study else [])]
    for name, values in options.items():
        for value in values if isinstance(values, list) else [values]:
            if value is not None:
                words += [f"--{name}", short(value)]
    return shlex.join(words)


def _merge(
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...", help="Results folders, or URLs of them.", show_default=False
        ),
    ],
    out: Annotated[
        str,
        typer.Option(metavar="DIR|URL", help="A new folder, or one of these.", show_default=False),
    ],
    prefer: Annotated[
        str,
        typer.Option(
            metavar="DIR|newest",
            help="Whose record is kept where two differ.",
            show_default=False,
        ),
    ] = "",
    as_json: _Json = False,
) -> int:
    from ..planning.merging import merge
    from ..results.stores import changeable, local_folder
    from ..words import plural

    sides = {text: local_folder(text) for text in folders}
    preferred = str(sides.get(prefer, prefer))
    with changeable(out) as folder:
        done = merge(list(sides.values()), folder, prefer=preferred)
    code = EXIT_RUNS if done.damaged else EXIT_OK
    for line in done.damaged:
        complain(f"not merged: {line}; run the study in {out} to repeat the run", code)
    agreeing = f"{plural(done.alike, 'run')} in several folders with the same values"
    lines = [
        "{run}: {what}; decided by --prefer ".format_map(each) + prefer for each in done.conflicts
    ]
    lines.append(f"{plural(done.records, 'record')} in {out}: {done.copied} copied; {agreeing}")
    show(vars(done) | {"out": out, "exit_code": code}, lines, as_json=as_json)
    return code
