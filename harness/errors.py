"""Errors that end a command: one line for the user, and the exit code that goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .interrupts import EXIT_INTERRUPTED as EXIT_INTERRUPTED
from .words import REASON_LIMIT, visible

if TYPE_CHECKING:
    from .execution.runner import RunSummary

EXIT_OK = 0
#: Some run ended otherwise than planned.
EXIT_RUNS = 1
EXIT_USAGE = 2
EXIT_DATA = 3
#: Something could not be written, or the machines of a cluster are gone.
EXIT_STORAGE = 4
#: Of a comparison: runs failed only in its second side, or nothing could be compared.
EXIT_INCOMPLETE = 5


class UserError(Exception):
    """A mistake that the user can mend; the message is one line that says how.

    Parameters
    ----------
    *lines : str
        The message; one line for each mistake where several were found together.
    """

    exit_code = EXIT_USAGE

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class StudyError(UserError):
    """A study that does not make sense; the message names file, line, key and value.

    Parameters
    ----------
    *lines : str
        As of :class:`UserError`.
    at : tuple of str and int
        The way to the key in the study, by names and by places from 0; empty if it is about none.
    """

    def __init__(self, *lines: str, at: tuple[str | int, ...] = ()) -> None:
        super().__init__(*lines)
        self.at = at


class SolverError(UserError):
    """A solver that cannot be loaded; the message names it and says why."""


class UnsupportedError(UserError):
    """Something that this system cannot do; the message names the system and says what can."""


class StorageError(UserError):
    """A file that cannot be written; the message names it, the system's reason and a remedy."""

    exit_code = EXIT_STORAGE


class EngineError(UserError):
    """Where runs were to take place is not there, or no longer; the message says what to do."""

    exit_code = EXIT_STORAGE


class InterruptedRunError(UserError):
    """The user interrupted a run; the message says how to continue it.

    Attributes
    ----------
    summary : RunSummary or None
        How the runs ended that are recorded; None if there is no results folder yet.
    """

    exit_code = EXIT_INTERRUPTED

    def __init__(self, message: str, summary: RunSummary | None = None) -> None:
        super().__init__(message)
        self.summary = summary


class RecordError(Exception):
    """A record file that cannot be read; the message names the file and why."""


class EvaluationError(Exception):
    """A model that cannot be what its solver says it is; the message says why."""


class ReferenceFailure(Exception):
    """No reference optimum could be certified; the message says why."""


def first_line(error: BaseException) -> str:
    """``Type: message`` of an exception, on one line and of bounded length."""
    name = type(error).__name__
    try:
        text = str(error).strip()
    except Exception as broken:  # noqa: BLE001 - a user's class may raise anything here too
        text = f"its message cannot be shown, that raises {type(broken).__name__}"
    lines = text.splitlines()
    return visible(f"{name}: {lines[0]}" if lines else name, REASON_LIMIT)
