"""Parts of an array, side by side."""

import multiprocessing
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from marginbench.solvers.numeric.threads import in_parts

needs_threads = pytest.mark.skipif(numba.get_num_threads() < 2, reason="one thread needs no pool")


@numba.njit(nogil=True)
def _add_place(out, start, stop):
    for t in range(start, stop):
        out[t] += t


def _visits_all(length):
    out = np.zeros(length)
    in_parts(_add_place, length, out)
    return bool((out == np.arange(length)).all())


@pytest.mark.parametrize("length", [0, 1, 4096, 8192, 100_003])
def test_every_element_is_visited_once(length):
    assert _visits_all(length)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows takes long to start a process")
def test_work_of_every_length_shares_the_threads():
    # As on a machine of eight cores.
    code = (
        "import threading, numba, numpy as np\n"
        "from marginbench.solvers.numeric.threads import in_parts\n"
        "def visit(out, start, stop): out[start:stop] += 1\n"
        "for length in range(4096, 16 * 4096, 4096):\n"
        "    out = np.zeros(length)\n"
        "    in_parts(visit, length, out)\n"
        "    assert (out == 1).all()\n"
        "print(threading.active_count())\n"
    )
    environment = {**os.environ, "NUMBA_NUM_THREADS": "8"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert int(done.stdout) <= 8, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
@needs_threads
def test_a_forked_process_has_a_pool_of_its_own():
    assert _visits_all(100_000)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_visits_all, (100_000,)).get(timeout=30)


@needs_threads
def test_what_fails_in_a_part_is_raised():
    def fails_late(out, start, stop):
        if start > 0:
            raise RuntimeError("late")

    with pytest.raises(RuntimeError, match="late"):
        in_parts(fails_late, 100_000, np.zeros(1))
