"""Numbers about points in matrices of either storage."""

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers.numeric.matrices import variance


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("repeats", [[2, 2, 2, 2], [1, 2, 1, 3], [1, 0, 4, 0]])
def test_the_variance_is_that_of_points_repeated_by_their_weights(storage, repeats):
    X = np.random.default_rng(0).standard_normal((4, 5)) + 3.0
    X[:, 1] = 0.0
    assert variance(storage(X)) == pytest.approx(X.var(), rel=1e-12)
    expected, weights = np.repeat(X, repeats, axis=0).var(), np.array(repeats, float)
    # Points without weight are as if they were not there, whatever they are.
    X[weights == 0] = 1e200
    assert variance(storage(X), weights) == pytest.approx(expected, rel=1e-12)


def test_points_that_are_all_the_same_have_no_variance():
    assert variance(np.full((3, 2), 0.1), np.array([1.0, 2.0, 3.0])) == 0.0
