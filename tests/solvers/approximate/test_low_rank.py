"""Low-rank features, Nystrom's and others: against the kernel and its optimum; their ascent."""

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import RBF, SMO, Falkon, KernelOracle, Linear, LowRankSVM, Nystrom
from marginbench.solvers.approximate.adaptive_ascent import AdaptiveAscent, visits
from marginbench.solvers.approximate.low_rank import (
    eigenfeatures,
    incomplete_cholesky,
)


def primal(solver, task, C):
    scores = solver.decision_function(task.X)
    return 0.5 * solver.model_.squared_norm() + C * np.maximum(0, 1 - task.y * scores).sum()


def ascent_on(features, y, C, seed=0, *, adaptive=True, shrinking=True, weights=None):
    bounds = C * (np.ones(len(y)) if weights is None else weights)
    rng = np.random.default_rng(seed)
    return AdaptiveAscent(features, y, bounds, adaptive=adaptive, shrinking=shrinking, rng=rng)


def run(ascent, tol, epochs=100_000):
    """The loop of the solver."""
    for _ in range(epochs):
        ascent.epoch()
        if ascent.look_due(tol):
            ascent.look(tol)
            if ascent.violation <= tol:
                break
    return ascent


@pytest.fixture(scope="module")
def drawn(rbf_task):
    """Features of all points from 20 landmarks, float64."""
    chosen = np.random.default_rng(3).permutation(rbf_task.n)[:20]
    _, map_ = eigenfeatures(rbf_task.K[np.ix_(chosen, chosen)], 1e-12)
    return np.ascontiguousarray(rbf_task.K[:, chosen] @ map_)


def test_credit_turns_preferences_into_frequencies():
    rng = np.random.default_rng(0)
    preference, active = rng.uniform(0.05, 20, size=50), rng.random(50) < 0.8
    credit, counts = np.full(50, 0.5), np.zeros(50)
    for _ in range(400):
        drawn = visits(preference, active, credit)
        counts += np.bincount(drawn, minlength=50)
        assert (credit >= 0).all()
        assert (credit < 1).all()
    shares = np.where(active, preference, 0) / preference[active].sum()
    np.testing.assert_allclose(counts, 400 * active.sum() * shares, rtol=0, atol=1)
    once = visits(np.ones(50), active, np.full(50, 0.5))
    np.testing.assert_array_equal(once, np.flatnonzero(active))


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_neither_shrinking_nor_frequencies_change_the_optimum(rbf_task, drawn, solve_dual, C):
    Q = (drawn @ drawn.T) * np.outer(rbf_task.y, rbf_task.y)
    best = solve_dual(Q, rbf_task.y, C)
    w = drawn.T @ (best.alpha * rbf_task.y)
    for adaptive in (True, False):
        for shrinking in (True, False):
            ascent = ascent_on(drawn, rbf_task.y, C, adaptive=adaptive, shrinking=shrinking)
            run(ascent, 1e-7)
            np.testing.assert_allclose(ascent.w, w, rtol=0, atol=2e-4 * np.abs(w).max())
            dual = ascent.alpha.sum() - 0.5 * ascent.w @ ascent.w
            assert dual == pytest.approx(best.value, rel=1e-7)
            assert ascent.alpha.min() >= 0
            assert ascent.alpha.max() <= C


def test_the_dual_rises_by_the_gains_and_the_gap_is_certified(rbf_task, drawn):
    y, C = rbf_task.y, 5.0
    ascent, duals = ascent_on(drawn, y, C), []
    for _ in range(30):
        ascent.epoch()
        duals.append(ascent.alpha.sum() - 0.5 * ascent.w @ ascent.w)
        ascent.look(1e-3)
        own = drawn.T @ (ascent.alpha * y)
        np.testing.assert_allclose(ascent.w, own, rtol=0, atol=1e-10)
        loss = np.maximum(0, 1 - y * (drawn @ ascent.w)).sum()
        gap = 0.5 * own @ own + C * loss - duals[-1]
        assert ascent.gap == pytest.approx(gap / (C * len(y)), abs=1e-11)
        assert ascent.gap <= ascent.violation
    assert (np.diff(duals) >= -1e-11 * duals[-1]).all()


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("kernel", [RBF(0.5), Linear()], ids=["rbf", "linear"])
def test_entries_are_those_that_the_kernel_computes(rbf_task, kernel, storage):
    X, n, m = rbf_task.X, rbf_task.n, 25
    asked = []

    def counted(A, B):
        A, B = (part.toarray() if sparse.issparse(part) else part for part in (A, B))
        asked.append(len(A) * len(B))
        products = A @ B.T
        if isinstance(kernel, Linear):
            return products
        squares = [np.square(part).sum(axis=1) for part in (A, B)]
        return np.exp(-0.5 * (squares[0][:, None] + squares[1] - 2 * products))

    given = X if storage == "dense" else sparse.csr_matrix(X)
    solver = LowRankSVM(counted, n_components=m, dtype="float64", random_state=0).fit(
        given, rbf_task.y
    )
    # All with the landmarks; the textbook also asks for the triangle of their own.
    assert solver.counters_.kernel_evals_computed == sum(asked) == n * m
    assert solver.counters_.kernel_evals == n * m + m * (m + 1) // 2
    same = LowRankSVM(kernel, n_components=m, dtype="float64", random_state=0).fit(
        given, rbf_task.y
    )
    assert same.counters_ == solver.counters_
    assert same.rank_ == solver.rank_ == (2 if isinstance(kernel, Linear) else m)
    np.testing.assert_array_equal(same.landmarks_, solver.landmarks_)
    scores = [one.decision_function(X) for one in (same, solver)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-3)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_with_all_points_it_is_the_kernel_svm(task, C):
    best = primal(SMO(C=C, tol=1e-10, dtype="float64", **task.params).fit(task.X, task.y), task, C)
    solver = LowRankSVM(
        n_components=task.n, C=C, tol=1e-6, max_epochs=100_000, dtype="float64", random_state=0,
        **task.params,
    ).fit(task.X, task.y)  # fmt: skip
    assert solver.status_ == "converged"
    assert 0 <= solver.gap_ <= 1e-6
    assert primal(solver, task, C) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_is_the_problem_of_nystroems_method(rbf_task, dtype):
    task, m = rbf_task, 40
    given = {"n_components": m, "dtype": dtype, "random_state": 0, **task.params}
    other = Nystrom(tol=1e-8, max_epochs=100_000, **given).fit(task.X, task.y)
    solver = LowRankSVM(tol=1e-5, max_epochs=100_000, **given).fit(task.X, task.y)
    np.testing.assert_array_equal(solver.landmarks_, other.landmarks_)
    assert set(solver.support_) <= set(solver.landmarks_)
    assert solver.counters_ == other.counters_
    # In float32 some directions are missing here, and a jitter dampens them there.
    rel = 1e-3 if dtype == "float32" else 1e-6
    assert primal(solver, task, 1.0) == pytest.approx(primal(other, task, 1.0), rel=rel)


