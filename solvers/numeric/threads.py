"""Compiled loops over parts of an array, in as many threads as numba may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

from numba import config, get_num_threads


def in_parts(
    function: Callable[..., Any], length: int, *arguments: Any, smallest: int = 4096
) -> None:
    """Call ``function(*arguments, start, stop)`` for parts of ``range(length)``, side by side.

    The number of threads is numba's (``NUMBA_NUM_THREADS``, ``numba.set_num_threads``). Which
    element a part holds must not matter to the result.
    """
    parts = length // smallest
    # To ask numba takes longer than a short loop.
    parts = min(get_num_threads(), parts) if parts > 1 else 1
    if parts == 1:
        function(*arguments, 0, length)
        return
    bounds = [length * part // parts for part in range(parts + 1)]
    pool = _pool()
    running = [
        pool.submit(function, *arguments, start, stop) for start, stop in pairwise(bounds[1:])
    ]
    function(*arguments, bounds[0], bounds[1])
    for part in running:
        part.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads beside the calling one, as many as numba may use; each starts when needed."""
    return ThreadPoolExecutor(config.NUMBA_NUM_THREADS - 1, thread_name_prefix="marginbench")


# A forked process has the pool but none of its threads, and would wait for them forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
