"""Text of a fifth of RCV1's size in bounded memory, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="the peak of a process's memory is known on Unix only")

SCRIPT = """
import json, resource
import numpy as np
from scipy import sparse
from marginbench.solvers import BundleClassifier

rng = np.random.default_rng(0)
n, d, per_row = 160_000, 47_236, 76
indices = rng.integers(d, size=(n, per_row), dtype=np.int32)
data = rng.random(n * per_row, dtype=np.float32)
X = sparse.csr_matrix((data, indices.ravel(), np.arange(n + 1, dtype=np.int32) * per_row), (n, d))
X.sum_duplicates()
y = np.where(X[:, :100].sum(axis=1).A1 > np.median(X[:, :100].sum(axis=1).A1), 1.0, -1.0)
solver = BundleClassifier(C=0.01, tol=0.0, max_iter=30)
solver.fit(X[:1000], y[:1000])
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
solver.fit(X, y)
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
print(json.dumps({
    "iterations": solver.n_iter_, "bytes": (peak() - before) * 1024, "data": size,
    "fall": float(solver.trace_.objective[0] - solver.trace_.objective.min()),
}))
"""


@pytest.mark.slow
def test_memory_is_a_small_multiple_of_the_data():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["iterations"] == 30
    assert found["fall"] > 0.01
    assert found["bytes"] <= 3 * found["data"]
