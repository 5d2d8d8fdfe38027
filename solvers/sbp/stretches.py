"""Iterations of SBP whose kernel rows are stored, in one compiled loop."""

from __future__ import annotations

import numpy as np

from ..numeric.compiling import njit
from .draws import cover, first_covered
from .state import add_draw, move_one, move_two


@njit(error_model="numpy")
def advance(path, bound, basins, candidates, taken, rows, slots, radius, drawn):
    """Iterate with bias until a row is missing, or candidates run out, or ``drawn`` is full."""
    heights, positive = path.responses, basins.positive
    after = np.empty_like(taken)
    for done in range(len(drawn)):
        covered = cover(basins, heights)
        for s in range(len(candidates)):
            at = first_covered(candidates[s], taken[s], heights, positive, *covered)
            if at == len(candidates[s]) or slots[candidates[s][at]] < 0:
                return done
            drawn[done, s] = candidates[s][at]
            after[s] = at + 1
        taken[:] = after
        step = 1.0 / (radius * np.sqrt(path.progress.n_iter + 1))
        i = drawn[done, 0]
        row = rows[slots[i]]
        if len(candidates) == 1:
            move_one(path, i, row, step)
            add_draw(bound, i, row)
        else:
            j = drawn[done, 1]
            other = rows[slots[j]]
            move_two(path, i, j, row, other, step)
            add_draw(bound, i, row)
            add_draw(bound, j, other)
    return len(drawn)
