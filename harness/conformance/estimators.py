"""Checks of an estimator: its class, a fit, repeated fits, what measures a run, other data."""

from __future__ import annotations

import inspect
import math
import random
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from ...solvers.interface.base import Solver, WeightedSolver
from ...solvers.interface.monitor import Monitor
from ...solvers.interface.saving import load_solver
from ...solvers.kernels import Kernel
from ...solvers.models import LinearModel
from ...solvers.smo.smo import SMO
from ..errors import EvaluationError, first_line
from ..evaluation.judging import served
from ..evaluation.models import Evaluation
from ..words import plural
from .subject import (
    GAMMA,
    LIMITS,
    MendError,
    NotApplicableError,
    Points,
    Subject,
    Watch,
    check_refused,
    check_same,
    clusters,
    constructor,
    draw,
    outcome,
    overlapping,
    plain_of,
    raised,
    three_classes,
)

__all__ = ["constructor"]

Array = npt.NDArray[Any]


def traits(subject: Subject) -> None:
    """Class attributes have values that the harness knows, and parameters to go with them."""
    cls, parameters = subject.cls, subject.defaults
    flags = ("supports_bias", "supports_no_bias", "supports_sparse", "supports_callable_kernel")
    allowed: dict[str, tuple[Any, ...]] = dict.fromkeys((*flags, "instrumented"), (True, False))
    allowed |= {"scalarization": ("C", "R", "S", None), "certificate": ("dual", None)}
    for name, values in allowed.items():
        value = getattr(cls, name)
        if not any(type(value) is type(one) and value == one for one in values):
            shown = ", ".join(map(repr, values))
            raise MendError(f"{name} is {value!r:.60}; it must be one of {shown}")
    if not (cls.supports_bias or cls.supports_no_bias):
        raise MendError("supports_bias and supports_no_bias are both False; no task fits")
    if cls.supports_bias and "fit_intercept" not in parameters:
        raise MendError(
            "supports_bias is True, but there is no parameter fit_intercept by which the harness "
            "could ask for a bias; inherit SolverParameters"
        )
    if cls.scalarization in ("C", "R") and "C" not in parameters:
        raise MendError(
            f"scalarization is {cls.scalarization!r}, but there is no parameter C, so every task's "
            "C is ignored; inherit SoftMarginParameters, or set scalarization = None"
        )
    if cls.scalarization == "S" and "nu" not in parameters:
        raise MendError("scalarization is 'S', but there is no parameter nu; declare it")
    kernel = getattr(cls, "kernel", None)
    if "kernel" not in parameters and not isinstance(kernel, str | Kernel):
        raise MendError("there is no parameter kernel; inherit KernelParameters")
    if "monitor" not in inspect.signature(cls.fit).parameters:
        raise MendError("fit takes no monitor; override _solve instead of fit")


# One fit: it ends, tells what it did, and predicts with the model that it returns.


_STATUSES = ("converged", "no_separator", "budget", "stopped")
# Part of the points of two clusters far apart that any solver should classify.
_LEARNT = 0.9
# Checks of scikit-learn that ask for what not every method can have: repeated points are other
# draws than weighted ones, or have the same optimum up to tol; a line through the origin cannot
# predict one class everywhere. What looks for a separator finds none between three blobs.
_NOT_ALL = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_class_weight_classifiers",
}
_BLOBS = "check_classifiers_train"


def warm_up(subject: Subject) -> None:
    """The fit to a few points that comes first, of arrays that may not be written to."""
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
    _check_learning(subject)


def _check_learning(subject: Subject) -> None:
    """It learns two clusters far apart, whatever the order of the rows."""
    X, y = clusters()
    orders = {
        "in turn": np.arange(len(y)),
        "sorted by class": np.argsort(y, kind="stable"),
        "sorted by class, in descending order": np.argsort(-y, kind="stable"),
        "in random order": np.random.default_rng(3).permutation(len(y)),
    }
    for words, order in orders.items():
        solver = subject.make().fit(X[order], y[order])
        if solver.status_ == "no_separator":
            raise MendError("it finds no separator of two clusters that a hyperplane separates")
        share = float(np.mean(solver.predict(X) == y))
        if share < _LEARNT:
            raise MendError(
                f"with rows {words} it classifies {share:.0%} of two clusters that are far apart; "
                "check the signs of the coefficients, and do not rely on the order of the rows"
            )


