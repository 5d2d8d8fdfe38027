"""The class under check, and the small problems and the monitor that it is checked with."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...data_loaders import Dataset
from ...solvers.interface.base import Solver
from ...solvers.interface.monitor import Monitor
from ...solvers.kernels import make_kernel
from ...solvers.models import Model
from ..evaluation.judging import Judgement, TraceMonitor
from ..evaluation.models import PlainModel, plain_model
from ..evaluation.svm import DEFAULT_TOL, Problem, StoppingRules

Array = npt.NDArray[Any]

GAMMA = 0.5
#: How far the scores of two fits may be apart, relative to the largest, and the tolerance of these:
#: equal problems, in which other sums may lead to another solution within the tolerance.
CLOSE, SCORES_TOL = 1e-4, 1e-5
#: The parameters that limit a run.
LIMITS = ("max_epochs", "max_iter")


class MendError(Exception):
    """Something to be mended; the message is one line that says what and how."""


class NotApplicableError(Exception):
    """The check has nothing to look at; the message says why."""


def need(holds: object, words: str) -> None:
    """Refuse the class with these words unless something holds."""
    if not holds:
        raise MendError(words)


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


class Watch(TraceMonitor):
    """Judges a fit as a study does, at more checkpoints; at number ``stop_after``, it asks to stop.

    ``seen`` are the checkpoints: iterations, model, and the model's hash at that time.
    """

    def __init__(self, judge: Judgement, stop_after: int | None) -> None:
        super().__init__(judge, first_checkpoint=1.0, factor=1.1)
        self.stop_after = stop_after
        self.seen: list[tuple[int, PlainModel, bytes]] = []

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        model = plain_model(snapshot())
        self.seen.append((n_iter, model, model.digest))
        stop = super().record(n_iter, lambda: model)  # type: ignore[arg-type, return-value]
        return stop or (self.stop_after is not None and len(self.seen) >= self.stop_after)

    def finish(self, n_iter: int, model: Model) -> None:
        need(not self.ended, "fit calls monitor.finish twice; leave that to Solver.fit")
        super().finish(n_iter, model)


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

    @property
    def biases(self) -> list[bool]:
        """The values of ``fit_intercept`` that it supports, first that of :meth:`make`."""
        supported = {False: self.cls.supports_no_bias, True: self.cls.supports_bias}
        return [bias for bias, yes in supported.items() if yes]

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

    def limited(self, epochs: int, n: int, **params: Any) -> Any:
        """An estimator that ends after so many epochs of n iterations."""
        return self.make(**{"max_epochs": epochs, "max_iter": epochs * n, **params})

    def outcome(self, points: Points, *, monitor: Monitor | None = None, **params: Any) -> Any:
        """That of a fit of a new estimator; by default its monitor records nothing."""
        return outcome(self.make(**params).fit(*points, monitor=monitor or Monitor()))

    def scores(self, X: Any, y: Any, Z: Any = None, **params: Any) -> Array:
        """The scores of an estimator with entries in float64; by default of its training points."""
        settings = {"dtype": "float64", "tol": SCORES_TOL, **params}
        solver = self.make(**settings).fit(X, y, monitor=Monitor())
        return np.asarray(solver.decision_function(X if Z is None else Z))

    def kernel_on(self, X: Any) -> Any:
        """The kernel that :meth:`make` sets."""
        return make_kernel(self.kernel, gamma=GAMMA, degree=3, coef0=0.0, X=X)

    def judge(
        self,
        points: Points,
        C: float = 1.0,
        *,
        bias: bool | None = None,
        certificate: bool = True,
        tol: float | None = None,
    ) -> Judgement:
        """What judges a fit to points of two classes, as in a study on them."""
        X, y = points
        return Judgement(
            Problem(
                "", {}, self.kernel_on(X).describe(), C, self.biases[0] if bias is None else bias
            ),
            Dataset("", {}, X, y, X, y, "", "", ""),
            certificate=certificate and self.cls.certificate == "dual",
            tol=self.defaults.get("tol", DEFAULT_TOL) if tol is None else tol,
            rules=StoppingRules(),
            send=lambda message: None,
        )

    def watched(
        self,
        points: Points,
        C: float = 1.0,
        *,
        bias: bool | None = None,
        certificate: bool = False,
        stop_after: int | None = None,
    ) -> tuple[Any, Watch]:
        """A fitted estimator, and what has watched it."""
        watch = Watch(self.judge(points, C, bias=bias, certificate=certificate), stop_after)
        params = {} if bias is None else {"fit_intercept": bias}
        return self.make(C=C, **params).fit(*points, monitor=watch), watch


def outcome(solver: Solver) -> dict[str, Any]:
    """The values by which two fits are compared."""
    counters = solver.counters_
    return {
        "model": plain_model(solver.model_).digest,
        "counters": None if counters is None else counters.as_dict(),
        "n_iter": solver.n_iter_,
        "status": solver.status_,
    }


def check_same(first: dict[str, Any], second: dict[str, Any], words: str, remedy: str) -> None:
    """Refuse two outcomes that differ."""
    differs = " and ".join(name for name, value in first.items() if value != second[name])
    need(not differs, f"{words} {differs}; {remedy}")


def raised(call: Callable[..., Any], *arguments: Any, **named: Any) -> Exception | None:
    """What a call raises, or None."""
    try:
        call(*arguments, **named)
    except Exception as error:  # noqa: BLE001 - a user's code may raise anything
        return error
    return None


def draw() -> None:
    """Draw from the global states, which a solver must neither use nor set."""
    np.random.random(7)  # noqa: NPY002 - as above
    random.random()


def constructor(subject: Subject) -> None:
    """Parameters can be listed, and have defaults."""
    for name, item in inspect.signature(subject.cls).parameters.items():
        variable = item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
        need(not variable, f"__init__ takes *{name}; list every parameter by name")
        need(item.default is not item.empty, f"{name} has no default; give it one")
    subject.cls()
