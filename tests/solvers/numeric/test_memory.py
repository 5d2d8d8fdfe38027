"""Large scratch arrays, and where they lie."""

import re
from pathlib import Path

import numpy as np
import pytest

from marginbench.solvers.numeric.matrices import scratch

MAPS = Path("/proc/self/smaps")


def test_scratch_is_an_array_like_any_other():
    for shape in ((3, 5), (3000, 700), (0, 4)):
        room = scratch(shape, np.float32)
        assert (room.shape, room.dtype) == (shape, np.float32)
        room[:] = 2.5
        assert room.sum() == 2.5 * room.size
    with pytest.raises(MemoryError, match="no room for an array of"):
        scratch((2**30, 2**30), np.float32)


@pytest.mark.skipif(not MAPS.exists(), reason="this system does not tell what lies where")
def test_large_scratch_is_not_advised_to_take_huge_pages():
    room = scratch((3000, 700), np.float32)
    start = room.__array_interface__["data"][0]
    maps = MAPS.read_text()
    if "THPeligible" not in maps:
        pytest.skip("a kernel without huge pages")
    flags = re.search(rf"^{start:x}-.*?^VmFlags:([a-z ]*)$", maps, re.M | re.S)[1]
    assert "nh" in flags.split()
