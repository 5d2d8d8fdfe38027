"""Checks of an estimator: its class, a fit, repeated fits, what measures a run, other data.

Fits are judged by what judges the runs of studies: its EvaluationError is something to mend, too.
"""

from __future__ import annotations

import inspect
import math
import random
import tempfile
import traceback
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from ...solvers.interface.base import WeightedSolver
from ...solvers.interface.monitor import Monitor
from ...solvers.interface.saving import load_solver
from ...solvers.kernels import Kernel
from ...solvers.models import LinearModel
from ...solvers.smo.smo import SMO
from ..errors import first_line
from ..evaluation.judging import served
from ..words import plural
from .subject import (
    CLOSE,
    GAMMA,
    LIMITS,
    MendError,
    NotApplicableError,
    Points,
    Subject,
    check_same,
    clusters,
    constructor,
    draw,
    need,
    outcome,
    overlapping,
    raised,
    three_classes,
)

__all__ = ["constructor"]

Array = npt.NDArray[Any]


def traits(subject: Subject) -> None:
    """Class attributes have values that the harness knows, and parameters to go with them."""
    cls, parameters = subject.cls, subject.defaults
    flags = [f"supports_{what}" for what in ("bias", "no_bias", "sparse", "callable_kernel")]
    flags += ["instrumented", "deterministic"]
    allowed: dict[str, tuple[Any, ...]] = dict.fromkeys(flags, (True, False))
    allowed |= {"scalarization": ("C", "R", "S", None), "certificate": ("dual", None)}
    for name, values in allowed.items():
        shown, value = ", ".join(map(repr, values)), getattr(cls, name)
        # Not 1 for True: traits are stored and compared as they are.
        known = any(type(value) is type(each) and value == each for each in values)
        need(known, f"{name} is {value!r:.60}; it must be one of {shown}")
    form, kernel = cls.scalarization, getattr(cls, "kernel", None)
    for holds, words in (
        (cls.supports_bias or cls.supports_no_bias, "no task fits: it supports no bias, nor none"),
        (
            "fit_intercept" in parameters or not cls.supports_bias,
            "supports_bias is True, but there is no parameter fit_intercept; inherit "
            "SolverParameters",
        ),
        (
            "C" in parameters or form not in ("C", "R"),
            f"scalarization is {form!r}, but there is no parameter C; inherit "
            "SoftMarginParameters, or set scalarization = None",
        ),
        ("nu" in parameters or form != "S", "scalarization is 'S', but there is no parameter nu"),
        (
            "kernel" in parameters or isinstance(kernel, str | Kernel),
            "there is no parameter kernel; inherit KernelParameters",
        ),
        (
            "monitor" in inspect.signature(cls.fit).parameters,
            "fit takes no monitor; override _solve instead of fit",
        ),
    ):
        need(holds, words)


# One fit: it ends, tells what it did, and predicts with the model that it returns.


# Part of the points of two clusters far apart that any solver should classify.
_LEARNT = 0.9


def warm_up(subject: Subject) -> None:
    """The fit to a few points that comes first, of arrays that may not be written to."""
    X, y = overlapping(20)
    for array in (X, y):
        array.flags.writeable = False
    subject.limited(1, len(y)).fit(X, y)


def fit(subject: Subject) -> None:
    """A fit returns a model that studies accept, predicts with it, and learns something."""
    points = overlapping()
    for bias in subject.biases:
        solver, watch = subject.watched(points, bias=bias)
        need(isinstance(solver, subject.cls), "fit does not return the estimator itself")
        words = f"n_iter_ is {solver.n_iter_!r:.40}; return the number of iterations"
        need(isinstance(solver.n_iter_, (int, np.integer)) and solver.n_iter_ >= 0, words)
        counted = solver.counters_ is not None or not subject.cls.instrumented
        need(counted, "counters_ is None although instrumented is True; do not replace it")
        status, reason = watch.judge.verdict(solver.status_, solver.decision_function(points.X))
        need(status != "diverged", reason)
    # It learns two clusters far apart, whatever the order of the rows.
    X, y = clusters()
    for words, order in (
        ("in turn", np.arange(len(y))),
        ("sorted by class", np.argsort(y, kind="stable")),
        ("sorted by class, in descending order", np.argsort(-y, kind="stable")),
        ("in random order", np.random.default_rng(3).permutation(len(y))),
    ):
        solver = subject.make().fit(X[order], y[order])
        need(solver.status_ != "no_separator", "it finds no separator of two clusters far apart")
        share = float(np.mean(solver.predict(X) == y))
        need(
            share >= _LEARNT,
            f"with rows {words} it classifies {share:.0%} of two clusters that are far apart; "
            "check the signs of the coefficients, and do not rely on the order of the rows",
        )


