"""SBP, without and with bias, against a literal twin, its invariants, and the optimum."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from marginbench.solvers import SBP
from marginbench.solvers.numeric.water_level import water_level
from marginbench.solvers.sbp.two_basins import two_basin_level

#: Without bias, with one draw of each class, with one draw of either.
KINDS = {
    "none": {},
    "pair": {"fit_intercept": True},
    "single": {"fit_intercept": True, "sampling": "single"},
}
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def tied_task():
    """Points on a coarse grid, many of them twice: responses tie at and around the level."""
    rng = np.random.default_rng(11)
    y = np.where(np.arange(90) % 2, 1.0, -1.0)
    X = np.round(rng.standard_normal((90, 2)) + 0.5 * y[:, None])
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    return SimpleNamespace(y=y, K=K, n=90)


def filled(c, y, volume, kind):
    """Level, bias and the points that may be drawn; with bias ties are covered in index order."""
    if kind == "none":
        level = water_level(c, volume, 0.0)
        return level, 0.0, c <= level
    levels = two_basin_level(c[y > 0], c[y < 0], volume)
    covered = np.zeros(len(c), dtype=bool)
    for label in (1, -1):
        members = np.flatnonzero(y == label)
        covered[members[np.argsort(c[members], kind="stable")[: levels.rank]]] = True
    return levels.level, levels.bias, covered


def candidates(rng, members, passes):
    n = len(members)
    for _ in range(passes):
        yield from members[rng.permutation(n)]
    while True:
        yield from members[rng.integers(n, size=1000)]


def twin(K, y, nu, T, rng, kind, schedule="paper"):
    """SBP12 Algorithm 1 and its form with two basins, draw by draw."""
    n, rng, fast = len(y), np.random.default_rng(rng), schedule == "fast"
    passes = 100 if fast else 0
    classes = [np.flatnonzero(y > 0), np.flatnonzero(y < 0)]
    if kind == "pair":
        rngs = [np.random.default_rng(rng.integers(2**63)) for _ in classes]
        streams = [candidates(r, points, passes) for r, points in zip(rngs, classes, strict=True)]
    else:
        streams = [candidates(rng, np.arange(n), passes)]
    eta0 = 1 / np.sqrt(np.diag(K).max())
    alpha, c, r2, counts = np.zeros(n), np.zeros(n), 0.0, np.zeros(n)
    alphas, responses, under_water = [], [], 0.0
    for t in range(1, T + 1):
        covered = filled(c, y, n * nu, kind)[2]
        step = eta0 / np.sqrt(t)
        if fast:
            step = min(2 * step, 1 / (under_water * t) if under_water > 0 else np.inf)
        step /= len(streams)
        for stream in streams:
            i = next(j for j in stream if covered[j])
            r2 = r2 + 2 * step * c[i] + step**2 * K[i, i]
            alpha[i] += step
            c += step * y[i] * y * K[i]
            counts[i] += 1
        if r2 > 1:
            alpha /= np.sqrt(r2)
            c /= np.sqrt(r2)
            r2 = 1.0
        alphas.append(alpha.copy())
        responses.append(c.copy())
        if t.bit_count() == 1:
            last_half = np.mean(responses[t // 2 :], axis=0)
            under_water = last_half[filled(last_half, y, n * nu, kind)[2]].mean()
    # Of 2^k to 2^(k+1) - 1 iterates a suffix leaves out the first 2^(k-1).
    first = 2 ** (T.bit_length() - 2) if fast else 0
    mean, c_mean = np.mean(alphas[first:], axis=0), np.mean(responses[first:], axis=0)
    g, b, _ = filled(c_mean, y, n * nu, kind)
    scale = 1 / g if g > 0 else 1.0
    p = counts / counts.sum()
    if kind != "none":
        for points in classes:
            p[points] = counts[points] / counts[points].sum() / 2
    noise = 8 * np.finfo(float).eps * abs(K).max()  # of an entry, rounded
    bound = np.sqrt(max(p @ (K * np.outer(y, y)) @ p, 0.0) + noise) + n * nu * p.max()
    return {"alpha": mean * scale, "bias": b * scale, "margin": g, "bound": bound}


def fit(task, kind, **params):
    params = {"schedule": "paper", "dtype": "float64", "random_state": 1, **KINDS[kind], **params}
    return SBP("precomputed", **params).fit(task.K, task.y)


@pytest.fixture
def check_is_literal(alpha_of):
    """``check_is_literal(task, kind, nu, epochs, schedule)`` compares a run with the twin's."""

    def check(task, kind, nu, epochs, schedule="paper"):
        # The rule of the end is looked at, and changes neither draws nor what is charged.
        params = {"nu": nu, "max_epochs": epochs, "schedule": schedule, "tol": 1e-9}
        solver, T = fit(task, kind, **params), epochs * task.n
        expected = twin(task.K, task.y, nu, T, 1, kind, schedule)
        alpha, scale = alpha_of(solver.model_, task.y), expected["alpha"].max()
        np.testing.assert_allclose(alpha, expected["alpha"], rtol=1e-9, atol=1e-10 * scale)
        assert solver.intercept_[0] == pytest.approx(expected["bias"], rel=1e-9, abs=1e-11)
        assert solver.margin_ == pytest.approx(expected["margin"], rel=1e-10, abs=1e-13)
        assert solver.certificate_ == pytest.approx(expected["bound"], rel=1e-10)
        assert (solver.status_, solver.n_iter_) == ("budget", T)
        rows = 2 if kind == "pair" else 1
        assert solver.counters_.kernel_evals == rows * T * task.n + task.n
        return solver

    return check


