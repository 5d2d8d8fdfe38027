"""Times of code from outside the project: its own clocks, held against the parent's."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..execution.jobs import Stamp

# By how much clocks inside a process may fall behind those outside: a part of the time; seconds for
# sending each state, wall-clock and CPU, and for each byte of it; on a busy machine also the delays
# that the system makes meanwhile. Work that hides behind delays costs CPU time all the same.
_PART = 0.1
_WALL_EACH, _CPU_EACH, _PER_BYTE = 0.004, 0.001, 1e-8
# From where on the difference is worth a word: a factor, and seconds.
_FACTOR, _WORTH = 2.0, 0.1


def agreed_times(claimed: Sequence[Stamp], seen: Sequence[Stamp]) -> tuple[list[Stamp], str]:
    """The times that hold for the states of a run.

    Parameters
    ----------
    claimed : sequence of Stamp
        By the clocks of the process that ran the solver.
    seen : sequence of Stamp
        Upper bounds from outside: the parent's clock, and the system's account of CPU time.

    Returns
    -------
    times : list of Stamp
        Those claimed if they explain what was seen, up to the cost of sending the states; else
        those seen, for all states.
    note : str
        A line for the user if the two are far apart.
    """
    pairs = list(zip(claimed, seen, strict=True))
    explained = all(_explains(own, bound, k) for k, (own, bound) in enumerate(pairs, start=1))
    if explained and _grows(claimed):
        bounded = [
            Stamp(min(own.wall_s, bound.wall_s), min(own.cpu_s, bound.cpu_s))
            for own, bound in pairs
        ]
        return bounded, ""
    last, bound = pairs[-1]
    apart = max(bound.wall_s - _FACTOR * last.wall_s, bound.cpu_s - _FACTOR * last.cpu_s)
    if apart <= _WORTH:
        return list(seen), ""
    return list(seen), (
        f"the solver's own clocks say {last.wall_s:.3g} s and {last.cpu_s:.3g} CPU seconds; "
        f"recorded is what passed outside, {bound.wall_s:.3g} s and {bound.cpu_s:.3g} CPU seconds"
    )


def _explains(own: Stamp, bound: Stamp, states: int) -> bool:
    """Whether the clocks inside leave no more open than sending the states can have taken."""
    sending = _PER_BYTE * bound.sent
    wall = _PART * bound.wall_s + _WALL_EACH * (states + 1) + sending + bound.delay_s
    cpu = _PART * bound.cpu_s + _CPU_EACH * (states + 1) + sending
    return bound.wall_s - own.wall_s <= wall and bound.cpu_s - own.cpu_s <= cpu


def _grows(times: Sequence[Stamp]) -> bool:
    return all(
        before.wall_s <= after.wall_s and before.cpu_s <= after.cpu_s
        for before, after in itertools.pairwise(times)
    )
