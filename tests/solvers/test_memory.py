"""Large data in a bounded memory, in a process of its own."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="the peak of a process's memory is known on Unix only")

#: What is fitted, of which the first thousand points compile the loops.
SETTING = """
import json, resource
import numpy as np
from scipy import sparse
from marginbench.solvers import SMO, BundleClassifier

rng = np.random.default_rng(0)
"""
MEASURE = """
solver.fit(X[:1000], y[:1000])
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
before = peak()
solver.fit(X, y)
megabytes = peak() - before
"""
POINTS = """
y = np.where(rng.random(300_000) < 0.5, 1.0, -1.0)
X = rng.standard_normal((len(y), 54), dtype=np.float32)
X[:, :6] += 1.8 * y[:, None].astype(np.float32)
solver = SMO(gamma=0.01, C=1.0, fit_intercept=True, cache_size=256)
"""
TEXT = """
n, d, per_row = 80_000, 47_236, 76
indices = rng.integers(d, size=(n, per_row), dtype=np.int32)
data = rng.random(n * per_row, dtype=np.float32)
X = sparse.csr_matrix((data, indices.ravel(), np.arange(n + 1, dtype=np.int32) * per_row), (n, d))
X.sum_duplicates()
y = np.where(X[:, :100].sum(axis=1).A1 > np.median(X[:, :100].sum(axis=1).A1), 1.0, -1.0)
solver = BundleClassifier(C=0.01, tol=0.0, max_iter=20)
"""


def measured(problem, values):
    code = SETTING + problem + MEASURE + f"print(json.dumps({{{values}}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_smo_takes_its_cache_and_a_few_copies_of_the_points():
    found = measured(
        POINTS,
        """
        "status": solver.status_, "support": len(solver.support_), "megabytes": megabytes,
        "data": X.nbytes / 2**20,
        "worst": float((1 - y * solver.decision_function(X))[
            np.setdiff1d(np.arange(len(y)), solver.support_)].max()),
        """,
    )
    assert found["status"] == "converged"
    assert 100 < found["support"] < 50_000
    # Points without a coefficient have margin 1, within the tolerance and float32's rounding.
    assert found["worst"] <= 2e-3
    assert found["megabytes"] <= 256 + 3 * found["data"]


@pytest.mark.slow
def test_a_bundle_method_takes_a_small_multiple_of_sparse_text():
    found = measured(
        TEXT,
        """
        "iterations": solver.n_iter_, "megabytes": megabytes,
        "data": (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20,
        "fall": float(solver.trace_.objective[0] - solver.trace_.objective.min()),
        """,
    )
    assert found["iterations"] == 20
    assert found["fall"] > 0.01
    assert found["megabytes"] <= 3 * found["data"]
