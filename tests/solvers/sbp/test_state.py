"""SBP's state against its plain definitions: coefficients, averages, and the bound by the draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from marginbench.solvers.sbp.state import DrawBound, Path, add_draw

steps = st.lists(
    st.tuples(st.integers(0, 4), st.floats(1e-6, 3.0)),
    max_size=80,
)


@given(steps=steps, burn_in=st.integers(0, 5))
@settings(max_examples=200, deadline=None)
def test_coefficients_and_their_sum_are_plain_sums(steps, burn_in):
    """Orthogonal points: a step to one of them leaves the others' responses but for the scale."""
    path, alpha, total = Path(np.ones(5), np.ones(5), burn_in), np.zeros(5), np.zeros(5)
    for t, (i, step) in enumerate(steps, 1):
        path.move([i], [np.eye(5)[i]], step)
        alpha[i] += step
        alpha /= max(1.0, np.linalg.norm(alpha))
        if t > burn_in:
            total += alpha
        np.testing.assert_allclose(path.alpha(), alpha, rtol=1e-13)
        np.testing.assert_allclose(path.alpha_sum(), total, rtol=1e-12, atol=1e-15 * len(steps))
        # A point never drawn has no part in the sum.
        assert not path.alpha_sum()[[k for k in range(5) if k not in dict(steps)]].any()


def walk(task, n_steps, n_drawn, rng):
    """Draws of covered-like points: those with the lowest responses, one or one of each class."""
    members = [np.arange(task.n)]
    if n_drawn == 2:
        members = [np.flatnonzero(task.y > 0), np.flatnonzero(task.y < 0)]
    for t in range(1, n_steps + 1):
        yield t, lambda c: [int(m[np.argsort(c[m])[rng.integers(60)]]) for m in members]


@pytest.mark.parametrize("n_drawn", [1, 2])
def test_the_path_is_that_of_explicit_vectors(linear_task, n_drawn):
    """w as a vector of features: the move, the projection, the average and the responses."""
    task, burn_in = linear_task, 40
    path = Path(task.y, np.diag(task.K), burn_in)
    w, mean, counted = np.zeros(task.X.shape[1]), np.zeros(task.X.shape[1]), 0
    for t, choose in walk(task, 400, n_drawn, np.random.default_rng(1)):
        drawn = choose(path.responses)
        path.move(drawn, [task.K[i] for i in drawn], 0.8 / np.sqrt(t))
        w = w + 0.8 / np.sqrt(t) * np.mean([task.y[i] * task.X[i] for i in drawn], axis=0)
        w = w / max(1.0, np.linalg.norm(w))
        if t > burn_in:
            counted += 1
            mean += w
        np.testing.assert_allclose(path.responses, task.y * (task.X @ w), atol=1e-12)
        np.testing.assert_allclose(task.X.T @ (path.alpha() * task.y), w, atol=1e-12)
        assert path.squared_norm == pytest.approx(w @ w, rel=1e-11)
        alpha, responses = path.average()
        expected = mean / counted if counted else w
        np.testing.assert_allclose(task.X.T @ (alpha * task.y), expected, atol=1e-12)
        np.testing.assert_allclose(responses, task.y * (task.X @ expected), atol=1e-12)


