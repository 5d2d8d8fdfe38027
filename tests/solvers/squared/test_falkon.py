"""Falkon against its algorithm in dense matrices, a direct solution, and a count of entries."""

import numpy as np
import pytest
from scipy.linalg import solve
from sklearn.exceptions import ConvergenceWarning

from marginbench.solvers import Falkon


@pytest.mark.parametrize("C", [0.1, 1000.0])
# The last is what the solver adds to the diagonal of the centres' matrix, relative to its mean.
@pytest.mark.parametrize(
    ("dtype", "atol", "jitter"), [("float64", 1e-6, 1e-10), ("float32", 2e-3, 1e-6)]
)
def test_the_model_is_that_of_the_normal_equations(task, C, dtype, atol, jitter):
    m = 30 if task.params["kernel"] == "rbf" else 5
    solver = Falkon(C=C, n_components=m, tol=1e-8, max_iter=1000, dtype=dtype, **task.params)
    solver.set_params(random_state=0).fit(task.X, task.y)
    K_nm, K_mm = task.K[:, solver.centers_], task.K[np.ix_(solver.centers_, solver.centers_)]
    K_mm = K_mm + jitter * np.trace(K_mm) / m * np.eye(m)
    expected = K_nm @ solve(K_nm.T @ K_nm + K_mm / C, K_nm.T @ task.y, assume_a="pos")
    # tol bounds the residual of the preconditioned equations, whose condition number is small.
    np.testing.assert_allclose(solver.decision_function(task.X), expected, rtol=0, atol=atol)
    assert solver.status_ == "converged"
    assert solver.residual_ <= 1e-8
    # So are the iterations few.
    assert solver.n_iter_ <= (15 if C < 1 else 60)


@pytest.mark.parametrize("kept", ["all", "some", "none"])
def test_entries_are_counted_as_the_kernel_evaluates_them(rbf_task, kept, monkeypatch):
    # Five blocks of rows, of which the cache holds all, two or none.
    monkeypatch.setattr("marginbench.solvers.squared.falkon._BLOCK_ENTRIES", 30 * 12)
    task, m, seen = rbf_task, 12, []

    def kernel(A, B):
        seen.append(len(A) * len(B))
        return np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2))

    cache_size = {"all": 200.0, "some": 70 * m * 8 / 2**20, "none": 0.0}[kept]
    solver = Falkon(
        kernel, n_components=m, tol=0.0, max_iter=7, cache_size=cache_size, dtype="float64",
        random_state=0,
    ).fit(task.X, task.y)  # fmt: skip
    n = task.n
    passes = 1 + 7
    again = {"all": 0, "some": n - 60, "none": n}[kept]
    assert solver.counters_.kernel_evals == m * m + passes * n * m
    assert solver.counters_.kernel_evals_computed == sum(seen)
    assert sum(seen) == m * m + n * m + (passes - 1) * again * m


def test_the_residual_at_the_end_is_the_true_one():
    rng = np.random.default_rng(320)
    X = rng.standard_normal((40, 3)) + 1000
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    model = Falkon("poly", gamma=1.0, degree=2, C=20.0, tol=1e-6, dtype="float64", random_state=0)
    with pytest.warns(ConvergenceWarning, match="ended at the rounding of its equations"):
        model.fit(X, y)
    # Of the recurrence it was 6.4e-7; in extended precision 9.6e-4 are found.
    assert model.status_ == "budget"
    assert model.residual_ > 1e-4


def test_a_kernel_of_zeros_gives_the_zero_function():
    solver = Falkon("linear").fit(np.zeros((4, 2)), [0, 1, 0, 1])
    np.testing.assert_array_equal(solver.decision_function(np.ones((2, 2))), [0.0, 0.0])
    assert (solver.status_, solver.n_iter_, solver.residual_) == ("converged", 0, 0.0)
