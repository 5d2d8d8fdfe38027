"""Low-rank features, Nystrom's and others: against the kernel and its optimum; their ascent."""

import numpy as np
import pytest

from marginbench.solvers import RBF, Falkon, KernelOracle, LowRankSVM, Nystrom
from marginbench.solvers.approximate.adaptive_ascent import AdaptiveAscent, visits
from marginbench.solvers.approximate.low_rank import incomplete_cholesky

LONG = {"max_epochs": 100_000, "random_state": 0}


def primal(solver, task, C):
    scores = solver.decision_function(task.X)
    return 0.5 * solver.model_.squared_norm() + C * np.maximum(0, 1 - task.y * scores).sum()


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


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("shrinking", [True, False])
def test_the_dual_rises_to_its_optimum_with_a_certified_gap(solve_dual, adaptive, shrinking):
    rng, C, duals = np.random.default_rng(0), 1.0, []
    y = np.where(rng.random(150) < 0.5, 1.0, -1.0)
    drawn = 0.2 * rng.standard_normal((150, 20)) + 0.1 * y[:, None]
    ascent = AdaptiveAscent(
        drawn, y, np.full(len(y), C), adaptive=adaptive, shrinking=shrinking, rng=rng
    )
    for _ in range(20_000):
        ascent.epoch()
        duals.append(ascent.alpha.sum() - 0.5 * ascent.w @ ascent.w)
        measure = ascent.end_epoch(1e-7)
        if len(duals) < 30 or measure < np.inf:
            np.testing.assert_allclose(ascent.w, drawn.T @ (ascent.alpha * y), rtol=0, atol=1e-10)
            loss = np.maximum(0, 1 - y * (drawn @ ascent.w)).sum()
            gap = 0.5 * ascent.w @ ascent.w + C * loss - duals[-1]
            assert ascent.gap() == pytest.approx(gap / (C * len(y)), abs=1e-11)
            assert ascent.gap() <= ascent.violation()
            assert measure in (ascent.violation(), np.inf)
            if measure <= 1e-7:
                break
    assert (np.diff(duals) >= -1e-11 * duals[-1]).all()
    best = solve_dual((drawn @ drawn.T) * np.outer(y, y), y, C)
    assert duals[-1] == pytest.approx(best.value, rel=1e-7)
    w = drawn.T @ (best.alpha * y)
    np.testing.assert_allclose(ascent.w, w, rtol=0, atol=2e-4 * np.abs(w).max())
    assert ascent.alpha.min() >= 0
    assert ascent.alpha.max() <= C


@pytest.mark.parametrize(("dtype", "C"), [("float32", 1.0), ("float64", 10.0)])
def test_it_is_the_problem_of_nystroems_method_at_the_same_cost(rbf_task, dtype, C):
    task, n, m, asked = rbf_task, rbf_task.n, 40, []

    def counted(A, B):
        asked.append(len(A) * len(B))
        return np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2))

    given = {"kernel": counted, "n_components": m, "C": C, "dtype": dtype, **LONG}
    other = Nystrom(tol=1e-8, **given).fit(task.X, task.y)
    asked.clear()
    solver = LowRankSVM(tol=1e-6, **given).fit(task.X, task.y)
    # All with the landmarks; the textbook also asks for the triangle of their own.
    assert solver.counters_.kernel_evals_computed == sum(asked) == n * m
    assert solver.counters_.kernel_evals == n * m + m * (m + 1) // 2
    assert solver.counters_ == other.counters_
    np.testing.assert_array_equal(solver.landmarks_, other.landmarks_)
    assert set(solver.support_) <= set(solver.landmarks_)
    assert (solver.status_, solver.gap_ <= 1e-6) == ("converged", True)
    # In float32 some directions are missing here, and a jitter dampens them there.
    rel = 1e-3 if dtype == "float32" else 2e-6
    assert primal(solver, task, C) == pytest.approx(primal(other, task, C), rel=rel)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_with_all_points_it_is_the_kernel_svm(task, optimum, C):
    solver = LowRankSVM(n_components=task.n, C=C, tol=1e-6, dtype="float64", **LONG, **task.params)
    solver.fit(task.X, task.y)
    assert primal(solver, task, C) == pytest.approx(optimum(task, C).value, rel=1e-6)


def test_points_without_a_feature_go_to_their_bound():
    X, y = np.array([[0.0], [0.0], [1.0], [-2.0]]), np.array([1, -1, 1, -1])
    solver = LowRankSVM("linear", n_components=4, dtype="float64", tol=1e-9).fit(X, y)
    assert solver.rank_ == 1
    assert solver.status_ == "converged"
    # min 1/2 w^2 + (1 - w) + max(0, 1 - 2 w) + 2
    assert solver.decision_function([[1.0]])[0] == pytest.approx(1.0)
    nothing = LowRankSVM("linear", n_components=4).fit(np.zeros((4, 1)), y)
    assert nothing.rank_ == 0
    others = [Nystrom("linear", selection=selection) for selection in ("random", "pivoted")]
    for solver in (nothing, *(other.fit(np.zeros((4, 1)), y) for other in others)):
        assert solver.status_ == "converged"
        np.testing.assert_array_equal(solver.decision_function(X), 0.0)


def test_pivots_are_the_points_furthest_from_the_subspace_until_the_rank(rbf_task, linear_task):
    task, m = rbf_task, 40
    oracle = KernelOracle(RBF(0.5), task.X, "float64")
    pivots, factor = incomplete_cholesky(oracle, m, 1e-10)
    assert factor.shape == (task.n, m)
    assert oracle.counters.kernel_evals == task.n * m
    own = factor[pivots]
    np.testing.assert_array_equal(own, np.tril(own))
    K_Z = task.K[pivots]
    inside = K_Z.T @ np.linalg.solve(K_Z[:, pivots], K_Z)
    np.testing.assert_allclose(factor @ factor.T, inside, atol=1e-6)
    for j in range(m):
        distances = np.diag(task.K) - (factor[:, :j] ** 2).sum(axis=1)
        assert distances[pivots[j]] >= distances.max() - 1e-7
    # The rank does not depend on the units of the features.
    for unit in (1e-8, 1.0, 1e3):
        X = unit * linear_task.X
        pivots, factor = incomplete_cholesky(KernelOracle("linear", X, "float64"), 100, 1e-10)
        assert len(pivots) == factor.shape[1] == 5
        np.testing.assert_allclose(factor @ factor.T, unit**2 * linear_task.K, atol=1e-9 * unit**2)
        solver = LowRankSVM("linear", n_components=40, dtype="float64", max_epochs=1)
        assert solver.fit(X, linear_task.y).rank_ == 5


@pytest.mark.parametrize(
    ("method", "selected"),
    [
        (Nystrom, {"selection": "random", "dtype": "float64"}),
        (Nystrom, {"selection": "pivoted"}),
        (LowRankSVM, {"dtype": "float64"}),
    ],
)
def test_more_landmarks_come_closer_from_above(rbf_task, optimum, method, selected):
    task, C = rbf_task, 1.0
    best, values, landmarks = optimum(task, C).value, [], np.empty(0)
    for m in (2, 5, 20, 150):
        solver = method(n_components=m, tol=1e-6, **selected, **LONG, **task.params)
        solver.fit(task.X, task.y)
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
