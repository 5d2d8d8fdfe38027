"""Bundle methods: what an iteration costs, time to 0.001 of the optimum, and the primal search.

``python -m benchmarks.compare.bundle_speed [iteration] [time] [search]`` prints
the tables asked for; by default all of them. Competitors take turns in one process, in which the
BLAS and compiled loops have one thread. Times are seconds of the processor, which other work on the
machine disturbs less than those of a clock. Data come from the cache; ``random-text`` has the shape
of a collection of abstracts.
"""

import sys
import warnings
from functools import partial
from itertools import product

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from benchmarks.compare.common import heading, in_turn, one_thread, row
from marginbench.data_loaders import load
from marginbench.solvers import (
    OCAS,
    BundleClassifier,
    LinearPegasos,
    LinearSDCA,
    minimize_risk,
)

#: How far from the optimum, in units of lambda/2 ||w||^2 + mean loss, as in BMRM07 Figure 3.
_CLOSE = 1e-3
#: lambda of each data set, between the values of BMRM07 for text.
_LAMBDAS = {"reuters_moneyfx": 1e-4, "adult": 1e-3, "random-text": 2e-4}
_ROUNDS = 5
_SEARCH_ROUNDS = 3
_MOST_EFFORT = 4096


def _data(name):
    """In double precision, in which peers work: nobody shall have to convert."""
    data = load(name)
    return data.X_train.astype(np.float64), np.asarray(data.y_train, dtype=np.float64)


def print_iteration_costs():
    """The time of an iteration over that of its two products by scipy, median of rounds.

    Of iterations after the first; checks of the data and the first iteration are taken off.
    """
    heading("data", "loss", "inner", "ms per iteration", "ms of X w and X'g", "ratio")
    for name, lam in _LAMBDAS.items():
        X, y = _data(name)
        rng = np.random.default_rng(0)
        w, g, transposed = rng.standard_normal(X.shape[1]), rng.standard_normal(len(y)), X.T
        for loss, inner in product(("hinge", "squared_hinge", "logistic"), ("qp", "line_search")):
            run = partial(
                minimize_risk, X, y, loss, lam=lam, inner=inner, tol=0.0, primal_search=False
            )
            # Rounding may end a run before its limit.
            more = run(max_iter=61).n_iter - run(max_iter=1).n_iter
            calls = [partial(run, max_iter=1), partial(run, max_iter=61)]
            cpu, _, _ = in_turn([*calls, partial(_products, X, w, transposed, g, more)], _ROUNDS)
            iterations, products = 1e3 / more * np.array([cpu[:, 1] - cpu[:, 0], cpu[:, 2]])
            shown = np.median([iterations, products, iterations / products], axis=1)
            row(name, loss, inner, *(f"{number:.2f}" for number in shown))


def _products(X, w, transposed, g, times):
    for _ in range(times):
        X @ w
        transposed @ g


def _competitors(n, lam):
    """Name -> (effort -> estimator), for efforts 1, 2, 3, ... of iterations or epochs."""
    C = 1 / (n * lam)
    bundle = {"C": C, "tol": 0.0}
    paper = bundle | {"primal_search": False}
    return {
        "bundle, QP": lambda k: BundleClassifier(inner="qp", max_iter=k, **paper),
        "bundle, QP, primal search": lambda k: BundleClassifier(
            inner="qp", primal_search=True, max_iter=k, **bundle
        ),
        "OCAS": lambda k: OCAS(max_iter=k, **bundle),
        "bundle, line search": lambda k: BundleClassifier(inner="line_search", max_iter=k, **paper),
        "Pegasos, k = 1": lambda k: LinearPegasos(C=C, max_epochs=k, random_state=0),
        "Pegasos, all points": lambda k: LinearPegasos(C=C, batch_size=None, max_epochs=k),
        "LinearSDCA": lambda k: LinearSDCA(C=C, tol=0.0, max_epochs=k, random_state=0),
        # Called directly: the checks of its solver class are no part of it.
        "LIBLINEAR": lambda k: LinearSVC(
            loss="hinge", C=C, fit_intercept=False, tol=1e-12, max_iter=k, random_state=0
        ),
        "SGDClassifier": lambda k: SGDClassifier(
            alpha=lam, fit_intercept=False, tol=None, max_iter=k, random_state=0
        ),
    }


def _least_effort(make, X, y, lam, target):
    """The least effort, to 10 %, that brings the estimator to the target; None if none does."""

    def reaches(effort):
        w = make(effort).fit(X, y).coef_[0]
        return 0.5 * lam * w @ w + np.maximum(0, 1 - y * (X @ w)).mean() <= target

    low, high = 0, 1
    while not reaches(high):
        low, high = high, 2 * high
        if high > _MOST_EFFORT:
            return None
    while high - low > max(1, high // 10):
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def print_times():
    """Processor seconds and iterations to 0.001 of the optimum, in turn, medians of rounds."""
    # LIBLINEAR is stopped on purpose.
    warnings.simplefilter("ignore", ConvergenceWarning)
    seconds_to = f"CPU seconds to J* + {_CLOSE}"
    heading("data", "lambda", "method", "iterations", seconds_to, "/ LIBLINEAR")
    for name, lam in _LAMBDAS.items():
        X, y = _data(name)
        target = minimize_risk(X, y, lam=lam, tol=1e-6, max_iter=5000).objective + _CLOSE
        makers = _competitors(len(y), lam)
        efforts = {label: _least_effort(make, X, y, lam, target) for label, make in makers.items()}
        there = [label for label, effort in efforts.items() if effort]
        calls = [partial(makers[label](efforts[label]).fit, X, y) for label in there]
        seconds = dict(zip(there, in_turn(calls, _ROUNDS)[0].T, strict=True))
        for label, effort in efforts.items():
            cells = ("", f"not in {_MOST_EFFORT}", "")
            if effort:
                ratio = np.median(seconds[label] / seconds["LIBLINEAR"])
                cells = (effort, f"{np.median(seconds[label]):.4f}", f"{ratio:.2f}")
            row(name, f"{lam:g}", label, *cells)


def print_search():
    """Iterations and processor seconds to the same gap, with and without the primal search."""
    heading("data", "loss", "offset", "lambda", "iterations without, with", "CPU s", "ratio")
    cases = [("hinge", None), ("hinge", "eliminated"), ("logistic", None), ("roc_area", None)]
    for name, (loss, offset), lam in product(_LAMBDAS, cases, (1e-3, 1e-4, 1e-5)):
        run = partial(
            minimize_risk, *_data(name), loss, lam=lam, offset=offset, tol=1e-3, max_iter=1000
        )
        calls = [partial(run, primal_search=search) for search in (False, True)]
        cpu, _, results = in_turn(calls, _SEARCH_ROUNDS)
        without, within = np.median(cpu, axis=0)
        reached, spent = ", ".join(map(_reached, results)), f"{without:.3f}, {within:.3f}"
        row(name, loss, offset, f"{lam:g}", reached, spent, f"{within / without:.2f}")


def _reached(result):
    """The iterations, and for a run that ended at their limit the gap relative to the start."""
    if result.status == "converged":
        return str(result.n_iter)
    gap = (result.objective - result.lower_bound) / result.trace.objective[0]
    return f"{result.n_iter} (gap {gap:.1e})"


if __name__ == "__main__":
    tables = {"iteration": print_iteration_costs, "time": print_times, "search": print_search}
    with one_thread():
        for table in sys.argv[1:] or tables:
            tables[table]()
            print(flush=True)
