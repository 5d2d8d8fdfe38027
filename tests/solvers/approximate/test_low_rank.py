"""Low-rank features and their ascent: against the kernel, a literal twin, and the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import RBF, SMO, Linear, LowRankSVM, Nystrom
from marginbench.solvers.approximate.adaptive_ascent import AdaptiveAscent, visits
from marginbench.solvers.approximate.low_rank import eigenfeatures


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


class Twin:
    """The same ascent in plain Python, one number at a time."""

    def __init__(self, F, y, bounds, seed, adaptive, shrinking):
        self.F, self.y, self.bounds = F.astype(np.float64), y, bounds
        self.rng = np.random.default_rng(seed)
        self.adaptive, self.shrinking = adaptive, shrinking
        n = len(y)
        self.alpha, self.w = [0.0] * n, np.zeros(F.shape[1])
        self.preference, self.credit, self.idle = [1.0] * n, [0.5] * n, [0] * n
        self.active = [bound > 0 for bound in bounds]
        self.mean_gain, self.draws, self.since = None, 0, 0

    def slope(self, i):
        return 1 - self.y[i] * (self.F[i] @ self.w)

    def epoch(self):
        members = [i for i, active in enumerate(self.active) if active]
        total, sequence = sum(self.preference[i] for i in members), []
        for i in members:
            self.credit[i] += self.preference[i] * len(members) / total
            sequence += [i] * int(self.credit[i])
            self.credit[i] -= int(self.credit[i])
        self.seen, gains = 0.0, []
        for k in self.rng.permutation(len(sequence)):
            if self.active[sequence[k]]:
                gains.append(self.visit(sequence[k]))
        if self.mean_gain is None:
            self.mean_gain = sum(gains) / len(gains)
        self.draws += len(gains)
        self.since += len(gains)

    def visit(self, i):
        slope, square = self.slope(i), self.F[i] @ self.F[i]
        goal = self.alpha[i] + slope / square if square else np.inf
        step = min(max(goal, 0.0), self.bounds[i]) - self.alpha[i]
        gain = 0.0
        if step and abs(slope) > 1e-12:
            self.seen = max(self.seen, abs(slope))
            gain = step * slope - 0.5 * square * step**2
            self.alpha[i] += step
            if self.alpha[i] + 1e-15 * self.bounds[i] >= self.bounds[i]:
                self.alpha[i] = self.bounds[i]
            self.w = self.w + step * self.y[i] * self.F[i]
            self.idle[i] = 0
        elif self.shrinking:
            self.idle[i] += 1
            self.active[i] = self.idle[i] < 5
        if self.adaptive and self.mean_gain is not None:
            factor = np.exp(0.2 * (gain / self.mean_gain - 1))
            self.preference[i] = np.clip(self.preference[i] * factor, 0.05, 20)
            self.mean_gain += (gain - self.mean_gain) / len(self.y)
        return gain

    def violation(self, i):
        slope = self.slope(i)
        stuck = self.alpha[i] >= self.bounds[i] if slope > 0 else self.alpha[i] <= 0
        return 0.0 if stuck else abs(slope)

    def look_due(self, tol):
        out = any(b > 0 and not a for a, b in zip(self.active, self.bounds, strict=True))
        return self.seen <= tol or (self.since >= 4 * len(self.y) and out)

    def look(self, tol):
        for i in range(len(self.y)):
            violation = self.violation(i)
            if not self.active[i] and violation > 1e-12:
                self.active[i], self.idle[i] = True, 0
                self.preference[i] = max(self.preference[i], 1.0)
            if violation > tol:
                self.preference[i] = max(self.preference[i], 1.0)
        self.since = 0
        return max(self.violation(i) for i in range(len(self.y)))


@pytest.fixture(scope="module")
def drawn(rbf_task):
    """Features of all points from 20 landmarks, float64."""
    chosen = np.random.default_rng(3).permutation(rbf_task.n)[:20]
    _, map_ = eigenfeatures(rbf_task.K[np.ix_(chosen, chosen)], 1e-12)
    return np.ascontiguousarray(rbf_task.K[:, chosen] @ map_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("adaptive", [True, False], ids=["adaptive", "permutation"])
@pytest.mark.parametrize("shrinking", [True, False], ids=["shrinking", "whole"])
def test_steps_are_the_literal_ones(rbf_task, drawn, adaptive, shrinking, dtype):
    y, C, tol = rbf_task.y, 2.0, 1e-2
    weights = np.ones(len(y))
    weights[:9] = 0.0
    features = drawn.astype(dtype)
    ascent = ascent_on(
        features, y, C, 5, adaptive=adaptive, shrinking=shrinking, weights=weights
    )  # fmt: skip
    twin = Twin(features, y, C * weights, 5, adaptive, shrinking)
    looks = shrunk = 0
    for _ in range(40):
        ascent.epoch()
        twin.epoch()
        np.testing.assert_allclose(ascent.alpha, twin.alpha, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(ascent.active, twin.active)
        np.testing.assert_allclose(ascent.preference, twin.preference, rtol=1e-6)
        assert ascent.n_iter == twin.draws
        shrunk += not ascent.active[9:].all()
        assert ascent.look_due(tol) == twin.look_due(tol)
        if twin.look_due(tol):
            looks += 1
            ascent.look(tol)
            assert ascent.violation == pytest.approx(twin.look(tol), abs=1e-9)
            np.testing.assert_array_equal(ascent.active, twin.active)
    np.testing.assert_allclose(ascent.w, twin.w, rtol=0, atol=1e-9)
    assert bool(shrunk) == shrinking
    assert looks or not shrinking


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


def test_points_that_gain_are_drawn_more_often(rbf_task, drawn):
    ascent = run(ascent_on(drawn, rbf_task.y, 10.0, shrinking=False), 0.0, epochs=30)
    free = (ascent.alpha > 0) & (ascent.alpha < 10.0)
    idle = ~free & (np.abs(1 - rbf_task.y * (drawn @ ascent.w)) > 0.1)
    assert free.sum() > 5
    assert idle.sum() > 50
    assert ascent.preference.min() >= 1 / 20
    assert ascent.preference.max() <= 20
    assert np.median(ascent.preference[idle]) < 1 / 5
    assert ascent.preference[free].mean() > 5 * ascent.preference[idle].mean()


@pytest.mark.parametrize("C", [0.1, 1.0, pytest.param(100.0, marks=pytest.mark.slow)])
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


@pytest.mark.parametrize("cutoff", [1e-12, 1e-3])
def test_features_are_nystroems_without_tiny_eigenvalues(rbf_task, cutoff):
    chosen = np.arange(30)
    gram, rows = rbf_task.K[np.ix_(chosen, chosen)], rbf_task.K[:, chosen]
    own, map_ = eigenfeatures(gram, cutoff)
    values, vectors = np.linalg.eigh(gram)
    kept = values > cutoff * values.max()
    assert own.shape == map_.shape == (30, kept.sum())
    assert (kept.sum() < 30) == (cutoff > 1e-6)
    np.testing.assert_allclose(gram @ map_, own, rtol=0, atol=1e-8)
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    F = rows @ map_
    np.testing.assert_allclose(F @ F.T, rows @ inverse @ rows.T, rtol=0, atol=1e-7)


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


@pytest.mark.parametrize("m", [5, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_is_the_problem_of_nystroems_method(rbf_task, m, dtype):
    task = rbf_task
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
