"""Whether a recorded run is run again."""

from __future__ import annotations

import json
import math

from ..results.journal import Entry
from ..results.records import EXPECTED_STATUSES, RecordBase
from ..study.model import Budget
from .plan import Kind

_TIMEOUTS = frozenset(
    {
        *("timeout", "cpu_timeout", "compile_timeout", "data_timeout", "evaluation_timeout"),
        "total_timeout",
    }
)


def limits_hit(kind: Kind, record: RecordBase | Entry) -> frozenset[str]:
    """Names of the limits that may have cut a run short."""
    if record.status == "timeout":
        return kind.limits_hit(record) | _TIMEOUTS
    if record.status == "memory":
        return kind.limits_hit(record) | {"memory"}
    return kind.limits_hit(record)


def wider_limits(kind: Kind, budget: Budget, record: RecordBase | Entry) -> list[str]:
    """Names of the limits that may have cut a run short and that the budget has raised."""
    limits = limits_hit(kind, record)
    if not limits:
        return []
    # A limit that is in no budget: there was none then.
    before: dict[str, float] = json.loads(record.budget)
    now = budget.limits()
    wider = {
        name
        for name in limits
        if now.get(name, math.inf) > before.get(name, math.inf if name == "cpu_timeout" else 0.0)
    }
    if budget.total_timeout is None and len(wider) > 1:
        # It follows from the others.
        wider.discard("total_timeout")
    return sorted(wider)


def is_repeated(
    kind: Kind, budget: Budget, record: RecordBase | Entry, *, retry_failed: bool
) -> bool:
    """Whether a recorded run is run again: it failed, or its limit is wider now."""
    if retry_failed and record.status not in EXPECTED_STATUSES:
        return True
    return bool(wider_limits(kind, budget, record))
