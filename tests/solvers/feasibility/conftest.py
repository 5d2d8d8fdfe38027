"""What the tests of feasibility problems share."""

import math

import numpy as np
import pytest

from marginbench.solvers import SMO


@pytest.fixture(scope="session")
def hard_margin():
    """``hard_margin(A)``: rho for a separable problem, by the hard-margin SVM; otherwise 0."""

    def margin(A):
        G = A.T @ A
        signs = np.where(np.arange(len(G)) % 2, 1.0, -1.0)
        smo = SMO("precomputed", C=1e12, tol=1e-10, dtype="float64", max_iter=2_000 * len(G))
        smo.fit(G * np.outer(signs, signs), signs)
        if smo.status_ != "converged":
            return 0.0
        return 1 / math.sqrt(smo.dual_coef_[0] @ signs[smo.support_])

    return margin
