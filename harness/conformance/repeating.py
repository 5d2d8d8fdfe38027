"""Checks of fits that are repeated: same seed, same run; nothing is left behind."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np

from .findings import MendError
from .subject import Fitted, Subject, clusters, overlapping


def determinism(subject: Subject) -> None:
    """The same seed gives the same model, counts and status; another seed may give others."""
    points = overlapping()
    first = Fitted.of(subject.make().fit(*points))
    # What happens in between must not matter: other data, other draws from the global state.
    subject.make().fit(*clusters(30))
    np.random.random(7)  # noqa: NPY002 - the state that a solver must not use
    random.random()
    differs = first.differences(Fitted.of(subject.make().fit(*points)))
    if differs:
        seed = (
            "draw only from problem.rng, and keep nothing between fits"
            if "random_state" in subject.defaults
            else "declare random_state (inherit SeedParameters), and draw only from problem.rng"
        )
        raise MendError(f"two fits with random_state=0 differ in {differs}; {seed}")
    # Any other seed must do.
    subject.make(random_state=1).fit(*points)


def refitting(subject: Subject) -> None:
    """A second fit of the same estimator forgets the first."""
    X, y = overlapping()
    other = overlapping(seed=1)
    fresh = Fitted.of(subject.make().fit(X, y))
    # After other sizes, after other data of the same size, and after the same data.
    befores = ((X[:20, :2], y[:20]), (other.X, other.y), (X, y))
    for before in befores:
        again = subject.make().fit(*before).fit(X, y)
        differs = Fitted.of(again).differences(fresh)
        if not differs:
            continue
        raise MendError(
            f"fitted a second time, the estimator differs in {differs} from a new one; begin "
            "_solve from the parameters and the problem alone"
        )


def side_effects(subject: Subject) -> None:
    """A fit changes neither its parameters nor the caller's data nor the global random state."""
    X, y = overlapping()
    given, labels = X.copy(), y.copy()
    solver = subject.make()
    parameters = copy.deepcopy(solver.get_params(deep=False))
    # A solver that always sets the same state must find another one.
    np.random.random(7)  # noqa: NPY002 - the state that must not change
    random.random()
    before = _random_state()
    solver.fit(X, y)
    solver.decision_function(X)
    if not (np.array_equal(X, given) and np.array_equal(y, labels)):
        raise MendError("fit changes the caller's X or y; work on copies")
    if repr(solver.get_params(deep=False)) != repr(parameters):
        raise MendError("fit changes parameters; keep what it computes in other attributes")
    if _random_state() != before:
        raise MendError("fit uses the global random state; draw from problem.rng")


def _random_state() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002 - the state that must not change
    return kind, np.asarray(keys).tobytes(), *rest, random.getstate()
