"""The checks of parameters: what they let pass, and what they name with its value and range."""

import math

import numpy as np
import pytest

from marginbench.solvers.numeric import validation

NO_NUMBERS = [-1e-300, math.inf, math.nan, 10**400, True, "1", None]


@pytest.mark.parametrize(
    ("check", "given", "passes", "refused", "words"),
    [
        ("positive", {}, [1e-300, 10**30, np.float32(2)], [0, *NO_NUMBERS], "a number > 0"),
        ("positive", {"zero": True}, [0, 0.0, np.int64(2)], NO_NUMBERS, "a number >= 0"),
        ("whole", {"at_least": 2}, [2, np.int64(3)], [1, 2.0, True], "a whole number >= 2"),
        ("one_of", {"allowed": ("a", "b")}, ["a", "b"], ["c", None], "one of a, b"),
        ("flag", {}, [True, False, np.False_], [0, 1, "yes"], "True or False"),
    ],
)
def test_a_value_passes_or_is_named_with_its_range(check, given, passes, refused, words):
    check = getattr(validation, f"check_{check}")
    for value in passes:
        check("size", value, **given)
    for value in refused:
        with pytest.raises(ValueError, match=r"^size must be") as failure:
            check("size", value, **given)
        assert str(failure.value) == f"size must be {words}, got {value!r}"
