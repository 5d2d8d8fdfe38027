"""The exact solver beside LIBSVM and oneDAL: time, objective, violation, support vectors, errors.

``python -m benchmarks.compare.exact_solvers`` fits each solver to each task in turn, some rounds,
twice in a process of its own, and prints tables of medians and their ratios: CPU seconds of the
first fit, which has to get its memory, and of the second. All of them fit a bias, to the same
tolerance and with the same bound on their cache. Objectives and violations are recomputed from the
coefficients with float64 kernel entries. Solvers that are not installed are left out (``pip install
marginbench[peers]`` brings them). ``--real`` takes the tasks whose data are real, ``--around`` each
also with C ten times larger and smaller and gamma four times, ``--points`` the first so many points
of each; ``OMP_NUM_THREADS=1`` and ``taskset -c 0`` make it one thread. Several threads are compared
by ``--clock wall``, on a machine that does nothing else.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from statistics import geometric_mean, median

import numpy as np
from scipy import sparse

from benchmarks import generators
from marginbench.data_loaders import load
from marginbench.solvers import SMO


@dataclass(frozen=True)
class Task:
    """A data set and the parameters of a Gaussian SVM with bias."""

    dataset: str
    C: float
    gamma: float
    params: dict = field(default_factory=dict)

    def data(self):
        """Points and labels -1, 1 as float32, for training and for testing."""
        data = load(self.dataset, self.params)
        points = [sparse.csr_matrix(X, dtype=np.float32) for X in (data.X_train, data.X_test)]
        if points[0].nnz >= 0.05 * np.prod(points[0].shape):
            points = [X.toarray() for X in points]
        positive = max(np.unique(data.y_train))
        labels = [np.where(y == positive, 1.0, -1.0) for y in (data.y_train, data.y_test)]
        return points[0], labels[0], points[1], labels[1]


@dataclass(frozen=True)
class GeneratedTask:
    """A generated set of n points with d features, by default a tenth as many (>= 1000) to test."""

    generator: Callable
    n: int
    d: int
    C: float
    gamma: float
    n_test: int | None = None

    def data(self):
        """As :meth:`Task.data`; points may be a CSR matrix."""
        n_test = max(1000, self.n // 10) if self.n_test is None else self.n_test
        points, y = self.generator(self.n + n_test, self.d, np.random.default_rng(20))
        return points[: self.n], y[: self.n], points[self.n :], y[self.n :]


TASKS = {
    "adult": Task("adult", 1.0, 0.05),
    "ijcnn1": Task("ijcnn1", 32.0, 2.0),
    "cod-rna": Task("cod-rna", 32.0, 8.0),
    "mnist": Task("mnist", 1.0, 0.02, {"positive": 8}),
    "reuters": Task("reuters_moneyfx", 10.0, 0.25),
    "covtype-sample": Task("covtype-sample", 10.0, 0.07, {"scale": "standard"}),
    "digits": Task("digits", 10.0, 0.02),
    "images-2k": GeneratedTask(generators.images, 2_000, 784, 10.0, 0.003),
    "images-12k": GeneratedTask(generators.images, 12_000, 784, 1.0, 0.003),
    "images-12k-C10": GeneratedTask(generators.images, 12_000, 784, 10.0, 0.006),
    "images-40k": GeneratedTask(generators.images, 40_000, 784, 1.0, 0.003),
    "texts-10k": GeneratedTask(generators.texts, 10_000, 2_000, 10.0, 0.5),
    "zero-one-15k": GeneratedTask(generators.zero_one, 15_000, 300, 1.0, 0.02),
    "zero-one-35k": GeneratedTask(generators.zero_one, 35_000, 300, 1.0, 0.02),
    "curves-50k": GeneratedTask(generators.curves, 50_000, 3, 10.0, 2.0),
    "curves-170k": GeneratedTask(generators.curves, 170_000, 3, 1000.0, 1.0),
    "overlap-20k-C.1": GeneratedTask(generators.overlapping, 20_000, 10, 0.1, 0.1),
    "overlap-13k-C4": GeneratedTask(generators.overlapping, 13_000, 10, 4.0, 0.1),
    "overlap-13k-C100": GeneratedTask(generators.overlapping, 13_000, 10, 100.0, 0.05),
    "apart-100k": GeneratedTask(generators.separable, 100_000, 30, 1000.0, 0.02),
    "apart-500k": GeneratedTask(generators.separable, 500_000, 20, 1.0, 0.02),
}
REAL = [name for name, task in TASKS.items() if isinstance(task, Task)]
# Of C and gamma: what ``--around`` multiplies them by.
AROUND = ((1, 1), (10, 1), (0.1, 1), (1, 4), (1, 0.25))
TIMES = ("first", "later", "predict")
CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
TOL = 1e-3


def ours(task, cache_size):
    return SMO(gamma=task.gamma, C=task.C, fit_intercept=True, tol=TOL, cache_size=cache_size)


def libsvm(task, cache_size):
    from sklearn.svm import SVC

    return SVC(gamma=task.gamma, C=task.C, tol=TOL, cache_size=cache_size)


def onedal(task, cache_size):
    from sklearnex.svm import SVC

    return SVC(gamma=task.gamma, C=task.C, tol=TOL, cache_size=cache_size)


# What each is made by, the type of points it works with, and the package it is from.
SOLVERS = {
    "ours": (ours, "float32", "marginbench"),
    "LIBSVM": (libsvm, "float64", "sklearn"),
    "oneDAL": (onedal, "float32", "sklearnex"),
}


def gaussian(A, B, gamma):
    """Entries between the rows of two float64 matrices."""
    squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2 * (A @ B.T)
    return np.exp(-gamma * np.maximum(squares, 0))


def recomputed(task, X, y, support, signed_alpha, bias):
    """Primal and dual value and largest violation, from the coefficients and float64 entries.

    ``signed_alpha`` are alpha_i y_i of the support vectors, whose places are ``support``.
    """
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
    return {
        "primal": squared_norm / 2 + task.C * float(np.maximum(0, 1 - y * (scores + bias)).sum()),
        "dual": float(alpha.sum()) - squared_norm / 2,
        "violation": float((y - scores)[up].max() - (y - scores)[down].min()),
        "bounded": int((~below).sum()),
    }


def fit_twice(name, solver_name, cache_size, n_points, clock, check):
    """Two timed fits and a prediction, as a dict of numbers.

    The cache's size is in MB. ``check``: recompute objective and violation, which takes a while.
    """

    def timed(call):
        start = CLOCKS[clock]()
        result = call()
        return result, CLOCKS[clock]() - start

    name, _, factors = name.partition(" x ")
    task = TASKS[name]
    if factors:
        c, gamma = map(float, factors.split(","))
        task = replace(task, C=c * task.C, gamma=gamma * task.gamma)
    make, dtype, _ = SOLVERS[solver_name]
    X, y, Z, z = task.data()
    X, y = X[:n_points], y[:n_points]
    X_own, Z_own = X.astype(dtype), Z[:10_000].astype(dtype)
    # Loads and compiles what is loaded and compiled on first use.
    few = slice(None, None, max(1, len(y) // 1000))
    make(task, 200.0).fit(X_own[few], y[few]).predict(Z_own[:100])
    fitted, first = timed(lambda: make(task, cache_size).fit(X_own, y))
    fitted, later = timed(lambda: make(task, cache_size).fit(X_own, y))
    scores, predict = timed(lambda: fitted.decision_function(Z_own))
    numbers = {
        "first": first,
        "later": later,
        "predict": predict,
        "support": len(fitted.support_),
        "error": float(np.mean((scores > 0) != (z[: len(scores)] > 0))),
    }
    if check:
        coef = fitted.dual_coef_
        coef = np.asarray(coef.toarray() if sparse.issparse(coef) else coef, dtype=np.float64)[0]
        bias = float(fitted.intercept_[0])
        numbers |= recomputed(task, X, y, np.asarray(fitted.support_), coef, bias)
    return numbers


def in_a_process(*words):
    """The same in a process of its own."""
    call = [sys.executable, "-m", "benchmarks.compare.exact_solvers", "--once", *map(str, words)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(tasks, solvers, rounds, *limits):
    """Numbers by task and solver: medians of the times, the rest from the first round.

    ``limits`` are the cache's size, the number of points and the clock.
    """
    table = {}
    for name in tasks:
        runs = {solver: [] for solver in solvers}
        for turn in range(rounds):
            for solver in solvers:
                runs[solver].append(in_a_process(name, solver, *limits, int(turn == 0)))
                print(f"{name} {solver} {runs[solver][-1]}", file=sys.stderr, flush=True)
        table[name] = {
            solver: turns[0] | {key: median(run[key] for run in turns) for key in TIMES}
            for solver, turns in runs.items()
        }
    return table


def show(table, solvers):
    """Print a Markdown table of the numbers, and one of the ratios of times."""
    print("| task | solver | first s | later s | predict s | support | dual | violation | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, row in table.items():
        for solver, numbers in row.items():
            print(
                f"| {name} | {solver} | {numbers['first']:.2f} | {numbers['later']:.2f} "
                f"| {numbers['predict']:.2f} "
                f"| {numbers['support']} | {numbers['dual']:.8g} | {numbers['violation']:.3g} "
                f"| {100 * numbers['error']:.2f} % |"
            )
    peers = [solver for solver in solvers if solver != "ours"]
    if "ours" not in solvers or not peers:
        return
    print()
    print("| ours / | " + " | ".join([*table, "geometric mean", "worst"]) + " |")
    print("|---|" + "---|" * (len(table) + 2))
    for peer in peers:
        for key in TIMES:
            ratios = {name: row["ours"][key] / row[peer][key] for name, row in table.items()}
            cells = [
                f"{ratio:.3g}" for ratio in [*ratios.values(), geometric_mean(ratios.values())]
            ]
            worst = max(ratios, key=ratios.__getitem__)
            print(f"| {peer}, {key} | " + " | ".join([*cells, worst]) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--real", action="store_true", help="only tasks whose data are real")
    parser.add_argument("--around", action="store_true", help="also for other C and gamma")
    parser.add_argument("--points", type=int, default=10**9, help="the first so many of each task")
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=SOLVERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache-size", type=float, default=2000.0, help="MB, for each of them")
    parser.add_argument("--clock", default="cpu", choices=CLOCKS, help="what seconds are of")
    parser.add_argument("--once", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        name, solver, cache_size, n_points, clock, check = options.once
        limits = float(cache_size), int(n_points), clock
        print(json.dumps(fit_twice(name, solver, *limits, check == "1")))
        return
    solvers = [name for name in options.solvers if find_spec(SOLVERS[name][2])]
    tasks = REAL if options.real else options.tasks
    if options.around:
        tasks = [f"{name} x {c:g},{gamma:g}" for name in tasks for c, gamma in AROUND]
    limits = options.cache_size, options.points, options.clock
    show(measure(tasks, solvers, options.rounds, *limits), solvers)


if __name__ == "__main__":
    main()
