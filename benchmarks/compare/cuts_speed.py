"""Sampled cuts against SMO on the checkers board.

``python -m benchmarks.compare.cuts_speed --points 30000`` fits SMO and both samplers of 400 points
in turn in one process with one thread, each with its own stopping rule, for C = 1 and for
C = 10 000 / n, and prints medians over the seeds of the samples, and their ratios to those of SMO.
The studies ``cuts08-table1`` and ``cuts08-scaling`` compare with LIBSVM, and measure how time grows
with the number of points.
"""

import argparse
import warnings

import numpy as np

from benchmarks.compare.common import heading, one_thread, row, timed
from marginbench.data_loaders import find
from marginbench.solvers import SMO, CuttingPlane

GAMMA = 10.0  # sigma^2 = 0.05 as ``exp(-||x - z||^2 / (2 sigma^2))``
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
    computed = solver.counters_.kernel_evals_computed
    return cpu, primal, 100 * (1 - solver.score(Z, t)), computed, solver.n_iter_


def compare(n, seeds):
    """Print a row for SMO and for each sampler, for each C."""
    data = board(n)
    print(f"checkers, {n} points, medians of {seeds} rounds in turn")
    heading("C", "method", "CPU s", "/ SMO", "primal", "above, %", "test %", "entries", "/ SMO",
            "iterations")  # fmt: skip
    for C in dict.fromkeys((1.0, FIXED_TOTAL / n)):
        runs = {method: [] for method in ("SMO", "linear", "constant")}
        for seed in range(seeds):
            for method, done in runs.items():
                solver = SMO(C=C, gamma=GAMMA, cache_size=1000.0)
                if method != "SMO":
                    solver = CuttingPlane(
                        C=C, gamma=GAMMA, random_state=seed, oracle=method, n_samples=400
                    )
                done.append(measured(solver, *data))
        base = np.median(runs["SMO"], axis=0)
        for method, done in runs.items():
            cpu, primal, error, computed, iterations = np.median(done, axis=0)
            row(f"{C:.4g}", method, f"{cpu:.3g}", f"{cpu / base[0]:.2f}", f"{primal:.6g}",
                f"{100 * (primal / base[1] - 1):+.2f}", f"{error:.2f}", f"{computed:.2g}",
                f"{computed / base[3]:.3f}", f"{iterations:.0f}")  # fmt: skip


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=30_000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with one_thread():
        # Compiles.
        X, y, _, _ = board(500)
        for oracle in ("linear", "constant"):
            CuttingPlane(tol=0.1, oracle=oracle, n_samples=400).fit(X, y)
        SMO().fit(X, y)
        compare(options.points, options.seeds)


if __name__ == "__main__":
    main()
