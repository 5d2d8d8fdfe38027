"""Adult without bias, from the real files: an optimum that is certified from scratch."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from marginbench.data_loaders import load
from marginbench.solvers import SMO

mirror = Path(os.environ.get("MARGINBENCH_MIRROR", ""))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (mirror / "adult" / "a9a").is_file(),
        reason="MARGINBENCH_MIRROR is not a folder with adult/a9a: no real data here",
    ),
]


def test_smo_reaches_the_optimum_of_adult(tmp_path):
    # SBP12 Table 2: gamma = 0.05, lambda = 1/n (C = 1), nu = 1.10e-2 to three digits.
    adult = load("adult", cache_dir=tmp_path)
    solver = SMO(gamma=0.05, C=1.0, tol=1e-3, cache_size=3000).fit(adult.X_train, adult.y_train)
    assert solver.status_ == "converged"

    X = adult.X_train.toarray().astype(np.float64)
    points = X[solver.support_]
    coef = solver.dual_coef_[0]
    alpha = coef * adult.y_train[solver.support_]
    assert alpha.min() >= 0
    assert alpha.max() <= 1
    blocks = (X[start : start + 2000] for start in range(0, adult.n_train, 2000))
    scores = np.concatenate([rbf_kernel(block, points, gamma=0.05) @ coef for block in blocks])
    squared_norm = coef @ scores[solver.support_]
    slack = np.maximum(0, 1 - adult.y_train * scores)
    primal = squared_norm / 2 + slack.sum()
    dual = alpha.sum() - squared_norm / 2
    assert 0 <= primal - dual <= 1e-4 * primal
    assert slack.mean() / np.sqrt(squared_norm) == pytest.approx(1.10e-2, abs=0.005e-2)
    # One test point is 0.006 points of error.
    assert 100 * (1 - solver.score(adult.X_test, adult.y_test)) == pytest.approx(14.93, abs=0.03)
