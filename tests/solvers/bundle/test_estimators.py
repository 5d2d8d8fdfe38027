"""The estimators of the bundle method: rankings and regression."""

import numpy as np
import pytest
from sklearn.base import clone

from marginbench.solvers import BundleClassifier, BundleRegressor, PrecisionAtK, Quantile


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


def test_a_quantile_has_its_share_of_points_below():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.exponential(size=400)
    below = y < BundleRegressor(loss=Quantile(0.2), C=100.0).fit(X, y).predict(X) - 1e-9
    # The offset is free, so at most the 4 points of the fit are on neither side.
    assert abs(below.mean() - 0.2) <= 5 / 400


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
