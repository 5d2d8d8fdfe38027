"""Checks of other forms of the same data, and of the fitted estimator in a file."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ...solvers.interface.base import WeightedSolver
from ...solvers.interface.problem import Problem
from ...solvers.interface.saving import load_solver
from ..errors import first_line
from .findings import MendError, NotApplicableError
from .subject import (
    Fitted,
    Subject,
    clusters,
    overlapping,
    plain_of,
    raised,
    three_classes,
)

# Rounding of inputs that are taken in float32.
_SINGLE = 1e-4
_LEARNT = 0.9
_OTHER_GAMMA = 2.0
# How far the scores of one class may be apart that are trained with other draws.
_OTHER_DRAWS = 0.2


def _apart(found: Any, expected: Any) -> float:
    """The largest difference of scores, relative to the largest score."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return float("inf")
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-12))


def sparse_data(subject: Subject) -> None:
    """CSR data give the model of the same dense data; a class that takes none refuses them."""
    X, y = overlapping()
    X[np.abs(X) < 0.4] = 0.0
    stored = sparse.csr_matrix(X)
    solver = subject.make(dtype="float64")
    if not subject.cls.supports_sparse:
        error = raised(solver.fit, stored, y)
        if isinstance(error, ValueError | TypeError):
            raise NotApplicableError("it takes no CSR data (supports_sparse = False), and says so")
        raise MendError("supports_sparse is False, but fit takes CSR data; refuse them")
    expected = subject.make(dtype="float64").fit(X, y).decision_function(X)
    found = solver.fit(stored, y).decision_function(stored)
    if not _apart(found, expected) <= subject.tolerance:
        raise MendError(
            f"scores with CSR data differ by {_apart(found, expected):.2g} from those with dense "
            "data; use problem.oracle, or set supports_sparse = False"
        )


def float32_data(subject: Subject) -> None:
    """float32 data give nearly the scores of the same numbers in float64."""
    X, y = overlapping()
    expected = subject.make(dtype="float64").fit(X, y).decision_function(X)
    found = subject.make(dtype="float64").fit(X.astype(np.float32), y).decision_function(X)
    if not _apart(found, expected) <= _SINGLE:
        raise MendError(
            f"scores with float32 data differ by {_apart(found, expected):.2g} from those with the "
            "same numbers in float64; accumulate sums in float64"
        )


def weights(subject: Subject) -> None:
    """Weights of points and of classes change the problem; negative ones are refused."""
    if not issubclass(subject.cls, WeightedSolver):
        raise NotApplicableError("it takes no weights (it does not derive from WeightedSolver)")
    X, y = overlapping()
    heavy = np.where(y > 0, 5.0, 0.2)
    plain = Fitted.of(subject.make().fit(X, y)).model
    weighted = Fitted.of(subject.make().fit(X, y, sample_weight=heavy)).model
    by_class = subject.make(class_weight={-1: 0.2, 1: 5.0}).fit(X, y)
    if weighted == plain:
        raise MendError(
            "weights change nothing; multiply each point's loss by problem.weights, or derive from "
            "Solver instead of WeightedSolver"
        )
    if Fitted.of(by_class).model != weighted:
        raise MendError("class_weight gives another model than the same weights for each point")
    if not isinstance(raised(subject.make().fit, X, y, sample_weight=-heavy), ValueError):
        raise MendError("negative weights are accepted; leave fit to WeightedSolver")


class _Gaussian:
    """A Gaussian kernel as a function of two matrices."""

    def __call__(self, A: Any, B: Any) -> Any:
        return np.exp(-_OTHER_GAMMA * np.square(A[:, None] - B).sum(axis=2))


def kernel_function(subject: Subject) -> None:
    """A kernel given as a function gives the model of the same kernel given by name."""
    if "kernel" not in subject.defaults or not subject.cls.supports_callable_kernel:
        raise NotApplicableError("it takes no kernel that is a function")
    X, y = overlapping()
    named = subject.make(kernel="rbf", gamma=_OTHER_GAMMA, dtype="float64").fit(X, y)
    # It has its own width; the parameter gamma means nothing for it.
    given = subject.make(kernel=_Gaussian(), dtype="float64").fit(X, y)
    apart = _apart(given.decision_function(X), named.decision_function(X))
    if not apart <= _SINGLE:
        raise MendError(
            f"scores with a Gaussian kernel given as a function differ by {apart:.2g} from those "
            "with the same kernel by name; take every entry from problem.oracle, or set "
            "supports_callable_kernel = False"
        )