# Repeated fits: same seed, same run; nothing is left behind.


def determinism(subject: Subject) -> None:
    """The same seed gives the same model, counts and status; another seed may give others."""
    points = overlapping()
    first = subject.outcome(points)
    # What happens in between must not matter: other data, other draws from the global state.
    subject.make().fit(*clusters(30))
    draw()
    remedy = "declare random_state, draw only from problem.rng, and keep nothing between fits"
    again = subject.outcome(points)
    check_same(first, again, "two fits with random_state=0 differ in", remedy)
    # Any other seed must do.
    other = subject.outcome(points, random_state=1)
    if subject.cls.deterministic:
        words = "deterministic is True, but with random_state=1 it has another"
        check_same(first, other, words, "set deterministic = False")


def refitting(subject: Subject) -> None:
    """A second fit of the same estimator forgets the first."""
    X, y = points = overlapping()
    fresh = subject.outcome(points)
    # After other sizes, after other data of the same size, and after the same data.
    for before in ((X[:20, :2], y[:20]), overlapping(seed=1), (X, y)):
        again = outcome(subject.make().fit(*before).fit(X, y, monitor=Monitor()))
        words = "fitted a second time, the estimator differs from a new one in"
        check_same(fresh, again, words, "begin _solve from the parameters and the problem alone")


def side_effects(subject: Subject) -> None:
    """A fit changes neither its parameters nor the global random state."""
    X, y = overlapping()
    solver = subject.make()
    parameters = repr(solver.get_params(deep=False))
    # A solver that always sets the same state must find another one.
    draw()
    before = _random_state()
    solver.fit(X, y).decision_function(X)
    changed = repr(solver.get_params(deep=False)) != parameters
    need(not changed, "fit changes parameters; keep what it computes in other attributes")
    need(_random_state() == before, "fit uses the global random state; draw from problem.rng")


def _random_state() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002 - the state that must not change
    return kind, np.asarray(keys).tobytes(), *rest, random.getstate()


