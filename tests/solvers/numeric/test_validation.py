"""The checks that parameters share: what is in range passes, and nothing else does."""

from __future__ import annotations

import re

import numpy as np
import pytest

from marginbench.solvers.numeric.validation import (
    check_flag,
    check_iteration_limit,
    check_one_of,
    check_positive,
    check_whole,
)


@pytest.mark.parametrize(
    ("check", "good", "bad", "message"),
    [
        (
            lambda value: check_positive("C", value),
            [1e-300, 1, np.float32(2.0), np.int64(3)],
            [0, 0.0, -1, np.nan, np.inf, True, "1", None],
            "C must be a number > 0, got ",
        ),
        (
            lambda value: check_positive("tol", value, zero=True),
            [0, 0.0, 1e-3],
            [-1e-300, np.nan, np.inf, False, None],
            "tol must be a number >= 0, got ",
        ),
        (
            lambda value: check_whole("budget", value, at_least=2),
            [2, np.int32(3)],
            [1, 2.0, True, "2", None],
            "budget must be a whole number >= 2, got ",
        ),
        (
            lambda value: check_one_of("order", value, ("random", "uniform")),
            ["random", "uniform"],
            ["Random", "", None],
            "order must be one of random, uniform, got ",
        ),
        (
            lambda value: check_flag("shrinking", value),
            [True, False, np.True_],
            [1, 0, "yes", None],
            "shrinking must be True or False, got ",
        ),
        (
            check_iteration_limit,
            [1, 7],
            [0, -1, 1.5, True, None],
            "max_epochs must be a whole number >= 1, got ",
        ),
    ],
    ids=["positive", "non-negative", "whole", "one of", "flag", "epochs"],
)
def test_a_check_takes_what_is_in_range_and_nothing_else(check, good, bad, message):
    for value in good:
        check(value)
    for value in bad:
        with pytest.raises(ValueError, match=re.escape(message + repr(value))):
            check(value)
