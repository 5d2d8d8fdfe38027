"""Running the checks of a solver in a worker process that can be killed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import SolverError
from ..execution.jobs import Ended, Executor, Job, Limits, Outcome
from ..execution.local import LocalPool
from ..study.model import Budget
from .findings import CHECKS, CheckWork, Finding, Imported, ImportWork

# Checks that may run into their limits before the others are left out.
_PATIENCE = 3


def check_solver(
    name: str, kinds: Sequence[str], *, timeout: float, executor: Executor | None = None
) -> Iterator[Finding]:
    """Check a solver's class against the contract.

    The checks share one worker process. One that hangs, crashes or needs too much memory costs that
    process and is a finding; the next check gets a fresh one.

    Parameters
    ----------
    name : str
        A registry name, "file.py:Class" or "package.module:Class".
    kinds : sequence of str
        Kinds of studies; it is checked for the first of them that takes it.
    timeout : float
        Seconds that a check may take.
    executor : Executor, optional
        Where to run; a worker process on this machine by default.

    Yields
    ------
    Finding
        One for each check, as they end.

    Raises
    ------
    SolverError
        If the class cannot be imported, or none of the kinds takes it.
    """
    limits = _limits(timeout)
    with _worker(executor) as worker:
        found = _imported(worker, name, kinds, limits)
        yield from _findings(worker, name, found, limits)


@contextmanager
def _worker(executor: Executor | None) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    with tempfile.TemporaryDirectory() as logs, LocalPool(1, Path(logs)) as pool:
        yield pool


def _limits(timeout: float) -> Limits:
    budget = Budget()
    patience = max(budget.compile_timeout, timeout)
    return Limits({"import": patience, "compile": patience, "solve": timeout}, budget.memory)


def _imported(worker: Executor, name: str, kinds: Sequence[str], limits: Limits) -> Imported:
    """The class is imported in the worker: it may hang there."""
    outcome = _outcome(worker, Job(name, ImportWork(name, tuple(kinds)), limits))
    if outcome.status == "user":
        raise SolverError(outcome.reason)
    if outcome.status != "done":
        raise SolverError(f"{name}: cannot be imported: {outcome.reason}")
    found: Imported = outcome.value
    return found


def _findings(worker: Executor, name: str, imported: Imported, limits: Limits) -> Iterator[Finding]:
    why_not, cut_short = "", 0
    for check in CHECKS[imported.sort]:
        if why_not:
            yield Finding(check.name, "not run", why_not)
            continue
        work = CheckWork(name, imported.kind, check.name)
        outcome = _outcome(worker, Job(check.name, work, limits))
        found = _finding(check.name, outcome)
        yield found
        cut_short += outcome.status in ("timeout", "memory", "crashed")
        if found.verdict == "fail" and check.gate:
            why_not = f"mend {check.name!r} first"
        elif cut_short == _PATIENCE:
            why_not = f"{_PATIENCE} checks ran into limits; mend these first"


def _outcome(worker: Executor, job: Job) -> Outcome:
    for event in worker.execute(iter([job])):
        if isinstance(event, Ended):
            return event.outcome
    raise AssertionError("an executor ends every job")


def _finding(check: str, outcome: Outcome) -> Finding:
    """What a check found, however its job ended."""
    if outcome.status == "done":
        found: Finding = outcome.value
        return found
    remedy = {
        "timeout": "; see that every loop ends at a limit, or raise --timeout",
        "crashed": "; a solver may not end its process",
        "memory": "; the data are a few hundred numbers",
    }.get(outcome.status, "")
    return Finding(check, "fail", f"{outcome.reason}{remedy}")
