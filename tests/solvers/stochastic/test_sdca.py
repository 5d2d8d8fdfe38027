"""SDCA against a literal twin."""

import numpy as np
import pytest

from marginbench.solvers import SDCA


def twin(K, y, C, order, epochs, seed, tol=0.0):
    """Exact dual coordinate steps, with the gap in lambda units after each epoch."""
    n, lam = len(y), 1 / (len(y) * C)
    rng = np.random.default_rng(seed)
    alpha, c, steps = np.zeros(n), np.zeros(n), 0
    for epoch in range(1, epochs + 1):
        for i in rng.permutation(n) if order == "permutation" else rng.integers(n, size=n):
            delta = np.clip(alpha[i] + (1 - c[i]) / K[i, i], 0, C) - alpha[i]
            if delta != 0:
                alpha[i] += delta
                c += delta * y[i] * y * K[i]
                steps += 1
        squared_norm = alpha @ c
        gap = lam * squared_norm + np.maximum(0, 1 - c).mean() - lam * alpha.sum()
        if gap <= tol:
            return alpha, steps, epoch
    return alpha, steps, epochs


@pytest.mark.parametrize("order", ["permutation", "iid"])
@pytest.mark.parametrize(("C", "tol"), [(1.0, 0.0), (10.0, 0.0), (1.0, 0.3), (1.0, 1e-3)])
def test_steps_are_the_literal_ones(task, C, tol, order, alpha_of):
    # Linear classes that overlap take very many epochs.
    most = 200 if tol and task.params["kernel"] == "rbf" else 15
    alpha, steps, epochs = twin(task.K, task.y, C, order, most, seed=3, tol=tol)
    solver = SDCA("precomputed", C=C, order=order, tol=tol, max_epochs=most)
    solver.set_params(dtype="float64", random_state=3).fit(task.K, task.y)
    assert solver.n_iter_ == epochs * task.n
    assert solver.status_ == ("converged" if epochs < most else "budget")
    # Every draw that changes its variable costs one row; the diagonal comes once.
    assert solver.counters_.kernel_evals == (steps + 1) * task.n
    np.testing.assert_allclose(alpha_of(solver.model_, task.y), alpha, rtol=0, atol=1e-10 * C)


@pytest.mark.parametrize("order", ["permutation", "iid"])
def test_points_without_norm_go_to_their_bound(order, alpha_of):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 2))
    X[[0, 7]] = 0.0
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    y[[0, 7]] = [1, -1]
    solver = SDCA("linear", C=2.0, order=order, tol=1e-8, max_epochs=5000, dtype="float64")
    alpha = alpha_of(solver.set_params(random_state=0).fit(X, y).model_, y)
    np.testing.assert_array_equal(alpha[[0, 7]], 2.0)
    assert np.isfinite(alpha).all()
    assert solver.status_ == "converged"


@pytest.mark.parametrize("parameters", [{"stopping": "gradient"}, {"shrinking": True}])
def test_independent_draws_see_no_epoch_of_all_points(rbf_task, parameters):
    with pytest.raises(ValueError, match="order='iid' does not visit every point"):
        SDCA(order="iid", **parameters).fit(rbf_task.X, rbf_task.y)
