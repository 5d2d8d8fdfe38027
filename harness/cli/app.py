"""The command line. Heavy modules are imported by the commands that need them."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer

from ..errors import EXIT_INTERRUPTED, EXIT_USAGE, UserError
from . import data, running, solvers, studies
from .doctor import doctor
from .output import complain, data_code, help_only
from .running import ReportWriter

# What a shell sets to ask for the words that may come next.
_COMPLETE = "_MARGINBENCH_COMPLETE"
# What a shell reports for a command that wrote into a closed pipe: 128 + SIGPIPE.
EXIT_PIPE = 141
#: What follows "marginbench" and the name of the command.
_EXAMPLES = {
    "run": (
        "",
        "sbp12-adult --solver SBP,SMO --seeds 5",
        "--dataset bank.csv --solver SMO,my_solver.py:MySolver",
        "my-study.toml --where 'C == 10' --timeout 30",
    ),
    "report": ("results/quickstart", "results/quickstart --where 'solver == \"SMO\"'"),
    "explain": ("results/quickstart",),
    "merge": ("results/here results/there --out results/all",),
    "solvers": ("",),
    "solver": ("SMO", "my_solver.py:MySolver --json"),
    "check": ("my_solver.py:MySolver",),
    "warm": ("--jobs 2",),
    "doctor": ("",),
    "export": ("results/quickstart --list", "results/quickstart --out paper --format pdf,tex"),
    "compare": ("results/before results/after", "results/before results/after --solver SMO --json"),
    "publish": ("results/* --out site",),
    "reproduce": ("sbp12 --dry-run", "bsca18 --only table1"),
    "watch": ("results/quickstart",),
    "regressions": ("", "main HEAD --text"),
    "study new": ("my-study",),
    "study show": ("quickstart",),
    "study validate": ("my-study.toml",),
    "new solver": ("MySolver",),
    "data list": ("",),
    "data fetch": ("adult,ijcnn1",),
    "data verify": ("",),
    "data import": ("bank bank.csv --option target=y",),
    "data info": ("adult",),
    "data remove": ("bank",),
}


def build_app(
    write_report: ReportWriter,
    import_report: Callable[[], None] = lambda: None,
) -> typer.Typer:
    """The application; ``import_report`` imports what ``write_report`` needs, meanwhile."""
    app = typer.Typer(
        name="marginbench",
        help="Compare large-margin solvers fairly: on kernel evaluations, time and accuracy.",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(_main)
    running.add(app, write_report, import_report)
    app.registered_commands += solvers.commands.registered_commands
    app.add_typer(studies.study, name="study")
    app.add_typer(solvers.new, name="new")
    app.add_typer(data.data, name="data")
    app.command("doctor", help="Say whether this machine is fit for measurements.")(doctor)
    return app


def run_app(app: typer.Typer, arguments: list[str] | None = None) -> NoReturn:
    """Run the application and exit; a user's mistake becomes one line, not a traceback."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(app, sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has enough.
        code = EXIT_PIPE
    except OSError as error:
        # A full disk where no code expected it, such as behind the output; other errors are bugs.
        from ..storage import unforeseen

        expected = unforeseen(error)
        if expected is None:
            raise
        code = complain(str(expected), expected.exit_code)
    _drop_what_cannot_be_printed()
    sys.exit(code)


def _run(app: typer.Typer, arguments: list[str]) -> int:
    command = typer.main.get_command(app)
    add_examples(command)
    if _COMPLETE in os.environ:
        command(prog_name="marginbench")
    # Not command(), which has exit codes of its own for Ctrl-C and for closed pipes.
    try:
        with command.make_context("marginbench", list(arguments)) as context:
            result = command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except UserError as error:
        for line in error.lines:
            complain(line, error.exit_code)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return complain("interrupted", EXIT_INTERRUPTED)
    except OSError:
        raise
    except Exception as error:  # what remains is sorted by its type here, bugs are raised again
        if hasattr(error, "format_message"):  # the command line itself: click's own errors
            at = getattr(error, "ctx", None)
            where = f" (see '{at.command_path} --help')" if at is not None else ""
            return complain(error.format_message().rstrip(".") + where, EXIT_USAGE)
        if code := data_code(error):
            return complain(str(error), code)
        raise
    return result if isinstance(result, int) else 0


def add_examples(command: Any, words: str = "") -> None:
    """Give each command its examples; KeyError for one that has none."""
    below = getattr(command, "commands", {})
    for name, each in below.items():
        add_examples(each, f"{words} {name}".strip())
    if not below:
        lines = (f"  marginbench {words} {rest}".rstrip() for rest in _EXAMPLES[words])
        # The mark keeps the lines as they are.
        command.epilog = "\b\nExamples:\n" + "\n".join(lines)


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


def _main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from ..environment import version as installed

        typer.echo(f"marginbench {installed()}")
        raise typer.Exit
    help_only(context)
