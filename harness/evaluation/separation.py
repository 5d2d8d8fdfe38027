"""Runs of feasibility methods, inside a worker: on generated problems, and on classes of images."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from time import perf_counter, process_time
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from ...data_loaders import DataError, load
from ...data_loaders.feasibility import FeasibilityInstance, lap, ldfp
from ...solvers.feasibility.certificates import check_certificate
from ...solvers.feasibility.problem import FeasibilityProblem
from ...solvers.feasibility.result import FeasibilityStatus, HistoryPoint
from ...solvers.interface.convergence import without_convergence_warnings
from ...solvers.interface.one_vs_rest import OneVsRest
from ...solvers.kernels import make_kernel
from ...solvers.kernels.scoring import expansion_scores
from ..errors import EvaluationError
from ..jobs import Send
from ..loading import load_class
from ..results.feasibility import Stage
from .feasibility import FeasibilityWork
from .judging import read_only

_GENERATORS: Mapping[str, Callable[..., FeasibilityInstance]] = {"ldfp": ldfp, "lap": lap}
# Bounds are recorded at numbers of iterations that grow by this.
_HISTORY = 1.25
_WARM_UP = (8, 24)
# Points of a history that are recorded.
_MOST_POINTS = 5000


def separate(work: FeasibilityWork, send: Send) -> dict[str, Any]:
    """Solve a generated problem, and check the result from scratch: columns of the record.

    Raises whatever the method raises.
    """
    send({"phase": "data"})
    started = perf_counter()
    asked = work.problem
    generator = _GENERATORS[asked["generator"]]
    made = generator(asked["m"], asked["n"], kappa=asked["kappa"], seed=work.seed)
    problem = FeasibilityProblem.linear(made.A)
    read_only(problem.data)  # the result is checked against it
    data_s = perf_counter() - started

    send({"phase": "compile"})
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
        send({"phase": "solve"})
        started, cpu_started = perf_counter(), process_time()
        result: Any = method.solve(problem, max_seconds=work.max_seconds)
        wall_s, cpu_s = perf_counter() - started, process_time() - cpu_started
    # Ours tell bounds and proofs at the end from iterations. Who derives from them may do more.
    if cls.__module__.startswith("marginbench."):
        wall_s, cpu_s = float(result.seconds), float(result.cpu_seconds)
    send({"phase": "evaluate", "solve_s": wall_s})
    columns = {"found": "", "cpu_s": cpu_s, "data_s": data_s, "compile_s": compile_s}
    try:
        # At most so many points that a record can hold them, the last one among them.
        step = -(-len(result.history) // _MOST_POINTS)
        points = result.history[::-step][::-1] if result.history else []
        stages = [_stage(point, result, wall_s) for point in points]
        result = replace(result, tol=min(float(result.tol), asked["tol"]))
        verdict = check_certificate(problem, result)
    except EvaluationError as error:
        return {**columns, "status": "wrong", "reason": str(error)}
    for stage in stages:
        send({"checkpoint": stage})
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


# Images: a kernel method on each class against the rest.


_Parts = dict[str, tuple[Any, NDArray[Any]]]


def classify(work: FeasibilityWork, send: Send) -> dict[str, Any]:
    """Choose the width on validation points, train once, and score the predictors of all stages.

    Returns the columns of the record. Raises `DataError` if data cannot be loaded or have too few
    points of a class.
    """
    asked = work.problem
    send({"phase": "data"})
    started = perf_counter()
    points = draw(work)
    data_s = perf_counter() - started

    send({"phase": "solve"})
    started = perf_counter()
    fits = {
        gamma: _trained(work, gamma, asked["tuning_iterations"], points)
        for gamma in asked["gammas"]
    }
    validation = {
        gamma: _errors([one.estimator_.model_], gamma, one.estimator.dtype, points, "validation")[0]
        for gamma, one in fits.items()
    }
    gamma = min(validation, key=lambda gamma: validation[gamma])
    tuning_s = perf_counter() - started
    started, cpu_started = perf_counter(), process_time()
    fitted = _trained(work, gamma, max(asked["stages"]), points, stages=asked["stages"])
    wall_s, cpu_s = perf_counter() - started, process_time() - cpu_started

    send({"phase": "evaluate", "solve_s": tuning_s + wall_s})
    models = [*fitted.staged_models_.values(), fitted.estimator_.model_]
    dtype = fitted.estimator.dtype
    train = _errors(models, gamma, dtype, points, "train")
    test = _errors(models, gamma, dtype, points, "test")
    results = [one.result_ for one in fitted.estimators_]
    for stage, test_error in zip(asked["stages"], test[:-1], strict=True):
        # What every class had cost by then, without the shared kernel matrix, and the bounds.
        ends = [_at(result, stage) for result in results]
        made = Stage(
            n_iter=stage,
            wall_s=sum(end.seconds for end in ends),
            counters={"matvecs": sum(end.matvecs for end in ends)},
            phi_lo=min(end.phi_lo for end in ends),
            phi_up=max(end.phi_up for end in ends),
            test_error=test_error,
        )
        send({"checkpoint": made})
    # Two classes have one predictor.
    words = "classes" if len(results) > 1 else "pair of classes"
    separated = sum(result.status == "separable" for result in results)
    return {
        "status": "converged" if all(result.converged for result in results) else "budget",
        "reason": f"{separated} of {len(results)} {words} separated",
        "found": "separable" if separated == len(results) else "budget",
        "n_iter": max(1, *(result.n_iter for result in results)),
        "counters": {
            **fitted.counters_.as_dict(),
            "matvecs": sum(result.counters.matvecs for result in results),
        },
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "data_s": data_s,
        "tuning_s": tuning_s,
        "gamma": gamma,
        "validation": json.dumps({str(gamma): error for gamma, error in validation.items()}),
        "train_error": train[-1],
        "test_error": test[-1],
    }


def _trained(
    work: FeasibilityWork, gamma: float, max_iter: int, points: _Parts, **params: Any
) -> Any:
    cls = load_class(work.solver, kind="feasibility")
    method = cls(kernel="rbf", gamma=gamma, max_iter=max_iter, history=1.0, **work.params)
    with without_convergence_warnings():
        return OneVsRest(method, **params).fit(*points["train"])


def _errors(models: list[Any], gamma: float, dtype: Any, points: _Parts, part: str) -> list[float]:
    """The errors of predictors on a part, from kernel entries that no solver is charged for."""
    attributes = [model.attributes() for model in models]
    support = np.unique(np.concatenate([one["support_"] for one in attributes]))
    coef = np.zeros((len(attributes), len(attributes[0]["dual_coef_"]), len(support)))
    for rows, one in zip(coef, attributes, strict=True):
        rows[:, np.searchsorted(support, one["support_"])] = one["dual_coef_"]
    if coef.shape[1] == 1:
        # Two classes have one predictor: what speaks for one speaks against the other.
        coef = np.concatenate([-coef, coef], axis=1)
    kernel, dtype = make_kernel("rbf", gamma=gamma), np.dtype(dtype).name
    vectors = kernel.prepare(points["train"][0][support], dtype)
    X, y = points[part]
    scores = expansion_scores(kernel, vectors, coef.reshape(-1, len(support)), X, dtype)
    classes = np.unique(points["train"][1])
    each = np.split(scores, len(models), axis=1)
    return [float(np.mean(classes[one.argmax(axis=1)] != y)) for one in each]


def _at(result: Any, stage: int) -> Any:
    """The last point of the history up to this number of iterations."""
    if not result.history:  # the start separates
        return HistoryPoint(
            0,
            *(result.phi_lo, result.phi_up, result.residual, result.seconds),
            *(result.counters.matvecs, result.counters.kernel_evals),
        )
    first = result.history[0].iteration
    return [point for point in result.history if point.iteration <= max(stage, first)][-1]


def draw(work: FeasibilityWork) -> _Parts:
    """Training, validation and test points with their classes."""
    asked = work.problem
    data = load(asked["dataset"], asked["dataset_params"] or None, folder=work.folder)
    if work.fingerprint and data.fingerprint != work.fingerprint:
        raise DataError(
            f"{asked['dataset']}: has changed since the runs were planned; run it again"
        )
    classes = np.unique(data.y_train)
    generator = np.random.default_rng(work.seed)
    parts: dict[str, list[NDArray[Any]]] = {"train": [], "validation": []}
    for label in classes:
        order = generator.permutation(np.flatnonzero(data.y_train == label))
        first = 0
        for name, total in (
            ("train", asked["n_train"]),
            ("validation", asked["n_validation"]),
        ):
            share = total // len(classes)
            if first + share > len(order) or share == 0:
                raise DataError(
                    f"{asked['dataset']}: {asked['n_train']} training and {asked['n_validation']} "
                    f"validation points are to be drawn evenly from {len(classes)} classes, at "
                    f"least one of each, but class {label} has only {len(order)} points"
                )
            parts[name].append(order[first : first + share])
            first += share
    drawn = {name: np.sort(np.concatenate(index)) for name, index in parts.items()}
    points = {name: (data.X_train[index], data.y_train[index]) for name, index in drawn.items()}
    points["test"] = (data.X_test, data.y_test)
    return {
        name: (read_only(normalize(X) if asked["unit_norm"] else X), labels)
        for name, (X, labels) in points.items()
    }
