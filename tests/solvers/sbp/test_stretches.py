"""Compiled stretches of iterations: nothing but the time may tell."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.solvers import SBP, KernelOracle


@pytest.mark.parametrize(
    ("sampling", "averaging", "n", "dtype", "cache_size"),
    [
        ("pair", "suffix", 1100, "float32", 0.5),
        ("single", "all", 300, "float64", 9.0),
        pytest.param("pair", "all", 1100, "float32", 0.0, marks=pytest.mark.slow),
        pytest.param("single", "suffix", 1100, "float32", 0.5, marks=pytest.mark.slow),
    ],
)
def test_stretches_are_iterations(
    sampling, averaging, n, dtype, cache_size, monkeypatch, recording_monitor
):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.4, 1, -1)
    X = (rng.standard_normal((n, 500)) + 0.1 * y[:, None]).astype(np.float32)
    solver = SBP(nu=0.02, gamma=0.001, fit_intercept=True, sampling=sampling, averaging=averaging)
    solver.set_params(dtype=dtype, cache_size=cache_size, burn_in=7, random_state=1, max_epochs=2)
    solver.set_params(drift_check=170)
    (fast, seen), (plain, expected) = (
        (SBP(**solver.get_params()).fit(X, y, monitor=monitor), monitor)
        for monitor in turns(monkeypatch, recording_monitor, every=60.5 * n)
    )
    np.testing.assert_array_equal(fast.dual_coef_, plain.dual_coef_)
    assert fast.intercept_ == plain.intercept_
    assert fast.margin_ == plain.margin_
    assert fast.certificate_ == plain.certificate_
    # Rows are asked for, computed and forgotten in the same order.
    assert fast.counters_ == plain.counters_
    assert seen.iterations == expected.iterations
    assert seen.evals == expected.evals
    # After a stretch it is asked once.
    assert len(seen.evals_asked) < len(expected.evals_asked)


def turns(monkeypatch, recording_monitor, every):
    """A monitor for a run with stretches, and one for a run without."""
    yield recording_monitor(every=every)
    monkeypatch.setattr(KernelOracle, "stored", None)
    yield recording_monitor(every=every)
