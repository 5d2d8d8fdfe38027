"""Linear SDCA against a literal twin with LIBLINEAR's rules, and what its end means."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import SDCA, LinearSDCA


def twin(X, y, C, epochs, seed, *, order, shrinking, tol):
    """LIBLINEAR's loop in plain Python, with the derivative of the dual instead of minus it."""
    n = len(y)
    rng = np.random.default_rng(seed)
    alpha, w = np.zeros(n), np.zeros(X.shape[1])
    index, active = list(range(n)), n
    above, below, draws, products, status = np.inf, -np.inf, 0, n, "budget"
    for _ in range(epochs):
        if order == "permutation":
            index[:active] = [index[k] for k in rng.permutation(active)]
            visits = index
        else:
            visits = [index[k] for k in rng.integers(active, size=active)]
        started_whole, highest, lowest, s = active == n, -np.inf, np.inf, 0
        while s < active:
            i = visits[s]
            draws += 1
            products += 1
            slope = 1 - y[i] * (X[i] @ w)
            if shrinking and (
                (alpha[i] == 0 and slope < below) or (alpha[i] == C and slope > above)
            ):
                active -= 1
                visits[s], visits[active] = visits[active], visits[s]
                continue
            s += 1
            projected = slope
            if (alpha[i] == 0 and slope < 0) or (alpha[i] == C and slope > 0):
                projected = 0.0
            highest, lowest = max(highest, projected), min(lowest, projected)
            if abs(projected) > 1e-12:
                norm = X[i] @ X[i]
                target = np.clip(alpha[i] + slope / norm, 0, C) if norm else C
                w = w + (target - alpha[i]) * y[i] * X[i]
                alpha[i] = target
        complete = started_whole and active == n
        small = max(highest - lowest, highest, -lowest) <= tol
        if small and complete:
            products += n
            slopes = 1 - y * (X @ w)
            slopes[(alpha == 0) & (slopes < 0) | (alpha == C) & (slopes > 0)] = 0
            if max(np.ptp(slopes), np.abs(slopes).max()) <= tol:
                status = "converged"
                break
        if small and not complete:
            active, above, below = n, np.inf, -np.inf
        else:
            above = highest if highest > 0 else np.inf
            below = lowest if lowest < 0 else -np.inf
    return {"alpha": alpha, "w": w, "draws": draws, "products": products, "status": status}


@pytest.mark.parametrize(
    ("order", "shrinking", "tol"),
    [("permutation", True, 1e-3), ("permutation", False, 1e-3), ("iid", False, 0.0)],
)
@pytest.mark.parametrize(
    ("C", "storage"), [(0.1, np.asarray), (1.0, sparse.csr_matrix), (100.0, np.asarray)]
)
def test_steps_are_the_literal_ones(linear_task, C, order, shrinking, tol, storage):
    X, y = linear_task.X, linear_task.y
    expected = twin(X, y, C, 25, seed=1, order=order, shrinking=shrinking, tol=tol)
    stopping, looks = ("gap", 25 * len(y)) if order == "iid" else ("gradient", 0)
    solver = LinearSDCA(C=C, order=order, shrinking=shrinking, stopping=stopping, tol=tol)
    solver.set_params(max_epochs=25, random_state=1).fit(storage(X), y)
    assert solver.n_iter_ == expected["draws"]
    assert solver.status_ == expected["status"]
    # One look at the gap in each epoch, where it is the rule.
    assert solver.counters_.inner_products == expected["products"] + looks
    alpha, atol = solver.model_.dual_coef * y, 1e-10 * C
    np.testing.assert_allclose(alpha, expected["alpha"], rtol=0, atol=atol)
    np.testing.assert_allclose(solver.coef_[0], expected["w"], rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        (LinearSDCA, {}),
        (LinearSDCA, {"shrinking": False}),
        (LinearSDCA, {"stopping": "gap"}),
        (SDCA, {"kernel": "linear", "stopping": "gradient", "dtype": "float64"}),
        (SDCA, {"kernel": "linear", "stopping": "gradient", "shrinking": True, "dtype": "float64"}),
    ],
    ids=str,
)
def test_converged_means_a_small_gap_on_tiny_problems(solver, options, alpha_of):
    # Contradicting points keep all derivatives far from 0 and close to each other for long; points
    # of very different size change those that an epoch met before.
    rng = np.random.default_rng(0)
    problems = [(np.ones((2, 1)), np.array([1.0, -1.0]), 1000.0)]
    for _ in range(30):
        n, d = rng.integers(2, 8), rng.integers(1, 4)
        X = rng.normal(size=(n, d)).round(rng.integers(0, 3)) * 10.0 ** rng.integers(-1, 2, (n, 1))
        y = np.where(np.arange(n) == 0, 1.0, np.where(np.arange(n) == 1, -1.0, rng.choice([-1, 1])))
        problems.append((X, y, 10.0 ** rng.integers(-2, 4)))
    converged = 0
    for X, y, C in problems:
        fitted = solver(**options, C=C, tol=1e-2, max_epochs=3000, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted.fit(X, y)
        if fitted.status_ == "converged":
            converged += 1
            linear = solver is LinearSDCA
            coef = fitted.model_.dual_coef if linear else alpha_of(fitted.model_, y) * y
            w = X.T @ coef
            gap = w @ w + C * np.maximum(0, 1 - y * (X @ w)).sum() - coef @ y
            assert gap <= 1e-2 * (1 + 1e-6) * C * len(y)
    assert converged > 25
