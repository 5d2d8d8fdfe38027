"""Large scratch arrays, and where they lie."""

import re
from pathlib import Path

import numpy as np
import pytest

from marginbench.solvers.numeric.memory import scratch

MAPS = Path("/proc/self/smaps")


@pytest.mark.parametrize("shape", [(3, 5), (3000, 700), (0, 4)])
def test_scratch_is_an_array_like_any_other(shape):
    room = scratch(shape, np.float32)
    assert (room.shape, room.dtype, room.flags.writeable) == (shape, np.float32, True)
    room[:] = 2.5
    assert room.sum() == 2.5 * room.size


@pytest.mark.skipif(not MAPS.exists(), reason="this system does not tell what lies where")
def test_large_scratch_is_not_advised_to_take_huge_pages():
    room = scratch((3000, 700), np.float32)
    start = room.__array_interface__["data"][0]
    mapping = re.search(rf"^{start:x}-.*?^VmFlags:([a-z ]*)$", MAPS.read_text(), re.M | re.S)
    if "THPeligible" not in MAPS.read_text():
        pytest.skip("a kernel without huge pages")
    assert mapping
    assert "nh" in mapping[1].split()


def test_too_much_is_a_memory_error():
    with pytest.raises(MemoryError, match="no room for an array of"):
        scratch((2**30, 2**30), np.float32)
