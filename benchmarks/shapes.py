"""Small forms of what the comparisons time: counts, errors, distance to the optimum.

The exact solver on generated data of each shape that the comparisons have, linear SVMs on texts,
and cuts whose time is linear. For a seed and with one thread the numbers are deterministic on one
machine. Lower is better everywhere. Each cell is fitted once, as in ``work``.

Rounding decides when the exact solver leaves a sub-problem: another order of a sum changes the
pairs it moves and the entries it asks for by up to a seventh. So these are other measures than the
iterations and evaluations of ``work``, with wider bounds. The entries it computes hardly change.

``python -m benchmarks.shapes CELL...`` measures single cells of what is installed, and shows why
one fails.
"""

from dataclasses import dataclass, field
from functools import cache, partial

from sklearn.metrics import pairwise

from benchmarks import generators, tasks, work
from benchmarks.compare.common import GeneratedTask, one_thread
from benchmarks.compare.exact_solvers import gaussian, recomputed

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


@cache
def problem(task):
    """What the other solvers than the exact one solve."""
    kernel = partial(gaussian, gamma=task.gamma) if task.gamma else pairwise.linear_kernel
    return tasks.Problem(*task.data(), kernel, task.C, bias=False)


@dataclass(frozen=True)
class Cell(tasks.Fit):
    """One fit: a solver on a task."""

    solver: str
    shape: str
    task: GeneratedTask
    # What the solver is given beside C, gamma, tolerance, cache and seed.
    more: dict = field(default_factory=dict)

    @property
    def name(self):
        return f"{self.solver} {self.shape}"

    @property
    def problem(self):
        return problem(self.task)

    @property
    def settings(self):
        found = {"C": self.task.C, "gamma": self.task.gamma, "tol": TOL, "random_state": 0}
        return found | {"cache_size": CACHE_SIZE, **self.more}

    def measure(self, classes):
        """The number of threads changes the order of sums."""
        with one_thread():
            return super().measure(classes)


class ExactCell(Cell):
    """One of the exact solver, with a bias."""

    @property
    def settings(self):
        return super().settings | {"fit_intercept": True}

    def measures(self, model):
        found = self.counted(model)
        found["pairs_moved"] = found.pop("iterations")
        found["entries_asked"] = found.pop("evaluations")
        data = self.problem
        violation = recomputed(self.task, data.X, data.y, model)["violation"]
        return found | {"violation": max(tasks.finite(violation), FLOOR)}


CELLS = {
    cell.name: cell
    for cell in (
        *(ExactCell("SMO", shape, task) for shape, task in EXACT.items()),
        *(Cell(solver, "texts", _TEXTS) for solver in ("LinearSDCA", "BundleClassifier", "OCAS")),
        Cell("CuttingPlane", "checkers", _BOARD, {"oracle": "linear"}),
    )
}


def cells():
    """What measures each cell of the solvers that this version has, by name."""
    classes, broken = work.importable()
    known = {name: cell for name, cell in CELLS.items() if cell.solver in {*classes, *broken}}
    return {
        name: (
            broken[cell.solver].copy if cell.solver in broken else partial(cell.measure, classes)
        )
        for name, cell in known.items()
    }


class _BaseShapes:
    """Fits the cells of both suites at once."""

    def setup_cache(self):
        return {name: measure() for name, measure in cells().items()}

    setup_cache.timeout = 300


class Exact(_BaseShapes, work._BaseFits):
    """The exact solver, with a bias."""

    params = ([name for name, cell in CELLS.items() if cell.solver == "SMO"],)

    track_pairs_moved = work.tracked("pairs_moved")
    track_entries_asked = work.tracked("entries_asked")
    track_violation = work.tracked("violation")


class Linear(_BaseShapes, work.Work):
    """Linear SVMs on texts, and linear-time cuts."""

    params = ([name for name, cell in CELLS.items() if cell.solver != "SMO"],)


if __name__ == "__main__":
    work.main(__doc__.splitlines()[0], cells())
