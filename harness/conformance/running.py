"""Running the checks of a solver, one after another in a worker process that can be killed."""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

from ...solvers.interface.convergence import without_convergence_warnings
from ..errors import EvaluationError, SolverError, first_line
from ..execution.local import one_worker
from ..jobs import (
    Ended,
    Executor,
    Job,
    Limits,
    Outcome,
    Send,
    Work,
)
from ..loading import load_class, source_file
from ..planning.plan import kind_named
from ..study.model import Budget
from ..words import REASON_LIMIT, visible

Verdict = Literal["pass", "fail", "not applicable", "not run"]

#: Estimators, which `fit` trains, and feasibility methods on columns, with their `solve`.
Sort = Literal["estimator", "method"]

#: The checks in their order: functions of the modules `estimators` and `methods`, which take the
#: subject and raise MendError or NotApplicableError. None is imported here: the command lists them.
CHECKS: dict[Sort, tuple[str, ...]] = {
    "estimator": (
        *("constructor", "traits", "warm-up", "fit", "determinism", "refitting"),
        *("side effects", "counters", "objective", "certificate", "monitor"),
        *("checkpoints", "stopping", "limits", "sparse data", "float32 data", "kernel function"),
        *("weights", "several classes", "saving"),
        # The longest, and what it needs is compiled by then.
        "scikit-learn",
    ),
    "method": (
        *("constructor", "solve", "certificates", "determinism"),
        *("counters", "limits", "side effects"),
    ),
}
#: Checks whose failure leaves nothing to see for the later ones.
GATES = ("constructor", "warm-up", "fit", "solve")


@dataclass(frozen=True)
class Finding:
    """The outcome of one check; ``detail`` says what to mend, or why it does not apply."""

    check: str
    verdict: Verdict
    detail: str = ""


# Checks that may run into their limits before the others are left out.
_PATIENCE = 3


@dataclass(frozen=True)
class CheckWork(Work):
    """Import a solver's class for the first of these kinds of studies that takes it; do a check.

    Without one, the finding's detail is of what sort the class is.
    """

    solver: str
    kinds: tuple[str, ...]
    check: str = ""
    result: ClassVar[Any] = Finding

    def run(self, send: Send) -> Finding:
        send({"phase": "import"})
        problems = []
        for kind in self.kinds:
            try:
                cls = load_class(self.solver, kind=kind)
                traits = kind_named(kind).traits(cls, self.solver)
                if "outside" in traits:
                    raise SolverError(
                        f"{self.solver} is not derived from marginbench.Solver; a class with "
                        "scikit-learn's interface needs no check, studies take it as it is"
                    )
            except SolverError as error:
                problems.append(error)
                continue
            sort: Sort = "method" if traits.get("takes") == "columns" else "estimator"
            return checked(cls, sort, self.check, send) if self.check else Finding("", "pass", sort)
        raise problems[0]


def check_solver(
    name: str, kinds: Sequence[str], *, timeout: float, executor: Executor | None = None
) -> Iterator[Finding]:
    """Check a solver's class against the contract.

    The checks share one worker process. One that hangs, crashes or needs too much memory costs that
    process and is a finding; the next check gets a fresh one.
    """
    budget = Budget()
    patience = max(budget.compile_timeout, timeout)
    limits = Limits({"import": patience, "compile": patience, "solve": timeout}, budget.memory)
    with nullcontext(executor) if executor else one_worker() as worker:
        # The class is imported in the worker: it may hang there.
        outcome = _outcome(worker, Job(name, CheckWork(name, tuple(kinds)), limits))
        if outcome.status == "user":
            raise SolverError(outcome.reason)
        if outcome.status != "done":
            raise SolverError(f"{name}: cannot be imported: {outcome.reason}")
        sort = outcome.value.detail
        why_not, cut_short = "", 0
        for check in CHECKS[sort]:
            if why_not:
                yield Finding(check, "not run", why_not)
                continue
            ended = _outcome(worker, Job(check, CheckWork(name, tuple(kinds), check), limits))
            finding = ended.value
            if ended.status != "done":
                finding = Finding(check, "fail", ended.reason)
            yield finding
            cut_short += ended.status in ("timeout", "memory", "crashed")
            if finding.verdict == "fail" and check in GATES:
                why_not = f"mend {check!r} first"
            elif cut_short == _PATIENCE:
                why_not = f"{_PATIENCE} checks ran into limits; mend these first"


def _outcome(worker: Executor, job: Job) -> Outcome:
    return next(e.outcome for e in worker.execute(iter([job])) if isinstance(e, Ended))


def checked(cls: type[Any], sort: Sort, check: str, send: Send = lambda message: None) -> Finding:
    """Do a check of a class in this process."""
    from .estimators import warm_up
    from .subject import MendError, NotApplicableError, Subject

    module = import_module(f"{__package__}.{sort}s")
    subject = Subject(cls)
    send({"phase": "compile"})
    with without_convergence_warnings():
        if sort == "estimator" and check not in ("constructor", "traits"):
            # For compilation; failing proves nothing yet.
            with contextlib.suppress(Exception):
                warm_up(subject)
        send({"phase": "solve"})
        try:
            getattr(module, re.sub("[ -]", "_", check))(subject)
        except NotApplicableError as error:
            return Finding(check, "not applicable", visible(str(error), REASON_LIMIT))
        except (MendError, EvaluationError) as error:
            location = _location(error.__cause__, cls) if error.__cause__ else ""
            return Finding(check, "fail", visible(f"{error}{location}", REASON_LIMIT))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything
            words = f"it raises {first_line(error)}{_location(error, cls)}"
            return Finding(check, "fail", visible(words, REASON_LIMIT))
    return Finding(check, "pass")


def _location(error: BaseException, cls: type[Any]) -> str:
    """Where in the author's file it was raised; empty if it was elsewhere."""
    try:
        file = source_file(cls)
    except (OSError, TypeError):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == file]
    return f" ({file.name}, line {lines[-1]})" if lines else ""
