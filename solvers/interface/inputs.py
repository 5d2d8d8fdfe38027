"""Checks of the arguments of ``fit``: types, finite values, seeds and weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from ..numeric.matrices import Matrix, canonical
from ..numeric.validation import check_positive

# Types of points that are kept as they are.
_FLOATS = [np.float64, np.float32]


def dtype_name(dtype: Any) -> str:
    """The name of a data type; anything else is returned as text."""
    # numpy takes None for float64.
    if dtype is None:
        return "None"
    try:
        return np.dtype(dtype).name
    except TypeError:
        return str(dtype)


def training_points(
    estimator: Any, X: Any, y: Any = "no_validation", *, accept_sparse: bool = True, **checks: Any
) -> tuple[Matrix, Any]:
    """X as solvers want it (C order, or canonical CSR; finite), and y or None."""
    checked = validate_data(
        estimator,
        X,
        y,
        accept_sparse="csr" if accept_sparse else False,
        dtype=_FLOATS,
        order="C",
        ensure_all_finite=False,
        **checks,
    )
    X, y = checked if isinstance(checked, tuple) else (checked, None)
    check_finite(X)
    return canonical(X) if sparse.issparse(X) else X, y


def new_points(estimator: Any, X: Any) -> Matrix:
    """Points to predict, checked against those that the estimator was fitted to."""
    check_is_fitted(estimator)
    return validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=_FLOATS)


def check_finite(X: Matrix) -> None:
    """Raise ValueError, with the position, if X holds NaN or infinity."""
    values = X.data if sparse.issparse(X) else X
    # A finite sum proves that all is finite, without a mask the size of X.
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad) == 0:
        return
    kind = "NaN" if np.isnan(values[tuple(bad[0])]) else "infinity (inf)"
    row, column = bad[0] if values is X else [at[bad[0, 0]] for at in X.tocoo().coords]
    raise ValueError(
        f"X contains {kind} at row {row}, column {column}; remove the row or replace the value"
    )


def generator(random_state: Any) -> np.random.Generator:
    """A numpy Generator of scikit-learn's ``random_state``; ValueError if it is none."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be None, a whole number >= 0 or a numpy Generator, got "
            f"{random_state!r}"
        ) from None


def class_weights(
    class_weight: Any, classes: np.ndarray, y: np.ndarray, repeats: np.ndarray | None = None
) -> np.ndarray:
    """The factor of each class, float64, shape (n_classes,)."""
    if class_weight != "balanced" and not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, 'balanced' or a dict of class to weight, got "
            f"{class_weight!r}"
        )
    if class_weight == "balanced":
        # scikit-learn's function counts points by their weight in its later versions only.
        sizes = np.bincount(np.searchsorted(classes, y), weights=repeats).astype(np.float64)
        # A class of which nothing is left has no factor: the caller says so.
        factors = np.zeros(len(classes))
        return np.divide(sizes.sum(), len(classes) * sizes, out=factors, where=sizes > 0)
    by_class = dict(class_weight)
    for label, weight in by_class.items():
        if label not in classes:
            raise ValueError(f"class_weight names {label!r}, which is no class of y")
        check_positive(f"class_weight[{label!r}]", weight, zero=True)
    return np.asarray(compute_class_weight(by_class, classes=classes, y=y), dtype=np.float64)
