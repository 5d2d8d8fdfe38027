"""The class under check, and the small problems and the monitor that it is checked with."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...solvers.interface.base import Solver
from ...solvers.interface.monitor import Monitor
from ...solvers.kernels import make_kernel
from ...solvers.models import Model
from ...solvers.numeric.counters import Counters
from ..errors import EvaluationError, first_line
from ..evaluation.models import Evaluator, PlainModel, TaskPoints, plain_model
from ..words import visible

Array = npt.NDArray[Any]

GAMMA = 0.5
#: The parameters that limit a run.
LIMITS = ("max_epochs", "max_iter")


class MendError(Exception):
    """Something to be mended; the message is one line that says what and how."""


class NotApplicableError(Exception):
    """The check has nothing to look at; the message says why."""


class Points(NamedTuple):
    """A training set: X, float64 of values that float32 holds, and labels."""

    X: Array
    y: Array


def overlapping(n: int = 40, seed: int = 0) -> Points:
    """Two overlapping classes in three dimensions, labels -1 and +1 in turn."""
    y = np.where(np.arange(n) % 2, 1, -1)
    return _around(0.7 * y[:, None], y, 1.0, seed)


def clusters(n: int = 40) -> Points:
    """Two clusters on opposite sides of the origin, labels -1 and +1 in turn."""
    y = np.where(np.arange(n) % 2, 1, -1)
    return _around(1.5 * y[:, None], y, 0.3, 1)


def three_classes(n: int = 45) -> Points:
    """Three overlapping classes, labels 0, 1 and 2 in turn."""
    y = np.arange(n) % 3
    return _around(1.5 * np.eye(3)[y], y, 0.6, 2)


def _around(centres: Array, y: Array, width: float, seed: int) -> Points:
    X = width * np.random.default_rng(seed).standard_normal((len(y), 3)) + centres
    return Points(X.astype(np.float32).astype(np.float64), y)


@dataclass(frozen=True)
class Subject:
    """The class under check."""

    cls: type[Solver]

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Every parameter with its default."""
        return {name: item.default for name, item in inspect.signature(self.cls).parameters.items()}

    @property
    def kernel(self) -> str:
        """The kernel that it is checked with: its own default."""
        default = self.defaults.get("kernel", getattr(self.cls, "kernel", "rbf"))
        return default if default in ("rbf", "linear") else "rbf"

    def make(self, **params: Any) -> Any:
        """An estimator with small settings and seed 0; parameters that it lacks are left out."""
        settings = {
            "kernel": self.kernel,
            "gamma": GAMMA,
            "C": 1.0,
            "fit_intercept": not getattr(self.cls, "supports_no_bias", True),
            "random_state": 0,
            **params,
        }
        return self.cls(**{k: v for k, v in settings.items() if k in self.defaults})

    def outcome(self, points: Points, *, monitor: Monitor | None = None, **params: Any) -> Any:
        """That of a fit of a new estimator; by default its monitor records nothing."""
        return outcome(self.make(**params).fit(*points, monitor=monitor or Monitor()))

    def scores(self, X: Any, y: Any, Z: Any = None, **params: Any) -> Array:
        """The scores of an estimator with entries in float64; by default of its training points."""
        solver = self.make(dtype="float64", **params).fit(X, y, monitor=Monitor())
        return np.asarray(solver.decision_function(X if Z is None else Z))

    def limited(self, epochs: int, n: int, **params: Any) -> Any:
        """An estimator that ends after so many epochs of n iterations."""
        return self.make(max_epochs=epochs, max_iter=epochs * n, **params)

    @property
    def tolerance(self) -> float:
        """How far scores in float64 may be apart, relative to the largest."""
        return 1e-6 if "dtype" in self.defaults else 1e-4

    def kernel_on(self, X: Any) -> Any:
        """The kernel that :meth:`make` sets."""
        return make_kernel(self.kernel, gamma=GAMMA, degree=3, coef0=0.0, X=X)

    def evaluator(self, points: Points, C: float = 1.0, *, bias: bool = False) -> Evaluator:
        """What recomputes scores and objectives of a model of these points, of two classes."""
        X, y = points
        return Evaluator(
            TaskPoints(self.kernel_on(X), X, X),
            C=C,
            fit_intercept=bias,
            y_train=y,
            y_test=y,
            dual_certificate=self.cls.certificate == "dual",
        )

    @property
    def biases(self) -> list[bool]:
        """The values of ``fit_intercept`` that it supports."""
        supported = {False: self.cls.supports_no_bias, True: self.cls.supports_bias}
        return [bias for bias, yes in supported.items() if yes]


