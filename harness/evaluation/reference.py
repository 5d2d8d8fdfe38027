"""The reference optimum of a task: solved once to a certified duality gap, then frozen on disk.

Every suboptimality is measured against it, so that adding a solver changes no other one's numbers.
"""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from platformdirs import user_cache_dir

from ...data_loaders.atomic import replacing
from ...solvers.interface.convergence import without_convergence_warnings
from ..errors import ReferenceFailure
from ..hashing import hash_json
from ..jobs import Send, described
from ..loading import load_kernel
from ..storage import storing
from .judging import build_evaluator, load_task_data
from .models import Evaluation
from .svm import ReferenceInfo, ReferenceWork, shown_kernel

if TYPE_CHECKING:
    from ...data_loaders import Dataset

_VERSION = 2
# Below this violation of the optimality conditions, float64 sums are mostly noise.
_SMALLEST_TOL = 1e-13
# Passes over the points after which coordinate ascent gives way to SMO, and fits in turn.
_LINEAR_EPOCHS = 1000
_LINEAR_ATTEMPTS = 4


def reference_optimum(work: ReferenceWork, send: Send) -> ReferenceInfo:
    """The task's reference optimum, from the cache or computed and stored there."""
    send({"phase": "data"})
    dataset = load_task_data(work.problem)
    problem = work.problem
    # All that it depends on.
    task = {
        "version": _VERSION,
        "fingerprint": dataset.fingerprint,
        "kernel": shown_kernel(problem.kernel),
        "kernel_code": problem.kernel_code,
        "C": problem.C,
        "fit_intercept": problem.fit_intercept,
        "tol": work.tol,
    }
    path, note = references_folder() / f"{hash_json(task)}.json", ""
    try:
        return _read(path, task)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, LookupError, TypeError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        note = f"{path}: the stored reference optimum is damaged ({why}); it is computed again"
    if work.lookup:
        raise ReferenceFailure("it is not in the cache")
    optimum = _certified(work, dataset, send)
    optimum = replace(optimum, hash=_hash(task, optimum))
    with storing(path, "set MARGINBENCH_CACHE to a folder with room that can be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as sink:
            sink.write(json.dumps({"task": task, "optimum": vars(optimum)}, indent=2).encode())
    return replace(optimum, note=note)


def references_folder() -> Path:
    """Where reference optima are kept: ``references`` in the cache folder."""
    root = os.environ.get("MARGINBENCH_CACHE") or user_cache_dir("marginbench")
    return Path(root).expanduser().absolute() / "references"


def _read(path: Path, task: dict[str, Any]) -> ReferenceInfo:
    """A stored optimum, verified."""
    stored = json.loads(path.read_bytes())
    optimum: ReferenceInfo = described(ReferenceInfo, stored["optimum"])
    if optimum.hash != _hash(stored["task"], optimum):
        raise ValueError("its content does not have the hash that it was stored with")
    if stored["task"] != task:
        raise ValueError("it belongs to another task")
    return optimum


def _hash(task: dict[str, Any], optimum: ReferenceInfo) -> str:
    """SHA-256, in hexadecimal, of a task and its stored optimum."""
    return hash_json([task, vars(replace(optimum, hash="", note=""))])


def _certified(work: ReferenceWork, dataset: Dataset, send: Send) -> ReferenceInfo:
    """Solve, tighter and tighter, until the gap that is recomputed from scratch is small enough."""
    from ...solvers import SMO, LinearSDCA, Solver

    problem = work.problem
    evaluator = build_evaluator(problem, dataset, certificate=True)
    # Solvers with their first tolerance and how often they may try.
    attempts: list[tuple[Solver, float, float]] = []
    if problem.kernel["name"] == "linear" and not problem.fit_intercept:
        # By dual coordinate ascent on w, which needs no kernel, unless that converges too slowly.
        ascent = LinearSDCA(C=problem.C, stopping="gap", max_epochs=_LINEAR_EPOCHS, random_state=0)
        attempts.append((ascent, work.tol, _LINEAR_ATTEMPTS))
    smo = SMO(
        load_kernel(problem.kernel),
        C=problem.C,
        fit_intercept=problem.fit_intercept,
        dtype="float64",
        cache_size=work.cache_mb,
    )
    attempts.append((smo, 10.0 * work.tol, math.inf))
    solved_s, best = 0.0, math.inf
    for solver, tol, most in attempts:
        attempt, best = 0, math.inf
        while tol >= _SMALLEST_TOL and attempt < most:
            attempt += 1
            send({"phase": "solve", "solve_s": solved_s})
            started = time.perf_counter()
            with without_convergence_warnings():
                solver.set_params(tol=tol).fit(dataset.X_train, dataset.y_train)
            solved_s += time.perf_counter() - started
            send({"phase": "evaluate", "solve_s": solved_s})
            evaluation = evaluator.evaluate(solver.model_)
            relative, primal, gap = math.inf, evaluation.primal, evaluation.gap
            if primal is not None and gap is not None and evaluation.finite:
                relative = gap / primal if primal > 0 else 0.0
            best = min(best, relative)
            if relative <= work.tol:
                return _optimum(solver.model_, evaluation, problem.C)
            if solver.status_ != "converged":
                break
            tol *= min(0.1, 0.5 * work.tol / relative)
    raise ReferenceFailure(
        f"SMO certifies a relative duality gap of {best:.3g} at best; {work.tol:g} is asked for"
    )


def _optimum(model: Any, evaluation: Evaluation, C: float) -> ReferenceInfo:
    """The optimum that runs are compared with, from a solution with a small gap."""
    assert evaluation.primal is not None
    assert evaluation.dual is not None
    assert evaluation.squared_norm is not None
    if evaluation.squared_norm < 0:
        raise ReferenceFailure("the kernel is not positive semidefinite: ||w||^2 < 0")
    optimum = ReferenceInfo(
        primal=evaluation.primal,
        dual=evaluation.dual,
        gap=evaluation.primal - evaluation.dual,
        test_error=evaluation.test_error,
        n_support=evaluation.n_support,
        nu=None,
        hash="",
    )
    if hasattr(model, "parts"):  # several classes, each with variables and a norm of its own
        return optimum
    # Coefficients are y_i alpha_i with alpha_i >= 0.
    alpha = np.abs(model.dual_coef if hasattr(model, "dual_coef") else model.coef)
    norm = math.sqrt(evaluation.squared_norm)
    return replace(
        optimum,
        n_support=int(np.count_nonzero(alpha)),
        nu=evaluation.mean_hinge / norm if norm > 0 else None,
        alpha_sum=float(alpha[alpha > 0].sum()),
        n_free=int(((alpha > 0) & (alpha < C)).sum()),
    )
