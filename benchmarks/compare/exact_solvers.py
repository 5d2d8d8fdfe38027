"""The exact solver beside LIBSVM and oneDAL: time, objective, violation, support vectors, errors.

``python -m benchmarks.compare.exact_solvers`` fits each solver to each task in turn, some rounds,
twice in a process of its own, and prints tables of medians and their ratios: CPU seconds of the
first fit, which has to get its memory, and of the second. All of them fit a bias, to the same
tolerance and with the same bound on their cache. Objectives and violations are recomputed from the
coefficients with float64 kernel entries. Solvers that are not installed are left out (``pip install
marginbench[peers]`` brings them). ``--around`` takes each task also with C ten times larger and
smaller and gamma four times, ``--points`` the first so many points of each; ``OMP_NUM_THREADS=1``
and ``taskset -c 0`` make it one thread. Several threads are compared by ``--clock wall``, on a
machine that does nothing else.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from statistics import geometric_mean, median

import numpy as np
from scipy import sparse

from benchmarks.compare.common import CLOCKS, TASKS, heading, row, timed

# Of C and gamma: what ``--around`` multiplies them by.
AROUND = ((1, 1), (10, 1), (0.1, 1), (1, 4), (1, 0.25))
TIMES = ("first", "later", "predict")
TOL = 1e-3
CACHE_SIZE = 2000.0
# Package, module and class of each, the type of points it works with, and its own options.
SOLVERS = {
    "ours": ("marginbench", "marginbench.solvers", "SMO", "float32", {"fit_intercept": True}),
    "LIBSVM": ("sklearn", "sklearn.svm", "SVC", "float64", {}),
    "oneDAL": ("sklearnex", "sklearnex.svm", "SVC", "float32", {}),
}


def gaussian(A, B, gamma):
    """Entries between the rows of two float64 matrices."""
    squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2 * (A @ B.T)
    return np.exp(-gamma * np.maximum(squares, 0))


def recomputed(task, X, y, model):
    """Primal and dual value and largest violation, from the coefficients and float64 entries."""
    signed_alpha, support = model.dual_coef_, np.asarray(model.support_)
    if sparse.issparse(signed_alpha):
        signed_alpha = signed_alpha.toarray()
    signed_alpha = np.ravel(signed_alpha).astype(np.float64)
    points = (X.toarray() if sparse.issparse(X) else X).astype(np.float64)
    points -= points.mean(axis=0)
    scores = np.concatenate(
        [
            gaussian(points[start : start + 2048], points[support], task.gamma) @ signed_alpha
            for start in range(0, len(points), 2048)
        ]
    )
    alpha = np.zeros(len(points))
    alpha[support] = signed_alpha * y[support]
    # A coefficient within rounding of a bound is on it.
    below, above = alpha < task.C * (1 - 1e-12), alpha > task.C * 1e-12
    up, down = np.where(y > 0, below, above), np.where(y > 0, above, below)
    squared_norm = float(signed_alpha @ scores[support])
    margins = y * (scores + float(np.ravel(model.intercept_)[0]))
    return {
        "primal": squared_norm / 2 + task.C * float(np.maximum(0, 1 - margins).sum()),
        "dual": float(alpha.sum()) - squared_norm / 2,
        "violation": float((y - scores)[up].max() - (y - scores)[down].min()),
    }


def fit_twice(task, solver, n_points, clock, check):
    """Two timed fits and a prediction, as a dict of numbers.

    ``check``: recompute objective and violation, which takes a while.
    """
    _, module, name, dtype, options = SOLVERS[solver]
    make, clock = getattr(import_module(module), name), CLOCKS[clock]
    options = options | {"C": task.C, "gamma": task.gamma, "tol": TOL}
    X, y, Z, z = task.data()
    X, y = X[:n_points], y[:n_points]
    X_own, Z_own = X.astype(dtype), Z[:10_000].astype(dtype)
    # Loads and compiles what is loaded and compiled on first use.
    few = slice(None, None, max(1, len(y) // 1000))
    make(cache_size=200.0, **options).fit(X_own[few], y[few]).predict(Z_own[:100])
    first, _ = timed(lambda: make(cache_size=CACHE_SIZE, **options).fit(X_own, y), clock)
    later, fitted = timed(lambda: make(cache_size=CACHE_SIZE, **options).fit(X_own, y), clock)
    predict, scores = timed(lambda: fitted.decision_function(Z_own), clock)
    error = float(np.mean((scores > 0) != (z[: len(scores)] > 0)))
    numbers = {"first": first, "later": later, "predict": predict, "error": error}
    numbers["support"] = len(fitted.support_)
    return numbers | (recomputed(task, X, y, fitted) if check else {})


def measure(name, task, solvers, rounds, *limits):
    """Numbers by solver: medians of the times, the rest from the first round."""
    runs = {solver: [] for solver in solvers}
    for turn in range(rounds):
        for solver, done in runs.items():
            # A process of its own.
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                done.append(pool.submit(fit_twice, task, solver, *limits, turn == 0).result())
            print(f"{name} {solver} {done[-1]}", file=sys.stderr, flush=True)
    return {
        solver: done[0] | {key: median(run[key] for run in done) for key in TIMES}
        for solver, done in runs.items()
    }


def show(table):
    """Print a Markdown table of the numbers, and one of the ratios of times."""
    columns = ("support", "dual", "violation", "error")
    heading("task", "solver", *(f"{key} s" for key in TIMES), *columns)
    for name, solvers in table.items():
        for solver, numbers in solvers.items():
            shown = (f"{numbers[key]:.2f}" for key in TIMES)
            row(name, solver, *shown, numbers["support"], f"{numbers['dual']:.8g}",
                f"{numbers['violation']:.3g}", f"{100 * numbers['error']:.2f} %")  # fmt: skip
    if "ours" not in solvers:
        return
    print()
    heading("ours /", *table, "geometric mean", "worst")
    for peer in solvers.keys() - {"ours"}:
        for key in TIMES:
            ratios = {name: each["ours"][key] / each[peer][key] for name, each in table.items()}
            shown = (f"{x:.3g}" for x in [*ratios.values(), geometric_mean(ratios.values())])
            row(f"{peer}, {key}", *shown, max(ratios, key=ratios.__getitem__))


def main():
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--around", action="store_true", help="also for other C and gamma")
    parser.add_argument("--points", type=int, default=10**9, help="the first so many of each task")
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=SOLVERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clock", default="cpu", choices=CLOCKS, help="what seconds are of")
    options = parser.parse_args()
    solvers = [name for name in options.solvers if find_spec(SOLVERS[name][0])]
    tasks = {name: TASKS[name] for name in options.tasks}
    if options.around:
        tasks = {
            f"{name} x {c:g},{gamma:g}": replace(task, C=c * task.C, gamma=gamma * task.gamma)
            for name, task in tasks.items()
            for c, gamma in AROUND
        }
    limits = options.points, options.clock
    show({name: measure(name, tasks[name], solvers, options.rounds, *limits) for name in tasks})


if __name__ == "__main__":
    main()
