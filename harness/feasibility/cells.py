"""Runs of feasibility methods on generated problems, inside a worker."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

from marginbench.data_loaders.feasibility import FeasibilityInstance, lap, ldfp
from marginbench.harness.feasibility.records import FeasibilityOutcome, Stage
from marginbench.harness.jobs import Message, PhaseMessage, SeparationJob
from marginbench.solvers.feasibility.checking import check_certificate
from marginbench.solvers.feasibility.problem import FeasibilityProblem

Send = Callable[[Message], None]

# Bounds are recorded at numbers of iterations that grow by this.
_HISTORY = 1.25
_WARM_UP = (8, 24)


def class_of(name: str) -> Any:
    """The method's class, from "module:Class"."""
    module, _, cls = name.partition(":")
    return getattr(importlib.import_module(module), cls)


def separate(job: SeparationJob, send: Send) -> FeasibilityOutcome:
    """Solve a generated problem, and check the certificate from scratch.

    Parameters
    ----------
    job : SeparationJob
    send : callable
        Takes the phases as they come.
    """
    send(PhaseMessage("data"))
    started = time.perf_counter()
    generate: Callable[..., FeasibilityInstance] = {"ldfp": ldfp, "lap": lap}[job.generator]
    problem = FeasibilityProblem.linear(generate(job.m, job.n, kappa=job.kappa, seed=job.seed).A)
    data_s = time.perf_counter() - started

    send(PhaseMessage("compile"))
    started = time.perf_counter()
    method = class_of(job.method)(**{"history": _HISTORY, **job.params})
    method.solve(generate(*_WARM_UP).A, max_seconds=1.0)
    compile_s = time.perf_counter() - started

    send(PhaseMessage("solve"))
    started = time.process_time()
    result = method.solve(problem, max_seconds=job.max_seconds)
    cpu_s = time.process_time() - started
    send(PhaseMessage("evaluate", result.seconds))
    verdict = check_certificate(problem, result)
    return FeasibilityOutcome(
        status=("converged" if result.converged else "budget") if verdict.valid else "wrong",
        reason="; ".join(verdict.reasons) or ("" if result.converged else result.message),
        found=result.status,
        n_iter=result.n_iter,
        matvecs=result.counters.matvecs,
        inner_products=result.counters.inner_products,
        solve_s=result.seconds,
        cpu_s=cpu_s,
        data_s=data_s,
        compile_s=compile_s,
        phi_lo=verdict.phi_lo,
        phi_up=verdict.phi_up,
        trace=tuple(
            Stage(point.iteration, point.seconds, point.matvecs, point.phi_lo, point.phi_up)
            for point in result.history
        ),
    )
