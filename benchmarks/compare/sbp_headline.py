"""SBP against LIBSVM with bias: the time to LIBSVM's test error.

``python -m benchmarks.compare.sbp_headline adult`` fits LIBSVM to the end and SBP along its path,
in one process with one thread, and prints medians over the seeds: the times until SBP's test error
is for the first time that of LIBSVM, or within 0.1 points of it. Seconds are those of the
processor, so that other work on the machine counts little; SBP's clock stands still while its test
error is measured. Errors are looked at whenever the evaluations have grown by 15 %.
"""

import argparse
import time
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks import generators
from benchmarks.compare import common
from benchmarks.compare.common import GeneratedTask, Task, heading, one_thread, row, timed
from marginbench.data_loaders import load
from marginbench.solvers import LIBSVM, SBP, Monitor

_CLOSE_POINTS = 0.1
_FACTOR = 1.15
_CACHE_MB = 4400.0


@dataclass(frozen=True)
class Real(Task):
    """A data set as it is stored, with C, gamma and nu of the paper's Table 2."""

    nu: float = 0.0

    def data(self):
        data = load(self.dataset, self.params)
        return data.X_train, data.y_train, data.X_test, data.y_test


#: Generated sets have as many points for testing as for training; nu is LIBSVM's.
TASKS = {
    "adult": Real("adult", 100.0, 0.005, nu=5.79e-4),
    "mnist": Real("mnist", 1000.0, 0.02, {"positive": 8}, nu=6.42e-11),
    "images-8k": GeneratedTask(generators.images, 8_000, 784, 1.0, 0.003, n_test=8_000),
    "images-12k": replace(common.TASKS["images-12k-C10"], n_test=12_000),
    "zero-one-15k": replace(common.TASKS["zero-one-15k"], n_test=15_000),
    "texts-10k": replace(common.TASKS["texts-10k"], n_test=10_000),
    "overlap-13k": replace(common.TASKS["overlap-13k-C4"], n_test=13_000),
}


@dataclass
class Path(Monitor):
    """Processor seconds of the solver alone and test errors, along a run.

    The run ends when it has reached the error ``final``, and after ``limit`` seconds in any case.
    ``first`` are the kernel evaluations at the first look.
    """

    error: object
    final: float
    limit: float
    first: float
    seconds: list = field(default_factory=lambda: [0.0])
    errors: list = field(default_factory=lambda: [np.inf])

    def start(self, counters):
        self._counters = counters
        self.next_checkpoint = self.first
        self._since = time.process_time()

    def record(self, n_iter, snapshot):
        self.finish(n_iter, snapshot())
        self.next_checkpoint = self._counters.kernel_evals * _FACTOR
        self._since = time.process_time()
        return min(self.errors) <= self.final or self.seconds[-1] >= self.limit

    def finish(self, n_iter, model):
        self.seconds.append(self.seconds[-1] + time.process_time() - self._since)
        self.errors.append(self.error(model))

    def seconds_to(self, points):
        """Seconds until the error is for the first time within so many points of the final one."""
        reached = np.array(self.errors) <= self.final + points / 100 + 1e-12
        return self.seconds[reached.argmax()] if reached.any() else np.inf


def measure(task, seeds, budget, schedule):
    """LIBSVM's seconds and test error, and for each seed a Path of SBP.

    A path has at most ``budget`` times LIBSVM's seconds.
    """
    X, y, X_test, y_test = task.data()

    def error(model):
        return float(np.mean((model.decision_function(X_test) > 0) != (y_test > 0)))

    options = {"gamma": task.gamma, "fit_intercept": True, "cache_size": _CACHE_MB}
    seconds, libsvm = timed(lambda: LIBSVM(C=task.C, **options).fit(X, y))
    final = error(libsvm.model_)
    # SBP's nu at an optimum: mean hinge loss / ||w||.
    margins = np.where(y > 0, 1.0, -1.0) * libsvm.model_.decision_function(X)
    nu = np.maximum(0, 1 - margins).mean() / np.sqrt(libsvm.model_.squared_norm())
    options |= {"nu": getattr(task, "nu", float(nu)), "schedule": schedule}
    # Compiled code, outside the clock.
    SBP(max_epochs=1, **options).fit(X[:2000], y[:2000])
    paths = []
    for seed in range(seeds):
        paths.append(Path(error, final, budget * seconds, first=len(y) ** 2 / 50))
        sbp = SBP(max_epochs=1000, random_state=seed, **options)
        sbp.fit(X, y, monitor=paths[-1])
    return seconds, final, paths


def main():
    """Measure the tasks of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="*", help=f"all, or some of {', '.join(TASKS)}")
    parser.add_argument("--seeds", type=int, default=3, help="paths of SBP")
    parser.add_argument("--budget", type=float, default=1.0, help="SBP's time over LIBSVM's")
    parser.add_argument("--schedule", default="fast", choices=("paper", "fast"), help="SBP's")
    arguments = parser.parse_args()
    if unknown := set(arguments.task) - set(TASKS):
        parser.error(f"unknown tasks: {', '.join(sorted(unknown))}")
    heading("task", "LIBSVM s", "error %", "equal: SBP s", "/ LIBSVM", "+0.1: SBP s", "/ LIBSVM")
    with one_thread():
        for name in arguments.task or TASKS:
            seconds, final, paths = measure(
                TASKS[name], arguments.seeds, arguments.budget, arguments.schedule
            )
            cells = []
            for points in (0.0, _CLOSE_POINTS):
                spent = np.median([path.seconds_to(points) for path in paths])
                reached = np.isfinite(spent)
                cells += [f"{spent:.2f}", f"{spent / seconds:.3f}"] if reached else ["not", ""]
            row(name, f"{seconds:.1f}", f"{100 * final:.2f}", *cells)


if __name__ == "__main__":
    main()