# Checks of scikit-learn that ask for what not every method can have: repeated points are other
# draws than weighted ones, or have the same optimum up to tol; a line through the origin cannot
# predict one class everywhere. What looks for a separator finds none between three blobs.
_NOT_ALL = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_class_weight_classifiers",
}
_BLOBS = "check_classifiers_train"


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
        words = (
            first_line(error) if str(error) else traceback.extract_tb(error.__traceback__)[-1].line
        )
        more = f" (and {plural(len(failures) - 1, 'more check')})" if len(failures) > 1 else ""
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
    cls, points = subject.cls, overlapping()
    if not cls.instrumented:
        raise NotApplicableError("the class says that it counts nothing (instrumented = False)")
    # The watch refuses counts below what the oracles have handed out.
    before = served()
    solver, watch = subject.watched(points)
    need(watch.counters, "it has no counters although instrumented is True; do not replace them")
    for name, count in (served() - before).items():
        counted = getattr(solver.counters_, name)
        words = f"problem.oracle has counted {count} {name}, but the solver {counted}"
        need(counted == count, f"{words}; leave counting kernel entries to it")
    if not (takes_function := "kernel" in subject.defaults and cls.supports_callable_kernel):
        # A method that needs no entries counts none; but only a kernel that counts can tell.
        counter = "inner_products" if isinstance(solver.model_, LinearModel) else "kernel_evals"
        need(
            sum(solver.counters_.as_dict().values()),
            "it counts nothing; take kernel entries from problem.oracle, count other work in "
            f"problem.counters.{counter}, or set instrumented = False",
        )
    for cache_size in (0.0, 1.0) if takes_function else ():
        kernel = _Gaussian(GAMMA)
        fitted = subject.make(kernel=kernel, dtype="float64", cache_size=cache_size).fit(*points)
        counted = fitted.counters_.kernel_evals_computed
        need(
            counted == kernel.entries,
            f"{kernel.entries} kernel entries were computed, but kernel_evals_computed is "
            f"{counted}; take every entry from problem.oracle, and leave counting to it",
        )


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
    X, y = points = overlapping()
    for bias in subject.biases:
        for C in (1.0, 10.0):
            more: dict[str, Any] = {"C": C, "fit_intercept": bias, "tol": _TOL, "dtype": "float64"}
            if subject.cls.scalarization == "S":
                # The slack of the problem of constrained slack that has the same solution.
                optimal = _optimal(subject, points, C, bias=bias)
                best = subject.judge(points, C, bias=bias).evaluator.evaluate(optimal)
                more["nu"] = best.mean_hinge / math.sqrt(best.squared_norm or 1.0)
            solver = subject.limited(_EPOCHS, len(y), **more).fit(X, y)
            at, allowed = f"with C={C:g}{', with bias' if bias else ''}", None
            words = f"{at} the objective after {solver.n_iter_} iterations"
            remedy = "how C enters, or set scalarization = None"
            if solver.status_ == "converged" and "tol" in subject.defaults:
                words = f"{at} it says converged at tol={_TOL:g}, but its objective"
                remedy = "how the stopping rule measures tol (in units of the mean loss)"
                allowed = len(y) * C * (2 * _TOL + _NOISE)
            _check_objective(
                subject, solver, points, words, remedy, C=C, bias=bias, allowed=allowed
            )


def certificate(subject: Subject) -> None:
    """Coefficients promised to be a dual point are one, at each checkpoint and at the end."""
    if subject.cls.certificate is None:
        raise NotApplicableError("it promises no dual point (certificate = None)")
    points = overlapping()
    for bias in subject.biases:
        for C in (0.1, 10.0):
            solver, watch = subject.watched(points, C, bias=bias, certificate=True)
            watch.judge.verdict(solver.status_, solver.decision_function(points.X))
            for n_iter, model, _ in watch.seen:
                dual = watch.judge.evaluator.evaluate(model).dual
                words = f"with C={C:g} the model at iteration {n_iter} is no dual point"
                need(dual is not None, f"{words}; clip each step, or set certificate = None")


def _optimal(
    subject: Subject, points: Points, C: float, *, bias: bool, weights: Array | None = None
) -> Any:
    """An optimal model; losses may have weights."""
    smo = SMO(subject.kernel_on(points.X), C=C, fit_intercept=bias, tol=1e-9, dtype="float64")
    return smo.fit(*points, sample_weight=weights).model_


def _check_objective(
    subject: Subject,
    solver: Any,
    points: Points,
    words: str,
    remedy: str,
    *,
    C: float = 1.0,
    bias: bool | None = None,
    weights: Array | None = None,
    allowed: float | None = None,
) -> None:
    """Refuse a solver whose objective lies above the optimum; losses may have weights."""
    y, values = points.y, []
    evaluator = subject.judge(points, C, bias=bias).evaluator
    optimal = _optimal(subject, points, C, bias=evaluator.fit_intercept, weights=weights)
    for model in (solver.model_, optimal):
        squared_norm = evaluator.evaluate(model).squared_norm
        if squared_norm is None:
            raise NotApplicableError("its model has no w whose objective could be computed")
        hinge = np.maximum(0.0, 1.0 - y * evaluator.test_scores(model, np.arange(len(y))))
        loss = hinge.sum() if weights is None else weights @ hinge
        values.append(squared_norm / 2 + C * float(loss))
    own, optimum = values
    allowed = _UNFINISHED * optimum if allowed is None else allowed
    need(
        own - optimum <= allowed, f"{words} is {own:.6g}, the optimum {optimum:.6g}; check {remedy}"
    )


# A run that is watched: checkpoints, requests to stop, limits.


_NO_CHECKPOINTS = (
    "it records no checkpoints (monitor.due, monitor.record): reports show only the end of a run"
)
# A tolerance that no run reaches in a few iterations; some methods take none of 0.
_TINY = 1e-12