def scores(subject: Subject) -> None:
    """decision_function gives the scores of the returned model, and the bias is one to have."""
    points = overlapping()
    for bias in subject.biases:
        solver = subject.make(dtype="float64", fit_intercept=bias).fit(*points)
        if not bias and np.any(np.asarray(solver.intercept_) != 0):
            raise MendError("the model has an intercept although fit_intercept is False")
        expected = subject.evaluator(points).test_scores(solver.model_, np.arange(len(points.y)))
        _check_close(
            *(solver.decision_function(points.X), expected, subject.tolerance),
            "scores of decision_function differ by {} from those of the returned model",
            "do not override decision_function",
        )


# What is refused: parameters that make no sense raise ValueError.


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


def bad_parameters(subject: Subject) -> None:
    """Values out of range raise ValueError when the solver is fitted."""
    points = overlapping(20)

    def fit(name: str, value: Any) -> None:
        subject.limited(1, len(points.y)).set_params(**{name: value}).fit(*points)

    check_refused(
        (
            (f"{name}={value!r}", partial(fit, name, value))
            for name, value in _wrong_values(subject)
        ),
        "raise ValueError in _check_parameters",
    )


def _wrong_values(subject: Subject) -> Iterator[tuple[str, Any]]:
    # Of no effect on the kernel that is set here.
    idle = {"degree", "coef0", *(() if subject.kernel == "rbf" else ("gamma",))}
    for name, default in subject.defaults.items():
        # Of a parameter of its own only the type is known: a number.
        of_type = {float: (_NAN, "text"), int: ("text",)}.get(type(default), ())
        if name not in idle:
            yield from ((name, value) for value in _WRONG.get(name, of_type))


# Repeated fits: same seed, same run; nothing is left behind.


def determinism(subject: Subject) -> None:
    """The same seed gives the same model, counts and status; another seed may give others."""
    points = overlapping()
    first = subject.outcome(points)
    # What happens in between must not matter: other data, other draws from the global state.
    subject.make().fit(*clusters(30))
    draw()
    seed = (
        "draw only from problem.rng, and keep nothing between fits"
        if "random_state" in subject.defaults
        else "declare random_state (inherit SeedParameters), and draw only from problem.rng"
    )
    check_same(first, subject.outcome(points), "two fits with random_state=0 differ in", seed)
    # Any other seed must do.
    other = subject.outcome(points, random_state=1)
    if subject.cls.deterministic:
        check_same(
            first,
            other,
            "deterministic is True, but with random_state=1 it has another",
            "set deterministic = False: studies run a solver that draws nothing with one seed",
        )


def refitting(subject: Subject) -> None:
    """A second fit of the same estimator forgets the first."""
    X, y = points = overlapping()
    fresh = subject.outcome(points)
    # After other sizes, after other data of the same size, and after the same data.
    for before in ((X[:20, :2], y[:20]), overlapping(seed=1), (X, y)):
        check_same(
            fresh,
            outcome(subject.make().fit(*before).fit(X, y, monitor=Monitor())),
            "fitted a second time, the estimator differs from a new one in",
            "begin _solve from the parameters and the problem alone",
        )


def side_effects(subject: Subject) -> None:
    """A fit changes neither its parameters nor the global random state."""
    X, y = overlapping()
    solver = subject.make()
    parameters = repr(solver.get_params(deep=False))
    # A solver that always sets the same state must find another one.
    draw()
    before = _random_state()
    solver.fit(X, y).decision_function(X)
    if repr(solver.get_params(deep=False)) != parameters:
        raise MendError("fit changes parameters; keep what it computes in other attributes")
    if _random_state() != before:
        raise MendError("fit uses the global random state; draw from problem.rng")


def _random_state() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002 - the state that must not change
    return kind, np.asarray(keys).tobytes(), *rest, random.getstate()


