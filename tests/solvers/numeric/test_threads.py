"""Parts of an array, side by side."""

import multiprocessing
import sys

import numba
import numpy as np
import pytest

from marginbench.solvers.numeric import threads
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


def test_every_element_is_visited_once_by_few_threads(monkeypatch):
    # As on a machine of eight cores.
    monkeypatch.setattr(threads, "get_num_threads", lambda: 8)
    monkeypatch.setattr(threads.config, "NUMBA_NUM_THREADS", 8)
    threads._pool.cache_clear()
    assert all(map(_visits_all, (0, 1, *range(4096, 16 * 4096, 4096), 100_003)))
    pool = threads._pool()
    assert len(pool._threads) < 8
    threads._pool.cache_clear()
    pool.shutdown()


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
