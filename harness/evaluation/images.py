"""Runs of kernel feasibility methods on classes of images, inside a worker."""

from __future__ import annotations

import json
import math
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from ...data_loaders import DataError, load
from ...solvers.interface.convergence import without_convergence_warnings
from ...solvers.interface.one_vs_rest import OneVsRest
from ...solvers.kernels import make_kernel
from ...solvers.kernels.scoring import expansion_scores
from ..errors import EvaluationError
from ..jobs import CheckpointMessage, PhaseMessage, Send
from ..loading import load_class
from ..results.feasibility import Stage
from .feasibility import ImagesResult, ImagesWork, Votes


def classify(work: ImagesWork, send: Send) -> ImagesResult:
    """Choose the width on validation points, and train once.

    Parameters
    ----------
    work : ImagesWork
    send : callable
        Takes the phases as they come.

    Raises
    ------
    DataError
        If data cannot be loaded or have too few points of a class.
    """
    send(PhaseMessage("data"))
    started = perf_counter()
    points = draw(work)
    X, y = points["train"]
    data_s = perf_counter() - started

    send(PhaseMessage("solve"))
    started, cpu_started = perf_counter(), process_time()
    tried = [_trained(work, gamma, work.tuning_iterations, X, y) for gamma in work.gammas]
    errors = [1 - model.score(*points["validation"]) for model in tried]
    gamma = work.gammas[int(np.argmin(errors))]
    tuning_s, tuning_cpu_s = perf_counter() - started, process_time() - cpu_started
    started, cpu_started = perf_counter(), process_time()
    model = _trained(work, gamma, max(work.stages), X, y, stages=work.stages)
    wall_s, cpu_s = perf_counter() - started, process_time() - cpu_started
    results = [one.result_ for one in model.estimators_]
    return ImagesResult(
        gamma=gamma,
        widths=[Votes(*_coefficients([one.estimator_.model_])) for one in tried],
        staged=Votes(*_coefficients([*model.staged_models_.values(), model.estimator_.model_])),
        stages=[_stage(results, stage) for stage in work.stages],
        dtype=np.dtype(model.estimator.dtype).name,
        separated=sum(result.status == "separable" for result in results),
        converged=all(result.converged for result in results),
        n_iter=max(1, *(result.n_iter for result in results)),
        counters={
            **model.counters_.as_dict(),
            "matvecs": sum(result.counters.matvecs for result in results),
        },
        wall_s=wall_s,
        cpu_s=cpu_s,
        data_s=data_s,
        tuning_s=tuning_s,
        tuning_cpu_s=tuning_cpu_s,
    )


def judge(work: ImagesWork, result: ImagesResult, send: Send) -> dict[str, Any]:
    """Score the predictors of every width and stage.

    Parameters
    ----------
    work : ImagesWork
    result : ImagesResult
    send : callable
        Takes the stages.

    Returns
    -------
    dict
        The columns of the record.
    """
    send(PhaseMessage("evaluate", result.tuning_s + result.wall_s))
    columns = {
        "n_iter": result.n_iter,
        "counters": result.counters,
        "wall_s": result.wall_s,
        "cpu_s": result.cpu_s,
        "data_s": result.data_s,
        "tuning_s": result.tuning_s,
        "gamma": result.gamma,
    }
    scoring = _Scoring(work, result.dtype)
    try:
        validation = [
            scoring.errors(votes, gamma, "validation")[0]
            for votes, gamma in zip(result.widths, work.gammas, strict=True)
        ]
        train = scoring.errors(result.staged, result.gamma, "train")
        test = scoring.errors(result.staged, result.gamma, "test")
        if len(test) != len(work.stages) + 1 or len(result.stages) != len(work.stages):
            raise EvaluationError("there are not as many stages as the study asks for")
        for seconds, matvecs, phi_lo, phi_up in result.stages:
            known = all(map(math.isfinite, (seconds, phi_lo, phi_up)))
            if not known or seconds < 0 or not 0 <= matvecs < 2**63:
                raise EvaluationError("a stage says what no run can have")
        if validation[work.gammas.index(result.gamma)] > min(validation):
            raise EvaluationError(f"the width {result.gamma:g} is not the best on validation")
    except (EvaluationError, ValueError) as error:
        return {**columns, "status": "wrong", "reason": str(error)}
    for stage, (seconds, matvecs, phi_lo, phi_up), test_error in zip(
        work.stages, result.stages, test[:-1], strict=True
    ):
        made = Stage(
            n_iter=stage,
            wall_s=seconds,
            counters={"matvecs": int(matvecs)},
            phi_lo=phi_lo,
            phi_up=phi_up,
            test_error=test_error,
        )
        send(CheckpointMessage(made))
    return {
        **columns,
        "status": "converged" if result.converged else "budget",
        "reason": f"{result.separated} of {scoring.n_classes} classes separated",
        "found": "separable" if result.separated == scoring.n_classes else "budget",
        "validation": json.dumps(dict(zip(map(str, work.gammas), validation, strict=True))),
        "train_error": train[-1],
        "test_error": test[-1],
    }


