"""What a reader must know before trusting a comparison: environments and mixed records."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from ...harness.planning.fingerprint import content_version
from ..formatting import plural
from ..frames import by_solver, json_object, records
from .summary import resolution

_UNKNOWN = "unknown"
#: Below this share of CPU in wall-clock seconds something else had the processor.
QUIET = 0.9
# Seconds of solving below which the clocks' own granularity decides the share.
_MEASURABLE = 0.05


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as one level of dotted names and text values, in stable order."""
    flat: dict[str, str] = {}
    for name in sorted(value):
        item = value[name]
        if isinstance(item, Mapping) and item:
            flat |= flatten(item, f"{prefix}{name}.")
        else:
            scalar = _UNKNOWN if item is None else item
            flat[prefix + name] = scalar if isinstance(scalar, str) else json.dumps(scalar)
    return flat


def environments(runs: pd.DataFrame) -> pd.DataFrame:
    """The distinct environments of the runs that took place, flat, most frequent first."""
    recorded = _took_place(runs)
    recorded = recorded[~recorded["environment"].isin(["", "{}"])]
    rows: list[dict[str, Any]] = []
    for text, group in recorded.groupby("environment", sort=False):
        rows.append(
            {
                "environment": flatten(json_object(str(text))),
                "n": len(group),
                "threads": _distinct(group["threads"]),
                "jobs": _distinct(group["jobs"]),
            }
        )
    rows.sort(key=lambda row: (-row["n"], sorted(row["environment"].items())))
    return pd.DataFrame(rows, columns=["environment", "n", "threads", "jobs"])


def period(runs: pd.DataFrame) -> str:
    """The days on which the runs started: one, or the first and the last; empty if none did."""
    days = sorted({str(text)[:10] for text in runs["started_at"] if text})
    return " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))


def machine(distinct: pd.DataFrame) -> str:
    """A short name of the machine of the runs; says so when there are several."""
    names = _settings(distinct, "processor") or _settings(distinct, "platform")
    if len(names) > 1:
        return f"{len(names)} different machines"
    cores = _settings(distinct, "cores")
    return ", ".join([*(names or [_UNKNOWN]), *(f"{n} cores" for n in cores[:1])])


def commits(distinct: pd.DataFrame) -> list[str]:
    """The distinct commits of the code that made the records."""
    return _settings(distinct, "commit")


def cautions(
    runs: pd.DataFrame,
    traces: pd.DataFrame,
    distinct: pd.DataFrame,
    folded: Collection[str] = (),
) -> list[str]:
    """Plain sentences on what limits the comparison; empty when nothing does."""
    notes = []
    missing = int((runs["status"] == "missing").sum())
    if missing:
        notes.append(
            f"{missing} of {plural(len(runs), 'planned run')} have no record: the study was not "
            "run to its end, or records were removed. Run it again to complete it."
        )
    if len(distinct) > 1:
        counts = " and ".join(str(n) for n in distinct["n"])
        processors = _settings(distinct, "processor")
        where = f" on different machines, {' and '.join(processors)}" * (len(processors) > 1)
        notes.append(
            f"The records come from {len(distinct)} different environments ({counts} runs){where}: "
            "do not compare their times."
        )
    revisions = commits(distinct)
    if len(revisions) > 1:
        short = ", ".join(revision[:10] for revision in revisions)
        notes.append(f"The records come from {len(revisions)} different commits: {short}.")
    dirty = sum(row["n"] for row in records(distinct) if row["environment"].get("dirty") == "true")
    if dirty:
        notes.append(
            f"{plural(dirty, 'run')} came from a tree with uncommitted changes: "
            "the commit alone does not reproduce them."
        )
    recorded = _took_place(runs)
    recorded = recorded[recorded["version"] != ""]
    for solver, of_solver in recorded.groupby("solver", sort=False)["version"]:
        ids = list(dict.fromkeys(map(content_version, of_solver)))
        if len(ids) > 1:
            notes.append(
                f"The runs of {solver} are of {len(ids)} versions of its code ({', '.join(ids)}): "
                "run the whole study again to repeat the outdated ones."
            )
    return [*notes, *_timing_cautions(runs), *_problem_cautions(runs, traces, folded)]


def cpu_share(runs: pd.DataFrame) -> float | None:
    """CPU seconds per wall-clock second of all runs that ended as planned; None if unknown.

    A solver has one thread, so that a share well below 1 tells of a machine that did other work.
    Runs of several threads say nothing, and are left out.
    """
    timed = runs[runs["ok"] & (runs["threads"] == 1) & (runs["wall_s"] >= _MEASURABLE)]
    timed = timed[timed["cpu_s"].notna()]
    return None if timed.empty else float(timed["cpu_s"].sum() / timed["wall_s"].sum())


def times_compare(runs: pd.DataFrame, distinct: pd.DataFrame) -> bool:
    """Whether CPU seconds of different solvers may be ranked.

    Not if several runs took place at a time, in several environments, or beside other work.
    """
    share = cpu_share(runs)
    alone = bool((_took_place(runs)["jobs"].fillna(1) == 1).all())
    return alone and len(distinct) <= 1 and (share is None or share >= QUIET)


def _timing_cautions(runs: pd.DataFrame) -> list[str]:
    measured = _took_place(runs)
    jobs, threads, share = measured["jobs"].max(), _distinct(measured["threads"]), cpu_share(runs)
    notes = []
    if share is not None and share < QUIET:
        notes.append(
            f"The solvers had the processor for {100 * share:.0f} % of the wall-clock time: the "
            "machine did other work meanwhile. Look at counts and CPU seconds; no time is ranked."
        )
    if jobs > 1:
        notes.append(
            f"{jobs:g} runs took place at a time and shared the machine: times are "
            "indicative; counts are not affected."
        )
    if "," in threads:
        notes.append(f"Runs used different numbers of threads ({threads}).")
    return notes


def _problem_cautions(
    runs: pd.DataFrame, traces: pd.DataFrame, folded: Collection[str]
) -> list[str]:
    notes = []
    for column, what in (("fingerprint", "data"), ("reference_hash", "reference optimum")):
        if column not in runs:
            continue
        recorded = runs[runs[column] != ""]
        # With folds only the runs of a seed have the same.
        shared = recorded["seed"].where(recorded["task"].isin(folded), 0)
        distinct = recorded.groupby(["task", shared], sort=False)[column].nunique()
        for task, n in distinct.groupby(level=0, sort=False).max().items():
            if n > 1:
                notes.append(f"The runs of task {task} do not share one {what}: {n} were recorded.")
    if "suboptimality" not in traces:
        return notes
    # Rounding in the objective is far below a part in a million of the certified gap's scale.
    below = traces[traces["suboptimality"] < -resolution(traces) * (1 + 1e-6) - 1e-12]
    for task, solver, group in by_solver(below):
        notes.append(
            f"{len(group)} checkpoint(s) of {solver} on task {task} lie below the certified lower "
            "bound of the optimum: the reference or the objective is wrong."
        )
    return notes


def _took_place(runs: pd.DataFrame) -> pd.DataFrame:
    """A skipped run has a record, but nothing was measured for it."""
    return runs[runs["status"] != "skipped"]


def _settings(distinct: pd.DataFrame, name: str) -> list[str]:
    """The distinct known values of one setting."""
    values = (environment.get(name, _UNKNOWN) for environment in distinct["environment"])
    return [value for value in dict.fromkeys(values) if value != _UNKNOWN]


def _distinct(values: pd.Series) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values.dropna().unique()))
