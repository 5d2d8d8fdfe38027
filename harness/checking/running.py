"""Running the checks of a solver in a worker process that can be killed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from marginbench.harness.checking.findings import CheckWork, Finding, ImportWork
from marginbench.harness.checking.suite import CHECKS
from marginbench.harness.errors import SolverError
from marginbench.harness.jobs import Ended, Executor, Job, Limits, Outcome
from marginbench.harness.pool import LocalPool
from marginbench.harness.study import Budget

# Checks that may run into their limits before the others are left out.
_PATIENCE = 3


def check_solver(
    name: str, kind: str, *, timeout: float, executor: Executor | None = None
) -> Iterator[Finding]:
    """Check a solver's class against the contract.

    The checks share one worker process. One that hangs, crashes or needs too much memory costs that
    process and is a finding; the next check gets a fresh one.

    Parameters
    ----------
    name : str
        A registry name, "file.py:Class" or "package.module:Class".
    kind : str
        The kind of studies that it is for.
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
        If the class cannot be imported, or is no solver for this kind of studies.
    """
    limits = _limits(timeout)
    with _worker(executor) as worker:
        sort = _imported(worker, name, kind, limits)
        yield from _findings(worker, name, kind, sort, limits)


@contextmanager
def _worker(executor: Executor | None) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    with tempfile.TemporaryDirectory() as logs, LocalPool(1, Path(logs)) as pool:
        yield pool


def _limits(timeout: float) -> Limits:
    budget = Budget()
    patience = budget.compile_timeout
    return Limits({"import": patience, "compile": patience, "solve": timeout}, budget.memory)


def _imported(worker: Executor, name: str, kind: str, limits: Limits) -> str:
    """The sort of the class, which is imported in the worker: it may hang there."""
    outcome = _outcome(worker, Job(name, ImportWork(name, kind), limits))
    if outcome.status == "user":
        raise SolverError(outcome.reason)
    if outcome.status != "done":
        raise SolverError(f"{name}: cannot be imported: {outcome.reason}")
    return str(outcome.value)


def _findings(
    worker: Executor, name: str, kind: str, sort: str, limits: Limits
) -> Iterator[Finding]:
    why_not, cut_short = "", 0
    for check in CHECKS[sort]:
        if why_not:
            yield Finding(check.name, "not run", why_not)
            continue
        outcome = _outcome(worker, Job(check.name, CheckWork(name, kind, check.name), limits))
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
        "timeout": "; see that every loop ends at a limit",
        "crashed": "; a solver may not end its process",
        "memory": "; the data are a few hundred numbers",
    }.get(outcome.status, "")
    return Finding(check, "fail", f"{outcome.reason}{remedy}")
