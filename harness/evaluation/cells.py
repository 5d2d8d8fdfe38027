"""Runs of feasibility methods on generated problems, inside a worker."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from time import perf_counter, process_time
from typing import Any, get_args

from ...data_loaders.feasibility import FeasibilityInstance, lap, ldfp
from ...solvers.feasibility.certificates import check_certificate
from ...solvers.feasibility.problem import FeasibilityProblem
from ...solvers.feasibility.result import FeasibilityStatus
from ...solvers.interface.convergence import without_convergence_warnings
from ..errors import EvaluationError
from ..jobs import CheckpointMessage, PhaseMessage, Send
from ..loading import load_class
from ..results.feasibility import Stage
from .feasibility import CellWork
from .judging import read_only

_GENERATORS: Mapping[str, Callable[..., FeasibilityInstance]] = {"ldfp": ldfp, "lap": lap}
# Bounds are recorded at numbers of iterations that grow by this.
_HISTORY = 1.25
_WARM_UP = (8, 24)
# Points of a history that are recorded.
_MOST_POINTS = 5000


def separate(work: CellWork, send: Send) -> dict[str, Any]:
    """Solve a generated problem, and check the result from scratch: columns of the record.

    Raises whatever the method raises.
    """
    send(PhaseMessage("data"))
    started = perf_counter()
    generator = _GENERATORS[work.generator]
    made = generator(work.m, work.n, kappa=work.kappa, seed=work.seed)
    problem = FeasibilityProblem.linear(made.A)
    read_only(problem.data)  # the result is checked against it
    data_s = perf_counter() - started

    send(PhaseMessage("compile"))
    started = perf_counter()
    cls = load_class(work.solver, kind="feasibility")
    # A user's method need not have a history.
    watched = {"history": _HISTORY} if "history" in inspect.signature(cls).parameters else {}
    method = cls(**watched | work.params)
    with without_convergence_warnings():
        # Failing on so few columns proves nothing; the real run will tell.
        few = FeasibilityProblem.linear(generator(*_WARM_UP).A)
        read_only(few.data)  # as the problem's are: code is compiled for these apart
        with suppress(Exception):
            method.solve(few, max_seconds=1.0)
        compile_s = perf_counter() - started
        send(PhaseMessage("solve"))
        started, cpu_started = perf_counter(), process_time()
        result: Any = method.solve(problem, max_seconds=work.max_seconds)
        wall_s, cpu_s = perf_counter() - started, process_time() - cpu_started
    # Ours tell bounds and proofs at the end from iterations. Who derives from them may do more.
    if cls.__module__.startswith("marginbench."):
        wall_s, cpu_s = float(result.seconds), float(result.cpu_seconds)
    send(PhaseMessage("evaluate", wall_s))
    columns = {"found": "", "cpu_s": cpu_s, "data_s": data_s, "compile_s": compile_s}
    try:
        # At most so many points that a record can hold them, the last one among them.
        step = -(-len(result.history) // _MOST_POINTS)
        points = result.history[::-step][::-1] if result.history else []
        stages = [_stage(point, result, wall_s) for point in points]
        if work.tol is not None:
            result = replace(result, tol=min(float(result.tol), work.tol))
        verdict = check_certificate(problem, result)
    except EvaluationError as error:
        return {**columns, "status": "wrong", "reason": str(error)}
    for stage in stages:
        send(CheckpointMessage(stage))
    reason = "; ".join(verdict.reasons) or ("" if result.converged else str(result.message))
    counts = result.counters.as_dict()
    del counts["iterations"]  # n_iter
    return {
        **columns,
        "found": result.status if result.status in get_args(FeasibilityStatus) else "",
        "status": ("converged" if result.converged else "budget") if verdict.valid else "wrong",
        "reason": reason,
        "n_iter": int(result.n_iter),
        "counters": counts,
        "wall_s": wall_s,
        **{name: v for name in ("phi_lo", "phi_up") if math.isfinite(v := getattr(verdict, name))},
    }


def _stage(point: Any, result: Any, wall_s: float) -> Stage:
    """A point of the history; `EvaluationError` if its values are impossible."""
    finite = all(map(math.isfinite, (point.seconds, point.phi_lo, point.phi_up)))
    counted = 0 <= point.iteration <= result.n_iter and 0 <= point.matvecs < 2**63
    if not finite or not counted or point.seconds < 0:
        raise EvaluationError("the history has a point that no run can have")
    return Stage(
        n_iter=int(point.iteration),
        wall_s=min(float(point.seconds), wall_s),
        counters={"matvecs": int(point.matvecs)},
        phi_lo=float(point.phi_lo),
        phi_up=float(point.phi_up),
    )