def monitor(subject: Subject) -> None:
    """A fit that is watched is the fit that is not."""
    points = overlapping()
    watched, _ = subject.watched(points)
    words = "with a monitor the fit differs in"
    remedy = "what it is asked and told must change nothing, and snapshot() may only read"
    check_same(subject.outcome(points), outcome(watched), words, remedy)


def checkpoints(subject: Subject) -> None:
    """Each checkpoint is a valid model of its own, and iterations and counts only rise."""
    solver, watch = subject.watched(overlapping())
    if not watch.seen:
        raise NotApplicableError(_NO_CHECKPOINTS)
    iterations = [*(n_iter for n_iter, *_ in watch.seen), solver.n_iter_]
    falls = any(after < before for before, after in pairwise(iterations))
    need(not falls, "the iterations given to monitor.record fall; count them from the start")
    for n_iter, model, digest in watch.seen:
        words = f"the model of the checkpoint at iteration {n_iter}"
        need(model.digest == digest, f"{words} changed later; snapshot() must copy its arrays")
        need(model.finite, f"{words} is not finite")


def stopping(subject: Subject) -> None:
    """A request to stop is obeyed at once, with the model of that moment."""
    points = overlapping()
    _, whole = subject.watched(points)
    if not whole.seen:
        raise NotApplicableError(_NO_CHECKPOINTS)
    for wanted in {1, max(1, len(whole.seen) // 2)}:
        solver, watch = subject.watched(points, stop_after=wanted)
        n_iter, _, digest = watch.seen[-1]
        obeyed = len(watch.seen) == wanted and solver.n_iter_ <= n_iter
        need(obeyed, "it goes on after monitor.record has returned True; return a Solution there")
        need(
            solver.status_ == "stopped",
            f"stopped by the monitor, it says {solver.status_!r:.40}; it must be 'stopped'",
        )
        same = outcome(solver)["model"] == digest
        need(same, "stopped by the monitor, it returns another model than the checkpoint's")


def limits(subject: Subject) -> None:
    """A run ends near its limit of iterations, and says if it falls short of its tolerance."""
    limited = [name for name in LIMITS if name in subject.defaults]
    if not limited:
        raise NotApplicableError(
            "it has neither max_epochs nor max_iter: only its own rule and the timeout end a run"
        )
    X, y = points = overlapping()
    has_rule = "tol" in subject.defaults and subject.make().fit(X, y).status_ == "converged"
    for name in limited:
        # So small a tolerance leaves the end to the limit.
        n_iter = subject.make(**{name: 2}, tol=_TINY).fit(X, y).n_iter_
        allowed = 2 * len(y) if name == "max_epochs" else 2 + len(y)
        need(
            n_iter <= allowed,
            f"with {name}=2 it does {n_iter} iterations on {len(y)} points; at most {allowed} are "
            "allowed",
        )
        if not has_rule:
            continue
        # A method with a stopping rule says what it fell short of.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            solver = subject.make(**{name: 1}, tol=_TINY).fit(X, y)
        warned = any(issubclass(item.category, ConvergenceWarning) for item in caught)
        need(
            warned or solver.status_ != "budget",
            f"with {name}=1 it ends before it converges and nobody is told; give the Solution a "
            "shortfall, such as 'the duality gap is 0.2, tol=0.001'",
        )
        if solver.status_ == "converged" and subject.cls.scalarization in ("C", "R"):
            words = f"with {name}=1 and tol={_TINY:g} it says converged, but its objective"
            _check_objective(subject, solver, points, words, "where the stopping rule holds")


# Other forms of the same data, and the fitted estimator in a file.


_OTHER_GAMMA = 2.0
# How far the scores of one class may be apart that are trained with other draws.
_OTHER_DRAWS = 0.2


def _check_close(scores: Any, expected: Any, allowed: float, words: str, remedy: str) -> None:
    """Refuse scores that differ from others, relative to the largest."""
    apart = math.inf
    if np.shape(scores) == np.shape(expected):
        apart = float(np.abs(scores - expected).max() / max(np.abs(expected).max(), 1e-12))
    need(apart <= allowed, f"{words} differs by {apart:.2g}; {remedy}")


def sparse_data(subject: Subject) -> None:
    """CSR data give the model of the same dense data; a class that takes none refuses them."""
    X, y = overlapping()
    X[np.abs(X) < 0.4] = 0.0
    stored = sparse.csr_matrix(X)
    if not subject.cls.supports_sparse:
        refused = isinstance(raised(subject.make().fit, stored, y), ValueError | TypeError)
        need(refused, "supports_sparse is False, but fit takes CSR data; refuse them")
        raise NotApplicableError("it takes no CSR data (supports_sparse = False), and says so")
    own, expected = subject.scores(stored, y), subject.scores(X, y)
    remedy = "use problem.oracle, or set supports_sparse = False"
    _check_close(own, expected, CLOSE, "the model of CSR data", remedy)


def float32_data(subject: Subject) -> None:
    """float32 data give nearly the scores of the same numbers in float64."""
    X, y = overlapping()
    own, expected = subject.scores(X.astype(np.float32), y, X), subject.scores(X, y)
    _check_close(own, expected, CLOSE, "the model of float32 data", "use float64 for sums")


def kernel_function(subject: Subject) -> None:
    """A kernel given as a function gives the model of the same kernel given by name."""
    if "kernel" not in subject.defaults or not subject.cls.supports_callable_kernel:
        raise NotApplicableError("it takes no kernel that is a function")
    X, y = overlapping()
    expected = subject.scores(X, y, kernel="rbf", gamma=_OTHER_GAMMA)
    # It has its own width; the parameter gamma means nothing for it.
    own = subject.scores(X, y, kernel=_Gaussian(_OTHER_GAMMA))
    remedy = "take every entry from problem.oracle, or set supports_callable_kernel = False"
    _check_close(own, expected, CLOSE, "the model of a kernel given as a function", remedy)


def weights(subject: Subject) -> None:
    """Weights of points and of classes change the problem; negative ones are refused."""
    if not issubclass(subject.cls, WeightedSolver):
        raise NotApplicableError("it takes no weights (it does not derive from WeightedSolver)")
    X, y = points = overlapping()
    heavy = np.where(y > 0, 5.0, 0.2)
    plain = subject.outcome(points)["model"]
    weighted = outcome(subject.make().fit(X, y, sample_weight=heavy))["model"]
    by_class = outcome(subject.make(class_weight={-1: 0.2, 1: 5.0}).fit(X, y))["model"]
    negative = raised(subject.make().fit, X, y, sample_weight=-heavy)
    need(weighted != plain, "weights change nothing; multiply each loss by problem.weights")
    need(by_class == weighted, "class_weight gives another model than the same weights of points")
    need(isinstance(negative, ValueError), "negative weights are accepted; leave fit as it is")
    if subject.cls.scalarization in ("C", "R"):
        solver = subject.limited(_EPOCHS, len(y), tol=_TOL, dtype="float64")
        solver.fit(X, y, sample_weight=heavy)
        remedy = "that the loss of a point is C times its weight times its hinge loss"
        words = "with weights its objective"
        _check_objective(subject, solver, points, words, remedy, weights=heavy)


def several_classes(subject: Subject) -> None:
    """Of three classes each is trained against the rest as it would be alone."""
    X, y = three_classes()
    scores, draws = subject.scores(X, y), "random_state" in subject.defaults
    for label in range(3):
        alone = subject.scores(X, np.where(y == label, 1, -1))
        # What is drawn for all classes together is drawn before the draws of the first class only.
        allowed = _OTHER_DRAWS if draws and label else CLOSE
        remedy = "keep nothing of one class for the next but what problem.once makes"
        words = f"alone against the rest, class {label + 1} of 3"
        _check_close(scores[:, label], alone, allowed, words, remedy)


def saving(subject: Subject) -> None:
    """A saved solver predicts what the fitted one does, to the last bit."""
    X, y = overlapping()
    solver = subject.make().fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solver.npz"
        solver.save(path)
        loaded = load_solver(path, subject.cls)
    same = np.array_equal(loaded.decision_function(X), solver.decision_function(X))
    need(same, "a saved estimator predicts other scores; its model must hold all")
