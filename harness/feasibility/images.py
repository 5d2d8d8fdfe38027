"""Runs of kernel feasibility methods on classes of images, inside a worker."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from marginbench.data_loaders import DataError, load
from marginbench.harness.feasibility.records import Stage
from marginbench.harness.feasibility.work import ImagesWork
from marginbench.harness.jobs import CheckpointMessage, PhaseMessage, Send
from marginbench.harness.loading import load_class
from marginbench.solvers.feasibility.one_vs_rest import OneVsRest


def classify(work: ImagesWork, send: Send) -> dict[str, Any]:
    """Choose the width on validation points, train once, score the predictor at every stage.

    Parameters
    ----------
    work : ImagesWork
    send : callable
        Takes the phases as they come, and the stages at the end.

    Returns
    -------
    dict
        The columns of the record that it found out.

    Raises
    ------
    DataError
        If data cannot be loaded or have too few points of a class.
    """
    send(PhaseMessage("data"))
    started = time.perf_counter()
    points = draw(work)
    X, y = points["train"]
    data_s = time.perf_counter() - started

    send(PhaseMessage("solve"))
    started = time.perf_counter()
    errors = {
        gamma: 1 - _trained(work, gamma, work.tuning_iterations, X, y).score(*points["validation"])
        for gamma in work.gammas
    }
    gamma = min(errors, key=lambda width: errors[width])
    tuning_s = time.perf_counter() - started
    started, cpu_started = time.perf_counter(), time.process_time()
    model = _trained(work, gamma, max(work.stages), X, y, stages=work.stages)
    solve_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_started

    send(PhaseMessage("evaluate", tuning_s + solve_s))
    X_test, y_test = points["test"]
    for stage, scores in model.staged_decision_function(X_test).items():
        # What every class had cost by then; the kernel matrix is shared and not in it.
        ends = [_at(result.history, stage) for result in model.results_]
        send(
            CheckpointMessage(
                Stage(
                    n_iter=stage,
                    wall_s=sum(end.seconds for end in ends),
                    counters={"matvecs": sum(end.matvecs for end in ends)},
                    phi_lo=min(end.phi_lo for end in ends),
                    phi_up=max(end.phi_up for end in ends),
                    test_error=float(np.mean(model.classes_[scores.argmax(axis=1)] != y_test)),
                )
            )
        )
    separated = sum(result.status == "separable" for result in model.results_)
    converged = all(result.converged for result in model.results_)
    matvecs = sum(result.counters.matvecs for result in model.results_)
    return {
        "status": "converged" if converged else "budget",
        "reason": f"{separated} of {len(model.results_)} classes separated",
        "found": "separable" if separated == len(model.results_) else "budget",
        "n_iter": model.n_iter_,
        "counters": {**model.counters_.as_dict(), "matvecs": matvecs},
        "wall_s": solve_s,
        "cpu_s": cpu_s,
        "data_s": data_s,
        "tuning_s": tuning_s,
        "gamma": gamma,
        "validation": json.dumps({str(width): error for width, error in errors.items()}),
        "train_error": 1 - model.score(X, y),
        "test_error": 1 - model.score(X_test, y_test),
    }


def _trained(work: ImagesWork, gamma: float, max_iter: int, X: Any, y: Any, **params: Any) -> Any:
    cls = load_class(work.solver, kind="feasibility")
    method = cls(kernel="rbf", gamma=gamma, max_iter=max_iter, history=1.0, **work.params)
    return OneVsRest(method, **params).fit(X, y)


def _at(history: Any, stage: int) -> Any:
    """The last point of the history up to this number of iterations."""
    return [point for point in history if point.iteration <= max(stage, history[0].iteration)][-1]


def draw(work: ImagesWork) -> dict[str, tuple[Any, NDArray[Any]]]:
    """Training, validation and test points with their classes."""
    data = load(work.dataset, work.dataset_params or None)
    classes = np.unique(data.y_train)
    generator = np.random.default_rng(work.seed)
    parts: dict[str, list[NDArray[Any]]] = {"train": [], "validation": []}
    for label in classes:
        order = generator.permutation(np.flatnonzero(data.y_train == label))
        first = 0
        for name, total in (("train", work.n_train), ("validation", work.n_validation)):
            share = total // len(classes)
            if first + share > len(order) or share == 0:
                raise DataError(
                    f"{work.dataset}: {work.n_train} training and {work.n_validation} validation "
                    f"points are to be drawn evenly from {len(classes)} classes, at least one of "
                    f"each, but class {label} has only {len(order)} points"
                )
            parts[name].append(order[first : first + share])
            first += share
    drawn = {name: np.sort(np.concatenate(index)) for name, index in parts.items()}
    points = {name: (data.X_train[index], data.y_train[index]) for name, index in drawn.items()}
    points["test"] = (data.X_test, data.y_test)
    if not work.unit_norm:
        return points
    return {name: (normalize(X), labels) for name, (X, labels) in points.items()}
