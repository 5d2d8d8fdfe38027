import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from marginbench.solvers.numeric.extremes import largest, smallest


@pytest.mark.parametrize("width", [32, 64])
@settings(deadline=None)
@given(data=st.data())
def test_positions_are_those_that_numpy_finds(width, data):
    floats = st.floats(width=width, allow_nan=False).filter(lambda value: str(value) != "-0.0")
    few = st.one_of(floats, st.sampled_from([1.0, -1.0]))
    values = np.array(data.draw(st.lists(few, min_size=1, max_size=600)), f"f{width // 8}")
    assert largest(values) == values.argmax()
    assert smallest(values) == values.argmin()