def labels(subject: Subject) -> None:
    """Any two labels will do; the larger one is the positive class."""
    X, y = overlapping()
    expected = subject.make().fit(X, y).decision_function(X)
    for pair in (("ham", "spam"), (False, True), (3, 7), (1.0, 2.0)):
        named = np.array(pair)[(y > 0).astype(int)]
        solver = subject.make().fit(X, named)
        if not np.array_equal(solver.decision_function(X), expected):
            raise MendError(
                f"with the labels {pair[0]!r} and {pair[1]!r} the model is another one than with "
                "-1 and 1; use problem.y, not the labels"
            )
        if not np.array_equal(solver.predict(X), np.array(pair)[(expected > 0).astype(int)]):
            raise MendError(f"predict does not return the labels {pair[0]!r} and {pair[1]!r}")


def several_classes(subject: Subject) -> None:
    """Of three classes each is trained against the rest as it would be alone."""
    X, y = three_classes()
    with _shared_names() as shares:
        solver = subject.make(dtype="float64").fit(X, np.array(["a", "b", "c"])[y])
    scores = np.asarray(solver.decision_function(X))
    if scores.shape != (len(y), 3):
        raise MendError(f"decision_function returns shape {scores.shape} for 3 classes")
    if not np.array_equal(solver.predict(X), np.array(["a", "b", "c"])[scores.argmax(axis=1)]):
        raise MendError("predict is not the class with the largest score; do not override predict")
    for label in range(3):
        alone = subject.make(dtype="float64").fit(X, np.where(y == label, 1, -1))
        # What is drawn for all classes together is drawn before the draws of the first class only.
        allowed = _OTHER_DRAWS if shares and label else subject.tolerance
        apart = _apart(scores[:, label], alone.decision_function(X))
        if not apart <= allowed:
            raise MendError(
                f"class {label + 1} of 3 differs by {apart:.2g} from a fit of it alone against the "
                "rest; keep nothing of one class for the next but what problem.once makes"
            )


@contextmanager
def _shared_names() -> Iterator[set[str]]:
    """The names of what problems share beside the oracle (`problem.once`), as they are asked."""
    names: set[str] = set()
    original = Problem.once

    def once(self: Problem, name: str, make: Callable[[], Any]) -> Any:
        names.add(name)
        return original(self, name, make)

    Problem.once = once  # type: ignore[method-assign]
    try:
        yield names
    finally:
        Problem.once = original  # type: ignore[method-assign]
        names.discard("oracle")


def row_order(subject: Subject) -> None:
    """It learns whatever the order of the rows, sorted by class too."""
    X, y = clusters()
    rng = np.random.default_rng(3)
    orders = {
        "sorted by class": np.argsort(y, kind="stable"),
        "sorted by class, in descending order": np.argsort(-y, kind="stable"),
        "in random order": rng.permutation(len(y)),
    }
    for words, order in orders.items():
        solver = subject.make().fit(X[order], y[order])
        share = float(np.mean(solver.predict(X) == y))
        if share < _LEARNT:
            raise MendError(
                f"with rows {words} it classifies {share:.0%} of two clusters that are far apart; "
                "do not rely on the order of the rows"
            )


def saving(subject: Subject) -> None:
    """A pickled and a saved solver predict what the fitted one does, to the last bit."""
    X, y = overlapping()
    solver = subject.make().fit(X, y)
    expected = solver.decision_function(X)
    error = raised(lambda: pickle.loads(pickle.dumps(solver)))
    if error is not None:
        raise MendError(
            f"a fitted estimator cannot be pickled ({first_line(error)}); keep no functions, locks "
            "or files in its attributes"
        )
    if not np.array_equal(pickle.loads(pickle.dumps(solver)).decision_function(X), expected):
        raise MendError("a pickled estimator predicts other scores; keep all it needs in itself")
    plain_of(solver.model_)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solver.npz"
        solver.save(path)
        if not np.array_equal(load_solver(path, subject.cls).decision_function(X), expected):
            raise MendError("a saved estimator predicts other scores; its model must hold all")