@pytest.mark.parametrize("burn_in", [0, 11])
def test_a_suffix_average_leaves_out_the_first_power_of_two(linear_task, burn_in):
    task = linear_task
    path = Path(task.y, np.diag(task.K), burn_in, suffix=True)
    alphas, responses = [], []
    for t, choose in walk(task, 200, 2, np.random.default_rng(6)):
        to_mark, n_counted = path.until_mark(), t - burn_in
        # A mark is due after this iteration exactly if its count is a power of 2.
        assert (to_mark == 1) == (n_counted in (1, 2, 4, 8, 16, 32, 64, 128))
        drawn = choose(path.responses)
        path.move(drawn, [task.K[i] for i in drawn], 0.8 / np.sqrt(t))
        alphas.append(path.alpha())
        responses.append(path.responses.copy())
        first = 0
        while n_counted >= max(1, 4 * first):
            first = max(1, 2 * first)
        first = first if n_counted >= 2 else 0
        kept = slice(burn_in + first if n_counted > 0 else t - 1, t)
        mean, mean_responses = path.average()
        np.testing.assert_allclose(mean, np.mean(alphas[kept], axis=0), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(mean_responses, np.mean(responses[kept], axis=0), atol=1e-12)


@pytest.mark.parametrize("n_drawn", [1, 2])
def test_recursions_keep_to_their_invariants(rbf_task, n_drawn):
    task, Q = rbf_task, rbf_task.Q
    path = Path(task.y, np.diag(task.K))
    on_the_sphere = False
    for t, choose in walk(task, 10_000, n_drawn, np.random.default_rng(2)):
        drawn = choose(path.responses)
        path.move(drawn, [task.K[i] for i in drawn], 1 / np.sqrt(t))
        assert path.squared_norm <= 1
        on_the_sphere |= path.squared_norm == 1
        if n_drawn == 2:
            # The balance holds in every iterate; its rounding grows with the coefficients alone.
            alpha = path.alpha()
            assert abs(alpha @ task.y) <= 1e-14 * task.n * alpha.sum()
        if t in (1, 3, 10, 100, 1000, 10_000):
            alpha = path.alpha()
            assert alpha.min() >= 0
            assert np.count_nonzero(alpha) <= n_drawn * t
            np.testing.assert_allclose(path.responses, Q @ alpha, rtol=1e-10, atol=1e-10)
            assert path.squared_norm == pytest.approx(alpha @ Q @ alpha, rel=1e-10)
            mean, responses = path.average()
            assert mean.min() >= 0
            np.testing.assert_allclose(responses, Q @ mean, rtol=1e-10, atol=1e-10)
    assert on_the_sphere


def test_responses_are_replaced_and_stay_in_the_ball(rbf_task):
    task = rbf_task
    path = Path(task.y, np.diag(task.K))
    for t, choose in walk(task, 300, 1, np.random.default_rng(3)):
        drawn = choose(path.responses)
        path.move(drawn, [task.K[i] for i in drawn], 1 / np.sqrt(t))
    kept = path.responses
    path.responses += 0.01
    alpha = path.alpha()
    path.replace_responses(task.Q @ alpha)
    assert path.responses is kept, "views of the responses must stay valid"
    np.testing.assert_allclose(path.responses, task.Q @ path.alpha(), atol=1e-12)
    assert path.squared_norm == pytest.approx(alpha @ task.Q @ alpha, rel=1e-12)
    assert path.squared_norm < 1
    # A w outside the ball goes back to it.
    alpha[0] += 3.0
    path.state.values[:] = alpha / path.state.progress["scale"]
    path.replace_responses(task.Q @ alpha)
    assert path.squared_norm == 1
    np.testing.assert_allclose(path.responses, task.Q @ path.alpha(), atol=1e-12)
    alpha = path.alpha()
    assert alpha @ task.Q @ alpha == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_bound_is_its_formula(task, grouped):
    rng = np.random.default_rng(4)
    groups = (task.y > 0).astype(np.int64) if grouped else np.zeros(task.n, dtype=np.int64)
    bound = DrawBound(task.y, np.diag(task.K), groups, volume=3.0)
    assert bound.value() == np.inf
    counts = np.zeros(task.n)
    for i in rng.integers(task.n, size=700):
        add_draw(bound.state, int(i), task.K[i])
        counts[i] += 1
    p = counts / counts.sum()
    if grouped:
        for group in (0, 1):
            p[groups == group] *= 0.5 / p[groups == group].sum()
    expected = np.sqrt(p @ task.Q @ p) + 3.0 * p.max()
    assert bound.value() == pytest.approx(expected, rel=1e-11)


def test_with_draws_of_one_class_alone_there_is_no_bound(rbf_task):
    task = rbf_task
    bound = DrawBound(task.y, np.diag(task.K), (task.y > 0).astype(np.int64), volume=3.0)
    for i in np.flatnonzero(task.y > 0)[:10]:
        add_draw(bound.state, int(i), task.K[i])
    assert bound.value() == np.inf
