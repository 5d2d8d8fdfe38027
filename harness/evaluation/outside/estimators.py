"""Estimators of other libraries as peers: what the task decides of them, and how they are built."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EvaluationError, SolverError
from ..plain import PlainModel

Array = npt.NDArray[Any]

_KERNEL = ("kernel", "gamma", "degree", "coef0")


@dataclass(frozen=True)
class Known:
    """A class whose parameters mean what those of a task mean.

    Attributes
    ----------
    decided : tuple of str
        Parameters that the task decides.
    kernels : tuple of str
        The kernels of tasks that it has as well; empty if it takes none.
    solves : bool
        Whether it solves the task's problem with bias on two classes, so that its coefficients
        are judged and not only its predictions.
    unless : tuple of str
        Parameters that make another problem of it.
    """

    decided: tuple[str, ...]
    kernels: tuple[str, ...] = ()
    solves: bool = False
    unless: tuple[str, ...] = ()


_SHARED_KERNELS = ("linear", "poly", "rbf")
#: Classes of scikit-learn by name. Of every other class the task decides nothing but the seed.
KNOWN: Mapping[str, Known] = {
    "SVC": Known((*_KERNEL, "C"), _SHARED_KERNELS, solves=True, unless=("class_weight",)),
    "NuSVC": Known(_KERNEL, _SHARED_KERNELS),
    "LinearSVC": Known(("C",)),
    "LogisticRegression": Known(("C", "fit_intercept")),
}
#: What a seed is called; of the parts of a pipeline with their names before it.
_SEED = "random_state"


def known_class(maker: Any) -> Known | None:
    """What is known of a class of scikit-learn."""
    if not inspect.isclass(maker) or not maker.__module__.startswith("sklearn."):
        return None
    return KNOWN.get(maker.__qualname__)


def check_maker(maker: Any, name: str) -> None:
    """Check that this can make an estimator: a class with fit and predict, or a function.

    Raises
    ------
    SolverError
        If it cannot.
    """
    if inspect.isclass(maker):
        missing = [item for item in ("fit", "predict") if not callable(getattr(maker, item, None))]
        if not missing:
            return
        raise SolverError(
            f"{name.rpartition(':')[0]}: {maker.__name__} is not a solver; derive it from "
            f"marginbench.Solver, or give it {missing[0]} for a classifier with fit and predict"
        )
    if not inspect.isfunction(maker):
        raise SolverError(
            f"{name} is a {type(maker).__name__}; give a class, or a function that makes a "
            "classifier with fit and predict"
        )


def takes_any_parameter(maker: Any) -> bool:
    """Whether it has a parameter "**"."""
    return any(
        parameter.kind == parameter.VAR_KEYWORD
        for parameter in inspect.signature(maker).parameters.values()
    )


def traits_of(maker: Any) -> dict[str, Any]:
    """What planning must know of it."""
    known = known_class(maker)
    solves = known is not None and known.solves
    return {
        "outside": "estimator",
        "supports_bias": True,
        "supports_no_bias": not solves,
        "supports_sparse": True,
        "scalarization": "C" if solves else None,
        "certificate": "dual" if solves else None,
        "instrumented": False,
        "decided": known.decided if known else (),
        "kernels": known.kernels if known else (),
        "unless": known.unless if known else (),
        "any_parameter": takes_any_parameter(maker),
    }


def built(maker: Any, name: str, params: Mapping[str, Any], seed: int) -> Any:
    """An estimator with these parameters, and the seed wherever it has one that is not set.

    Raises
    ------
    SolverError
        If what is made is no classifier.
    """
    estimator = maker(**params)
    for method in ("fit", "predict"):
        if not callable(getattr(estimator, method, None)):
            raise SolverError(
                f"{name} made a {type(estimator).__name__} without {method}; it must make a "
                "classifier with fit and predict"
            )
    if hasattr(estimator, "get_params") and hasattr(estimator, "set_params"):
        seeds = {
            key: seed
            for key, value in estimator.get_params().items()
            if value is None and (key == _SEED or key.endswith(f"__{_SEED}"))
        }
        if seeds:
            estimator.set_params(**seeds)
    return estimator


def predicted(estimator: Any, X: Any, part: str) -> Array:
    """The labels that it predicts, shape (n_points,).

    Raises
    ------
    EvaluationError
        If they are no numbers, or not one for each point.
    """
    found = np.asarray(estimator.predict(X))
    n = X.shape[0]
    if found.shape != (n,):
        raise EvaluationError(f"predict returned shape {found.shape} for the {n} {part} points")
    if found.dtype.kind not in "biuf":
        raise EvaluationError(
            f"predict returned values of type {str(found.dtype)[:40]}, not the labels of the task"
        )
    return found


def expansion_of(svc: Any) -> PlainModel:
    """The expansion of a fitted SVC of two classes; scores > 0 are of its second class."""
    coef = svc.dual_coef_
    dense = coef.toarray() if hasattr(coef, "toarray") else coef
    return PlainModel(
        "kernel expansion",
        float(svc.intercept_[0]),
        {
            "support": np.asarray(svc.support_, dtype=np.int64),
            "coef": np.array(dense[0], dtype=np.float64),
        },
    )
