"""Pair the runs of two sides, A and B, by task, solver and seed, on the same problem.

Pure functions of the ``runs`` of :class:`marginbench.reports.results.Results`. No run is dropped:
each is compared, or its outcome says why not.
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
SKIPPED_A, SKIPPED_B, SKIPPED_BOTH = "skipped in A", "skipped in B", "skipped in both"
MISSING_A, MISSING_B, MISSING_BOTH = "no record in A", "no record in B", "no record in both"

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
_ONE_SIDED = {
    "failed": (FAILED_A, FAILED_B, FAILED_BOTH),
    "missing": (MISSING_A, MISSING_B, MISSING_BOTH),
    "skipped": (SKIPPED_A, SKIPPED_B, SKIPPED_BOTH),
}


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
    rows = {_key(row): row for row in records(before)}
    others = {_key(row): row for row in records(after)}
    found = [_pair(key, rows.get(key), others.get(key)) for key in dict.fromkeys([*rows, *others])]
    return pd.DataFrame(found, columns=_COLUMNS)


_COLUMNS = [
    *(*KEYS, "outcome", "why", "status_a", "status_b", "seed_a", "seed_b", "same_reference"),
]


def spread_single_runs(
    before: pd.DataFrame, after: pd.DataFrame, deterministic: set[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Let the only run of a deterministic solver stand beside each seed of the other side.

    Such a solver draws nothing and runs once, so that its run is the one of every seed. The column
    ``run`` keeps the seed that was run.

    Parameters
    ----------
    before, after : DataFrame
        With the same solver labels.
    deterministic : {"A", "B"}
        The sides whose solver draws nothing.

    Returns
    -------
    before, after : DataFrame
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


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEYS)


def _pair(
    key: tuple[Any, ...], before: dict[str, Any] | None, after: dict[str, Any] | None
) -> dict[str, Any]:
    outcome, why = _outcome(before, after)
    return dict(zip(KEYS, key, strict=True)) | {
        "outcome": outcome,
        "why": why,
        "status_a": before["status"] if before else "",
        "status_b": after["status"] if after else "",
        "seed_a": before.get("run", before["seed"]) if before else -1,
        "seed_b": after.get("run", after["seed"]) if after else -1,
        "same_reference": bool(before and after and _same_reference(before, after)),
    }


def _outcome(before: dict[str, Any] | None, after: dict[str, Any] | None) -> tuple[str, str]:
    states = _state(before), _state(after)
    for state in ("failed", "missing", "skipped"):
        hits = tuple(each == state for each in states)
        if state != "failed" and "absent" in states:
            break
        if any(hits):
            name = _ONE_SIDED[state][2 if all(hits) else hits.index(True)]
            return name, _reason(before, after, hits)
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


def _reason(
    before: dict[str, Any] | None, after: dict[str, Any] | None, hits: tuple[bool, ...]
) -> str:
    """The status and the reason of the sides that have no result."""
    parts = []
    for side, row, hit in zip("AB", (before, after), hits, strict=True):
        if row is not None and hit:
            words = f"{row['status']}: {row['reason']}" if row["reason"] else str(row["status"])
            parts.append((side, words))
    if len({words for _, words in parts}) == 1:
        return parts[0][1]
    return "; ".join(f"{side} {words}" for side, words in parts)


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


def _same_reference(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return all(_plain(before.get(name)) == _plain(after.get(name)) for name in _REFERENCE)