@kinds
@pytest.mark.parametrize("nu", [0.0, 1e-10, 0.02])
def test_it_is_the_literal_algorithm(rbf_task, nu, kind, check_is_literal):
    task, computed = rbf_task, []

    def kernel(A, B):
        computed.append(len(A) * len(B))
        return task.K[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))]

    solver = check_is_literal(task, kind, nu, 2)
    # Without stored entries all are computed, each time that they are asked for.
    other = clone(solver).set_params(kernel=kernel, cache_size=0)
    other.fit(np.arange(task.n)[:, None], task.y)
    np.testing.assert_array_equal(other.dual_coef_, solver.dual_coef_)
    assert sum(computed) == other.counters_.kernel_evals == solver.counters_.kernel_evals


@kinds
@pytest.mark.parametrize(
    ("schedule", "epochs", "nu"),
    [
        *((schedule, 3, nu) for schedule in ("paper", "fast") for nu in (0.0, 1e-3, 0.3)),
        ("fast", 90, 1e-3),
    ],
)
def test_ties_and_schedules_are_the_literal_ones(
    tied_task, kind, nu, schedule, epochs, check_is_literal
):
    check_is_literal(tied_task, kind, nu, epochs, schedule)


@kinds
def test_a_checkpoint_comes_after_the_first_iteration_that_reaches_it(
    rbf_task, kind, recording_monitor
):
    monitor = recording_monitor(every=60.5 * rbf_task.n)
    solver = SBP("precomputed", nu=0.02, max_epochs=2, dtype="float64", **KINDS[kind])
    solver.fit(rbf_task.K, rbf_task.y, monitor=monitor)
    assert set(np.diff(monitor.iterations)) == {31 if kind == "pair" else 61}


