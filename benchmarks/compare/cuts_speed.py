"""Sampled cuts against LIBSVM on the checkers board, at equal test error.

``python -m benchmarks.compare.cuts_speed`` fits LIBSVM, the constant-time and the linear-time
sampler in turn in one process, one thread each, and prints seconds and errors, means over the seeds
of the samples, and how many times faster each is. The error is meant to be within half a point of
LIBSVM's. ``--points`` and ``--gamma`` change the task (200 000 points and 10 by default: sigma^2 =
0.05 as ``exp(-||x - z||^2 / (2 sigma^2))``).
The study ``cuts08-scaling`` measures how time grows with the number of points.
``python -m benchmarks.compare.cuts_speed --smo --points 30000`` compares both samplers of r = 400
with SMO, each with its own stopping rule, for C = 1 and for C = 10 000 / n.
"""

import argparse
import time
import warnings

import numba
import numpy as np
from threadpoolctl import threadpool_limits

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
#: The methods of :func:`against_smo`, and C1 = C n where C is not 1.
SMO_AGAINST = ("linear, r=400", "constant, r=400")
FIXED_TOTAL = 10_000.0


def board(n, n_test=20_000, seed=0):
    """A training board of n points and a test board."""
    source = find("checkers")
    content = source.read({}, source.resolve({"n_train": n, "n_test": n_test, "seed": seed}))
    return content.train.X, content.train.y, content.test.X, content.test.y


def timed(solver, data):
    """CPU and wall seconds of a fit to a :func:`board`, and its training and test error."""
    X, y, Z, t = data
    cpu, wall = time.process_time(), time.perf_counter()
    solver.fit(X, y)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    shown = slice(0, 20_000)
    return cpu, wall, 1 - solver.score(X[shown], y[shown]), 1 - solver.score(Z, t)


def compare(n, gamma, methods, seeds):
    """Print LIBSVM and the samplers on one board.

    Parameters
    ----------
    n : int
    gamma : float
    methods : list of str
        Names in :data:`SAMPLERS`.
    seeds : int
        Runs of the constant-time samplers; the others run once.
    """
    data = board(n)
    print(f"checkers, {n} points, gamma {gamma:g}, C 1; errors on 20000 points each")
    print(f"{'method':<22} {'runs':>4} {'CPU s':>7} {'wall s':>7} {'train %':>8} {'test %':>7}")
    base = None
    for name in ["LIBSVM", *methods]:
        runs = []
        for seed in range(seeds if name.startswith("constant") else 1):
            if name == "LIBSVM":
                solver = LIBSVM(gamma=gamma, cache_size=1000.0)
            else:
                solver = CuttingPlane(gamma=gamma, random_state=seed, **SAMPLERS[name])
            runs.append(timed(solver, data))
        cpu, wall, train, test = np.mean(runs, axis=0)
        verdict = ""
        if base is None:
            base = cpu, wall, test
        else:
            most = max(run[3] for run in runs)
            verdict = (
                f"{base[0] / cpu:.1f} x less CPU, {base[1] / wall:.1f} x less wall time, "
                f"{100 * (test - base[2]):+.2f} points (at most {100 * (most - base[2]):+.2f})"
            )
        print(f"{name:<22} {len(runs):>4} {cpu:7.1f} {wall:7.1f} {100 * train:8.2f} "
              f"{100 * test:7.2f}  {verdict}", flush=True)  # fmt: skip


def against_smo(n, gamma, rounds, methods):
    """Print CPU seconds to the solvers' tolerances, objectives and entries beside those of SMO.

    Methods of ``SAMPLERS`` take turns; the samples differ by round, and medians are shown.
    """
    X, y, _, _ = board(n)
    print(f"checkers, {n} points, gamma {gamma:g}, medians of {rounds} rounds in turn")
    for C in dict.fromkeys((1.0, FIXED_TOTAL / n)):
        rows_of = {name: [] for name in ("SMO", *methods)}
        for seed in range(rounds):
            for name, rows in rows_of.items():
                solver = (
                    SMO(C=C, gamma=gamma, cache_size=1000.0)
                    if name == "SMO"
                    else CuttingPlane(C=C, gamma=gamma, random_state=seed, **SAMPLERS[name])
                )
                cpu = time.process_time()
                solver.fit(X, y)
                cpu = time.process_time() - cpu
                losses = np.maximum(0.0, 1.0 - y * solver.decision_function(X))
                primal = 0.5 * solver.model_.squared_norm() + C * float(losses.sum())
                rows.append((cpu, primal, solver.counters_.kernel_evals_computed, solver.n_iter_))
        base = np.median(rows_of["SMO"], axis=0)
        for name, rows in rows_of.items():
            cpu, primal, computed, iterations = np.median(rows, axis=0)
            print(f"C {C:<8.4g} {name:<16} {cpu:8.3g} CPU s ({cpu / base[0]:5.2f}), "
                  f"primal {primal:10.6g} ({100 * (primal / base[1] - 1):+6.2f} %), "
                  f"{computed:.2g} entries ({computed / base[2]:6.3f}), "
                  f"{iterations:6.0f} iterations", flush=True)  # fmt: skip


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--gamma", type=float, default=10.0)
    parser.add_argument("--smo", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--method", action="append", choices=SAMPLERS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    numba.set_num_threads(1)
    with threadpool_limits(1):
        small = board(500)
        for solver in (CuttingPlane(**options) for options in SAMPLERS.values()):
            solver.set_params(tol=0.1).fit(*small[:2])  # compiles
        SMO().fit(*small[:2])
        if arguments.smo:
            methods = arguments.method or SMO_AGAINST
            against_smo(arguments.points, arguments.gamma, arguments.seeds, methods)
        else:
            methods = arguments.method or list(SAMPLERS)
            compare(arguments.points, arguments.gamma, methods, arguments.seeds)


if __name__ == "__main__":
    main()
