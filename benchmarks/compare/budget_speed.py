"""BSCA on a budget: what an iteration costs beside its bare arithmetic, and what memory it takes.

``python -m benchmarks.compare.budget_speed`` times one epoch of BSCA, merging by lookup-WD
included, on ijcnn1 (where it is at hand) and on a synthetic set of the shape of SUSY, and prints
its time per iteration over that of the bare arithmetic: B squared distances by a compiled loop, and
``np.exp`` of B float32 values. The two take turns in one process with one thread, and the clock is
the thread's own, which stands still while others have the processor.
"""

import resource
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from marginbench.data_loaders import load
from marginbench.solvers import BSCA, Monitor
from marginbench.solvers.budget.arithmetic import aligned, squared_distances
from marginbench.solvers.budget.compiling import compiled

BUDGET = 500
#: Points and features of SUSY's training part.
SUSY_SHAPE = (4_500_000, 18)
#: How often the two take turns.
_TURNS = 60
_BARE_ROWS = 2048


@compiled()
def _distances(rows, points, width, out):
    for i in range(len(rows)):
        squared_distances(rows[i], points, width, out[i])


class BareArithmetic:
    """B distances of one point and their exponentials, many points at a time."""

    def __init__(self, X):
        width = -(-BUDGET // 16) * 16
        self.rows = np.ascontiguousarray(X[:_BARE_ROWS], dtype=np.float32)
        self.points = aligned((X.shape[1], width), "float32")
        self.points[:, :BUDGET] = X[-BUDGET:].T
        # A block that stays in the cache.
        self.out = aligned((64, width), "float32")
        self.seconds()

    def seconds(self):
        """Seconds for one point, now."""
        spent = 0.0
        for begin in range(0, len(self.rows), 64):
            rows = self.rows[begin : begin + 64]
            started = time.thread_time()
            _distances(rows, self.points, BUDGET, self.out)
            spent += time.thread_time() - started
            entries = self.out[: len(rows)]
            np.negative(entries, out=entries)
            started = time.thread_time()
            np.exp(entries, out=entries)
            spent += time.thread_time() - started
        return spent / len(self.rows)


class TakingTurns(Monitor):
    """Times the bare arithmetic between stretches of the solver's iterations."""

    def __init__(self, bare, n):
        self.bare = bare
        self.every = n * BUDGET / _TURNS
        self.next_checkpoint = self.every
        self.bare_seconds, self.per_iteration, self.spent = [], [], 0.0
        self._iterations = 0

    def start(self, counters):
        self.counters = counters
        self._resumed = time.thread_time()

    def record(self, n_iter, snapshot):
        spent = time.thread_time() - self._resumed
        self._note(spent, n_iter)
        self.next_checkpoint = self.counters.kernel_evals + self.every
        self._resumed = time.thread_time()
        return False

    def finish(self, n_iter, model):
        self._note(time.thread_time() - self._resumed, n_iter)

    def _note(self, spent, n_iter):
        self.spent += spent
        iterations, self._iterations = n_iter - self._iterations, n_iter
        self.bare_seconds.append(self.bare.seconds())
        if iterations:
            self.per_iteration.append(spent / iterations)


def susy_shaped(n, d, seed=0):
    """Points of one cloud in two classes that overlap as SUSY's do, built without a second copy."""
    rng = np.random.default_rng(seed)
    X, y = np.empty((n, d), dtype=np.float32), np.empty(n, dtype=np.int8)
    for begin in range(0, n, 100_000):
        block = rng.standard_normal((min(100_000, n - begin), d), dtype=np.float32)
        score = block[:, 0] * block[:, 1] + block[:, 2] + 0.5 * np.square(block[:, 3]) - 0.5
        noise = rng.standard_normal(len(block))
        X[begin : begin + len(block)] = block
        y[begin : begin + len(block)] = np.where(score + 0.8 * noise > 0, 1, -1)
    return X, y


def _bsca(gamma, **params):
    return BSCA(C=32.0, gamma=gamma, budget=BUDGET, max_epochs=1, random_state=0, **params)


def measure(name, X, y, gamma):
    """Print what one epoch takes."""
    _bsca(gamma).fit(X[:2000], y[:2000])
    monitor = TakingTurns(BareArithmetic(X), len(y))
    solver = _bsca(gamma).fit(X, y, monitor=monitor)
    (record,) = solver.trace_
    per_iteration, bare = monitor.spent / len(y), np.mean(monitor.bare_seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    of_medians = np.median(monitor.per_iteration) / np.median(monitor.bare_seconds)
    print(
        f"{name}: epoch {monitor.spent:.2f} s, {1e6 * per_iteration:.2f} us per iteration, bare "
        f"arithmetic {1e6 * bare:.2f} us, ratio {per_iteration / bare:.2f} (of medians "
        f"{of_medians:.2f}), merges in {record.maintenance_fraction:.1%} of the iterations, "
        f"{record.maintenance_share:.0%} of the time; peak memory of the process "
        f"{peak / 1e6:.0f} MB, {peak / X.nbytes:.2f} times the points"
    )


def main():
    """Print the measurements; ``susy`` or ``ijcnn1`` as an argument measures that one alone."""
    chosen = sys.argv[1:] or ["ijcnn1", "susy"]
    with threadpool_limits(1):
        if "ijcnn1" in chosen:
            data = load("ijcnn1")
            measure("ijcnn1", data.X_train, data.y_train, 2.0)
        if "susy" in chosen:
            measure("SUSY-shaped", *susy_shaped(*SUSY_SHAPE), 2.0**-7)


if __name__ == "__main__":
    main()
