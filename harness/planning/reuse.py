"""Whether a recorded run is run again."""

from __future__ import annotations

import json
import math

from ..results.records import EXPECTED_STATUSES, RecordBase
from ..study.model import Budget
from .plan import Kind

_TIMEOUTS = frozenset(
    {
        *("timeout", "cpu_timeout", "compile_timeout", "data_timeout", "evaluation_timeout"),
        "total_timeout",
    }
)
# Where a budget does not have it: there was none before, or the limit is not known.
_ABSENT = {"cpu_timeout": math.inf}


def wider_limits(kind: Kind, budget: Budget, record: RecordBase) -> list[str]:
    """Names of the limits that may have cut a run short and that the budget has raised."""
    limits = kind.limits_hit(record)
    if record.status == "timeout":
        limits |= _TIMEOUTS
    elif record.status == "memory":
        limits |= {"memory"}
    before: dict[str, float] = json.loads(record.budget)
    now = budget.limits()
    wider = {
        name
        for name in limits
        if now.get(name, math.inf) > before.get(name, _ABSENT.get(name, 0.0))
    }
    if budget.total_timeout is None and len(wider) > 1:
        # It follows from the others.
        wider.discard("total_timeout")
    return sorted(wider)


def is_repeated(kind: Kind, budget: Budget, record: RecordBase, *, retry_failed: bool) -> bool:
    """Whether a recorded run is run again: it failed, or its limit is wider now."""
    if retry_failed and record.status not in EXPECTED_STATUSES:
        return True
    return bool(wider_limits(kind, budget, record))