class _Scoring:
    """Errors of predictors on the parts of the images, with kernel entries of its own."""

    def __init__(self, work: ImagesWork, dtype: str) -> None:
        if dtype not in ("float32", "float64"):
            raise EvaluationError(f"the kernel entries have type {dtype!r:.40}")
        self._points = draw(work)
        self._dtype = dtype
        self._classes = np.unique(self._points["train"][1])

    @property
    def n_classes(self) -> int:
        return len(self._classes)

    def errors(self, votes: Votes, gamma: float, part: str) -> list[float]:
        """Of each predictor in turn, a fraction in [0, 1].

        Raises
        ------
        EvaluationError
            If the coefficients do not fit the training points and classes.
        """
        X, y = self._points[part]
        X_train = self._points["train"][0]
        support, coef = np.asarray(votes.support), np.asarray(votes.coef)
        shape = (self.n_classes, len(support))
        if support.dtype.kind not in "iu" or coef.dtype.kind != "f" or coef.shape[-2:] != shape:
            raise EvaluationError(
                f"the coefficients have shape {coef.shape} and type {coef.dtype} for "
                f"{len(support)} support vectors and {self.n_classes} classes"
            )
        if len(support) and not (support.min() >= 0 and support.max() < X_train.shape[0]):
            raise EvaluationError("the support vectors are not among the training points")
        kernel = make_kernel("rbf", gamma=gamma)
        points = kernel.prepare(X_train[support], self._dtype)
        rows = coef.reshape(-1, coef.shape[-1])
        scores = expansion_scores(kernel, points, rows, X, self._dtype)
        parts = np.split(scores, len(rows) // self.n_classes, axis=1)
        return [float(np.mean(self._classes[one.argmax(axis=1)] != y)) for one in parts]


def _trained(work: ImagesWork, gamma: float, max_iter: int, X: Any, y: Any, **params: Any) -> Any:
    cls = load_class(work.solver, kind="feasibility")
    method = cls(kernel="rbf", gamma=gamma, max_iter=max_iter, history=1.0, **work.params)
    with without_convergence_warnings():
        return OneVsRest(method, **params).fit(X, y)


def _coefficients(models: list[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The support vectors of any, and coefficients, shape (n_models, n_classes, n_support).

    Of one model alone, shape (n_classes, n_support).
    """
    found = [model.attributes() for model in models]
    support = np.unique(np.concatenate([one["support_"] for one in found]))
    coef = np.zeros((len(found), len(found[0]["dual_coef_"]), len(support)))
    for rows, one in zip(coef, found, strict=True):
        rows[:, np.searchsorted(support, one["support_"])] = one["dual_coef_"]
    if coef.shape[1] == 1:
        # Two classes have one predictor: what speaks for one speaks against the other.
        coef = np.concatenate([-coef, coef], axis=1)
    return support, coef if len(found) > 1 else coef[0]


def _stage(results: list[Any], stage: int) -> list[float]:
    """What every class had cost by then, and the bounds; the shared kernel matrix is not in it."""
    ends = [_at(result.history, stage) for result in results]
    return [
        sum(end.seconds for end in ends),
        sum(end.matvecs for end in ends),
        min(end.phi_lo for end in ends),
        max(end.phi_up for end in ends),
    ]


def _at(history: Any, stage: int) -> Any:
    """The last point of the history up to this number of iterations."""
    return [point for point in history if point.iteration <= max(stage, history[0].iteration)][-1]


def draw(work: ImagesWork) -> dict[str, tuple[Any, NDArray[Any]]]:
    """Training, validation and test points with their classes."""
    data = load(work.dataset, work.dataset_params or None, folder=work.folder)
    if work.fingerprint and data.fingerprint != work.fingerprint:
        raise DataError(f"{work.dataset}: has changed since the runs were planned; run it again")
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
