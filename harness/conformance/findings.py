"""What a check finds, and how it travels from the worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..execution.jobs import Send, Work, described

Verdict = Literal["pass", "fail", "not applicable", "not run"]


@dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    Attributes
    ----------
    check : str
        Its name.
    verdict : {"pass", "fail", "not applicable", "not run"}
    detail : str
        One line: what to mend, or why the check does not apply or was not run.
    """

    check: str
    verdict: Verdict
    detail: str = ""


class MendError(Exception):
    """Something to be mended; the message is one line that says what and how."""


class NotApplicableError(Exception):
    """The check has nothing to look at; the message says why."""


@dataclass(frozen=True)
class Imported:
    """A class that could be imported.

    Attributes
    ----------
    kind : str
        The first of the kinds of studies that takes it.
    sort : {"estimator", "method"}
        Which checks are for it.
    """

    kind: str
    sort: Literal["estimator", "method"]


@dataclass(frozen=True)
class ImportWork(Work):
    """Import a solver's class, for the first of these kinds of studies that takes it."""

    solver: str
    kinds: tuple[str, ...]

    def run(self, send: Send) -> Imported:
        from .performing import imported

        return imported(self, send)

    def parsed(self, value: Any) -> Imported:
        found: Imported = described(Imported, value)
        return found


@dataclass(frozen=True)
class CheckWork(Work):
    """Do one check of a solver's class."""

    solver: str
    kind: str
    check: str

    def run(self, send: Send) -> Finding:
        from .performing import perform

        return perform(self, send)

    def parsed(self, value: Any) -> Finding:
        found: Finding = described(Finding, value)
        return found
