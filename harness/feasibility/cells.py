"""Runs of feasibility methods on generated problems, inside a worker."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from marginbench.data_loaders.feasibility import FeasibilityInstance, lap, ldfp
from marginbench.harness.feasibility.records import Stage
from marginbench.harness.feasibility.work import CellWork
from marginbench.harness.jobs import CheckpointMessage, PhaseMessage, Send
from marginbench.harness.loading import load_class
from marginbench.solvers.feasibility.checking import check_certificate
from marginbench.solvers.feasibility.problem import FeasibilityProblem

# Bounds are recorded at numbers of iterations that grow by this.
_HISTORY = 1.25
_WARM_UP = (8, 24)


def separate(work: CellWork, send: Send) -> dict[str, Any]:
    """Solve a generated problem, and check the certificate from scratch.

    Parameters
    ----------
    work : CellWork
    send : callable
        Takes the phases as they come, and the stages at the end.

    Returns
    -------
    dict
        The columns of the record that it found out.
    """
    send(PhaseMessage("data"))
    started = time.perf_counter()
    generate: Callable[..., FeasibilityInstance] = {"ldfp": ldfp, "lap": lap}[work.generator]
    made = generate(work.m, work.n, kappa=work.kappa, seed=work.seed)
    problem = FeasibilityProblem.linear(made.A)
    data_s = time.perf_counter() - started

    send(PhaseMessage("compile"))
    started = time.perf_counter()
    cls = load_class(work.solver, kind="feasibility")
    # A user's method need not have a history.
    watched = {"history": _HISTORY} if "history" in inspect.signature(cls).parameters else {}
    method = cls(**watched | work.params)
    # Failing on so few columns proves nothing; the real run will tell.
    with suppress(Exception):
        method.solve(FeasibilityProblem.linear(generate(*_WARM_UP).A), max_seconds=1.0)
    compile_s = time.perf_counter() - started

    send(PhaseMessage("solve"))
    started = time.process_time()
    result = method.solve(problem, max_seconds=work.max_seconds)
    cpu_s = time.process_time() - started
    send(PhaseMessage("evaluate", result.seconds))
    verdict = check_certificate(problem, result)
    for point in result.history:
        send(
            CheckpointMessage(
                Stage(
                    n_iter=point.iteration,
                    wall_s=point.seconds,
                    counters={"matvecs": point.matvecs},
                    phi_lo=point.phi_lo,
                    phi_up=point.phi_up,
                )
            )
        )
    counts = result.counters.as_dict()
    del counts["iterations"]  # n_iter
    status = ("converged" if result.converged else "budget") if verdict.valid else "wrong"
    return {
        "status": status,
        "reason": "; ".join(verdict.reasons) or ("" if result.converged else result.message),
        "found": result.status,
        "n_iter": result.n_iter,
        "counters": counts,
        "wall_s": result.seconds,
        "cpu_s": cpu_s,
        "data_s": data_s,
        "compile_s": compile_s,
        "phi_lo": verdict.phi_lo,
        "phi_up": verdict.phi_up,
    }
