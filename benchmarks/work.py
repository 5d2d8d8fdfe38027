"""What every registered solver does on small fixed tasks: counts, errors, distance to the optimum.

For a seed the numbers are deterministic, so any change of them is a change of the code. Lower is
better everywhere. A fit that fails has ``track_failed`` 1, and its other values are left out: a
failure hides nothing else. Each cell is fitted once, for all measures together.

``python -m benchmarks.work CELL...`` measures single cells of what is installed, and shows why one
fails.
"""

import argparse
import difflib
from functools import partial

import numpy as np

import marginbench.solvers
from benchmarks import tasks
from marginbench.solvers import FeasibilityProblem, check_certificate
from marginbench.solvers.registration import solver_names

#: Of feasibility methods.
PROBLEMS = ("separable", "inseparable")


def importable(kind="svm"):
    """The solvers that can be imported, by name, and of the others the measures of their cells."""
    classes, broken = {}, {}
    for name in solver_names(kind):
        try:
            solver = getattr(marginbench.solvers, name)
        except Exception:  # noqa: BLE001 (whatever it raises is a value of its cell)
            broken[name] = tasks.failed()
            continue
        if not tasks.lacks_package(solver):
            classes[name] = solver
    return classes, broken


def columns(problem):
    """Unit columns, shape (8, 120): on one side of a hyperplane, or their negatives among them."""
    A = np.random.RandomState(0).standard_normal((8, 120))
    A /= np.linalg.norm(A, axis=0)
    if problem == "separable":
        A *= np.sign(A[0])
        A[0] += 0.1
        return A / np.linalg.norm(A, axis=0)
    return A


def separate(solver, name):
    """The measures of a method on a problem; it is unsolved without a certificate that holds."""
    A = columns(name)
    kernel = "kernel" in solver().get_params()
    problem = FeasibilityProblem.gram(A.T @ A) if kernel else FeasibilityProblem.linear(A)
    try:
        result = solver(tol=1e-3, max_iter=20_000).solve(problem)
        certified = check_certificate(problem, result).valid
    except Exception:  # noqa: BLE001 (whatever it raises is a value of its cell)
        return tasks.failed()
    return {
        "failed": 0,
        "unsolved": int(not certified),
        "iterations": result.n_iter,
        "products": result.counters.as_dict()["matvecs"],
        **tasks.counts(result.counters),
    }


def cells():
    """What measures each cell, by name; a solver that cannot be imported has one that says so."""
    classes, broken = importable()
    found = {cell.name: partial(cell.measure, classes) for cell in tasks.cells(classes)}
    return found | {f"{name} import": found.copy for name, found in broken.items()}


def feasibility_cells():
    """The same of feasibility methods."""
    classes, broken = importable("feasibility")
    return {
        f"{name} {problem}": broken[name].copy
        if name in broken
        else partial(separate, cls, problem)
        for name, cls in (classes | broken).items()
        for problem in PROBLEMS
    }


def tracked(measure, unit="unit"):
    """A method of a suite: a measure of a cell, NaN if it has none."""

    def track(self, found, cell):
        return self.found.get(measure, float("nan"))

    track.unit = unit
    return track


class _BaseCells:
    """Looks up what ``setup_cache`` found, one cell at a time."""

    param_names = ("cell",)
    timeout = 60

    def setup(self, found, cell):
        if cell not in found:
            raise NotImplementedError("this version has no such cell")
        self.found = found[cell]

    track_failed = tracked("failed")


class _BaseFits(_BaseCells):
    """Of fits of any solver."""

    track_evaluations_computed = tracked("evaluations_computed")
    track_support_vectors = tracked("support_vectors")
    track_test_error = tracked("test_error", "%")


class _BaseCounts(_BaseCells):
    """Of runs of which every iteration counts."""

    track_iterations = tracked("iterations")
    track_evaluations = tracked("evaluations")


class Work(_BaseFits, _BaseCounts):
    params = ([*cells()],)

    def setup_cache(self):
        return {name: measure() for name, measure in cells().items()}

    setup_cache.timeout = 600

    track_suboptimality = tracked("suboptimality")


class Feasibility(_BaseCounts):
    """Methods that look for a separator, on a problem that has one and on one that has none."""

    params = ([*feasibility_cells()],)

    def setup_cache(self):
        return {name: measure() for name, measure in feasibility_cells().items()}

    setup_cache.timeout = 600

    track_unsolved = tracked("unsolved")
    track_products = tracked("products")


def main(description, known):
    """Measure the cells named on the command line and print what was found."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("cell", nargs="+", help="such as 'SMO rbf dense bias'")
    for name in parser.parse_args().cell:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=5, cutoff=0.0)
            raise SystemExit(f"{name}: no such cell; the nearest are {', '.join(near)}")
        print(name)
        for measure, value in known[name]().items():
            print(f"    {measure:24}{value}")


if __name__ == "__main__":
    main(__doc__.splitlines()[0], cells() | feasibility_cells())
