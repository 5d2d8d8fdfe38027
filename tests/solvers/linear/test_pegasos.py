"""Linear Pegasos against the literal iteration."""

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import LinearPegasos


def literal(X, y, batches, C, weights, factors, projection):
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


def drawn(n, size, order, epochs, seed, weights):
    """The same index stream as the solver's."""
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        if size is None:
            yield np.arange(n)
        elif order == "permutation":
            yield from rng.permutation(n)[: n // size * size].reshape(-1, size)
        elif weights is None:
            yield from rng.integers(n, size=(n // size, size))
        else:
            levels = rng.random((n // size, size)) * weights.sum()
            yield from np.searchsorted(np.cumsum(weights), levels, side="right")


@pytest.mark.parametrize("order", ["iid", "permutation"])
@pytest.mark.parametrize("size", [1, 7, None])
@pytest.mark.parametrize(
    ("C", "projection", "storage", "weighted"),
    [
        (0.1, True, np.asarray, False),
        (1.0, False, sparse.csr_matrix, False),
        (100.0, True, sparse.csr_matrix, False),
        (2.0, True, np.asarray, True),
    ],
)
def test_steps_are_the_literal_ones(linear_task, C, size, order, projection, storage, weighted):
    X, y = linear_task.X, linear_task.y
    weights = factors = None
    if weighted:
        weights = np.random.default_rng(4).choice([0.0, 0.5, 1.0, 3.0], size=len(y))
        # Where points are not drawn by their weights, these are factors of their steps.
        factors = None if size and order == "iid" else weights / weights.mean()
    batches = list(drawn(len(y), size, order, 4, 1, weights))
    iterates = literal(X, y, batches, C, weights, factors, projection)
    common = {"C": C, "batch_size": size, "order": order, "projection": projection}
    for output, expected in (("last", iterates[-1]), ("averaged", iterates.mean(axis=0))):
        solver = LinearPegasos(output=output, max_epochs=4, random_state=1, **common)
        solver.fit(storage(X), y, sample_weight=weights)
        atol = 1e-10 * np.abs(expected).max()
        np.testing.assert_allclose(solver.coef_[0], expected, rtol=0, atol=atol)
        assert solver.n_iter_ == len(batches)
        assert solver.counters_.inner_products == sum(len(batch) for batch in batches)


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
