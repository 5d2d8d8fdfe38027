"""Linear Pegasos against the literal iteration, the kernel version and the optimum."""

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import LinearPegasos


def literal(X, y, batches, C, weights=None, factors=None, projection=True):
    """w <- (1 - 1/t) w + 1 / (lam t k) sum over the violators, then the ball; every iterate."""
    n = len(y)
    weights = np.ones(n) if weights is None else weights
    factors = np.ones(n) if factors is None else factors
    lam = 1 / (C * weights.sum())
    w, iterates = np.zeros(X.shape[1]), []
    for t, batch in enumerate(batches, start=1):
        violators = [i for i in batch if y[i] * (X[i] @ w) < 1]
        w = (1 - 1 / t) * w
        for i in violators:
            w = w + factors[i] * y[i] * X[i] / (lam * t * len(batch))
        norm = np.linalg.norm(w)
        if projection and norm > 1 / np.sqrt(lam):
            w = w / (norm * np.sqrt(lam))
        iterates.append(w)
    return np.array(iterates)


def drawn(n, size, order, epochs, seed):
    """The same index stream as the solver's."""
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        if size is None:
            yield np.arange(n)
        elif order == "iid":
            yield from rng.integers(n, size=(n // size, size))
        else:
            yield from rng.permutation(n)[: n // size * size].reshape(-1, size)


@pytest.mark.parametrize("order", ["iid", "permutation"])
@pytest.mark.parametrize("size", [1, 7, None])
@pytest.mark.parametrize(
    ("C", "projection", "storage"),
    [(0.1, True, np.asarray), (1.0, False, sparse.csr_matrix), (100.0, True, sparse.csr_matrix)],
)
def test_steps_are_the_literal_ones(linear_task, C, size, order, projection, storage):
    X, y = linear_task.X, linear_task.y
    batches = list(drawn(len(y), size, order, 4, seed=1))
    iterates = literal(X, y, batches, C, projection=projection)
    common = {"C": C, "batch_size": size, "order": order, "projection": projection}
    for output, expected in (("last", iterates[-1]), ("averaged", iterates.mean(axis=0))):
        solver = LinearPegasos(output=output, max_epochs=4, random_state=1, **common)
        solver.fit(storage(X), y)
        atol = 1e-10 * np.abs(expected).max()
        np.testing.assert_allclose(solver.coef_[0], expected, rtol=0, atol=atol)
        assert solver.n_iter_ == len(batches)
        assert solver.counters_.inner_products == sum(len(batch) for batch in batches)


@pytest.mark.parametrize("order", ["iid", "permutation"])
@pytest.mark.parametrize("size", [1, 5, None])
def test_weights_change_the_draws_or_the_steps(linear_task, size, order):
    X, y = linear_task.X, linear_task.y
    n = len(y)
    weights = np.random.default_rng(4).choice([0.0, 0.5, 1.0, 3.0], size=n)
    if size is None or order == "permutation":
        batches = list(drawn(n, size, order, 3, seed=5))
        factors = weights / weights.mean()
    else:
        rng, factors = np.random.default_rng(5), None
        draws = [rng.random((n // size, size)) * weights.sum() for _ in range(3)]
        reached = np.cumsum(weights)
        batches = [
            [next(i for i in range(n) if reached[i] > level) for level in batch]
            for epoch in draws
            for batch in epoch
        ]
    expected = literal(X, y, batches, 2.0, weights, factors)[-1]
    solver = LinearPegasos(C=2.0, batch_size=size, order=order, max_epochs=3, random_state=5)
    solver.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(
        solver.coef_[0], expected, rtol=0, atol=1e-10 * np.abs(expected).max()
    )


@pytest.mark.parametrize("size", [10, None])
def test_it_approaches_the_optimum(linear_task, optimum, size):
    task, C = linear_task, 0.1
    best = optimum(task, C).value
    epochs = 3000 if size is None else 300
    solver = LinearPegasos(C=C, batch_size=size, max_epochs=epochs, random_state=0)
    solver.fit(task.X, task.y)
    w = solver.coef_[0]
    value = 0.5 * w @ w + C * np.maximum(0, 1 - task.y * (task.X @ w)).sum()
    assert best * (1 - 1e-9) <= value <= 1.01 * best


def test_the_cost_of_a_sparse_step_does_not_grow_with_the_dimension():
    # With 10^7 columns and 3 entries in a row, dense steps would take minutes.
    rng = np.random.default_rng(7)
    n, d = 2000, 10_000_000
    X = sparse.csr_matrix(
        (np.ones(3 * n), rng.integers(d, size=3 * n), np.arange(0, 3 * n + 1, 3)), shape=(n, d)
    )
    y = np.where(rng.random(n) < 0.5, 1, -1)
    solver = LinearPegasos(max_epochs=10, random_state=0).fit(X, y)
    assert solver.n_iter_ == 10 * n
    assert np.count_nonzero(solver.coef_) <= 3 * n
