"""SBP, without and with bias, against literal twins, its invariants, and the optimum."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from marginbench.solvers import SBP

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
    return SimpleNamespace(y=y, K=K, Q=K * np.outer(y, y), n=90)


def one_basin(c, y, volume):
    """Level, bias and the points that may be drawn, by sorting."""
    ordered = np.sort(c - c.min())
    levels = (volume + np.cumsum(ordered)) / np.arange(1, len(c) + 1)
    k = int(np.argmax(levels <= np.r_[ordered[1:], np.inf])) if volume else 0
    level = c.min() + levels[k]
    return level, 0.0, c <= level


def two_basins(c, y, volume):
    """The same with bias; ties in index order."""
    order = [np.flatnonzero(y == label) for label in (1, -1)]
    order = [members[np.argsort(c[members], kind="stable")] for members in order]
    a, d = (c[members] for members in order)
    k_max = min(len(a), len(d))
    m = a[:k_max] + d[:k_max]
    heights = m - m[0]
    filled = np.arange(k_max) * heights - np.r_[0, np.cumsum(heights)[:-1]]
    k = max(1, int(np.sum(filled < volume)))
    depth = (volume - filled[k - 1]) / k
    room = [min(depth, h[k] - h[k - 1]) if k < len(h) else depth for h in (a, d)]
    u = a[k - 1] + (depth + room[0] - room[1]) / 2
    v = d[k - 1] + (depth - room[0] + room[1]) / 2
    covered = np.zeros(len(c), dtype=bool)
    covered[np.concatenate([members[:k] for members in order])] = True
    return (u + v) / 2, (v - u) / 2, covered


def candidates(rng, members, passes):
    n = len(members)
    for _ in range(passes):
        yield from members[rng.permutation(n)]
    while True:
        yield from members[rng.integers(n, size=1000)]


def twin(K, y, nu, T, rng, kind="none", *, schedule="paper"):
    """SBP12 Algorithm 1 and its form with two basins, draw by draw."""
    n, rng, fast = len(y), np.random.default_rng(rng), schedule == "fast"
    passes = 100 if fast else 0
    classes = [np.flatnonzero(y > 0), np.flatnonzero(y < 0)]
    if kind == "pair":
        rngs = [np.random.default_rng(rng.integers(2**63)) for _ in classes]
        streams = [candidates(r, points, passes) for r, points in zip(rngs, classes, strict=True)]
    else:
        streams = [candidates(rng, np.arange(n), passes)]
    fill = one_basin if kind == "none" else two_basins
    eta0 = 1 / np.sqrt(np.diag(K).max())
    alpha, c, r2, counts = np.zeros(n), np.zeros(n), 0.0, np.zeros(n)
    alphas, responses, under_water = [], [], 0.0
    for t in range(1, T + 1):
        covered = fill(c, y, n * nu)[2]
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
            under_water = last_half[fill(last_half, y, n * nu)[2]].mean()
    # Of 2^k to 2^(k+1) - 1 iterates a suffix leaves out the first 2^(k-1).
    first = 2 ** (T.bit_length() - 2) if fast else 0
    mean, c_mean = np.mean(alphas[first:], axis=0), np.mean(responses[first:], axis=0)
    g, b, _ = fill(c_mean, y, n * nu)
    scale = 1 / g if g > 0 else 1.0
    p = counts / counts.sum()
    if kind != "none":
        for points in classes:
            p[points] = counts[points] / counts[points].sum() / 2
    noise = 8 * np.finfo(float).eps * abs(K).max()  # of an entry, rounded
    bound = np.sqrt(max(p @ (K * np.outer(y, y)) @ p, 0.0) + noise) + n * nu * p.max()
    return {"alpha": mean * scale, "bias": b * scale, "margin": g, "bound": bound}


def fit(task, kind="none", **params):
    params = {"schedule": "paper", "dtype": "float64", "random_state": 1, **KINDS[kind], **params}
    return SBP("precomputed", **params).fit(task.K, task.y)


def assert_is(solver, expected, alpha):
    scale = expected["alpha"].max()
    np.testing.assert_allclose(alpha, expected["alpha"], rtol=1e-9, atol=1e-10 * scale)
    assert solver.intercept_[0] == pytest.approx(expected["bias"], rel=1e-9, abs=1e-11)
    assert solver.margin_ == pytest.approx(expected["margin"], rel=1e-10, abs=1e-13)
    assert solver.certificate_ == pytest.approx(expected["bound"], rel=1e-10)


@kinds
@pytest.mark.parametrize("nu", [0.0, 1e-10, 0.02])
def test_it_is_the_literal_algorithm(task, nu, kind, alpha_of):
    solver = fit(task, kind, nu=nu, max_epochs=2)
    expected = twin(task.K, task.y, nu, 2 * task.n, 1, kind)
    assert_is(solver, expected, alpha_of(solver.model_, task.y))
    assert (solver.status_, solver.n_iter_) == ("budget", 2 * task.n)


@pytest.mark.parametrize("kind", ["none", "pair"])
@pytest.mark.parametrize(
    ("schedule", "epochs", "nu"),
    [
        *((schedule, 3, nu) for schedule in ("paper", "fast") for nu in (0.0, 1e-3, 0.3)),
        ("fast", 90, 1e-3),
    ],
)
def test_ties_and_schedules_are_the_literal_ones(tied_task, kind, nu, schedule, epochs, alpha_of):
    task = tied_task
    solver = fit(task, kind, nu=nu, max_epochs=epochs, schedule=schedule)
    expected = twin(task.K, task.y, nu, epochs * task.n, 1, kind, schedule=schedule)
    assert_is(solver, expected, alpha_of(solver.model_, task.y))


@kinds
def test_a_checkpoint_comes_after_the_first_iteration_that_reaches_it(
    rbf_task, kind, recording_monitor
):
    n, monitor = rbf_task.n, recording_monitor(every=60.5 * rbf_task.n)
    solver = SBP("precomputed", nu=0.02, max_epochs=2, random_state=1, **KINDS[kind])
    solver.fit(rbf_task.K, rbf_task.y, monitor=monitor)
    rows = 2 if kind == "pair" else 1
    assert set(np.diff(monitor.iterations)) == {-(-60.5 // rows)}
    assert solver.counters_.kernel_evals == rows * solver.n_iter_ * n + n


def test_every_entry_is_counted(linear_task):
    task, asked = linear_task, []

    def kernel(A, B):
        asked.append(len(A) * len(B))
        return A @ B.T

    solver = SBP(kernel, nu=0.1, cache_size=0, max_epochs=3, random_state=14)
    solver.fit(task.X, task.y)
    assert solver.counters_.kernel_evals == 3 * task.n * task.n + task.n
    assert sum(asked) == solver.counters_.kernel_evals_computed == solver.counters_.kernel_evals


@kinds
def test_rules_change_neither_draws_nor_what_is_charged(task, kind):
    plain, checked = (
        SBP(**task.params, nu=0.02, tol=tol, **KINDS[kind])
        .set_params(dtype="float64", max_epochs=3, random_state=15)
        .fit(task.X, task.y)
        for tol in (0.0, 1e-9)
    )
    np.testing.assert_array_equal(checked.dual_coef_, plain.dual_coef_)
    assert checked.counters_ == plain.counters_


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
        solver = fit(task, kind, nu=nu, max_epochs=epochs, random_state=0)
        assert solver.margin_ * norm <= 1 + 1e-6
        assert solver.certificate_ * norm >= 1 - 1e-6
        fast = fit(task, kind, nu=nu, max_epochs=epochs, schedule="fast", random_state=0)
        assert fast.margin_ * norm <= 1 + 1e-6
        assert fast.certificate_ * norm >= 1 - 1e-6
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
    gap = 1 / norm - solver.margin_
    assert np.sqrt(alpha @ task.Q @ alpha) <= norm / (1 - gap * norm) * (1 + 1e-6)
    if bias:
        assert abs(alpha @ task.y) <= 1e-12 * alpha.sum()


@pytest.mark.parametrize("kind", ["none", "pair"])
def test_without_slack_it_finds_the_hard_margin(separable_task, solve_dual, kind):
    task, bias = separable_task, kind == "pair"
    X = task.X + [4.0, -1.0] if bias else task.X
    hard = solve_dual((X @ X.T) * np.outer(task.y, task.y), task.y, None, bias=bias)
    solver = SBP("linear", nu=0.0, max_epochs=1000 if bias else 500, dtype="float64")
    solver.set_params(random_state=0, fit_intercept=bias).fit(X, task.y)
    assert 0.97 <= solver.margin_ * np.sqrt(hard.squared_norm) <= 1 + 1e-7
    assert (task.y * solver.decision_function(X)).min() == pytest.approx(1.0, rel=1e-8)


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
    X, y = np.array([[1.0], [-1.0]]), np.array([1, -1])
    with pytest.warns(ConvergenceWarning, match="the certified gap is inf of its upper bound"):
        solver.set_params(random_state=0).fit(X, y)
    assert (solver.certificate_, solver.status_) == (np.inf, "budget")
    solver.set_params(random_state=1).fit(X, y)
    assert solver.certificate_ - solver.margin_ <= 1e-6
    assert solver.status_ == "converged"
