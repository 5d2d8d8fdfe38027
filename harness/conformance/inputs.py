"""Checks of what is refused: data and parameters that make no sense raise ValueError."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from .findings import MendError
from .subject import Subject, overlapping, raised, unless_refused

_NAN = math.nan
#: Values out of range of parameters that have a common meaning.
_WRONG: dict[str, tuple[Any, ...]] = {
    "C": (0.0, -1.0, _NAN, math.inf),
    "tol": (-1.0, _NAN),
    "max_epochs": (0, -1, 1.5),
    "max_iter": (0, -1, 1.5),
    "gamma": (-1.0, _NAN, "no width"),
    "kernel": ("no kernel",),
    "dtype": ("int8",),
    "cache_size": (-1.0, _NAN),
    "fit_intercept": ("no",),
    "nu": (-1.0, _NAN),
    "random_state": ("no seed",),
}


def bad_data(subject: Subject) -> None:
    """Data that make no sense raise ValueError, in fit and in decision_function."""
    accepted = []
    for words, X, y in _bad_training_sets(subject):
        accepted += unless_refused(words, raised(subject.make().fit, X, y))
    X, y = overlapping()
    solver = subject.make()
    accepted += unless_refused("predicting before fit", raised(solver.decision_function, X))
    solver.fit(X, y)
    for words, new in (("other features", X[:, :2]), ("NaN", _with(X, _NAN))):
        accepted += unless_refused(
            f"predicting for points with {words}",
            raised(solver.decision_function, new),
        )
    if accepted:
        raise MendError(
            f"{'; '.join(accepted)}: raise ValueError, as fit and decision_function of Solver do "
            "unless they are overridden"
        )


def _bad_training_sets(subject: Subject) -> Iterator[tuple[str, Any, Any]]:
    X, y = overlapping()
    yield "NaN in X", _with(X, _NAN), y
    yield "infinity in X", _with(X, math.inf), y
    yield "one class", X, np.ones(len(y))
    yield "no points", X[:0], y[:0]
    yield "no features", X[:, :0], y
    yield "fewer labels than points", X, y[:-1]
    yield "X with one dimension", X[:, 0], y
    yield "continuous labels", X, X[:, 0]
    if subject.cls.supports_sparse:
        yield "NaN in a CSR matrix", sparse.csr_matrix(_with(X, _NAN)), y


def _with(X: Any, value: float) -> Any:
    spoilt = X.copy()
    spoilt[5, 1] = value
    return spoilt


def bad_parameters(subject: Subject) -> None:
    """Values out of range raise ValueError when the solver is fitted."""
    X, y = overlapping(20)
    accepted = []
    for name, value in _wrong_values(subject):
        solver = subject.limited(1, len(y))
        error = raised(solver.set_params(**{name: value}).fit, X, y)
        accepted += unless_refused(f"{name}={value!r}", error)
    if accepted:
        shown = ", ".join(accepted[:4]) + (f" and {len(accepted) - 4} more" * (len(accepted) > 4))
        raise MendError(f"{shown}: raise ValueError in _check_parameters")


def _wrong_values(subject: Subject) -> Iterator[tuple[str, Any]]:
    for name, default in subject.defaults.items():
        if name in ("degree", "coef0"):
            continue  # of no effect on the kernel that is set here
        if name == "gamma" and subject.kernel != "rbf":
            continue
        if name in _WRONG:
            yield from ((name, value) for value in _WRONG[name])
        elif isinstance(default, float):
            # A parameter of its own: nothing is known but that it is a number.
            yield from ((name, _NAN), (name, "text"))
        elif isinstance(default, int) and not isinstance(default, bool):
            yield name, "text"
