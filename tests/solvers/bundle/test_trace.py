"""What a bundle method notes for the record of its run."""

from __future__ import annotations

import numpy as np

from marginbench.solvers.bundle import BundleTrace


def test_a_trace_is_noted_at_evenly_spread_iterations():
    objective = np.array([1.0, 0.5, 0.6, 0.4])
    lower_bound = np.array([0.0, 0.1, 0.2, 0.3])
    noted = BundleTrace(objective, lower_bound).noted()
    assert [step.n_iter for step in noted] == [0, 1, 2, 3]
    np.testing.assert_allclose([step.gamma for step in noted], [1.0, 0.4, 0.4, 0.1])
    np.testing.assert_allclose([step.epsilon for step in noted], [1.0, 0.4, 0.3, 0.1])

    long = BundleTrace(np.linspace(2.0, 1.0, 100_001), np.linspace(0.0, 1.0, 100_001)).noted()
    iterations = np.array([step.n_iter for step in long])
    assert len(long) <= 201
    assert iterations[0] == 0
    assert iterations[-1] == 100_000
    assert (np.diff(iterations) > 0).all()
    # The ratio of neighbours is 100 000^(1 / 199) = 1.06, but for rounding.
    assert (iterations[2:] <= 1.06 * iterations[1:-1] + 1).all()
    assert long[-1].gamma == 0.0

    assert len(BundleTrace(objective[:1], lower_bound[:1]).noted()) == 1
