"""Bundle methods: what an iteration costs, time to 0.001 of the optimum, and the primal search.

``python -m benchmarks.compare.bundle_speed [iteration] [time] [search]`` prints
the tables asked for; by default all of them. Competitors take turns in one process, in which the
BLAS and compiled loops have one thread. Times are seconds of the processor, which other work on the
machine disturbs less than those of a clock. Data come from the cache; ``random-text`` has the shape
of a collection of abstracts.
"""

import sys
import time
import warnings

import numpy as np
from numba import set_num_threads
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from marginbench.data_loaders import find, load
from marginbench.solvers import (
    OCAS,
    BundleClassifier,
    EpsilonInsensitive,
    LeastSquares,
    LinearPegasos,
    LinearSDCA,
    Quantile,
    minimize_risk,
)

#: How far from the optimum, in units of lambda/2 ||w||^2 + mean loss, as in BMRM07 Figure 3.
_CLOSE = 1e-3
#: lambda of each data set, between the values of BMRM07 for text.
_LAMBDAS = {"reuters_moneyfx": 1e-4, "adult": 1e-3, "random-text": 2e-4}
_ROUNDS = 5
_SEARCH_ROUNDS = 3


def _text(n, d, density):
    """Points like documents, from the generator of the data set ``random-text``, not cached."""
    shape = {"n_train": n, "n_features": d, "density": density, "n_test": 2}
    source = find("random-text")
    train = source.read({}, source.resolve(shape)).train
    return train.X, train.y.astype(np.float64)


def _data(name):
    data = load(name)
    return data.X_train, np.asarray(data.y_train, dtype=np.float64)


def _objective(X, y, w, lam):
    slack = np.maximum(0, 1 - y * (X @ w))
    return 0.5 * lam * w @ w + slack.mean()


def print_iteration_costs(names=_LAMBDAS):
    """The time of an iteration over that of its two products by scipy, median of rounds.

    Of iterations after the first; checks of the data and the first iteration are taken off.
    """
    print("| data | loss | inner | ms per iteration | ms of X w and X'g | ratio |")
    print("|---|---|---|---|---|---|")
    for name in names:
        lam = _LAMBDAS[name]
        X, y = _data(name)
        # scipy would convert single precision at each product.
        X = X.astype(np.float64)
        rng = np.random.default_rng(0)
        w, g, transposed = rng.standard_normal(X.shape[1]), rng.standard_normal(len(y)), X.T
        for loss in ("hinge", "squared_hinge", "logistic"):
            for inner in ("qp", "line_search"):
                options = {"lam": lam, "inner": inner, "tol": 0.0, "primal_search": False}
                costs = []
                # Rounding may end a run before its limit.
                limits = (1, 61)
                done = [minimize_risk(X, y, loss, max_iter=k, **options).n_iter for k in limits]
                more = done[1] - done[0]
                for _ in range(_ROUNDS):
                    marks = [time.process_time()]
                    for limit in limits:
                        minimize_risk(X, y, loss, max_iter=limit, **options)
                        marks.append(time.process_time())
                    for _ in range(more):
                        X @ w
                        transposed @ g
                    marks.append(time.process_time())
                    first, all_of_them, products = np.diff(marks)
                    costs.append(((all_of_them - first) / more, products / more))
                costs = 1e3 * np.array(costs)
                iteration, product = np.median(costs, axis=0)
                ratio = np.median(costs[:, 0] / costs[:, 1])
                print(
                    f"| {name} | {loss} | {inner} | {iteration:.2f} | {product:.2f} | {ratio:.2f} |"
                )


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