@kinds
def test_weak_duality_brackets_the_optimum_that_long_runs_reach(rbf_task, kind, optimum, alpha_of):
    task, C, bias = rbf_task, 10.0, kind != "none"
    best = optimum(task, C, bias=bias)
    # ||w*||, b of the points between the bounds, and nu = mean hinge / ||w*||.
    norm, responses, b = np.sqrt(best.squared_norm), task.Q @ best.alpha, 0.0
    if bias:
        free = (best.alpha > 1e-6) & (best.alpha < C - 1e-6)
        b = float((task.y * (1 - responses))[free].mean())
    nu = np.maximum(0, 1 - responses - task.y * b).mean() / norm
    # T = 5e4 iterations in the end, rounded up to whole epochs.
    for epochs in (1, 8, 334):
        solver, fast = (
            fit(task, kind, nu=nu, max_epochs=epochs, schedule=schedule, random_state=0)
            for schedule in ("paper", "fast")
        )
        for each in (solver, fast):
            assert each.margin_ * norm <= 1 + 1e-6
            assert each.certificate_ * norm >= 1 - 1e-6
        if epochs > 1:
            assert 1 - fast.margin_ * norm <= 0.9 * (1 - solver.margin_ * norm)
    if kind == "single":
        return
    assert solver.margin_ * norm >= 0.97
    assert solver.certificate_ * norm <= 1.25
    assert solver.intercept_[0] == pytest.approx(b, abs=0.15)
    alpha = alpha_of(solver.model_, task.y)
    loss = np.maximum(0, 1 - task.Q @ alpha - task.y * solver.intercept_[0]).mean()
    # All slack is used. SBP12 Lemma 2.1, with equality for the loss: nu is L(w*) / ||w*||.
    assert loss == pytest.approx(nu / solver.margin_, rel=1e-9)


def test_the_certificate_holds_where_float32_entries_cancel():
    X, y, nu = np.array([[1.0, 1e-4], [1.0, -1e-4]]), np.array([1, -1]), 1e-3
    solver = SBP("linear", nu=nu, max_epochs=500, random_state=0).fit(X, y)
    # By hand: both points at the level, w along the second axis.
    assert solver.certificate_ >= 1e-4 + nu


@pytest.mark.parametrize("kind", ["none", "pair"])
def test_it_stops_after_the_first_epoch_with_a_small_certified_gap(rbf_task, kind):
    task, tol = rbf_task, 0.4 if kind == "pair" else 0.5
    solver = fit(task, kind, nu=0.05, tol=tol, max_epochs=500)
    assert solver.status_ == "converged"
    assert solver.certificate_ - solver.margin_ <= tol * solver.certificate_
    epochs, rest = divmod(solver.n_iter_, task.n)
    assert (epochs > 1, rest) == (True, 0)
    before = twin(task.K, task.y, 0.05, (epochs - 1) * task.n, 1, kind)
    assert before["bound"] - before["margin"] > tol * before["bound"]


def test_a_kernel_of_zeros_is_refused(rbf_task):
    with pytest.raises(ValueError, match=r"every k\(x, x\) is 0"):
        SBP(lambda A, B: np.zeros((len(A), len(B)))).fit(rbf_task.X, rbf_task.y)


def test_draws_that_cancel_give_an_upper_bound_of_rounding():
    X, y = np.ones((2, 1)), np.array([1, -1])
    with pytest.warns(ConvergenceWarning, match=r"the certified gap is [\d.]+ of its upper bound"):
        solver = SBP("linear", nu=0.0, tol=0.1, max_epochs=1, random_state=0).fit(X, y)
    assert (0 <= solver.certificate_ < 1e-2, solver.status_) == (True, "budget")


def test_with_draws_of_one_class_alone_there_is_no_bound():
    # Of two points the first seed draws one twice.
    solver = SBP("linear", nu=0.0, tol=0.5, schedule="paper", max_epochs=1, **KINDS["single"])
    solver.set_params(dtype="float64")
    X, y = np.array([[1.0], [-1.0]]), np.array([1, -1])
    with pytest.warns(ConvergenceWarning, match="the certified gap is inf of its upper bound"):
        solver.set_params(random_state=0).fit(X, y)
    assert (solver.certificate_, solver.status_) == (np.inf, "budget")
    solver.set_params(random_state=1).fit(X, y)
    assert solver.certificate_ - solver.margin_ <= 1e-6
    assert solver.status_ == "converged"
