"""Solvers against each other: one optimum, certificates that bracket it, equal paths and counts."""

import numpy as np
import pytest

from marginbench.solvers import (
    SDCA,
    SMO,
)
from marginbench.solvers.numeric.counters import SERVED
from marginbench.solvers.registration import registry

EXACT = {"dtype": "float64"}


def coefficients(model, n):
    coef = np.zeros(n)
    coef[model.support] = model.coef
    return coef


@pytest.mark.parametrize("C", [0.5, 10.0])
def test_weighted_optima_agree(task, C, solve_dual):
    weights = np.random.default_rng(0).integers(0, 4, size=task.n).astype(float)
    kept = np.repeat(np.arange(task.n), weights.astype(int))
    best = solve_dual(task.Q[np.ix_(kept, kept)], task.y[kept], C).value
    common = {**task.params, **EXACT, "C": C}
    for solver in (
        SMO(**common, tol=1e-10),
        SDCA(**common, tol=1e-8, max_epochs=40_000, random_state=0),
        SDCA(
            **common, tol=1e-6, stopping="gradient", shrinking=True, max_epochs=40_000,
            random_state=0,
        ),
    ):  # fmt: skip
        solver.fit(task.X, task.y, sample_weight=weights)
        coef = coefficients(solver.model_, task.n)
        scores = task.K @ coef
        loss = weights @ np.maximum(0, 1 - task.y * scores)
        assert 0.5 * coef @ scores + C * loss == pytest.approx(best, rel=1e-6)
        assert (coef[weights == 0] == 0).all()


@pytest.mark.parametrize(
    "name", [name for name, cls in registry().items() if ".peers." not in cls.__module__]
)
def test_one_tally_counts_the_entries_of_every_method(rbf_task, name):
    asked, computed = SERVED.asked, SERVED.computed
    solver = registry()[name]()
    if "kernel" in solver.get_params():
        solver.set_params(kernel="rbf", gamma=0.5)
    solver.fit(rbf_task.X, rbf_task.y)
    counters = solver.counters_
    assert counters.kernel_evals == SERVED.asked - asked
    assert counters.kernel_evals_computed == SERVED.computed - computed
