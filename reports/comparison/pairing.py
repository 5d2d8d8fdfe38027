"""Pair the runs of two sides, A and B, by task, solver and seed, on the same problem.

No run is dropped: each is compared, or its outcome says why not.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from ..frames import json_object, records

KEYS = ["task", "solver", "seed"]

#: Outcomes of a pair of runs. Only the first one has numbers.
COMPARED = "compared"
OTHER_PROBLEM = "problem differs"
NEW, GONE = "new", "gone"
FAILED_A, FAILED_B, FAILED_BOTH = "failed in A", "failed in B", "failed in both"
MISSING_A, MISSING_B, MISSING_BOTH = "no record in A", "no record in B", "no record in both"
#: All of them, in the order of tables.
OUTCOMES = (
    *(COMPARED, FAILED_B, FAILED_A, FAILED_BOTH, OTHER_PROBLEM, MISSING_B, MISSING_A, MISSING_BOTH),
    *(GONE, NEW, "skipped in B", "skipped in A", "skipped in both"),
)
_STATES = {"failed": "failed", "missing": "no record", "skipped": "skipped"}

#: What determines the problem of a run, besides its reference optimum, and what it is called.
_PROBLEM = {
    "fingerprint": "data",
    "kernel": "kernel",
    "C": "C",
    "fit_intercept": "bias",
    "problem": "generated problem",
}
#: How far, relatively, two sums of the same optimum may differ.
_ROUNDING = 1e-12
_REFERENCE = ["reference_primal", "reference_gap", "reference_hash"]
_COLUMNS = [
    *(*KEYS, "outcome", "why", "status_a", "status_b", "seed_a", "seed_b", "same_reference"),
]


def paired(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Every run of either side with what became of its counterpart.

    Parameters
    ----------
    before, after : DataFrame
        The runs of A and of B.

    Returns
    -------
    DataFrame
        Columns task, solver, seed, outcome, why (in words; empty if there is nothing to say),
        status_a, status_b (empty where the run is not planned), seed_a and seed_b (of the records
        that are compared) and same_reference (whether costs to targets and suboptimality are to
        the same optimum). In the order of A, what is new last.
    """
    sides = [
        {tuple(row[name] for name in KEYS): row for row in records(s)} for s in (before, after)
    ]
    rows = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        a, b = (side.get(key) for side in sides)
        outcome, why = _outcome(a, b)
        statuses = (a["status"] if a else "", b["status"] if b else "")
        seeds = [row.get("run", row["seed"]) if row else -1 for row in (a, b)]
        same = bool(a and b and all(_plain(a.get(n)) == _plain(b.get(n)) for n in _REFERENCE))
        rows.append((*key, outcome, why, *statuses, *seeds, same))
    return pd.DataFrame(rows, columns=_COLUMNS)


def spread_single_runs(
    before: pd.DataFrame, after: pd.DataFrame, deterministic: set[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Let the only run of a deterministic solver stand beside each seed of the other side.

    ``deterministic`` names the sides, of {"A", "B"}, whose solver draws nothing: its one run is
    that of every seed. The column ``run`` keeps the seed that was run.
    """
    before, after = before.assign(run=before["seed"]), after.assign(run=after["seed"])
    if "A" in deterministic:
        before = _spread(before, after)
    if "B" in deterministic:
        after = _spread(after, before)
    return before, after


def _spread(single: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The rows of each task and solver with one run, for all seeds of the other side."""
    seeds = {key: list(group["seed"]) for key, group in other.groupby(["task", "solver"])}
    rows = []
    for key, group in single.groupby(["task", "solver"], sort=False):
        wanted = seeds.get(key, [])
        if len(group) == 1 and len(wanted) > 1:
            group = pd.concat([group.assign(seed=seed) for seed in wanted])
        rows.append(group)
    return pd.concat(rows, ignore_index=True) if rows else single


def _outcome(before: dict[str, Any] | None, after: dict[str, Any] | None) -> tuple[str, str]:
    states = _state(before), _state(after)
    for state, words in _STATES.items():
        hits = [each == state for each in states]
        if state != "failed" and "absent" in states:
            break
        if any(hits):
            side = "both" if all(hits) else "AB"[hits.index(True)]
            return f"{words} in {side}", _reason(before, after, hits)
    if before is None or after is None:
        return (NEW, "") if before is None else (GONE, "")
    differing = _differing(before, after)
    return (OTHER_PROBLEM, ", ".join(differing)) if differing else (COMPARED, "")


def _state(row: dict[str, Any] | None) -> str:
    """How a run ended, as far as comparing it goes; a damaged record tells nothing of its run."""
    if row is None:
        return "absent"
    if row["ok"]:
        return "ok"
    status = str(row["status"])
    return {"skipped": "skipped", "missing": "missing", "damaged": "missing"}.get(status, "failed")


def _reason(before: dict[str, Any] | None, after: dict[str, Any] | None, hits: list[bool]) -> str:
    """The status and the reason of the sides that have no result."""
    parts = {
        side: f"{row['status']}: {row['reason']}" if row["reason"] else str(row["status"])
        for side, row, hit in zip("AB", (before, after), hits, strict=True)
        if row is not None and hit
    }
    if len(set(parts.values())) == 1:
        return next(iter(parts.values()))
    return "; ".join(f"{side} {words}" for side, words in parts.items())


def _differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What of the problem differs, in words."""
    found = [
        words
        for column, words in _PROBLEM.items()
        if column in before and _plain(before[column]) != _plain(after[column])
    ]
    if not found and "reference_primal" in before and _disjoint(before, after):
        found.append("reference optimum")
    return found


def _plain(value: Any) -> Any:
    """A value of a record to compare: JSON by its content, an unknown number as None."""
    if isinstance(value, str) and value.startswith("{"):
        return json_object(value)
    return None if pd.isna(value) else value


def _disjoint(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether the certified intervals of the two optima exclude each other."""
    a, b = ([row[name] for name in _REFERENCE[:2]] for row in (before, after))
    if pd.isna([*a, *b]).any():
        return False
    # The gap of an optimum that is exact is all rounding, and may be negative.
    lower = [primal - max(gap, _ROUNDING * abs(primal)) for primal, gap in (a, b)]
    return bool(a[0] < lower[1] or b[0] < lower[0])
