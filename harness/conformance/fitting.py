"""Checks of one fit: it ends, tells what it did, and predicts with the model that it returns."""

from __future__ import annotations

from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np

from ...solvers.interface.base import Solver
from .findings import MendError
from .subject import (
    Points,
    Subject,
    Watch,
    clusters,
    overlapping,
    plain_of,
)

_STATUSES = ("converged", "no_separator", "budget", "stopped")
# Part of the points of two clusters far apart that any solver should classify.
_LEARNT = 0.9


def trial_fit(subject: Subject) -> None:
    """Fit to a few points, for compilation, as before a run; failing proves nothing yet."""
    with suppress(Exception):
        _few_points(subject)


def warm_up(subject: Subject) -> None:
    """The fit to a few points that precedes each run, of arrays that may not be written to."""
    _few_points(subject)


def _few_points(subject: Subject) -> None:
    X, y = overlapping(20)
    for array in (X, y):
        array.flags.writeable = False
    subject.limited(1, len(y)).fit(X, y)


def fit(subject: Subject) -> None:
    """A fit sets the fitted attributes, tells the monitor of its end, and learns something."""
    X, y = overlapping()
    solver, watch = subject.make(), Watch()
    if solver.fit(X, y, monitor=watch) is not solver:
        raise MendError("fit does not return the estimator itself")
    if watch.started != 1 or len(watch.finished) != 1:
        raise MendError(
            "fit does not call monitor.start and monitor.finish once each; leave them to Solver.fit"
        )
    if not plain_of(solver.model_).finite:
        raise MendError("the returned model holds NaN or infinity")
    if solver.status_ not in _STATUSES:
        raise MendError(
            f"the status is {solver.status_!r:.40}; it must be one of {', '.join(_STATUSES)}"
        )
    if not isinstance(solver.n_iter_, Integral) or solver.n_iter_ < 0:
        raise MendError(f"n_iter is {solver.n_iter_!r:.40}; return the number of iterations")
    _check_predictions(solver, X, y)
    _check_learning(subject)


def _check_predictions(solver: Solver, X: Any, y: Any) -> None:
    found = np.asarray(solver.decision_function(X))
    if found.shape != y.shape or found.dtype.kind != "f" or not np.isfinite(found).all():
        raise MendError(
            f"decision_function returns {found.dtype} of shape {found.shape} for {len(y)} points; "
            "return one finite score for each"
        )
    if not np.array_equal(solver.predict(X), np.where(found > 0, 1, -1)):
        raise MendError("predict is not the sign of decision_function; do not override predict")


def _check_learning(subject: Subject) -> None:
    points = clusters()
    solver = subject.make().fit(*points)
    if solver.status_ == "no_separator":
        raise MendError("it finds no separator of two clusters that a hyperplane separates")
    share = float(np.mean(solver.predict(points.X) == points.y))
    if share < _LEARNT:
        raise MendError(
            f"it classifies {share:.0%} of two clusters that are far apart; check the signs of the "
            "coefficients"
        )


def scores(subject: Subject) -> None:
    """decision_function gives the scores of the returned model, and the bias is one to have."""
    points = overlapping()
    for bias in subject.biases:
        solver = subject.make(dtype="float64", fit_intercept=bias).fit(*points)
        if not bias and np.any(np.asarray(solver.intercept_) != 0):
            raise MendError("the model has an intercept although fit_intercept is False")
        _compare(subject, solver, points)


def _compare(subject: Subject, solver: Solver, points: Points) -> None:
    evaluator = subject.evaluator(points)
    expected = evaluator.test_scores(solver.model_, np.arange(len(points.y)))
    found = np.asarray(solver.decision_function(points.X), dtype=np.float64)
    noise = subject.tolerance * (1 + np.abs(expected)) + evaluator.score_noise(solver.model_) * (
        "dtype" not in subject.defaults
    )
    worst = int(np.argmax(np.abs(found - expected) - noise))
    if not abs(found[worst] - expected[worst]) <= noise[worst]:
        raise MendError(
            f"decision_function gives {found[worst]:.6g} for a point, the returned model "
            f"{expected[worst]:.6g}; do not override decision_function"
        )
