"""The estimators of the bundle method: the SVM's optimum, rankings, regression."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from marginbench.solvers import OCAS, BundleClassifier, BundleRegressor, PrecisionAtK, Quantile

# With all planes, those that were needed just now, or their mixture, and no search along a line.
ALL = BundleClassifier(primal_search=False, tol=1e-8, max_idle=None)
FEW = clone(ALL).set_params(max_idle=1)
MIXED = BundleClassifier(inner="line_search", tol=1e-5, max_iter=3000)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("storage", "bias"), [(np.asarray, False), (sparse.csr_matrix, True)])
@pytest.mark.parametrize("method", [OCAS(tol=1e-8), BundleClassifier(tol=1e-8), ALL, FEW, MIXED])
@pytest.mark.parametrize("hard", [False, True])
def test_the_optimum_of_the_svm_with_guaranteed_progress(
    linear_task, optimum, method, hard, storage, bias
):
    task, C = linear_task, (1.0 if hard else 0.01) if method is MIXED else 10.0 if hard else 0.1
    solver = clone(method).set_params(C=C, fit_intercept=bias).fit(storage(task.X), task.y)
    lam, trace = 1 / (C * task.n), solver.trace_
    least = lam * optimum(task, C, bias=bias).value
    w = solver.coef_[0]
    hinge = np.maximum(0, 1 - task.y * (task.X @ w + solver.intercept_[0])).mean()
    reached = 0.5 * lam * w @ w + hinge
    converged = solver.status_ == "converged"
    assert converged or method is MIXED
    assert (solver.intercept_[0] != 0) == bias
    assert least * (1 - 1e-9) <= reached <= least + (1 if converged else 10 * least) * method.tol
    assert trace.objective.min() == pytest.approx(reached, rel=1e-12)
    assert len(trace.objective) == solver.n_iter_ + 1
    assert (np.diff(trace.lower_bound) >= 0).all()
    assert trace.lower_bound.max() <= least * (1 + 1e-9)
    if method not in (ALL, FEW, MIXED):
        # The best point of the search along the line.
        assert (np.diff(trace.objective) <= 0).all()
        return
    # BMRM07 Theorem 4 and 5, for ||a|| <= G and Omega* with second derivative 1.
    gamma, G2 = trace.gamma, np.square(task.X).sum(axis=1).max()
    progress = 0.5 * gamma[:-1] * np.minimum(1, lam * gamma[:-1] / (4 * G2))
    assert (np.diff(trace.lower_bound) >= progress - 1e-13).all()
    if converged:
        steps = math.log2(max(lam / (4 * G2), 1e-300)) + 8 * G2 / (lam * trace.epsilon[-2]) - 2
        assert solver.n_iter_ <= max(steps, 1) + 1


def test_a_line_search_over_huge_slopes_ends():
    model = BundleRegressor(regularizer="entropic", fit_intercept=False, C=100.0, max_iter=5)
    model.fit([[1.0], [1.0]], [1e10, 1e10])
    assert np.isfinite(model.coef_).all()


def test_losses_of_a_ranking_and_of_ones_own(linear_task):
    X, y = linear_task.X, linear_task.y
    for loss in ("roc_area", "precision_at_k", "f1", PrecisionAtK(10)):
        solver = clone(BundleClassifier(loss=loss, C=0.5)).fit(X, y)
        scores = solver.decision_function(X)
        assert scores[y > 0].mean() > scores[y < 0].mean() + 0.1
    with pytest.raises(ValueError, match="the loss of a classifier takes labels"):
        BundleClassifier(loss=Quantile(0.2)).fit(X, y)
    with pytest.raises(ValueError, match="the loss of a regressor takes numbers"):
        BundleRegressor(loss="hinge").fit(X, y)


def test_regression_is_shifted_and_scaled_with_its_targets():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 4))
    y = X @ [1.0, 0.0, -2.0, 0.5] + 0.1 * rng.standard_normal(100)
    plain = BundleRegressor(tol=1e-10).fit(X, y)
    moved = BundleRegressor(tol=1e-10).fit(X, 10 * y + 300)
    np.testing.assert_allclose(moved.predict(X), 10 * plain.predict(X) + 300, rtol=0, atol=1e-3)
    centred = X - X.mean(axis=0)
    expected = np.linalg.solve(centred.T @ centred + np.eye(4), centred.T @ (y - y.mean()))
    np.testing.assert_allclose(plain.coef_, expected, rtol=0, atol=1e-5)