def test_points_without_a_feature_go_to_their_bound():
    X, y = np.array([[0.0], [0.0], [1.0], [-2.0]]), np.array([1, -1, 1, -1])
    solver = LowRankSVM("linear", n_components=4, dtype="float64", tol=1e-9).fit(X, y)
    assert solver.rank_ == 1
    assert solver.status_ == "converged"
    # min 1/2 w^2 + (1 - w) + max(0, 1 - 2 w) + 2
    assert solver.decision_function([[1.0]])[0] == pytest.approx(1.0)
    nothing = LowRankSVM("linear", n_components=4).fit(np.zeros((4, 1)), y)
    assert nothing.rank_ == 0
    assert nothing.status_ == "converged"
    np.testing.assert_array_equal(nothing.decision_function(X), 0.0)


@pytest.mark.parametrize("m", [1, 10, 40])
def test_pivots_are_the_points_furthest_from_the_subspace(rbf_task, m):
    task = rbf_task
    oracle = KernelOracle(RBF(0.5), task.X, "float64")
    pivots, factor = incomplete_cholesky(oracle, m, 1e-10)
    assert factor.shape == (task.n, m)
    assert oracle.counters.kernel_evals == oracle.counters.kernel_evals_computed == task.n * m
    own = factor[pivots]
    np.testing.assert_array_equal(own, np.tril(own))
    for j in range(m):
        chosen = pivots[:j]
        K_Z = task.K[chosen]
        inside = K_Z.T @ np.linalg.solve(task.K[np.ix_(chosen, chosen)], K_Z) if j else 0 * task.K
        distances = np.diag(task.K - inside)
        assert distances[pivots[j]] >= distances.max() - 1e-7
        np.testing.assert_allclose(factor[:, :j] @ factor[:, :j].T, inside, atol=1e-6)


def test_an_incomplete_factor_ends_at_the_rank(linear_task):
    oracle = KernelOracle("linear", linear_task.X, "float64")
    pivots, factor = incomplete_cholesky(oracle, 100, 1e-10)
    assert len(pivots) == factor.shape[1] == 5
    np.testing.assert_allclose(factor @ factor.T, linear_task.K, atol=1e-9)


@pytest.mark.parametrize(("selection", "dtype"), [("random", "float64"), ("pivoted", "float32")])
def test_more_landmarks_come_closer_from_above(rbf_task, optimum, selection, dtype):
    task, C = rbf_task, 1.0
    best, values, landmarks = optimum(task, C).value, [], np.empty(0)
    for m in (2, 5, 20, 150):
        solver = Nystrom(
            n_components=m, selection=selection, tol=1e-7, max_epochs=100_000, dtype=dtype,
            random_state=0, **task.params,
        ).fit(task.X, task.y)  # fmt: skip
        np.testing.assert_array_equal(solver.landmarks_[: len(landmarks)], landmarks)
        landmarks = solver.landmarks_
        assert set(solver.support_) <= set(landmarks)
        values.append(primal(solver, task, C))
    assert min(values) >= best * (1 - 1e-6)
    assert (np.diff(values) <= 1e-4 * best).all()
    assert values[0] > 1.05 * best
    assert values[-1] <= 1.0001 * best


@pytest.mark.parametrize("solver", [Nystrom(kernel="precomputed"), Falkon(kernel="precomputed")])
def test_a_matrix_that_is_not_positive_semidefinite_is_named(rbf_task, solver):
    with pytest.raises(ValueError, match="is not positive semidefinite"):
        solver.fit(-rbf_task.K, rbf_task.y)
