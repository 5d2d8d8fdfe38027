"""Sampled cuts against LIBSVM or SMO on the checkers board.

``python -m benchmarks.compare.cuts_speed`` fits LIBSVM and the constant-time and linear-time
samplers in turn in one process with one thread, and prints medians over the seeds of the samples,
and their ratios to those of LIBSVM. The test error is meant to be within half a point of LIBSVM's.
``--points`` and ``--gamma`` change the task (200 000 points and 10 by default: sigma^2 = 0.05 as
``exp(-||x - z||^2 / (2 sigma^2))``). The study ``cuts08-scaling`` measures how time grows with the
number of points. ``--smo --points 30000`` compares both samplers of r = 400 with SMO, each with its
own stopping rule, for C = 1 and for C = 10 000 / n.
"""

import argparse
import warnings

import numpy as np

from benchmarks.compare.common import heading, one_thread, row, timed
from marginbench.data_loaders import find
from marginbench.solvers import LIBSVM, SMO, CuttingPlane

#: CUTS08 section 6.2: r = 1000 for the constant-time sampler, 400 for the linear-time one. With
#: more patience than its p = 4 the constant-time one ends later and nearer to the exact error.
SAMPLERS = {
    "constant, r=400": {"oracle": "constant", "n_samples": 400},
    "constant, r=1000": {"oracle": "constant", "n_samples": 1000},
    "constant, r=400, p=30": {"oracle": "constant", "n_samples": 400, "patience": 30},
    "linear, r=400": {"oracle": "linear", "n_samples": 400},
}
#: The methods beside SMO, and C n where C is not 1.
SMO_AGAINST = ("linear, r=400", "constant, r=400")
FIXED_TOTAL = 10_000.0


def board(n, n_test=20_000):
    """A training board of n points and a test board."""
    source = find("checkers")
    content = source.read({}, source.resolve({"n_train": n, "n_test": n_test, "seed": 0}))
    return content.train.X, content.train.y, content.test.X, content.test.y


def measured(solver, X, y, Z, t):
    """CPU seconds of a fit, its objective, test error in percent, entries and iterations."""
    cpu, _ = timed(lambda: solver.fit(X, y))
    losses = np.maximum(0.0, 1.0 - y * solver.decision_function(X))
    primal = 0.5 * solver.model_.squared_norm() + solver.C * float(losses.sum())
    computed = solver.counters_.kernel_evals_computed if solver.counters_ else np.nan
    return cpu, primal, 100 * (1 - solver.score(Z, t)), computed, solver.n_iter_


def compare(exact, n, gamma, methods, costs, seeds):
    """Print a row for an exact solver and for each sampler, for each C."""
    data = board(n)
    print(f"checkers, {n} points, gamma {gamma:g}, medians of {seeds} rounds in turn")
    name = exact.__name__
    heading("C", "method", "CPU s", f"/ {name}", "primal", "above, %", "test %", "entries",
            f"/ {name}", "iterations")  # fmt: skip
    for C in costs:
        runs = {method: [] for method in (name, *methods)}
        for seed in range(seeds):
            for method, done in runs.items():
                if method == name:
                    solver = exact(C=C, gamma=gamma, cache_size=1000.0)
                else:
                    solver = CuttingPlane(C=C, gamma=gamma, random_state=seed, **SAMPLERS[method])
                done.append(measured(solver, *data))
        base = np.median(runs[name], axis=0)
        for method, done in runs.items():
            cpu, primal, error, computed, iterations = np.median(done, axis=0)
            row(f"{C:.4g}", method, f"{cpu:.3g}", f"{cpu / base[0]:.2f}", f"{primal:.6g}",
                f"{100 * (primal / base[1] - 1):+.2f}", f"{error:.2f}", f"{computed:.2g}",
                f"{computed / base[3]:.3f}", f"{iterations:.0f}")  # fmt: skip


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--gamma", type=float, default=10.0)
    parser.add_argument("--smo", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--method", action="append", choices=SAMPLERS)
    options = parser.parse_args()
    exact, methods, costs = LIBSVM, SAMPLERS, (1.0,)
    if options.smo:
        exact, methods = SMO, SMO_AGAINST
        costs = dict.fromkeys((1.0, FIXED_TOTAL / options.points))
    warnings.simplefilter("ignore")
    with one_thread():
        # Compiles.
        X, y, _, _ = board(500)
        for sampler in SAMPLERS.values():
            CuttingPlane(tol=0.1, **sampler).fit(X, y)
        exact().fit(X, y)
        methods = options.method or methods
        compare(exact, options.points, options.gamma, methods, costs, options.seeds)


if __name__ == "__main__":
    main()
