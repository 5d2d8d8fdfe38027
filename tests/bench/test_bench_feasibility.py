"""Local timings of feasibility methods: find a separator, or prove that there is none."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import work
from benchmarks.solve import Separate
from marginbench.solvers import FeasibilityProblem, check_certificate, registry
from marginbench.solvers.numeric.counters import (
    FeasibilityCounters,
    computed_counters,
    evaluation_counters,
)
from marginbench.solvers.registration import solver_names

METHODS = solver_names("feasibility")
CLASSES = registry("feasibility")
ON_COLUMNS = [name for name in METHODS if "kernel" not in CLASSES[name]().get_params()]


@pytest.mark.parametrize("method", ON_COLUMNS)
def test_separate(benchmark, method):
    suite = Separate()
    suite.setup(method)
    benchmark.group = f"separate {suite.problem.m} x {suite.problem.n}"
    result = _timed(benchmark, suite.method, suite.problem)
    assert result.status == "separable"
    # The least response to a unit column bounds the best margin from below, ||A x|| from above.
    margin = float(np.min(result.y @ suite.problem.data) / np.linalg.norm(result.y))
    assert 0 < margin <= result.phi_up
    benchmark.extra_info["margin"] = margin


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", ["separable", "inseparable"])
def test_small(benchmark, problem, method):
    A = work.columns(problem)
    kernel = method not in ON_COLUMNS
    given = FeasibilityProblem.gram(A.T @ A) if kernel else FeasibilityProblem.linear(A)
    benchmark.group = f"certify {A.shape[0]} x {A.shape[1]}, {problem}"
    result = _timed(benchmark, CLASSES[method](tol=1e-3, max_iter=20_000), given)
    assert (result.status == "separable") == (problem == "separable")


def _timed(benchmark, method, problem):
    """Time a method: its certificate holds, and a second solve does the same work."""
    first = method.solve(problem)
    result = benchmark(method.solve, problem)
    verdict = check_certificate(problem, result)
    assert verdict.valid, verdict.reasons
    assert result.status != "budget"
    assert result.n_iter == first.n_iter > 0
    assert result.counters == first.counters
    counts = result.counters.as_dict()
    benchmark.extra_info.update(
        iterations=result.n_iter,
        products=counts["matvecs"],
        evaluations=sum(counts[name] for name in evaluation_counters(FeasibilityCounters)),
        evaluations_computed=sum(counts[name] for name in computed_counters(FeasibilityCounters)),
    )
    return result
