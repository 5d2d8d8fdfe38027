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
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
def fit(solver, X, y):
    solver.fit(X[:1000], y[:1000])
    before = peak()
    solver.fit(X, y)
    return peak() - before
"""
POINTS = """
y = np.where(rng.random(300_000) < 0.5, 1.0, -1.0)
X = rng.standard_normal((len(y), 54), dtype=np.float32)
X[:, :6] += 1.8 * y[:, None].astype(np.float32)
solver = SMO(gamma=0.01, C=1.0, fit_intercept=True, cache_size=256)
megabytes = fit(solver, X, y)
others = np.setdiff1d(np.arange(len(y)), solver.support_)
worst = float((1 - y * solver.decision_function(X))[others].max())
print(json.dumps([megabytes, X.nbytes / 2**20, solver.status_, len(solver.support_), worst]))
"""
TEXT = """
n, d, per_row = 80_000, 47_236, 76
indices = rng.integers(d, size=(n, per_row), dtype=np.int32)
data = rng.random(n * per_row, dtype=np.float32)
X = sparse.csr_matrix((data, indices.ravel(), np.arange(n + 1, dtype=np.int32) * per_row), (n, d))
X.sum_duplicates()
weight = X[:, :100].sum(axis=1).A1
solver = BundleClassifier(C=0.01, tol=0.0, max_iter=20)
megabytes = fit(solver, X, np.where(weight > np.median(weight), 1.0, -1.0))
size, found = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes, solver.trace_.objective
print(json.dumps([megabytes, size / 2**20, solver.n_iter_, float(found[0] - found.min())]))
"""


def printed(code):
    done = subprocess.run([sys.executable, "-c", SETTING + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_smo_takes_its_cache_and_a_few_copies_of_the_points():
    megabytes, size, status, n_support, worst = printed(POINTS)
    assert status == "converged"
    assert 100 < n_support < 50_000
    # Points without a coefficient have margin 1, within the tolerance and float32's rounding.
    assert worst <= 2e-3
    assert megabytes <= 256 + 3 * size


@pytest.mark.slow
def test_a_bundle_method_takes_a_small_multiple_of_sparse_text():
    megabytes, size, iterations, fall = printed(TEXT)
    assert iterations == 20
    assert fall > 0.01
    assert megabytes <= 3 * size
