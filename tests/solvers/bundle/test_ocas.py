"""OCAS: its line search against brute force, its iterates against a literal twin, its optimum."""

from __future__ import annotations

import numpy as np
import pytest
import qpsolvers
from scipy import sparse
from scipy.optimize import minimize_scalar

from marginbench.solvers import OCAS, Counters
from marginbench.solvers.bundle import EpsilonInsensitive, Hinge, minimize_risk
from marginbench.solvers.bundle.lines import zero_of_slope
from marginbench.solvers.bundle.risk import Risk
from marginbench.solvers.bundle.search import ExactSearch

OFFSETS = [None, "eliminated", "feature"]


def objective(X, y, w, lam):
    """lambda / 2 ||w||^2 + mean hinge loss."""
    return 0.5 * lam * w @ w + np.maximum(0, 1 - y * (X @ w)).mean()


def first_zero(slope, growth, breakpoints, jumps):
    """The zero of the derivative, by a look at every breakpoint in order."""
    for t, jump in sorted(zip(breakpoints, jumps, strict=True)):
        if slope + growth * t >= 0:
            break
        if slope + growth * t + jump >= 0:
            return t
        slope += jump
    return max(0.0, -slope / growth)


def lowest_on_line(value, w, way):
    """The least value on the way from w, up to 50 times its length, by many evaluations."""
    found = minimize_scalar(
        lambda t: value(w + t * way), bounds=(0, 50), method="bounded",
        options={"xatol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    return found.fun


def twin(X, y, lam, mu, iterations):
    """The method of FS09 with everything written out: the w_b and the bounds of all iterations."""
    n, d = X.shape
    best = cut = np.zeros(d)
    planes, constants = [np.zeros(d)], [0.0]
    points, bounds = [best], []
    for _ in range(iterations):
        wrong = y * (X @ cut) < 1
        planes.append(-(X[wrong] * y[wrong, None]).sum(axis=0) / n)
        constants.append(wrong.mean())
        A, b = np.array(planes), np.array(constants)
        k = len(b)
        alpha = qpsolvers.solve_qp(
            sparse.csc_matrix(A @ A.T / lam), -b, A=sparse.csc_matrix(np.ones((1, k))),
            b=np.ones(1), lb=np.zeros(k), solver="clarabel",
            tol_gap_abs=1e-14, tol_gap_rel=1e-14, tol_feas=1e-14,
        )  # fmt: skip
        lowest = -A.T @ alpha / lam
        bounds.append(0.5 * lam * lowest @ lowest + (A @ lowest + b).max())
        way = lowest - best
        margins, change = y * (X @ best), y * (X @ way)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (1 - margins) / change
        falling = (margins < 1) | ((margins == 1) & (change < 0))
        slope = lam * best @ way - change[falling].mean() * falling.mean()
        ahead = (change != 0) & (t > 0)
        length = first_zero(slope, lam * way @ way, t[ahead], np.abs(change[ahead]) / n)
        best = best + length * way
        cut = (1 - mu) * best + mu * lowest
        points.append(best)
    return np.array(points), np.array(bounds)


@pytest.mark.parametrize("n", [0, 1, 5, 40, 2000])
@pytest.mark.parametrize("ties", [False, True])
def test_the_zero_of_the_slope_is_the_first_one(n, ties):
    rng = np.random.default_rng(n)
    for trial in range(30):
        breakpoints, jumps = rng.exponential(size=n), rng.random(n) * (rng.random(n) < 0.9)
        if ties:
            breakpoints = np.ceil(5 * breakpoints)
        slope, growth = -rng.random() * (jumps.sum() + 0.1), rng.random() + 0.01
        if trial == 0:
            slope = 0.5
        found = zero_of_slope(slope, growth, breakpoints.copy(), jumps.copy())
        expected = first_zero(slope, growth, breakpoints, jumps)
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3)])
def test_the_line_search_is_exact(loss, offset):
    rng = np.random.default_rng(1)
    n, d, lam = 101, 4, 0.01
    X, y = rng.standard_normal((n, d)), np.where(rng.random(n) < 0.4, 1.0, -1.0)
    weights = rng.random(n)
    risk = Risk(X, y, loss, weights, offset, Counters())

    def value(w):
        return risk.evaluate(w) + 0.5 * lam * w @ w

    w = np.zeros(risk.dimension)
    search = ExactSearch(risk, lam, w, value(w), share=0.1)
    for scale in (1.0, 0.3, 10.0, 100.0):
        proposal = scale * rng.standard_normal(risk.dimension)
        before, w = search.objective, search.w
        cut = search.step(proposal, stalled=False)
        plane, constant = risk.plane(cut)
        way = proposal - w
        assert search.objective <= min(before, lowest_on_line(value, w, way)) * (1 + 1e-12)
        assert search.objective == pytest.approx(value(search.w), rel=1e-12)
        np.testing.assert_allclose(cut, 0.9 * search.w + 0.1 * proposal, rtol=1e-12)
        # The plane lies above J(w_b) at the proposal, so that the model's minimum must move.
        at_proposal = plane @ proposal + constant + 0.5 * lam * proposal @ proposal
        assert at_proposal >= search.objective * (1 - 1e-9)


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3)])
def test_the_line_search_does_not_end_in_the_middle_of_its_bracket(loss):
    lam, n = 0.01, 40
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((n, 3)), np.where(np.arange(n) % 2, 1.0, -1.0)
        risk = Risk(X, y, loss, np.ones(n), "eliminated", Counters())

        def value(w, risk=risk):
            return risk.evaluate(w) + 0.5 * lam * w @ w

        w = np.zeros(3)
        search = ExactSearch(risk, lam, w, value(w), share=0.1)
        for proposal in rng.standard_normal((2, 3)):
            w = search.w
            search.step(proposal, stalled=False)
            assert search.objective <= lowest_on_line(value, w, proposal - w) * (1 + 1e-12)


