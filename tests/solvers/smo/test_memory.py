"""Half a million points in a bounded memory, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="the peak of a process's memory is known on Unix only")

SCRIPT = """
import json, resource
import numpy as np
from marginbench.solvers import SMO

rng = np.random.default_rng(0)
y = np.where(rng.random(500_000) < 0.5, 1.0, -1.0)
X = rng.standard_normal((len(y), 54), dtype=np.float32)
X[:, :6] += 1.8 * y[:, None].astype(np.float32)
solver = SMO(gamma=0.01, C=1.0, fit_intercept=True, cache_size=CACHE)
solver.fit(X[:1000], y[:1000])
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
before = peak()
solver.fit(X, y)
F = y - solver.decision_function(X)
print(json.dumps({
    "status": solver.status_, "support": len(solver.support_), "megabytes": peak() - before,
    "data": X.nbytes / 2**20, "worst": float((y * F)[np.setdiff1d(np.arange(len(y)),
    solver.support_)].max()),
}))
"""


@pytest.mark.slow
def test_memory_is_the_cache_and_a_few_copies_of_the_data():
    cache_size = 256
    script = SCRIPT.replace("CACHE", str(cache_size))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == "converged"
    assert 100 < found["support"] < 50_000
    # Points without a coefficient have margin 1, within the tolerance and float32's rounding.
    assert found["worst"] <= 2e-3
    assert found["megabytes"] <= cache_size + 3 * found["data"]
