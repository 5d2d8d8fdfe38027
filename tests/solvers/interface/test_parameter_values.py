"""Parameters out of range: one line that names the parameter and its value."""

import numpy as np
import pytest

from marginbench.solvers import registry

#: For each parameter that a solver declares, values that it refuses.
BAD_VALUES = {
    "C": [0.0, -1.0, np.nan, np.inf, None, "1", True],
    "nu": [-0.1, np.nan, np.inf, None, "1"],
    "ties": ["leq", None],
    "sampling": ["both", None],
    "burn_in": [-1, 2.5],
    "averaging": ["half", None],
    "validation_fraction": [-0.5, 1.0, None],
    "check_every": [0.0, None],
    "drift_check": [0, 2.5],
    "strategy": ["x", None],
    "pairing": ["class", None],
    "mu": [0.0, 1.5],
    "pick": ["best", None],
    "start": ["middle", None],
    "mu0": [0, -1, "m"],
    "factor": [0.5, 1.0],
    "max_rounds": [0, 2.5],
    "max_inner": [0, 2.5],
    "gram_size": [-1, None],
    "stop": ["never", None],
    "history": [0.0, 0.5, "all"],
    "budget": [0, -1, 2.5, None, True],
    "maintenance": ["forget", None, 7],
    "record_objectives": ["yes", None],
    "norm_bound": [0.0, -1.0, np.nan, np.inf, None],
    "target_margin": [-0.1, np.nan, np.inf, None],
    "rate": [0.0, -1.0, np.nan, np.inf, "fast"],
    "batch_size": [0, -1, 2.5, "all", 41],
    "n_pairs": [0, -1, 2.5, None],
    "n_samples": [0, -1, 2.5, None],
    "n_components": [0, 2.5, None],
    "selection": ["greedy", None],
    "patience": [0, 1.5],
    "psi_scale": [0.0, -1.0, None],
    "constant_feature": [-1.0, np.inf, None],
    "oracle": ["sampled", None],
    "order": ["cyclic", None],
    "output": ["sampled", None],
    "stopping": ["never", None],
    "shrinking": ["yes", None],
    "projection": ["yes", None],
    "loss": ["hing", "least_squares", None],
    "regularizer": ["l3", None],
    "inner": ["newton", "lp", None],
    "offset": ["free", None],
    "primal_search": ["yes", None],
    "max_idle": [0, 2.5, "all"],
    "class_weight": ["uniform", 3],
    "tol": [-1e-3, np.nan, np.inf, None, "small"],
    "max_epochs": [0, -1, 2.5, "ten", True],
    "max_iter": [0, -1, 2.5, "ten", True],
    "cache_size": [-1.0, np.nan, np.inf, None, "1GB"],
    "dtype": ["float16", "int64", "flaot32", None],
    "gamma": [0.0, -1.0, np.nan, np.inf, None, "scal"],
    "random_state": ["seed", -1, 1.5],
    "kernel": ["rbff", None, 7],
}
#: The solvers that declare each parameter.
DECLARED_BY = {
    parameter: [
        solver for _, solver in sorted(registry().items()) if parameter in solver().get_params()
    ]
    for parameter in BAD_VALUES
}


@pytest.mark.parametrize("parameter", BAD_VALUES)
def test_a_parameter_out_of_range_is_named_with_its_value(points, parameter):
    """Every value in the first solver that declares the parameter, one in each of the others."""
    values = BAD_VALUES[parameter]
    first, *others = DECLARED_BY[parameter]
    for solver, value in [(first, bad) for bad in values] + [
        (other, values[0]) for other in others
    ]:
        with pytest.raises(ValueError, match=parameter) as failure:
            solver(**{parameter: value}).fit(*points)
        assert repr(value) in str(failure.value), solver
        assert "\n" not in str(failure.value)