def outcome(solver: Solver) -> dict[str, Any]:
    """The values by which two fits are compared."""
    counters = solver.counters_
    return {
        "model": plain_of(solver.model_).digest,
        "counters": None if counters is None else counters.as_dict(),
        "n_iter": solver.n_iter_,
        "status": solver.status_,
    }


def check_same(first: dict[str, Any], second: dict[str, Any], words: str, remedy: str) -> None:
    """Refuse two outcomes that differ."""
    differs = " and ".join(name for name, value in first.items() if value != second[name])
    if differs:
        raise MendError(f"{words} {differs}; {remedy}")


def plain_of(model: object) -> PlainModel:
    """A model as numbers."""
    try:
        return plain_model(model)
    except EvaluationError as error:
        raise MendError(f"{error}; return a model such as problem.expansion(coef)") from None


class Seen(NamedTuple):
    """A checkpoint: the solver's report, the counts, and the model with its hash at that time."""

    n_iter: int
    counts: dict[str, int]
    model: PlainModel
    digest: bytes


class Watch(Monitor):
    """Takes every checkpoint that the solver offers; at number ``stop_after``, it asks to stop."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.next_checkpoint = 0.0
        self.stop_after = stop_after
        self.counters: Counters | None = None
        self.seen: list[Seen] = []
        self.started = 0
        self.finished: list[tuple[int, Model]] = []

    def start(self, counters: Counters | None) -> None:
        self.started += 1
        self.counters = counters

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        model = plain_of(snapshot())
        self.seen.append(Seen(n_iter, self.counts(), model, model.digest))
        return self.stop_after is not None and len(self.seen) >= self.stop_after

    def counts(self) -> dict[str, int]:
        """The counters by name, as they are now."""
        return {} if self.counters is None else self.counters.as_dict()

    def finish(self, n_iter: int, model: Model) -> None:
        self.finished.append((n_iter, model))


def raised(call: Callable[..., Any], *arguments: Any, **named: Any) -> Exception | None:
    """What a call raises, or None."""
    try:
        call(*arguments, **named)
    except Exception as error:  # noqa: BLE001 - a user's code may raise anything
        return error
    return None


def check_refused(cases: Iterable[tuple[str, Callable[[], Any]]], remedy: str) -> None:
    """Refuse that bad input is accepted, or is refused by anything but a ValueError."""
    faults = []
    for words, call in cases:
        error = raised(call)
        if error is None:
            faults.append(f"{words} is accepted")
        elif not isinstance(error, ValueError):
            faults.append(f"{words} raises {visible(first_line(error), 100)}")
    if faults:
        more = f" and {len(faults) - 4} more" if len(faults) > 4 else ""
        raise MendError(f"{', '.join(faults[:4])}{more}: {remedy}")


def draw() -> None:
    """Draw from the global states, which a solver must neither use nor set."""
    np.random.random(7)  # noqa: NPY002 - as above
    random.random()


def constructor(subject: Subject) -> None:
    """Parameters can be listed, and have defaults."""
    for name, item in inspect.signature(subject.cls).parameters.items():
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            raise MendError(f"__init__ takes *{name}; list every parameter by name")
        if item.default is item.empty:
            raise MendError(f"{name} has no default; give it one, so that the class can be built")
    subject.cls()
