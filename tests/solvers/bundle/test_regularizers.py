"""Bundle methods with other regularisers than L2, against general solvers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from marginbench.solvers.bundle import (
    EpsilonInsensitive,
    Quantile,
    minimize_risk,
)
from marginbench.solvers.bundle.inner import PlanesByLP
from marginbench.solvers.bundle.regularizers import L1


def regression_lp(loss, X, y, penalty, lower, upper):
    """min penalty ||w||_1 + mean (lower max(0, y - s - e) + upper max(0, s - y - e)), by HiGHS."""
    n, d = X.shape
    e = getattr(loss, "epsilon", 0.0)
    costs = np.r_[np.full(2 * d, penalty), np.full(n, lower / n), np.full(n, upper / n)]
    eye, zero = np.eye(n), np.zeros((n, n))
    A = np.vstack([np.hstack([-X, X, -eye, zero]), np.hstack([X, -X, zero, -eye])])
    return linprog(costs, A, np.r_[e - y, e + y]).fun


@pytest.mark.parametrize("penalty", [0.3, 0.03])
@pytest.mark.parametrize(
    ("loss", "lower", "upper"), [(EpsilonInsensitive(0.2), 1.0, 1.0), (Quantile(0.3), 0.3, 0.7)]
)
def test_l1_against_the_whole_linear_program(linear_task, loss, lower, upper, penalty):
    X = linear_task.X[:60]
    y = X @ [1.0, -2.0, 0.0, 0.0, 0.5] + np.random.default_rng(1).standard_normal(60)
    best = regression_lp(loss, X, y, penalty, lower, upper)
    found = minimize_risk(X, y, loss, lam=penalty, regularizer="l1", tol=1e-9)
    assert found.status == "converged"
    assert found.objective == pytest.approx(best, rel=1e-7)
    assert found.lower_bound <= best * (1 + 1e-12)
    # Weights at zero are exactly there.
    assert ((found.weights == 0) | (abs(found.weights) > 1e-4)).all()


@pytest.mark.parametrize("regularizer", ["entropic", "simplex_entropy"])
@pytest.mark.parametrize("lam", [0.3, 0.03])
def test_entropic_regularisers(linear_task, regularizer, lam):
    X, y = linear_task.X, linear_task.y
    d = X.shape[1]

    def objective(w):
        slack = np.logaddexp(0, -y * (X @ w)).mean()
        return slack + lam * (w * np.log(np.maximum(w, 1e-300)) - w + 1).sum()

    constraint = {"type": "eq", "fun": lambda w: w.sum() - 1}
    on_simplex = regularizer == "simplex_entropy"
    best = minimize(
        objective,
        np.full(d, 1 / d),
        method="SLSQP",
        bounds=[(1e-12, None)] * d,
        constraints=[constraint] if on_simplex else [],
        options={"ftol": 1e-14, "maxiter": 500},
    ).fun  # fmt: skip
    # On the simplex the regulariser is relative to equal weights.
    best += lam * (1 - d + np.log(d)) if on_simplex else 0.0
    found = minimize_risk(
        X, y, "logistic", lam=lam, regularizer=regularizer, tol=1e-7, max_iter=3000
    )
    assert found.status == "converged"
    assert found.objective == pytest.approx(best, rel=1e-6)
    assert found.weights.min() > 0
    assert (np.diff(found.trace.lower_bound) >= 0).all()
    assert not on_simplex or found.weights.sum() == pytest.approx(1.0, rel=1e-12)


def test_the_l1_bound_is_certified_by_feasible_multipliers():
    inner = PlanesByLP(3, 0.5, 0.0)
    w = inner.add(np.array([1.0, -2.0, 0.1]), 1.0, 0.0)
    bound = 0.5 * np.abs(w).sum() + max(0.0, w @ [1.0, -2.0, 0.1] + 1.0)
    assert inner.lower_bound == pytest.approx(bound, rel=1e-9)
    assert L1().value(w) == np.abs(w).sum()
