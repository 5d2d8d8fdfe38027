"""SMO against an interior-point method, its cache, and its bias at the bounds."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from marginbench.solvers import SMO

BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])


def dual_value(alpha, Q):
    return alpha.sum() - 0.5 * alpha @ Q @ alpha


@BIAS
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_optimum_is_the_interior_points(task, C, bias, optimum, check_conditions):
    solver = SMO(**task.params, C=C, fit_intercept=bias, tol=1e-10, dtype="float64")
    check_conditions(solver, task.X, task.y)
    assert solver.status_ == "converged"
    alpha, best = solver.alpha_, optimum(task, C, bias=bias).value
    margins = task.Q @ alpha + task.y * solver.intercept_[0]
    primal = 0.5 * alpha @ task.Q @ alpha + C * np.maximum(0, 1 - margins).sum()
    assert [dual_value(alpha, task.Q), primal] == pytest.approx([best, best], rel=1e-8)


@BIAS
def test_the_cache_changes_what_is_computed_and_nothing_else(task, bias):
    dtype = "float32" if task.params["kernel"] == "rbf" else "float64"
    row_mb = task.n * np.dtype(dtype).itemsize / 2**20
    fits = {
        rows: SMO(
            fit_intercept=bias, working_set="textbook", dtype=dtype, cache_size=rows * row_mb,
            **task.params,
        ).fit(task.X, task.y)
        for rows in (0, 1, 2.5, 20, 1000)
    }  # fmt: skip
    reference = fits[0]
    diagonal = 0 if task.params["kernel"] == "rbf" else task.n
    rows = reference.n_iter_ * (2 if bias else 1)
    assert reference.counters_.kernel_evals == rows * task.n + diagonal
    for fit in fits.values():
        np.testing.assert_array_equal(fit.dual_coef_, reference.dual_coef_)
        np.testing.assert_array_equal(fit.support_, reference.support_)
        assert fit.intercept_ == reference.intercept_
        assert fit.n_iter_ == reference.n_iter_
        assert fit.counters_.kernel_evals == reference.counters_.kernel_evals
    computed = [fit.counters_.kernel_evals_computed for fit in fits.values()]
    # float32 entries are looked at in the end, at up to 96 points.
    looked = 0 if dtype == "float64" else 96 * len(reference.support_)
    assert computed[0] == computed[1]
    assert 0 <= computed[0] - reference.counters_.kernel_evals <= looked
    assert computed[1] >= computed[2] >= computed[3] > computed[4]
    assert computed[4] <= task.n**2 + diagonal


def test_without_free_variables_the_bias_is_the_middle_of_its_interval():
    X, y, C = np.array([[0.0], [1.0], [5.0], [9.0]]), np.array([-1.0, -1.0, 1.0, 1.0]), 0.01
    solver = SMO("linear", C=C, fit_intercept=True, dtype="float64").fit(X, y)
    np.testing.assert_array_equal(solver.dual_coef_[0], C * y)
    # w = 0.13: the margin-1 biases are -1 and -1.13 for the negatives, 0.35 and -0.17 for the
    # positives; with all points on their bound every bias in [-1, -0.17] is optimal.
    assert solver.intercept_[0] == pytest.approx((-1 - 0.17) / 2, rel=1e-12)


@pytest.mark.parametrize("working_set", ["large", "textbook"])
def test_a_variable_that_rounding_keeps_from_its_bound_does_not_decide_the_bias(working_set):
    X, y = load_breast_cancer(return_X_y=True)
    X, signs = StandardScaler().fit_transform(X), np.where(y == 1, 1.0, -1.0)
    costs = {label: 1e-4 * len(y) / (2 * (y == label).sum()) for label in (0, 1)}
    fit = SMO(C=1.0, fit_intercept=True, class_weight=costs, working_set=working_set, tol=1e-6)
    fit.set_params(dtype="float64").fit(X, y)
    # All variables end at their bounds, whose sums are the same for both classes.
    F = signs - (fit.decision_function(X) - fit.intercept_[0])
    middle = (F[signs < 0].max() + F[signs > 0].min()) / 2
    assert fit.intercept_[0] == pytest.approx(middle, abs=1e-6)


@BIAS
def test_a_huge_C_gives_the_hard_margin(separable_task, bias, solve_dual, alpha_of):
    task = separable_task
    hard = solve_dual(task.Q, task.y, None, bias=bias)
    solver = SMO(**task.params, C=1e12, fit_intercept=bias, tol=1e-9, dtype="float64")
    solver.fit(task.X, task.y)
    assert solver.status_ == "converged"
    assert dual_value(alpha_of(solver.model_, task.y), task.Q) == pytest.approx(
        hard.value, rel=1e-7
    )
    assert (task.y * solver.decision_function(task.X)).min() == pytest.approx(1.0, abs=1e-8)
