"""Checks of a solver that was read from a file, before anything is computed with it.

Compiled code trusts positions and lengths, so that a crafted file could read foreign memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from ..models import (
    BudgetExpansion,
    KernelExpansion,
    LinearModel,
    Model,
    OneVsRestModel,
)
from ..numeric.matrices import Matrix


def check_restored(solver: Any) -> None:
    """Check a restored solver: its model, classes and number of features agree."""
    width = getattr(solver, "n_features_in_", None)
    _require(type(width) is int and width >= 1, f"n_features_in_={width!r} is no number of columns")
    assert isinstance(width, int)
    names = getattr(solver, "feature_names_in_", None)
    _require(names is None or len(names) == width, "it has not a name for each feature")
    model = solver.model_
    check_model(model, width)
    several = isinstance(model, OneVsRestModel)
    expected = len(model.parts) if several else 2
    count = len(solver.classes_)
    _require(count == expected >= 2, f"its model has {expected} classes, and it lists {count}")


def check_classes(classes: np.ndarray, values: Any) -> None:
    """Check classes against the values that they were made of: each is kept, and they differ."""
    kept = classes.ndim == 1 and classes.tolist() == values
    if kept and classes.dtype == object:
        kept = all(isinstance(label, str) for label in classes)
    _require(kept, "its classes are no list of labels of their type")
    _require(len(np.unique(classes)) == len(classes), "a class is there twice")


def check_model(model: Model, width: int) -> None:
    """Check a model for points with so many columns; other kinds of models check themselves."""
    if model.kind in _CHECKS:
        _CHECKS[model.kind](model, width)
        return
    own = not type(model).__module__.startswith("marginbench.")
    _require(own, f"a solver has no model of kind {model.kind!r}")


def _check_kernel_expansion(model: KernelExpansion, width: int) -> None:
    _check_expansion(model)
    n = len(model.coef)
    _check_positions("support", model.support, n, model.n_train)
    _check_matrix(model.points)
    if model.kernel.evaluates:
        _check_points(model.points, n, width)
    else:
        _require(model.points.shape[0] == 0, "a model of a precomputed kernel has points")
        _require(model.n_train == width, f"n_train={model.n_train} is not n_features_in_={width}")


def _check_votes(model: Any, width: int) -> None:
    check_model(model.last, width)
    n = len(np.atleast_1d(model.survivals))
    _check_positions("mistakes", model.mistakes, n, model.last.n_support)
    _check_integers("survivals", model.survivals, n)
    _require(bool((model.survivals >= 0).all()), "survivals are negative")


def _check_budget_expansion(model: BudgetExpansion, width: int) -> None:
    _check_expansion(model)
    _require(model.kernel.evaluates, "a model with points of its own has a precomputed kernel")
    _check_matrix(model.points)
    _check_points(model.points, len(model.coef), width)


def _check_linear(model: LinearModel, width: int) -> None:
    _check_floats("weights", model.weights, (width,))
    _check_intercept(model)
    if model.dual_coef is not None:
        _check_floats("dual_coef", model.dual_coef, (None,))


def _check_features(model: Any, width: int) -> None:
    _check_floats("frequencies", model.frequencies, (None, width))
    k = len(model.frequencies)
    _require(k >= 1, "it has no frequencies")
    _check_floats("weights", model.weights, (2 * k,))
    _check_intercept(model)


def _check_parts(model: OneVsRestModel, width: int) -> None:
    known = [part for part in model.parts if part is not None]
    for part in known:
        _require(not isinstance(part, OneVsRestModel), "the part of a class has parts itself")
        check_model(part, width)
    # Expansions are evaluated together, as one over the points of all.
    joint = [part for part in known if type(part) is KernelExpansion]
    if len(joint) == len(known):
        shared = [
            (part.kernel, part.n_train, part.dtype, sparse.issparse(part.points)) for part in joint
        ]
        _require(
            all(one == shared[0] for one in shared),
            "its classes have no common kernel, training points and type",
        )


def _check_expansion(model: KernelExpansion | BudgetExpansion) -> None:
    _check_floats("coef", model.coef, (None,))
    _check_intercept(model)
    _require(model.dtype in ("float32", "float64"), f"dtype={model.dtype!r} is unknown")


def _check_intercept(model: Model) -> None:
    _require(bool(np.isfinite(model.intercept)), f"intercept={model.intercept!r}")


def _check_floats(name: str, array: Any, shape: tuple[int | None, ...]) -> None:
    """A float64 array of this shape, None for any length, without NaN or infinity."""
    found = isinstance(array, np.ndarray) and array.dtype == np.float64
    _require(found, f"{name} is no array of float64")
    fits = array.ndim == len(shape) and all(
        expected in (None, length) for length, expected in zip(array.shape, shape, strict=True)
    )
    _require(fits, f"{name} has the wrong shape {array.shape}")
    _require(bool(np.isfinite(array).all()), f"{name} has NaN or infinity")


def _check_integers(name: str, array: Any, length: int) -> None:
    found = isinstance(array, np.ndarray) and array.dtype.kind == "i" and array.dtype.isnative
    _require(found, f"{name} is no array of integers")
    _require(array.shape == (length,), f"{name} has the wrong shape {array.shape}")


def _check_positions(name: str, array: Any, length: int, end: int) -> None:
    _check_integers(name, array, length)
    within = bool(((array >= 0) & (array < end)).all())
    _require(within, f"{name} has positions that are not within 0 and {end - 1}")


def _check_points(points: Matrix, n: int, width: int) -> None:
    fits = points.shape == (n, width) or (n == 0 and points.shape == (0, 0))
    _require(fits, f"points have the wrong shape {points.shape}, expected {(n, width)}")


def _check_matrix(points: Matrix) -> None:
    """Finite numbers in two dimensions; of a sparse matrix, columns and rows within its shape."""
    values = points
    if sparse.issparse(points):
        points.check_format(full_check=True)
        indices = points.indices
        within = bool(((indices >= 0) & (indices < points.shape[1])).all())
        _require(within, "points have columns outside of their shape")
        values = points.data
    else:
        _require(isinstance(points, np.ndarray) and points.ndim == 2, "points are no matrix")
    _require(values.dtype in (np.float32, np.float64), "points are neither float32 nor float64")
    _require(bool(np.isfinite(values).all()), "points have NaN or infinity")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ValueError(reason)


# By the names of the kinds: a solver that never makes a model of one does not depend on its code.
_CHECKS: dict[str, Callable[[Any, int], None]] = {
    "kernel expansion": _check_kernel_expansion,
    "voted expansion": _check_votes,
    "budget expansion": _check_budget_expansion,
    "linear": _check_linear,
    "Fourier expansion": _check_features,
    "one-vs-rest": _check_parts,
}