def _least_effort(make, X, y, lam, target, most=4096):
    """The least effort, to 10 %, that brings the estimator to the target; None if none does."""
    low, high = 0, 1
    while _objective(X, y, make(high).fit(X, y).coef_[0], lam) > target:
        low, high = high, 2 * high
        if high > most:
            return None
    while high - low > max(1, high // 10):
        middle = (low + high) // 2
        reached = _objective(X, y, make(middle).fit(X, y).coef_[0], lam) <= target
        low, high = (low, middle) if reached else (middle, high)
    return high


def print_times(names=_LAMBDAS):
    """Processor seconds and iterations to 0.001 of the optimum, in turn, medians of rounds."""
    # LIBLINEAR is stopped on purpose.
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"| data | lambda | method | iterations | CPU seconds to J* + {_CLOSE} | / LIBLINEAR |")
    print("|---|---|---|---|---|---|")
    for name in names:
        lam = _LAMBDAS[name]
        X, y = _data(name)
        # LIBLINEAR works in double precision: it shall not have to convert.
        X = X.astype(np.float64)
        best = minimize_risk(X, y, lam=lam, tol=1e-6, max_iter=5000)
        makers = _competitors(len(y), lam)
        efforts = {
            label: _least_effort(make, X, y, lam, best.objective + _CLOSE)
            for label, make in makers.items()
        }
        times = {label: [] for label, effort in efforts.items() if effort}
        for _ in range(_ROUNDS):
            for label in times:
                estimator = makers[label](efforts[label])
                start = time.process_time()
                estimator.fit(X, y)
                times[label].append(time.process_time() - start)
        for label, effort in efforts.items():
            row = f"| {name} | {lam:g} | {label} | {effort or ''} |"
            if not effort:
                print(f"{row} not in 4096 | |")
                continue
            ratio = np.median(np.divide(times[label], times["LIBLINEAR"]))
            print(f"{row} {np.median(times[label]):.4f} | {ratio:.2f} |")


def _numbers(X, seed=0):
    """Targets of a sparse linear model of the points with noise of heavy tails, of variance 2."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(X.shape[1]) * (rng.random(X.shape[1]) < 0.2)
    scores = X @ w
    return scores / scores.std() + rng.standard_t(4, len(scores)) / np.sqrt(2)


def _searched():
    """Cases for the primal search: (data, loss, offset, lambdas) with the loss's targets."""
    for name in ("reuters_moneyfx", "random-text", "adult", "ijcnn1", "covtype-sample"):
        X, y = _text(4000, 20_000, 0.002) if name == "random-text" else _data(name)
        X = X.astype(np.float64)
        numbers = _numbers(X)
        losses = [("hinge", None), ("hinge", "eliminated"), ("logistic", None)]
        losses += [("squared_hinge", "eliminated"), ("roc_area", None)]
        for loss, offset in losses:
            yield name, X, y, loss, offset
        for loss in (EpsilonInsensitive(0.1), Quantile(0.9), LeastSquares()):
            yield name, X, numbers, loss, "eliminated"
    X, _ = _text(4000, 20_000, 0.002)
    topics = np.random.default_rng(0).standard_normal((X.shape[1], 10))
    yield "random-text", X.astype(np.float64), (X @ topics).argmax(axis=1), "multiclass", None
    X, classes = load_digits(return_X_y=True)
    yield "digits", X / 16.0, classes, "multiclass", "feature"


def print_search(lams=(1e-3, 1e-4, 1e-5), tol=1e-3):
    """Iterations and processor seconds to the same gap, with and without the primal search."""
    print("| data | loss | offset | lambda | iterations without, with | CPU s | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name, X, y, loss, offset in _searched():
        label = loss if isinstance(loss, str) else type(loss).__name__
        for lam in lams:
            runs = {False: [], True: []}
            for _ in range(_SEARCH_ROUNDS):
                for search, costs in runs.items():
                    start = time.process_time()
                    result = minimize_risk(
                        X, y, loss, lam=lam, offset=offset, tol=tol, max_iter=1000,
                        primal_search=search,
                    )  # fmt: skip
                    costs.append((time.process_time() - start, result))
            (without, plain), (within, searched) = (
                (np.median([seconds for seconds, _ in costs]), costs[-1][1])
                for costs in runs.values()
            )
            reached = [_reached(result) for result in (plain, searched)]
            print(
                f"| {name} | {label} | {offset} | {lam:g} | {', '.join(reached)} | "
                f"{without:.3f}, {within:.3f} | {within / without:.2f} |",
                flush=True,
            )


def _reached(result):
    """The iterations, and for a run that ended at their limit the gap relative to the start."""
    if result.status == "converged":
        return str(result.n_iter)
    gap = (result.objective - result.lower_bound) / result.trace.objective[0]
    return f"{result.n_iter} (gap {gap:.1e})"


if __name__ == "__main__":
    tables = {
        "iteration": print_iteration_costs,
        "time": print_times,
        "search": print_search,
    }
    set_num_threads(1)
    with threadpool_limits(1):
        for table in sys.argv[1:] or tables:
            tables[table]()
            print(flush=True)
