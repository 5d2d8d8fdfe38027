"""Runs of kernel feasibility methods on classes of images, inside a worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from marginbench.data_loaders import DataError, load
from marginbench.harness.feasibility.records import FeasibilityOutcome, Stage
from marginbench.harness.jobs import ImagesJob, Message, PhaseMessage
from marginbench.harness.feasibility.cells import class_of
from marginbench.solvers.feasibility.one_vs_rest import OneVsRest

Send = Callable[[Message], None]


def classify(job: ImagesJob, send: Send) -> FeasibilityOutcome:
    """Choose the width on validation points, train once, score the predictor at every stage.

    Parameters
    ----------
    job : ImagesJob
    send : callable
        Takes the phases as they come.

    Raises
    ------
    DataError
        If data cannot be loaded or have too few points of a class.
    """
    send(PhaseMessage("data"))
    started = time.perf_counter()
    points = _draw(job)
    X, y = points["train"]
    data_s = time.perf_counter() - started

    send(PhaseMessage("solve"))
    started = time.perf_counter()
    errors = {
        gamma: 1 - _trained(job, gamma, job.tuning_iterations, X, y).score(*points["validation"])
        for gamma in job.gammas
    }
    gamma = min(errors, key=lambda width: errors[width])
    tuning_s = time.perf_counter() - started
    started, cpu_started = time.perf_counter(), time.process_time()
    model = _trained(job, gamma, max(job.stages), X, y, stages=job.stages)
    solve_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_started

    send(PhaseMessage("evaluate", tuning_s + solve_s))
    X_test, y_test = points["test"]
    trace = []
    for stage, scores in model.staged_decision_function(X_test).items():
        # What every class had cost by then; the kernel matrix is shared and not in it.
        ends = [_at(result.history, stage) for result in model.results_]
        trace.append(
            Stage(
                iteration=stage,
                seconds=sum(end.seconds for end in ends),
                matvecs=sum(end.matvecs for end in ends),
                phi_lo=min(end.phi_lo for end in ends),
                phi_up=max(end.phi_up for end in ends),
                test_error=float(np.mean(model.classes_[scores.argmax(axis=1)] != y_test)),
            )
        )
    separated = sum(result.status == "separable" for result in model.results_)
    return FeasibilityOutcome(
        status="converged" if all(result.converged for result in model.results_) else "budget",
        reason=f"{separated} of {len(model.results_)} classes separated",
        found="separable" if separated == len(model.results_) else "budget",
        n_iter=model.n_iter_,
        matvecs=sum(result.counters.matvecs for result in model.results_),
        kernel_evals=model.counters_.kernel_evals,
        kernel_evals_computed=model.counters_.kernel_evals_computed,
        solve_s=solve_s,
        cpu_s=cpu_s,
        data_s=data_s,
        tuning_s=tuning_s,
        gamma=gamma,
        validation={str(width): error for width, error in errors.items()},
        train_error=1 - model.score(X, y),
        test_error=1 - model.score(X_test, y_test),
        trace=tuple(trace),
    )


def _trained(job: ImagesJob, gamma: float, max_iter: int, X: Any, y: Any, **params: Any) -> Any:
    method = class_of(job.method)("rbf", gamma=gamma, max_iter=max_iter, history=1.0, **job.params)
    return OneVsRest(method, **params).fit(X, y)


def _at(history: Any, stage: int) -> Any:
    """The last point of the history up to this number of iterations."""
    return [point for point in history if point.iteration <= max(stage, history[0].iteration)][-1]


def _draw(job: ImagesJob) -> dict[str, tuple[Any, NDArray[Any]]]:
    """Training, validation and test points with their classes."""
    data = load(job.dataset, job.dataset_params or None)
    classes = np.unique(data.y_train)
    generator = np.random.default_rng(job.seed)
    parts: dict[str, list[NDArray[Any]]] = {"train": [], "validation": []}
    for label in classes:
        order = generator.permutation(np.flatnonzero(data.y_train == label))
        first = 0
        for name, total in (("train", job.n_train), ("validation", job.n_validation)):
            share = total // len(classes)
            if first + share > len(order) or share == 0:
                raise DataError(
                    f"{job.dataset}: {total} {name} points are to be drawn evenly from "
                    f"{len(classes)} classes, but class {label} has only {len(order)} points"
                )
            parts[name].append(order[first : first + share])
            first += share
    drawn = {name: np.sort(np.concatenate(index)) for name, index in parts.items()}
    points = {name: (data.X_train[index], data.y_train[index]) for name, index in drawn.items()}
    points["test"] = (data.X_test, data.y_test)
    if not job.unit_norm:
        return points
    return {name: (normalize(X), labels) for name, (X, labels) in points.items()}
