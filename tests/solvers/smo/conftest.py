"""What every run of SMO promises."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist


@pytest.fixture(scope="session")
def check_conditions():
    """``check_conditions(fit, X, y)`` fits and looks at the result with float64 entries."""
    return conditions_hold


def conditions_hold(fit, X, y):
    """Fit: what it reports is true, and where it ends well no condition is violated.

    Either way its gradient may be off by an eighth of the tolerance at both ends, with float64
    entries by less.
    """
    if fit.kernel == "rbf":
        K = np.exp(-fit.gamma * cdist(X, X, "sqeuclidean"))
    else:
        K = X @ X.T
    with warnings.catch_warnings(action="ignore"):
        alpha = fit.fit(K if fit.kernel == "precomputed" else X, y).alpha_
    assert alpha.min() >= 0
    assert alpha.max() <= fit.C
    assert not fit.fit_intercept or abs(alpha @ y) <= 1e-10 * alpha.sum()
    np.testing.assert_array_equal(np.flatnonzero(alpha), fit.support_)
    F = y - K @ (alpha * y)
    up, down = (np.where(y == sign, alpha < fit.C, alpha > 0) for sign in (1, -1))
    highest, lowest = F[up].max(initial=-np.inf), F[down].min(initial=np.inf)
    violation = highest - lowest if fit.fit_intercept else max(highest, -lowest)
    assert violation == pytest.approx(fit.violation_, rel=1e-3, abs=0.25 * fit.tol)
    if fit.status_ == "converged":
        assert violation <= (1.25 if fit.dtype == "float32" else 1.1) * fit.tol
        if fit.fit_intercept:
            low, high = sorted((highest, lowest))
            assert low - 0.25 * fit.tol <= fit.intercept_[0] <= high + 0.25 * fit.tol
