"""Feasibility methods: what an iteration costs beside its bare products, and how many it takes.

``python -m benchmarks.compare.feasibility_speed`` prints the time of an iteration of MPLFP over
that of its four matrix-vector products by NumPy alone, measured in turn in one process with one
BLAS thread.
``python -m benchmarks.compare.feasibility_speed large`` solves a problem of 500,000 columns and
prints its time and what it allocated beyond A.
"""

import sys
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

from marginbench.data_loaders import ldfp
from marginbench.solvers import MPKFP, MPLFP, SNKP, SPCT, FeasibilityProblem, check_certificate

#: Measured by :func:`main`: rows, columns, order and type of A.
SHAPES = [
    (20, 50_000, "C", "float64"),
    (100, 5_000, "C", "float64"),
    (100, 5_000, "F", "float64"),
    (100, 5_000, "C", "float32"),
    (1_000, 5_000, "C", "float64"),
    (1_000, 5_000, "F", "float64"),
    (100, 50_000, "C", "float64"),
    (100, 500_000, "C", "float64"),
]
_METHODS = {"MPLFP": MPLFP, "SPCT": SPCT, "MPKFP": MPKFP, "SNKP": SNKP}
_ITERATIONS = 12


def _problem(m, n, order="C", dtype="float64"):
    return FeasibilityProblem.linear(np.asarray(ldfp(m, n).A, dtype=dtype, order=order))


def iteration_seconds(problem):
    """Seconds of each iteration of a short run, from its own history.

    Parameters
    ----------
    problem : FeasibilityProblem
    """
    method = MPLFP(max_iter=_ITERATIONS, tol=0.0, stop="gap", history=1)
    return np.diff([point.seconds for point in method.solve(problem).history])


def product_seconds(A):
    """Seconds of the four products of an iteration, by NumPy into given arrays, some times.

    Parameters
    ----------
    A : ndarray, shape (m, n)
    """
    m, n = A.shape
    y, x = np.full(m, 0.01, A.dtype), np.full(n, 1 / n, A.dtype)
    responses, image = np.empty(n, A.dtype), np.empty(m, A.dtype)
    seconds = []
    for _ in range(_ITERATIONS - 1):
        start = time.perf_counter()
        for _ in range(2):
            np.matmul(y, A, out=responses)
            np.matmul(A, x, out=image)
        seconds.append(time.perf_counter() - start)
    return seconds


def measure(m, n, order, dtype, rounds):
    """Median seconds of an iteration and of its products, measured in turn.

    Parameters
    ----------
    m, n : int
    order : {"C", "F"}
    dtype : {"float64", "float32"}
    rounds : int
    """
    problem = _problem(m, n, order, dtype)
    iteration_seconds(problem)
    pairs = [(iteration_seconds(problem), product_seconds(problem.data)) for _ in range(rounds)]
    iterations, products = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return float(np.median(iterations)), float(np.median(products))


def large(m=100, n=500_000):
    """Solve one large separable problem; print seconds, iterations and memory beyond A.

    Parameters
    ----------
    m, n : int
    """
    problem = FeasibilityProblem.linear(ldfp(m, n).A)
    MPLFP().solve(_problem(20, 100))
    with threadpool_limits(1):
        tracemalloc.start()
        result = MPLFP(max_iter=3).solve(problem)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"memory beyond A: {peak / (8 * n):.2f} vectors of {n} float64", flush=True)
        result = MPLFP().solve(problem)
    verdict = check_certificate(problem, result)
    print(
        f"({m}, {n}): {result.status}, checked: {verdict.valid}, {result.n_iter} iterations, "
        f"{result.seconds:.1f} s, {1e3 * result.seconds / result.n_iter:.1f} ms each, "
        f"phi_lo {verdict.phi_lo:.2e}"
    )


def main():
    """Print a table of medians and their ratio."""
    print(f"{'m':>6}{'n':>9}  order  type     iteration ms  products ms  ratio")
    with threadpool_limits(1):
        for m, n, order, dtype in SHAPES:
            rounds = int(np.clip(4e8 / (m * n * _ITERATIONS), 2, 40))
            iteration, products = measure(m, n, order, dtype, rounds)
            print(
                f"{m:6}{n:9}  {order:5}  {dtype}  {1e3 * iteration:12.3f}  {1e3 * products:11.3f}"
                f"  {iteration / products:5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    large() if sys.argv[1:] == ["large"] else main()