def scikit_learn(subject: Subject) -> None:
    """scikit-learn's check_estimator finds nothing but what docs/conformance.md explains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(subject.make(dtype="float64"), on_fail=None, on_skip=None)
    beside = _NOT_ALL | ({_BLOBS} if subject.cls.scalarization is None else set())
    failed = {
        item["check_name"]: item["exception"] for item in results if item["status"] == "failed"
    }
    failures = [(name, error) for name, error in failed.items() if name not in beside]
    if failures:
        name, error = failures[0]
        # Some assert without a word.
        line = traceback.extract_tb(error.__traceback__)[-1].line
        more = f" (and {plural(len(failures) - 1, 'more check')})" if len(failures) > 1 else ""
        words = first_line(error) if str(error) else line
        raise MendError(f"{name}: {words}{more}") from error


# Counts: against a kernel that counts its own entries, and against the oracles.


class _Gaussian:
    """A Gaussian kernel as a function of two matrices; it counts the entries that it computes."""

    def __init__(self, gamma: float) -> None:
        self.gamma, self.entries = gamma, 0

    def __call__(self, A: Any, B: Any) -> Any:
        self.entries += len(A) * len(B)
        return np.exp(-self.gamma * np.square(A[:, None] - B).sum(axis=2))


def counters(subject: Subject) -> None:
    """What the solver counts is what was asked for and what was computed."""
    cls = subject.cls
    if not cls.instrumented:
        raise NotApplicableError("the class says that it counts nothing (instrumented = False)")
    seen = "kernel" in subject.defaults and cls.supports_callable_kernel
    if seen:
        for params in ({"cache_size": 0.0}, {"cache_size": 1.0}):
            _compare_with_kernel(subject, params)
    # A method that needs no entries counts none; but only a kernel that counts can tell.
    _compare_with_oracles(subject, may_be_zero=seen)


def _compare_with_kernel(subject: Subject, params: dict[str, float]) -> None:
    kernel = _Gaussian(GAMMA)
    solver = subject.make(kernel=kernel, dtype="float64", **params)
    _, counts = _fitted(solver)
    if counts["kernel_evals_computed"] != kernel.entries:
        raise MendError(
            f"{kernel.entries} kernel entries were computed, but kernel_evals_computed is "
            f"{counts['kernel_evals_computed']}; take every entry from problem.oracle, and leave "
            "counting to it"
        )


def _compare_with_oracles(subject: Subject, *, may_be_zero: bool) -> None:
    before, solver = served(), subject.make()
    _, counts = _fitted(solver)
    for name, least in (served() - before).items():
        if counts[name] < least:
            raise MendError(
                f"{name} is {counts[name]}, but the oracle has handed out {least}; never change "
                "the counters of the oracle"
            )
    if not may_be_zero and not sum(counts.values()):
        counter = "inner_products" if isinstance(solver.model_, LinearModel) else "kernel_evals"
        raise MendError(
            f"it counts nothing; take kernel entries from problem.oracle, count other work in "
            f"problem.counters.{counter}, or set instrumented = False"
        )


def _fitted(solver: Solver) -> tuple[Solver, dict[str, int]]:
    """The fitted solver and its counts, none of which may have fallen on the way."""
    watch = Watch()
    solver.fit(*overlapping(), monitor=watch)
    counts = [seen.counts for seen in watch.seen]
    if solver.counters_ is None:
        raise MendError("counters_ is None although instrumented is True; do not replace it")
    counts.append(solver.counters_.as_dict())
    for before, after in pairwise(counts):
        fallen = [name for name, count in after.items() if count < before[name]]
        if fallen:
            raise MendError(f"{fallen[0]} falls during the run; counts may only rise")
    return solver, counts[-1]


# The objective, against that of SMO at a small tolerance.


# Suboptimality allowed to a run that ends at its limit, relative to the optimum.
_UNFINISHED = 0.05
_TOL = 1e-5
_EPOCHS = 500
# Rounding of float32 entries, in units of the mean loss.
_NOISE = 1e-6


def objective(subject: Subject) -> None:
    """The returned model comes close to the optimum of the problem that the class states."""
    if subject.cls.scalarization is None:
        raise NotApplicableError("it minimises no SVM objective (scalarization = None)")
    points = overlapping()
    for bias in subject.biases:
        for C in (1.0, 10.0):
            _compare_with_optimum(subject, points, C, bias=bias)


def _compare_with_optimum(subject: Subject, points: Points, C: float, *, bias: bool) -> None:
    n, slack = len(points.y), {}
    if subject.cls.scalarization == "S":
        # The slack of the problem of constrained slack that has the same solution.
        best = _evaluated(subject, _optimal(subject, points, C, bias), points, C, bias=bias)
        slack = {"nu": best.mean_hinge / math.sqrt(best.squared_norm or 1.0)}
    solver = subject.limited(
        _EPOCHS, n, C=C, fit_intercept=bias, tol=_TOL, dtype="float64", **slack
    ).fit(*points)
    at = f"with C={C:g}{', with bias' if bias else ''}"
    if solver.status_ == "converged" and "tol" in subject.defaults:
        words = f"{at} it says converged at tol={_TOL:g}, but its objective"
        remedy = "how the stopping rule measures tol (in units of the mean loss)"
        allowed = n * C * (2 * _TOL + _NOISE)
        _check_objective(subject, solver.model_, points, C, bias, words, remedy, allowed=allowed)
    else:
        words = f"{at} the objective after {solver.n_iter_} iterations"
        remedy = "how C enters, or set scalarization = None"
        _check_objective(subject, solver.model_, points, C, bias, words, remedy)


def certificate(subject: Subject) -> None:
    """Coefficients promised to be a dual point are one, at each checkpoint and at the end."""
    if subject.cls.certificate is None:
        raise NotApplicableError("it promises no dual point (certificate = None)")
    points = overlapping()
    for bias in subject.biases:
        for C in (0.1, 10.0):
            _check_dual_points(subject, points, C, bias=bias)


def _check_dual_points(subject: Subject, points: Points, C: float, *, bias: bool) -> None:
    watch = Watch()
    solver = subject.make(C=C, fit_intercept=bias, dtype="float64").fit(*points, monitor=watch)
    sampled = watch.seen[:: max(1, len(watch.seen) // 20)]
    models: list[tuple[str, Any]] = [("a checkpoint is", seen.model) for seen in sampled]
    gap = math.inf
    for words, model in [*models, ("the coefficients are", solver.model_)]:
        own = _evaluated(subject, model, points, C, bias=bias).gap
        if own is None:
            raise MendError(
                f"with C={C:g} {words} no dual point (0 <= y_i coef_i <= C"
                f"{', sum coef_i = 0' if bias else ''}); clip each step, or set certificate = None"
            )
        gap = own
    tol = float(solver.get_params().get("tol", 1e-3))
    if solver.status_ == "converged" and gap > len(points.y) * C * (tol + _NOISE):
        raise MendError(
            f"with C={C:g} it says converged, but the duality gap is "
            f"{gap / (len(points.y) * C):.3g} and tol={tol:g}, in units of the mean loss"
        )


def _evaluated(subject: Subject, model: Any, points: Points, C: float, *, bias: bool) -> Evaluation:
    try:
        return subject.evaluator(points, C, bias=bias).evaluate(model)
    except EvaluationError as error:
        raise MendError(f"{error}; return a model such as problem.expansion(coef)") from None


def _optimal(
    subject: Subject, points: Points, C: float, bias: bool, losses: Array | None = None
) -> Any:
    """An optimal model."""
    smo = SMO(subject.kernel_on(points.X), C=C, fit_intercept=bias, tol=1e-9, dtype="float64")
    return smo.fit(*points, sample_weight=losses).model_


def _check_objective(
    subject: Subject,
    model: Any,
    points: Points,
    C: float,
    bias: bool,
    words: str,
    remedy: str,
    *,
    losses: Array | float = 1.0,
    allowed: float | None = None,
) -> None:
    """Refuse a model whose objective lies above the optimum; losses may have weights."""
    weights, values = np.broadcast_to(losses, points.y.shape), []
    for each in (model, _optimal(subject, points, C, bias, weights)):
        squared_norm = _evaluated(subject, each, points, C, bias=bias).squared_norm
        if squared_norm is None:
            raise NotApplicableError("its model has no w whose objective could be computed")
        scores = subject.evaluator(points, C).test_scores(each, np.arange(len(points.y)))
        hinge = np.maximum(0.0, 1.0 - points.y * scores)
        values.append(squared_norm / 2 + C * float(weights @ hinge))
    own, optimum = values
    if own - optimum > (_UNFINISHED * optimum if allowed is None else allowed):
        raise MendError(f"{words} is {own:.6g}, the optimum {optimum:.6g}; check {remedy}")


# A run that is watched: checkpoints, requests to stop, limits.


_NO_CHECKPOINTS = (
    "it records no checkpoints (monitor.due, monitor.record): reports show only the end of a run"
)
# Checkpoints of a run that are looked at.
_MOST = 30
# A tolerance that no run reaches in a few iterations; some methods take none of 0.
_TINY = 1e-12


def monitor(subject: Subject) -> None:
    """A fit that is watched is the fit that is not."""
    points = overlapping()
    check_same(
        subject.outcome(points),
        subject.outcome(points, monitor=Watch()),
        "with a monitor the fit differs in",
        "what it is asked and told must change nothing, and snapshot() may only read",
    )


def checkpoints(subject: Subject) -> None:
    """Each checkpoint is a valid model of its own, and iterations and counts only rise."""
    points, watch = overlapping(), Watch()
    bias = not subject.cls.supports_no_bias
    solver = subject.make().fit(*points, monitor=watch)
    if not watch.seen:
        raise NotApplicableError(_NO_CHECKPOINTS)
    iterations = [seen.n_iter for seen in watch.seen] + [solver.n_iter_]
    if any(after < before for before, after in pairwise(iterations)):
        raise MendError("the iterations given to monitor.record fall; count them from the start")
    evaluator = subject.evaluator(points, bias=bias)
    for seen in watch.seen[:: max(1, len(watch.seen) // _MOST)]:
        if seen.model.digest != seen.digest:
            raise MendError(
                f"the model of the checkpoint at iteration {seen.n_iter} changed later; snapshot() "
                "must copy what the solver goes on changing"
            )
        try:
            finite = evaluator.evaluate(seen.model).finite
        except EvaluationError as error:
            raise MendError(f"the checkpoint at iteration {seen.n_iter}: {error}") from None
        if not finite:
            raise MendError(f"the model at iteration {seen.n_iter} is not finite")


def stopping(subject: Subject) -> None:
    """A request to stop is obeyed at once, with the model of that moment."""
    points, whole = overlapping(), Watch()
    subject.make().fit(*points, monitor=whole)
    if not whole.seen:
        raise NotApplicableError(_NO_CHECKPOINTS)
    for wanted in {1, max(1, len(whole.seen) // 2)}:
        watch = Watch(stop_after=wanted)
        solver = subject.make().fit(*points, monitor=watch)
        if len(watch.seen) > wanted or solver.n_iter_ > watch.seen[-1].n_iter:
            raise MendError(
                "it goes on after monitor.record has returned True; return a Solution with the "
                "status 'stopped' there"
            )
        if solver.status_ != "stopped":
            raise MendError(
                f"stopped by the monitor, it says {solver.status_!r:.40}; the status is 'stopped'"
            )
        if outcome(solver)["model"] != watch.seen[-1].digest:
            raise MendError(
                "stopped by the monitor, it returns another model than that of the checkpoint"
            )


def limits(subject: Subject) -> None:
    """A run ends near its limit of iterations, and says if it falls short of its tolerance."""
    limited = [name for name in LIMITS if name in subject.defaults]
    if not limited:
        raise NotApplicableError(
            "it has neither max_epochs nor max_iter: only its own rule and the timeout end a run"
        )
    X, y = overlapping()
    for name in limited:
        # So small a tolerance leaves the end to the limit.
        solver = subject.make(**{name: 2}, tol=_TINY).fit(X, y)
        allowed = 2 * len(y) if name == "max_epochs" else 2 + len(y)
        if solver.n_iter_ > allowed:
            raise MendError(
                f"with {name}=2 it does {solver.n_iter_} iterations on {len(y)} points; at most "
                f"{allowed} are allowed"
            )
        _check_shortfall(subject, name)


def _check_shortfall(subject: Subject, name: str) -> None:
    """A method with a stopping rule says what it fell short of."""
    if "tol" not in subject.defaults:
        return
    X, y = overlapping()
    if subject.make().fit(X, y).status_ != "converged":
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        solver = subject.make(**{name: 1}, tol=_TINY).fit(X, y)
    warned = any(issubclass(item.category, ConvergenceWarning) for item in caught)
    if solver.status_ == "budget" and not warned:
        raise MendError(
            f"with {name}=1 it ends before it converges and nobody is told; give the Solution a "
            "shortfall, such as 'the duality gap is 0.2, tol=0.001'"
        )
    if solver.status_ == "converged" and subject.cls.scalarization in ("C", "R"):
        words = f"with {name}=1 and tol={_TINY:g} it says converged, but its objective"
        bias = not subject.cls.supports_no_bias
        remedy = "where the stopping rule holds"
        _check_objective(subject, solver.model_, Points(X, y), 1.0, bias, words, remedy)


# Other forms of the same data, and the fitted estimator in a file.


# Rounding of inputs that are taken in float32.
_SINGLE = 1e-4
_OTHER_GAMMA = 2.0
# How far the scores of one class may be apart that are trained with other draws.
_OTHER_DRAWS = 0.2


def _check_close(scores: Any, expected: Any, allowed: float, words: str, remedy: str) -> None:
    """Refuse scores that differ from others, relative to the largest."""
    apart = math.inf
    if np.shape(scores) == np.shape(expected):
        apart = float(np.abs(scores - expected).max() / max(np.abs(expected).max(), 1e-12))
    if not apart <= allowed:
        raise MendError(f"{words.format(f'{apart:.2g}')}; {remedy}")


def sparse_data(subject: Subject) -> None:
    """CSR data give the model of the same dense data; a class that takes none refuses them."""
    X, y = overlapping()
    X[np.abs(X) < 0.4] = 0.0
    stored = sparse.csr_matrix(X)
    if not subject.cls.supports_sparse:
        if isinstance(raised(subject.make(dtype="float64").fit, stored, y), ValueError | TypeError):
            raise NotApplicableError("it takes no CSR data (supports_sparse = False), and says so")
        raise MendError("supports_sparse is False, but fit takes CSR data; refuse them")
    _check_close(
        *(subject.scores(stored, y), subject.scores(X, y), subject.tolerance),
        "scores with CSR data differ by {} from those with dense data",
        "use problem.oracle, or set supports_sparse = False",
    )


def float32_data(subject: Subject) -> None:
    """float32 data give nearly the scores of the same numbers in float64."""
    X, y = overlapping()
    _check_close(
        *(subject.scores(X.astype(np.float32), y, X), subject.scores(X, y), _SINGLE),
        "scores with float32 data differ by {} from those with the same numbers in float64",
        "accumulate sums in float64",
    )


def weights(subject: Subject) -> None:
    """Weights of points and of classes change the problem; negative ones are refused."""
    if not issubclass(subject.cls, WeightedSolver):
        raise NotApplicableError("it takes no weights (it does not derive from WeightedSolver)")
    X, y = overlapping()
    heavy = np.where(y > 0, 5.0, 0.2)
    plain = subject.outcome(Points(X, y))["model"]
    weighted = outcome(subject.make().fit(X, y, sample_weight=heavy))["model"]
    by_class = subject.make(class_weight={-1: 0.2, 1: 5.0}).fit(X, y)
    if weighted == plain:
        raise MendError(
            "weights change nothing; multiply each point's loss by problem.weights, or derive from "
            "Solver instead of WeightedSolver"
        )
    if outcome(by_class)["model"] != weighted:
        raise MendError("class_weight gives another model than the same weights for each point")
    if not isinstance(raised(subject.make().fit, X, y, sample_weight=-heavy), ValueError):
        raise MendError("negative weights are accepted; leave fit to WeightedSolver")
    if subject.cls.scalarization in ("C", "R"):
        solver = subject.limited(_EPOCHS, len(y), tol=_TOL, dtype="float64")
        model = solver.fit(X, y, sample_weight=heavy).model_
        bias = not subject.cls.supports_no_bias
        remedy = "that the loss of a point is C times its weight times its hinge loss"
        words = "with weights its objective"
        _check_objective(*(subject, model, Points(X, y), 1.0, bias, words, remedy), losses=heavy)


def kernel_function(subject: Subject) -> None:
    """A kernel given as a function gives the model of the same kernel given by name."""
    if "kernel" not in subject.defaults or not subject.cls.supports_callable_kernel:
        raise NotApplicableError("it takes no kernel that is a function")
    X, y = overlapping()
    named = subject.scores(X, y, kernel="rbf", gamma=_OTHER_GAMMA)
    # It has its own width; the parameter gamma means nothing for it.
    _check_close(
        *(subject.scores(X, y, kernel=_Gaussian(_OTHER_GAMMA)), named, _SINGLE),
        "scores with a Gaussian kernel given as a function differ by {} from those with the same "
        "kernel by name",
        "take every entry from problem.oracle, or set supports_callable_kernel = False",
    )


def several_classes(subject: Subject) -> None:
    """Of three classes each is trained against the rest as it would be alone."""
    X, y = three_classes()
    scores, draws = subject.scores(X, y), "random_state" in subject.defaults
    for label in range(3):
        alone = subject.scores(X, np.where(y == label, 1, -1))
        # What is drawn for all classes together is drawn before the draws of the first class only.
        allowed = _OTHER_DRAWS if draws and label else subject.tolerance
        _check_close(
            *(scores[:, label], alone, allowed),
            f"class {label + 1} of 3 differs by {{}} from a fit of it alone against the rest",
            "keep nothing of one class for the next but what problem.once makes",
        )


def saving(subject: Subject) -> None:
    """A saved solver predicts what the fitted one does, to the last bit."""
    X, y = overlapping()
    solver = subject.make().fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solver.npz"
        solver.save(path)
        loaded = load_solver(path, subject.cls)
    if not np.array_equal(loaded.decision_function(X), solver.decision_function(X)):
        raise MendError("a saved estimator predicts other scores; its model must hold all")
