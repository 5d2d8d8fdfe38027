"""Local timings of rows of kernel entries, counting included."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import pairwise

from benchmarks.generators import dense_points, text_points
from benchmarks.kernels import Rows
from marginbench.harness.words import plural

_KERNELS, _STORAGE, _ROWS = Rows.params
_FUNCTIONS = {
    "rbf": pairwise.rbf_kernel,
    "laplacian": pairwise.laplacian_kernel,
    "poly": pairwise.polynomial_kernel,
    "linear": pairwise.linear_kernel,
    "precomputed": pairwise.linear_kernel,
}
#: Columns whose entries are compared; each point has 50 numbers that are not zero.
_COMPARED, _NONZERO = 100, 50
#: A matrix that is given is dense.
CASES = [
    (storage, rows, kernel)
    for storage, rows, kernel in product(_STORAGE, _ROWS, _KERNELS)
    if (storage, kernel) != ("sparse", "precomputed")
]


@pytest.mark.parametrize(("storage", "rows", "kernel"), CASES)
def test_rows(benchmark, storage, rows, kernel):
    suite = Rows()
    suite.setup(kernel, storage, rows)
    oracle, counters = suite.oracle, suite.oracle.counters
    benchmark.group = f"{plural(rows, 'row')} of kernel entries, {storage}"

    benchmark(oracle.rows, suite.index)

    before = counters.as_dict()
    entries = oracle.rows(suite.index)
    asked = counters.kernel_evals - before["kernel_evals"]
    computed = counters.kernel_evals_computed - before["kernel_evals_computed"]
    assert asked == rows * oracle.n
    # No call is answered from a cache: all of them do the work that is timed.
    assert computed == (asked if oracle.kernel.evaluates else 0)
    expected = _plain(oracle, storage, kernel)
    # Each product sums so many float32 numbers.
    np.testing.assert_allclose(
        entries[:1, :_COMPARED], expected, atol=_NONZERO * 2.0**-23 * np.abs(expected).max()
    )
    benchmark.extra_info.update(evaluations=asked, evaluations_computed=computed)


def _plain(oracle, storage, kernel):
    """The first entries by scikit-learn, in float64."""
    if storage == "dense":
        points = dense_points(oracle.n, 50)
    else:
        points = text_points(oracle.n, 4000, 50)
    params = {} if kernel == "precomputed" else asdict(oracle.kernel)
    points = points[:_COMPARED].astype(np.float64)
    return _FUNCTIONS[kernel](points[:1], points, **params)
