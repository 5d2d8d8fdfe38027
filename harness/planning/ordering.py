"""The order in which the runs of a study are done."""

from __future__ import annotations

import random
from collections.abc import Sequence

from .kinds import Run


def in_rounds(runs: Sequence[Run], name: str) -> list[Run]:
    """The runs in random order, but one of each pair of task and solver first.

    Neighbours in time must not be neighbours in the plan: machines drift. With one run of each pair
    done, the time that the others need is known.

    Parameters
    ----------
    runs : sequence of Run
    name : str
        Of the study; it decides the order.
    """
    shuffled = list(runs)
    random.Random(name).shuffle(shuffled)
    first: dict[tuple[str, str], Run] = {}
    for run in shuffled:
        first.setdefault((run.task, run.solver), run)
    keys = {run.key for run in first.values()}
    return [*first.values(), *(run for run in shuffled if run.key not in keys)]
