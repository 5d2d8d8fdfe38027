"""One check in a worker: the class is imported, warmed up and looked at."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ...solvers.interface.convergence import without_convergence_warnings
from ..errors import SolverError, first_line
from ..execution.jobs import PhaseMessage, Send
from ..loading import load_class, source_file
from ..planning.plan import kind_named
from ..words import REASON_LIMIT, visible
from .estimators import trial_fit
from .findings import (
    CHECKS,
    Check,
    CheckWork,
    Finding,
    Imported,
    ImportWork,
    MendError,
    NotApplicableError,
    Sort,
)
from .subject import Subject

_PACKAGE = "marginbench.harness.conformance"


def imported(work: ImportWork, send: Send) -> Imported:
    """Import the class.

    Raises
    ------
    SolverError
        If it cannot be loaded, or none of the kinds of studies takes it.
    """
    send(PhaseMessage("import"))
    problem: SolverError | None = None
    for kind in work.kinds:
        try:
            cls = load_class(work.solver, kind=kind)
            return Imported(kind, _sort(cls, kind, work.solver))
        except SolverError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def perform(work: CheckWork, send: Send) -> Finding:
    """Do a check.

    Parameters
    ----------
    work : CheckWork
    send : callable
        Takes the phases as they come.

    Raises
    ------
    SolverError
        If the class cannot be loaded, or is no solver for the kind of studies.
    """
    send(PhaseMessage("import"))
    cls = load_class(work.solver, kind=work.kind)
    return checked(cls, _sort(cls, work.kind, work.solver), work.check, send)


def checked(cls: type[Any], sort: Sort, name: str, send: Send = lambda message: None) -> Finding:
    """Do a check of a class in this process.

    Parameters
    ----------
    cls : type
    sort : {"estimator", "method"}
    name : str
        Of the check.
    send : callable
        Takes the phases as they come.
    """
    check = next(item for item in CHECKS[sort] if item.name == name)
    module, _, function = check.function.partition(".")
    look = getattr(import_module(f"{_PACKAGE}.{module}"), function)
    subject = Subject(cls)
    send(PhaseMessage("compile"))
    with without_convergence_warnings():
        if sort == "estimator" and check.fits:
            trial_fit(subject)
        send(PhaseMessage("solve"))
        return _finding(check, look, subject)


def _sort(cls: type[Any], kind: str, name: str) -> Sort:
    traits = kind_named(kind).traits(cls, name)
    return "method" if traits.get("takes") == "columns" else "estimator"


def _finding(check: Check, function: Callable[[Subject], None], subject: Subject) -> Finding:
    try:
        function(subject)
    except NotApplicableError as error:
        return Finding(check.name, "not applicable", visible(str(error), REASON_LIMIT))
    except MendError as error:
        return Finding(check.name, "fail", visible(str(error), REASON_LIMIT))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a user's code may raise anything
        words = f"it raises {first_line(error)}{_place(error, subject.cls)}"
        return Finding(check.name, "fail", visible(words, REASON_LIMIT))
    return Finding(check.name, "pass")


def _place(error: Exception, cls: type[Any]) -> str:
    """Where in the author's file it was raised; empty if it was elsewhere."""
    try:
        file = source_file(cls)
    except (OSError, TypeError):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == file]
    return f" ({file.name}, line {lines[-1]})" if lines else ""
