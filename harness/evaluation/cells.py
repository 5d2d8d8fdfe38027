"""Runs of feasibility methods on generated problems, inside a worker."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import perf_counter, process_time
from typing import Any, get_args

import numpy as np

from ...data_loaders.feasibility import FeasibilityInstance, lap, ldfp
from ...solvers.feasibility.checking import check_certificate
from ...solvers.feasibility.problem import FeasibilityProblem
from ...solvers.feasibility.result import (
    FeasibilityCounters,
    FeasibilityResult,
    FeasibilityStatus,
)
from ...solvers.interface.convergence import without_convergence_warnings
from ..errors import EvaluationError
from ..jobs import CheckpointMessage, PhaseMessage, Send
from ..loading import load_class
from ..results.feasibility import Stage
from .feasibility import CellResult, CellWork

# Bounds are recorded at numbers of iterations that grow by this.
_HISTORY = 1.25
_WARM_UP = (8, 24)
# Points of a history that are recorded.
_MOST_POINTS = 5000
_STATUSES = get_args(FeasibilityStatus)
_POINT = ("iteration", "seconds", "matvecs", "phi_lo", "phi_up")


def separate(work: CellWork, send: Send) -> CellResult:
    """Solve a generated problem.

    Parameters
    ----------
    work : CellWork
    send : callable
        Takes the phases as they come.

    Raises
    ------
    Exception
        Whatever the method raises.
    """
    send(PhaseMessage("data"))
    started = perf_counter()
    problem = _problem(work)
    data_s = perf_counter() - started

    send(PhaseMessage("compile"))
    started = perf_counter()
    cls = load_class(work.solver, kind="feasibility")
    # A user's method need not have a history.
    watched = {"history": _HISTORY} if "history" in inspect.signature(cls).parameters else {}
    method = cls(**watched | work.params)
    # Failing on so few columns proves nothing; the real run will tell.
    with suppress(Exception):
        _solved(method, FeasibilityProblem.linear(_generator(work)(*_WARM_UP).A), 1.0)
    compile_s = perf_counter() - started

    send(PhaseMessage("solve"))
    started = process_time()
    result = _solved(method, problem, work.max_seconds)
    cpu_s = process_time() - started
    # Bounds and proofs at the end are no iterations. A user's method need not tell them apart.
    iterations_s = float(getattr(result, "cpu_seconds", math.nan))
    if 0 <= iterations_s <= cpu_s:
        cpu_s = iterations_s
    counts = result.counters.as_dict()
    del counts["iterations"]  # n_iter
    return CellResult(
        status=result.status,
        y=np.asarray(result.y),
        x=np.asarray(result.x),
        phi_lo=float(result.phi_lo),
        phi_up=float(result.phi_up),
        n_iter=int(result.n_iter),
        converged=bool(result.converged),
        tol=float(result.tol),
        message=str(result.message),
        counters=counts,
        history=[[getattr(point, name) for name in _POINT] for point in result.history],
        wall_s=float(result.seconds),
        cpu_s=cpu_s,
        data_s=data_s,
        compile_s=compile_s,
    )


def _solved(method: Any, problem: FeasibilityProblem, max_seconds: float) -> Any:
    with without_convergence_warnings():
        return method.solve(problem, max_seconds=max_seconds)


def judge(work: CellWork, result: CellResult, send: Send) -> dict[str, Any]:
    """Check a result from scratch.

    Parameters
    ----------
    work : CellWork
    result : CellResult
        What the method returned.
    send : callable
        Takes the stages.

    Returns
    -------
    dict
        The columns of the record.
    """
    send(PhaseMessage("evaluate", result.wall_s))
    problem = _problem(work)
    columns = {
        "found": result.status,
        "n_iter": result.n_iter,
        "counters": result.counters,
        "wall_s": result.wall_s,
        "cpu_s": result.cpu_s,
        "data_s": result.data_s,
        "compile_s": result.compile_s,
    }
    try:
        if not 0 <= result.wall_s < math.inf:
            raise EvaluationError(f"the result's seconds are {result.wall_s:g}")
        stages = [_stage(point, result) for point in _thinned(result.history)]
        verdict = check_certificate(problem, _restored(work, problem, result))
    except EvaluationError as error:
        wrong = {"found": "", "status": "wrong", "reason": str(error)}
        unknown = {"n_iter": None, "counters": None, "wall_s": None}
        return {**columns, **unknown, **wrong}
    for stage in stages:
        send(CheckpointMessage(stage))
    status = ("converged" if result.converged else "budget") if verdict.valid else "wrong"
    return {
        **columns,
        "status": status,
        "reason": "; ".join(verdict.reasons) or ("" if result.converged else result.message),
        "phi_lo": verdict.phi_lo,
        "phi_up": verdict.phi_up,
    }


def _thinned(history: list[list[float]]) -> list[list[float]]:
    """At most so many points that a record can hold them, the last one among them."""
    step = -(-len(history) // _MOST_POINTS)
    return history[::-step][::-1] if history else []


def _stage(point: list[float], result: CellResult) -> Stage:
    """A point of the history.

    Raises
    ------
    EvaluationError
        If no run can have it.
    """
    if len(point) != len(_POINT) or not all(map(math.isfinite, point)):
        raise EvaluationError("the history has a point that is none")
    iteration, seconds, matvecs, phi_lo, phi_up = point
    if not (0 <= iteration <= result.n_iter and seconds >= 0 and 0 <= matvecs < 2**63):
        raise EvaluationError("the history has a point that no run can have")
    return Stage(
        n_iter=int(iteration),
        wall_s=min(float(seconds), result.wall_s),
        counters={"matvecs": int(matvecs)},
        phi_lo=float(phi_lo),
        phi_up=float(phi_up),
    )


def _problem(work: CellWork) -> FeasibilityProblem:
    made = _generator(work)(work.m, work.n, kappa=work.kappa, seed=work.seed)
    return FeasibilityProblem.linear(made.A)


def _generator(work: CellWork) -> Callable[..., FeasibilityInstance]:
    known: Mapping[str, Callable[..., FeasibilityInstance]] = {"ldfp": ldfp, "lap": lap}
    return known[work.generator]


def _restored(work: CellWork, problem: FeasibilityProblem, result: CellResult) -> FeasibilityResult:
    """The result as the checker wants it, with the tolerance of the cell at most.

    Raises
    ------
    EvaluationError
        If it has another status than results have, or points of another shape.
    """
    if result.status not in _STATUSES:
        raise EvaluationError(f"the result's status is {result.status!r:.40}")
    for name, length in (("y", problem.m), ("x", problem.n)):
        point = getattr(result, name)
        if not isinstance(point, np.ndarray) or point.dtype.kind not in "fiu":
            raise EvaluationError(f"the result's {name} is no array of numbers")
        if point.shape != (length,):
            raise EvaluationError(f"the result's {name} has shape {point.shape}, not ({length},)")
    return FeasibilityResult(
        status=result.status,  # type: ignore[arg-type]
        y=result.y,
        x=result.x,
        phi_lo=result.phi_lo,
        phi_up=result.phi_up,
        n_iter=result.n_iter,
        converged=result.converged,
        tol=result.tol if work.tol is None else min(result.tol, work.tol),
        message=result.message,
        counters=FeasibilityCounters(),
        seconds=result.wall_s,
    )
