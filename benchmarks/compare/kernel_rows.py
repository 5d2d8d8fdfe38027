"""Kernel rows beside the bare arithmetic they consist of.

``python -m benchmarks.compare.kernel_rows`` prints, for blocks of Gaussian rows, the time of
``oracle.rows`` over that of a NumPy product and ``np.exp`` of the same shape; the time of the
oracle itself, counting included, with a kernel that does nothing; and for sparse points, the time
over that of SciPy's product. All are measured in turn in one process.
"""

import time

import numpy as np
from scipy import sparse

from marginbench.solvers import RBF, KernelOracle
from marginbench.solvers.kernels import Linear
from marginbench.solvers.kernels.base import Kernel, Points

#: Rows, points and features of :func:`main`.
SHAPES = [(64, 60_000, 784), (64, 50_000, 22), (64, 50_000, 2), (1, 60_000, 784), (1, 50_000, 22)]
_GAMMA = 0.02


def dense_points(n, d):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d), dtype=np.float32) / np.float32(np.sqrt(d))


def text_points(n, d, per_row):
    """CSR points whose features are used as words are: the k-th in proportion to 1 / k."""
    rng = np.random.default_rng(0)
    chances = 1 / np.arange(1, d + 1)
    columns = rng.choice(d, size=n * per_row, p=chances / chances.sum())
    rows = np.repeat(np.arange(n), per_row)
    values = rng.random(n * per_row, dtype=np.float32)
    return sparse.csr_matrix((values, (rows, columns)), shape=(n, d), dtype=np.float32)


def in_turn(calls, repeats):
    """Median seconds of each call, and the median of each one's ratio to the first.

    Parameters
    ----------
    calls : list of callable
    repeats : int
    """
    seconds = np.empty((repeats, len(calls)))
    for call in calls:
        call()
    for turn in seconds:
        for position, call in enumerate(calls):
            start = time.perf_counter()
            call()
            turn[position] = time.perf_counter() - start
    return np.median(seconds, axis=0), np.median(seconds / seconds[:, :1], axis=0)


class _Nothing(Kernel):
    """Entries that are there already."""

    def __init__(self, entries):
        self.entries = entries

    def prepare(self, X, dtype, like=None):
        return Points(X)

    def block(self, A, B, out=None):
        return self.entries

    def diag(self, A):
        return np.ones(len(A))


def compare_dense(rows, n, d, repeats):
    """Seconds of the bare arithmetic, and ratios to it: of the rows and of the oracle alone."""
    X = dense_points(n, d)
    index = np.random.default_rng(1).permutation(n)[:rows]
    oracle = KernelOracle(RBF(_GAMMA), X, "float32")
    nothing = KernelOracle(_Nothing(np.empty((rows, n), np.float32)), np.empty((n, 1)), "float32")

    def bare():
        entries = X[index] @ X.T
        np.exp(entries, out=entries)

    calls = [bare, lambda: oracle.rows(index), lambda: nothing.rows(index)]
    seconds, ratios = in_turn(calls, repeats)
    return seconds[0], ratios[1], seconds[2]


def compare_sparse(rows, n, d, per_row, repeats):
    """Seconds of SciPy's product with a dense factor, and the oracle's ratio to it."""
    X = text_points(n, d, per_row)
    index = np.random.default_rng(1).permutation(n)[:rows]
    oracle = KernelOracle(Linear(), X, "float32")

    def bare():
        return np.ascontiguousarray((X @ X[index].toarray().T).T)

    seconds, ratios = in_turn([bare, lambda: oracle.rows(index)], repeats)
    return seconds[0], ratios[1]


def main():
    print("| rows | n | d | bare ms | rows / bare | oracle alone us | oracle alone / bare |")
    print("|---|---|---|---|---|---|---|")
    for rows, n, d in SHAPES:
        repeats = int(np.clip(4e10 / (rows * n * (d + 50)), 15, 301))
        bare, ratio, alone = compare_dense(rows, n, d, repeats)
        print(
            f"| {rows} | {n} | {d} | {1e3 * bare:.2f} | {ratio:.3f} | {1e6 * alone:.1f} "
            f"| {alone / bare:.4f} |",
            flush=True,
        )
    print()
    print("| rows | n | d | numbers a row | SciPy ms | rows / SciPy |")
    print("|---|---|---|---|---|---|")
    for rows in (1, 16, 64, 256):
        scipy, ratio = compare_sparse(rows, 8000, 8000, 50, 31)
        print(f"| {rows} | 8000 | 8000 | 50 | {1e3 * scipy:.2f} | {ratio:.3f} |", flush=True)


if __name__ == "__main__":
    main()
