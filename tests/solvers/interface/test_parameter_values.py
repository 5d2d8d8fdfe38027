"""Parameters out of range: one line that names the parameter and its value."""

import numpy as np
import pytest

from marginbench.solvers import registry

POSITIVE = [0.0, -1.0, np.nan, np.inf, None]
NOT_NEGATIVE = [-1.0, np.nan, np.inf, None]
WHOLE = [0, -1, 2.5]
CHOICE = ["other", None, 7]
YES_OR_NO = ["yes", None]
#: For each parameter that a solver declares, values that it refuses.
BAD_VALUES = {
    "norm_bound": POSITIVE,
    **dict.fromkeys(["nu", "target_margin"], NOT_NEGATIVE),
    **dict.fromkeys(["n_pairs", "n_samples", "n_components"], (*WHOLE, None)),
    **dict.fromkeys(["max_rounds", "max_inner", "patience"], WHOLE),
    **dict.fromkeys(["max_epochs", "max_iter", "budget"], (*WHOLE, "ten", True)),
    **dict.fromkeys(["sampling", "schedule", "pairing", "pick"], CHOICE),
    **dict.fromkeys(["start", "stop", "maintenance", "selection", "oracle", "order"], CHOICE),
    **dict.fromkeys(["output", "stopping", "regularizer", "inner", "offset", "kernel"], CHOICE),
    **dict.fromkeys(["record_objectives", "shrinking", "projection"], YES_OR_NO),
    "primal_search": YES_OR_NO,
    "C": [*POSITIVE, "1", True],
    "gamma": [*POSITIVE, "scal"],
    "rate": [*POSITIVE[:-1], "fast"],
    "tol": [*NOT_NEGATIVE, "small"],
    "cache_size": [*NOT_NEGATIVE, "1GB"],
    "dtype": ["float16", "int64", "flaot32", None],
    "random_state": ["seed", -1, 1.5],
    "loss": ["hing", "least_squares", None],
    "class_weight": ["uniform", 3],
    "mu": [0.0, 1.5],
    "mu0": [0, -1, "m"],
    "factor": [0.5, 1.0],
    "gram_size": [-1, None],
    "history": [0.0, 0.5, "all"],
    "batch_size": [*WHOLE, "all", 41],
    "psi_scale": [0.0, -1.0, None],
    "working_set": CHOICE,
    "constant_feature": [-1.0, np.inf, None],
    "max_idle": [0, 2.5, "all"],
}


@pytest.mark.parametrize("parameter", BAD_VALUES)
def test_a_parameter_out_of_range_is_named_with_its_value(points, parameter):
    """Every value in the first solver that declares the parameter, one in each of the others."""
    values = BAD_VALUES[parameter]
    declared = [cls for _, cls in sorted(registry().items()) if parameter in cls().get_params()]
    tried = [(declared[0], bad) for bad in values] + [(cls, values[0]) for cls in declared[1:]]
    for solver, value in tried:
        with pytest.raises(ValueError, match=parameter) as failure:
            solver(**{parameter: value}).fit(*points)
        assert repr(value) in str(failure.value), solver
        assert "\n" not in str(failure.value)
