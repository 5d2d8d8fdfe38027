"""Local timings of fits: the quickstart's, and every solver on two hundred points."""

from __future__ import annotations

import math
import warnings
from functools import cache

import numpy as np
import pytest

from benchmarks import tasks, work
from benchmarks.quickstart import Quickstart
from marginbench.harness.evaluation.judging import build_evaluator
from marginbench.harness.execution.workbench import estimator_and_data, planned_runs
from marginbench.harness.study.toml import load_study
from marginbench.solvers import SMO, registry
from marginbench.solvers.numeric.counters import computed_counters, evaluation_counters

CLASSES = registry()
#: Solvers that minimise the objective to their ``tol``: on all of these tasks they get there. Each
#: of them documents a stopping rule that bounds the distance from the optimum by ``tol`` in units
#: of the mean loss, C n; a violation of ``tol`` at every point makes no larger gap.
TO_TOLERANCE = frozenset(
    {"SMO", "SDCA", "LIBSVM", "LIBLINEAR", "LinearSDCA", "BundleClassifier", "CuttingPlane"}
)


@pytest.fixture(scope="module")
def runs():
    return planned_runs(load_study("quickstart"))


@pytest.mark.parametrize(("task", "solver"), [label.split(" / ") for label in Quickstart.params[0]])
def test_quickstart(benchmark, runs, task, solver):
    run = runs[task, solver]
    estimator, data = estimator_and_data(run)
    reference, problem = run.reference, run.work.problem
    evaluator = build_evaluator(problem, data, certificate=False)
    first = _worth(estimator.fit(data.X_train, data.y_train), evaluator)  # compiles
    benchmark.group = f"fit {task}"

    benchmark(estimator.fit, data.X_train, data.y_train)

    found = _worth(estimator, evaluator)
    assert found == first, "two fits with the same seed"
    scale = len(data.y_train) * problem.C
    objective = found.pop("objective")
    if estimator.scalarization is not None:
        _check_objective(estimator, objective, reference.primal, reference.gap, scale)
        found["suboptimality"] = objective / reference.primal - 1
    _check_error(found["test_error"], reference.test_error, len(data.y_test))
    _check_counts(found, estimator, len(data.y_train))
    assert found["support_vectors"] == len(estimator.support_)
    benchmark.extra_info.update(found)


def _small():
    """The cells of every solver without bias, and with bias of those that have a kernel."""
    for cell in tasks.cells(CLASSES):
        has_kernel = "kernel" in CLASSES[cell.solver]().get_params()
        kernel = "rbf" if has_kernel else "linear"
        if (cell.kernel, cell.storage) == (kernel, "dense") and (has_kernel or not cell.bias):
            yield f"{kernel}{', with bias' if cell.bias else ''}", cell


SMALL = {(task, cell.solver): cell for task, cell in _small()}


@pytest.mark.parametrize(("task", "solver"), list(SMALL))
def test_two_hundred_points(benchmark, task, solver):
    cell = SMALL[task, solver]
    estimator = cell.estimator(CLASSES)
    X, y = cell.training()
    benchmark.group = f"fit 200 points, {task}"
    # What ends at a fixed number of epochs says so.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = work.measures(estimator.fit(X, y), cell)  # compiles
        benchmark(estimator.fit, X, y)

    found = work.measures(estimator, cell)
    assert found == first, "two fits with the same seed"
    if estimator.scalarization is not None:
        bound = tasks.optimum(cell.kernel, cell.storage, cell.bias).bound
        excess = tasks.suboptimality(estimator, cell)
        gap = tasks.REFERENCE_GAP * bound
        _check_objective(estimator, (1 + excess) * bound, bound, gap, len(y) * tasks.C)
        found["suboptimality"] = excess
    found["test_error"] /= 100
    _check_error(found["test_error"], _exact_error(cell), len(cell.testing()[1]))
    _check_counts(found, estimator, len(y))
    benchmark.extra_info.update(found)


def _worth(estimator, evaluator):
    """Counts, errors and objective of a fitted estimator, recomputed from its model."""
    worth = evaluator.evaluate(estimator.model_)
    found = {
        "test_error": worth.test_error,
        "iterations": estimator.n_iter_,
        "support_vectors": worth.n_support,
        "objective": worth.primal,
    }
    if estimator.counters_ is not None:
        counts = estimator.counters_.as_dict()
        found["evaluations"] = sum(counts[name] for name in evaluation_counters())
        found["evaluations_computed"] = sum(counts[name] for name in computed_counters())
    return found


def _check_objective(estimator, objective, optimum, gap, scale):
    """Not below a certified optimum, better than w = 0, and as near as the solver promises."""
    assert objective >= optimum - gap
    # The objective of w = 0 is a hinge loss of 1 at every point.
    assert objective < scale
    if type(estimator).__name__ in TO_TOLERANCE:
        assert estimator.status_ == "converged"
        assert objective - optimum <= estimator.tol * scale + gap


def _check_error(error, reference, n_test):
    """At most three standard errors of a proportion above that of the optimum."""
    assert error <= reference + 3 * math.sqrt(reference * (1 - reference) / n_test)


def _check_counts(found, estimator, n_train):
    assert found["iterations"] > 0
    assert 0 < found.get("support_vectors", 1) <= n_train
    assert estimator.instrumented == ("evaluations" in found)
    if estimator.instrumented:
        assert found["evaluations"] >= found["evaluations_computed"] > 0


@cache
def _exact_error_of(kernel, storage, bias):
    cell = tasks.Cell("SMO", kernel, storage, bias)
    model = SMO(**{**cell.estimator(CLASSES).get_params(), "tol": 1e-6}).fit(*cell.training())
    Z, labels = cell.testing()
    return float(np.mean(model.predict(Z) != labels))


def _exact_error(cell):
    """The test error of the optimum of a cell's task."""
    return _exact_error_of(cell.kernel, cell.storage, cell.bias)
