"""What every registered solver does on small fixed tasks: counts, errors, distance to the optimum.

For a seed the numbers are deterministic, so any change of them is a change of the code. Lower is
better everywhere. A fit that fails has ``track_failed`` 1, and its other values are left out: a
failure hides nothing else. Each cell is fitted once, for all measures together.

``python -m benchmarks.work CELL...`` measures single cells of what is installed, and shows why one
fails.
"""

import argparse
import difflib
import traceback
import warnings

import numpy as np

import marginbench.solvers
from benchmarks import tasks
from marginbench.solvers import FeasibilityProblem, check_certificate
from marginbench.solvers.registration import solver_names

#: Below this relative suboptimality a change is noise, and a baseline of zero would make any noise
#: a regression.
FLOOR = 1e-3
#: Of feasibility methods.
PROBLEMS = ("separable", "inseparable")
_NAN = float("nan")


def importable(kind="svm"):
    """The solvers that can be imported, by name, and why the others cannot."""
    found, broken = {}, {}
    for name in solver_names(kind):
        try:
            found[name] = getattr(marginbench.solvers, name)
        except Exception:  # noqa: BLE001 (whatever it raises is a value of its cell)
            broken[name] = traceback.format_exc()
            continue
        if tasks.lacks_package(found[name]):
            del found[name]
    return found, broken


def cell_names():
    """The cells of all solvers; one that cannot be imported has a cell that says so."""
    classes, broken = importable()
    return [cell.name for cell in tasks.cells(classes)] + _of_broken(broken)


def _of_broken(broken):
    return [f"{name} import" for name in broken]


def _failures(broken):
    reasons = zip(_of_broken(broken), broken.values(), strict=True)
    return {name: {"failed": 1, "reason": reason} for name, reason in reasons}


def measures(model, cell):
    """The measures of a fitted estimator, by name; the test error is in percent.

    A ValueError if its predictions are not labels, or its objective is not finite.
    """
    found = counted(model, *cell.testing())
    if model.scalarization is not None:
        found["suboptimality"] = above_optimum(tasks.suboptimality(model, cell))
    return found


def counted(model, Z, labels):
    """The measures of any fitted estimator, by name, without those of its objective.

    A ValueError if its predictions are not labels, -1 or 1.
    """
    predicted = model.predict(Z)
    if not np.isin(predicted, (-1.0, 1.0)).all():
        raise ValueError("predictions are not labels")
    found = {"test_error": 100 * float(np.mean(predicted != labels)), "iterations": model.n_iter_}
    if model.counters_ is not None:
        found |= _counts(model.counters_)
    if hasattr(model, "dual_coef_"):
        found["support_vectors"] = np.ravel(model.dual_coef_).size
    return found


def above_optimum(gap):
    """The suboptimality that is recorded; a ValueError if it is not finite."""
    if not np.isfinite(gap):
        raise ValueError(f"the objective is {gap}")
    return max(float(gap), FLOOR)


def _counts(counters):
    counts = counters.as_dict()
    rest = counts.get("matvec_entries", 0) + counts.get("inner_products", 0)
    return {
        "evaluations": counts["kernel_evals"] + rest,
        "evaluations_computed": counts["kernel_evals_computed"] + rest,
    }


def measure(cell, classes, measures=measures):
    """The measures of one fit, by name; of one that fails, the reason."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = cell.estimator(classes).fit(*cell.training())
        return {"failed": 0, **measures(model, cell)}
    except Exception:  # noqa: BLE001 (whatever it raises is a value of its cell)
        return {"failed": 1, "reason": traceback.format_exc()}


class _BaseCells:
    """Looks up what ``setup_cache`` found, one cell at a time."""

    param_names = ("cell",)
    timeout = 60

    def setup(self, found, cell):
        if cell not in found:
            raise NotImplementedError("this version has no such cell")
        self.found = found[cell]

    def track_failed(self, found, cell):
        return self.found["failed"]


class _BaseFits(_BaseCells):
    """Of fits of any solver."""

    def track_evaluations_computed(self, found, cell):
        return self.found.get("evaluations_computed", _NAN)

    def track_support_vectors(self, found, cell):
        return self.found.get("support_vectors", _NAN)

    def track_test_error(self, found, cell):
        return self.found.get("test_error", _NAN)

    track_test_error.unit = "%"


class _BaseCounts(_BaseCells):
    """Of runs of which every iteration counts."""

    def track_iterations(self, found, cell):
        return self.found.get("iterations", _NAN)

    def track_evaluations(self, found, cell):
        return self.found.get("evaluations", _NAN)


class Work(_BaseFits, _BaseCounts):
    params = (cell_names(),)

    def setup_cache(self):
        classes, broken = importable()
        found = {cell.name: measure(cell, classes) for cell in tasks.cells(classes)}
        return found | _failures(broken)

    setup_cache.timeout = 600

    def track_suboptimality(self, found, cell):
        return self.found.get("suboptimality", _NAN)


class Feasibility(_BaseCounts):
    """Methods that look for a separator, on a problem that has one and on one that has none."""

    params = (
        [f"{name} {problem}" for name in solver_names("feasibility") for problem in PROBLEMS],
    )

    def setup_cache(self):
        classes, broken = importable("feasibility")
        found = {
            f"{name} {problem}": separate(solver, problem)
            for name, solver in classes.items()
            for problem in PROBLEMS
        }
        return found | {
            f"{name} {problem}": {"failed": 1, "reason": reason}
            for name, reason in broken.items()
            for problem in PROBLEMS
        }

    setup_cache.timeout = 600

    def track_unsolved(self, found, cell):
        return self.found.get("unsolved", _NAN)

    def track_products(self, found, cell):
        return self.found.get("products", _NAN)


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
        return {"failed": 1, "reason": traceback.format_exc()}
    counts = result.counters.as_dict()
    return {
        "failed": 0,
        "unsolved": int(not certified),
        "iterations": result.n_iter,
        "products": counts["matvecs"],
        **_counts(result.counters),
    }


def main():
    """Measure the cells named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.work", description=main.__doc__)
    parser.add_argument("cell", nargs="+", help="such as 'SMO rbf dense bias'")
    classes, broken = importable()
    known = {cell.name: cell for cell in tasks.cells(classes)}
    for name in parser.parse_args().cell:
        show(name, _one(name, known, classes, broken))


def show(name, found):
    """Print the measures of a cell."""
    print(name)
    for measure_name, value in found.items():
        print(f"    {measure_name:24}{value}")


def _one(name, known, classes, broken):
    if name in known:
        return measure(known[name], classes)
    solver, _, problem = name.partition(" ")
    if problem in PROBLEMS and solver in solver_names("feasibility"):
        return separate(importable("feasibility")[0][solver], problem)
    if name in _of_broken(broken):
        return _failures(broken)[name]
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.0)
    raise SystemExit(f"{name}: no such cell; the nearest are {', '.join(near)}")


if __name__ == "__main__":
    main()
