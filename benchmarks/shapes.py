"""Small forms of what the comparisons time: counts, errors, distance to the optimum.

The exact solver on generated data of each shape that ``compare/exact_solvers`` has, linear SVMs on
texts, and cuts whose time is linear. For a seed and with one thread the numbers are deterministic
on one machine. Lower is better everywhere. Each cell is fitted once, as in ``work``.

Rounding decides when the exact solver leaves a sub-problem: another order of a sum changes the
pairs it moves and the entries it asks for by up to a seventh. So these are other measures than the
iterations and evaluations of ``work``, with wider bounds. The entries it computes hardly change.

``python -m benchmarks.shapes CELL...`` measures single cells of what is installed, and shows why
one fails.
"""

import argparse
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import generators, tasks, work
from benchmarks.compare.exact_solvers import GeneratedTask, gaussian, recomputed

TOL = 1e-3
#: A violation below this is noise: where it ends below the tolerance is chance, and float32 entries
#: may add half of it.
FLOOR = 1.5 * TOL
#: MB. The working matrix gets an eighth, so that no working set holds all points.
CACHE_SIZE = 100.0
#: Number of points, features, C and gamma of the exact solver's tasks.
EXACT = {
    "images": GeneratedTask(generators.images, 2500, 784, 10.0, 0.003),
    "texts": GeneratedTask(generators.texts, 2500, 2000, 10.0, 0.5),
    "zero-one": GeneratedTask(generators.zero_one, 2500, 300, 1.0, 0.02),
    "curves": GeneratedTask(generators.curves, 3000, 3, 10.0, 2.0),
    "overlap-C.1": GeneratedTask(generators.overlapping, 3000, 10, 0.1, 0.1),
    "overlap-C4": GeneratedTask(generators.overlapping, 2500, 10, 4.0, 0.1),
    "overlap-C100": GeneratedTask(generators.overlapping, 2500, 10, 100.0, 0.05),
    "apart": GeneratedTask(generators.separable, 3000, 30, 1000.0, 0.02),
}
# No solver of it has a gamma.
_TEXTS = GeneratedTask(generators.texts, 2500, 20_000, 1.0, 0.0)
_BOARD = GeneratedTask(generators.checkers, 1000, 2, 1.0, 10.0)
_NAN = float("nan")


@dataclass(frozen=True)
class Cell:
    """One fit: a solver on a task."""

    solver: str
    shape: str
    task: GeneratedTask
    # What the solver is given beside C, gamma, tolerance, cache and seed.
    settings: dict = field(default_factory=dict)

    @property
    def name(self):
        return f"{self.solver} {self.shape}"

    @property
    def exact(self):
        return self.solver == "SMO"

    def estimator(self, classes):
        """The estimator, not fitted, of one of the classes by name."""
        solver = classes[self.solver]
        known = solver().get_params()
        wanted = {"C": self.task.C, "gamma": self.task.gamma, "tol": TOL, "random_state": 0}
        wanted |= {"cache_size": CACHE_SIZE, **self.settings}
        return solver(**{name: value for name, value in wanted.items() if name in known})

    def training(self):
        """What the estimator is fitted to."""
        return _data(self.task)[:2]

    def testing(self):
        """What it predicts, and the labels there."""
        return _data(self.task)[2:]


CELLS = {
    cell.name: cell
    for cell in (
        *(Cell("SMO", shape, task, {"fit_intercept": True}) for shape, task in EXACT.items()),
        *(Cell(solver, "texts", _TEXTS) for solver in ("LinearSDCA", "BundleClassifier", "OCAS")),
        Cell("CuttingPlane", "checkers", _BOARD, {"oracle": "linear"}),
    )
}


@cache
def _data(task):
    return task.data()


def measure(cell, classes):
    """The measures of one fit, by name; of one that fails, the reason."""
    with _one_thread():
        return work.measure(cell, classes, _of_exact if cell.exact else _of_other)


@contextmanager
def _one_thread():
    """The number of threads changes the order of sums."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        numba.set_num_threads(before)


def _of_exact(model, cell):
    found = work.counted(model, *cell.testing())
    found["pairs_moved"] = found.pop("iterations")
    found["entries_asked"] = found.pop("evaluations")
    coef, bias = np.ravel(model.dual_coef_), float(np.ravel(model.intercept_)[0])
    violation = recomputed(cell.task, *cell.training(), model.support_, coef, bias)["violation"]
    if not np.isfinite(violation):
        raise ValueError(f"the violation is {violation}")
    found["violation"] = max(violation, FLOOR)
    return found


def _of_other(model, cell):
    X, y = cell.training()
    scores, norm = tasks.scores_and_norm(model, _gram(cell.task), X)
    gap = tasks.objective(scores, norm, y, cell.task.C) / _optimum(cell.task).bound - 1
    return work.counted(model, *cell.testing()) | {"suboptimality": work.above_optimum(gap)}


@cache
def _gram(task):
    """Kernel entries of a task of other solvers than the exact one."""
    X = _data(task)[0].astype(np.float64)
    return gaussian(X, X, task.gamma) if task.gamma else (X @ X.T).toarray()


@cache
def _optimum(task):
    return tasks.certified(_gram(task), _data(task)[1], task.C, bias=False)


def _one(cell, classes, broken):
    if cell.solver in broken:
        return {"failed": 1, "reason": broken[cell.solver]}
    return measure(cell, classes)


class _BaseShapes:
    """Fits the cells of both suites at once."""

    def setup_cache(self):
        classes, broken = work.importable()
        known = classes.keys() | broken.keys()
        return {
            name: _one(cell, classes, broken)
            for name, cell in CELLS.items()
            if cell.solver in known
        }

    setup_cache.timeout = 300


class Exact(_BaseShapes, work._BaseFits):
    """The exact solver, with a bias."""

    params = ([name for name, cell in CELLS.items() if cell.exact],)

    def track_pairs_moved(self, found, cell):
        return self.found.get("pairs_moved", _NAN)

    def track_entries_asked(self, found, cell):
        return self.found.get("entries_asked", _NAN)

    def track_violation(self, found, cell):
        return self.found.get("violation", _NAN)


class Linear(_BaseShapes, work.Work):
    """Linear SVMs on texts, and linear-time cuts."""

    params = ([name for name, cell in CELLS.items() if not cell.exact],)


def main():
    """Measure the cells named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shapes", description=main.__doc__)
    parser.add_argument("cell", nargs="+", choices=CELLS, metavar="CELL", help=", ".join(CELLS))
    classes, broken = work.importable()
    for name in parser.parse_args().cell:
        work.show(name, _one(CELLS[name], classes, broken))


if __name__ == "__main__":
    main()