def test_a_proposal_that_is_the_best_point_moves_nothing():
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    for offset in OFFSETS:
        risk = Risk(X, y, Hinge(), np.ones(2), offset, Counters())
        w = np.zeros(risk.dimension)
        search = ExactSearch(risk, 0.1, w, risk.evaluate(w), share=0.1)
        np.testing.assert_array_equal(search.step(w, stalled=True), w)
        assert search.objective == 1.0


@pytest.mark.parametrize("storage", ["dense", "float32", "csr"])
@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_iterates_are_the_literal_ones(linear_task, mu, storage):
    X, y = linear_task.X.astype(np.float32).astype(np.float64), linear_task.y
    C, n = 0.05, len(y)
    lam = 1 / (C * n)
    points, bounds = twin(X, y, lam, mu, 7)
    given = {"dense": X, "float32": X.astype(np.float32), "csr": sparse.csr_matrix(X)}[storage]
    for t in (1, 2, 4, 7):
        solver = OCAS(C=C, mu=mu, tol=0.0, max_iter=t).fit(given, y)
        np.testing.assert_allclose(solver.coef_[0], points[t], rtol=0, atol=1e-6)
        np.testing.assert_allclose(solver.trace_.lower_bound[1:], bounds[:t], rtol=0, atol=1e-8)
        values = [objective(X, y, w, lam) for w in points[: t + 1]]
        np.testing.assert_allclose(solver.trace_.objective, values, rtol=0, atol=1e-7)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_optimum(linear_task, optimum, C, bias, storage):
    task = linear_task
    best = optimum(task, C, bias=bias)
    solver = OCAS(C=C, fit_intercept=bias, tol=1e-8).fit(storage(task.X), task.y)
    w = solver.coef_[0]
    margins = task.y * (task.X @ w + solver.intercept_[0])
    primal = 0.5 * w @ w + C * np.maximum(0, 1 - margins).sum()
    assert solver.status_ == "converged"
    assert (solver.intercept_[0] != 0) == bias
    assert best.value * (1 - 1e-9) <= primal <= best.value + 1e-8 * C * task.n
    np.testing.assert_allclose(w, task.X.T @ (best.alpha * task.y), rtol=0, atol=1e-3)
    trace, least = solver.trace_, best.value / (C * task.n)
    assert (np.diff(trace.objective) <= 0).all()
    assert (np.diff(trace.lower_bound) >= 0).all()
    assert trace.lower_bound.max() <= least * (1 + 1e-9)
    assert trace.objective[-1] == pytest.approx(primal / (C * task.n), rel=1e-12)


def test_a_regularised_bias_is_the_weight_of_a_constant_column(linear_task):
    X, y = linear_task.X, linear_task.y
    solver = OCAS(C=0.1, fit_intercept=True, offset="feature", tol=1e-7).fit(X, y)
    wider = OCAS(C=0.1, tol=1e-7).fit(np.column_stack([X, np.ones(len(y))]), y)
    np.testing.assert_allclose(solver.coef_[0], wider.coef_[0, :-1], rtol=0, atol=1e-9)
    assert solver.intercept_[0] == pytest.approx(wider.coef_[0, -1], abs=1e-9)
    assert solver.n_iter_ == wider.n_iter_


def test_weights_are_repeated_points(linear_task):
    task = linear_task
    weights = np.random.default_rng(2).integers(0, 4, size=task.n)
    repeated = np.repeat(np.arange(task.n), weights)
    for bias in (False, True):
        solver = OCAS(fit_intercept=bias, tol=1e-9).fit(task.X, task.y, sample_weight=weights)
        plain = OCAS(fit_intercept=bias, tol=1e-9).fit(task.X[repeated], task.y[repeated])
        np.testing.assert_allclose(solver.coef_, plain.coef_, rtol=0, atol=1e-4)
        values = [item.trace_.objective[-1] for item in (solver, plain)]
        assert values[0] == pytest.approx(values[1], rel=1e-8)


@pytest.mark.parametrize("bias", [False, True])
def test_inner_products_are_those_of_scores_and_planes(linear_task, bias):
    X, y = linear_task.X, linear_task.y
    T = 9
    solver = OCAS(fit_intercept=bias, tol=0.0, max_iter=T).fit(X, y)
    # Scores of each w_t, its plane, and the products of the plane with all so far and itself.
    assert solver.counters_.inner_products == T * len(y) + T + T * (T + 1) // 2
    assert solver.counters_.kernel_evals == 0
    assert solver.n_iter_ == T


def test_it_takes_fewer_iterations_than_planes_at_the_minima():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((500, 40))
    y = np.where(X @ rng.standard_normal(40) + rng.standard_normal(500) > 0, 1.0, -1.0)
    plain = minimize_risk(X, y, lam=1e-3, primal_search=False)
    solver = OCAS(C=1 / (1e-3 * 500)).fit(X, y)
    assert plain.status == solver.status_ == "converged"
    assert 2 * solver.n_iter_ < plain.n_iter


def test_few_planes_kept_lead_to_the_same_optimum(linear_task):
    X, y = linear_task.X, linear_task.y
    kept = OCAS(C=10.0, tol=1e-7).fit(X, y)
    dropped = OCAS(C=10.0, tol=1e-7, max_idle=3).fit(X, y)
    values = [solver.trace_.objective[-1] for solver in (kept, dropped)]
    assert values[0] == pytest.approx(values[1], abs=2e-7)
    assert dropped.counters_.inner_products - dropped.n_iter_ * len(y) < (
        kept.counters_.inner_products - kept.n_iter_ * len(y)
    )
