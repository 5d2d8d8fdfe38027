"""What the comparisons share: their tasks, calls in turn on a clock, and Markdown tables."""

import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

import numba
import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks import generators
from marginbench.data_loaders import load

CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}


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


@contextmanager
def one_thread():
    """BLAS and compiled loops with one thread: more wait for each other longer than they work."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        numba.set_num_threads(before)


def timed(call, clock=time.process_time):
    """Seconds of a call, and what it returned."""
    start = clock()
    result = call()
    return clock() - start, result


def in_turn(calls, rounds, repeats=1):
    """CPU and wall seconds of calls that take turns, shape (rounds, n_calls), and their results."""
    seconds, results = np.empty((2, rounds, len(calls))), [None] * len(calls)
    for turn in range(rounds):
        for place, call in enumerate(calls):
            starts = time.process_time(), time.perf_counter()
            for _ in range(repeats):
                results[place] = call()
            ends = time.process_time(), time.perf_counter()
            seconds[:, turn, place] = np.subtract(ends, starts) / repeats
    return *seconds, results


def row(*cells):
    """Print a row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def heading(*titles):
    """Print the first two rows."""
    row(*titles)
    print("|---" * len(titles) + "|")
