"""Results of a study of feasibility methods: its records, and the statistics of its tables."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from marginbench.harness.feasibility.records import FeasibilityRecord, FeasibilityStore, Stage
from marginbench.harness.records import EXPECTED_STATUSES
from marginbench.reports import ReportError

#: What a method must have found to have solved a problem of each generator.
_ANSWERS = {"ldfp": ("separable",), "lap": ("inseparable",)}
_ANY = ("separable", "inseparable")
_MEASURES = ("n_iter", "matvecs", "solve_s", "cpu_s")
#: The columns of runs that are planned but have no record.
_COLUMNS = (
    *("status", "reason", "found", "n_iter", "matvecs", "inner_products", "kernel_evals"),
    *("solve_s", "cpu_s", "tuning_s", "phi_lo", "phi_up", "gamma", "validation", "train_error"),
    *(
        "test_error",
        "peak_memory_mb",
        "environment",
        "threads",
        "jobs",
        "started_at",
        "method_class",
    ),
)
_STAGE_COLUMNS = ["part", "method", "seed", "n", *(item.name for item in fields(Stage))]


@dataclass(frozen=True)
class FeasibilityResults:
    """A study of feasibility methods with all that is recorded of its planned runs.

    Attributes
    ----------
    study : dict
        The content of ``study.json``.
    runs : DataFrame
        One row per planned run: part, method, seed, and the columns of its record; ``solved`` if
        it ended with the certificate that the problem has, ``ended`` if it ended as planned.
    traces : DataFrame
        One row per recorded stage: part, method, seed, n (columns or points), and the stage.
    """

    study: dict[str, Any]
    runs: pd.DataFrame
    traces: pd.DataFrame


def is_feasibility(folder: Path) -> bool:
    """Whether a results folder is one of a study of feasibility methods."""
    try:
        study = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(study, dict) and study.get("kind") == "feasibility"


def load_feasibility(folder: Path) -> FeasibilityResults:
    """Read the study and the records of its planned runs.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    ReportError
        If ``study.json`` is not that of such a study.
    """
    path = folder / "study.json"
    try:
        study = json.loads(path.read_text(encoding="utf-8"))
        planned = {run["key"]: run for run in study["planned"]}
        sizes = {part["label"]: part.get("n", part.get("n_train")) for part in study["parts"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReportError(f"{path}: not a study of feasibility methods ({error})") from None
    found = {
        record.key: record
        for record in FeasibilityStore(folder / "runs").scan()
        if isinstance(record, FeasibilityRecord) and record.key in planned
    }
    rows, stages = [], []
    for key, run in planned.items():
        record = found.get(key)
        row = {name: run[name] for name in ("part", "method", "seed")}
        if record is None:
            missing = {"limit": None, "status": "missing", "reason": ""}
            rows.append(row | dict.fromkeys(_COLUMNS) | missing)
            continue
        limit = json.loads(record.budget).get("timeout")
        rows.append(row | {name: getattr(record, name) for name in _COLUMNS} | {"limit": limit})
        stages += [row | {"n": sizes[run["part"]]} | vars(stage) for stage in record.trace]
    runs = pd.DataFrame(rows)
    runs["ended"] = runs["status"].isin(EXPECTED_STATUSES)
    answers = {part["label"]: _ANSWERS.get(part.get("generator"), _ANY) for part in study["parts"]}
    right = [
        found in answers[part] for part, found in zip(runs["part"], runs["found"], strict=True)
    ]
    runs["solved"] = runs["ended"] & pd.Series(right, index=runs.index)
    numbers = [
        *_MEASURES,
        "limit",
        "phi_lo",
        "phi_up",
        "gamma",
        "train_error",
        "test_error",
        "tuning_s",
    ]
    runs[numbers] = runs[numbers].astype(float)
    return FeasibilityResults(study, runs, pd.DataFrame(stages, columns=_STAGE_COLUMNS))


def results_table(results: FeasibilityResults, part: str) -> pd.DataFrame:
    """What each method needed on the instances of a part.

    Returns
    -------
    DataFrame
        One row per method: method, n (planned runs), n_ended, n_solved; median, low and high of
        n_iter, matvecs, solve_s and cpu_s over the solved instances and mean_s, their mean seconds
        (NaN without any); most_iter, the most iterations of a run without a certificate; and
        best_*: whether the median is the least of the methods that solved every instance.
    """
    mine = results.runs[results.runs["part"] == part]
    rows = []
    for method, group in mine.groupby("method", sort=False):
        solved, open_ = group[group["solved"]], group[group["ended"] & ~group["solved"]]
        row: dict[str, Any] = {
            "method": method,
            "n": len(group),
            "n_ended": int(group["ended"].sum()),
            "n_solved": len(solved),
            "mean_s": solved["solve_s"].mean(),
            "most_iter": open_["n_iter"].max(),
        }
        for name in _MEASURES:
            row |= {
                name: solved[name].median(),
                f"{name}_low": solved[name].min(),
                f"{name}_high": solved[name].max(),
            }
        rows.append(row)
    table = pd.DataFrame(rows)
    complete = table["n_solved"] == table["n"]
    for name in _MEASURES:
        least = table.loc[complete, name].min()
        table[f"best_{name}"] = complete & (table[name] == least)
    return table


def gap_ratio(results: FeasibilityResults) -> tuple[float, int]:
    """The largest ``t (phi_up - phi_lo) / sqrt(2 log n)`` of mirror prox, and of how many stages.

    At most 1 by the method's convergence theorem; NaN if nothing is recorded.
    """
    traces, methods = results.traces, _of_class(results.study, "MPLFP")
    cells = [part["label"] for part in results.study["parts"] if part["type"] == "cell"]
    if traces.empty:
        return math.nan, 0
    mine = traces[traces["method"].isin(methods) & traces["part"].isin(cells)]
    bound = (2 * mine["n"].map(math.log)).map(math.sqrt) / mine["iteration"]
    return float(((mine["phi_up"] - mine["phi_lo"]) / bound).max()), len(mine)


def fewest_iterations(results: FeasibilityResults, part: str) -> tuple[str, list[str]]:
    """Whom MPLFP beats in iterations on every instance of a cell.

    An instance that the other method did not solve counts if MPLFP solved it.

    Returns
    -------
    tuple
        MPLFP's label, empty without MPLFP; and the methods that were at least as good somewhere.
    """
    labels = _of_class(results.study, "MPLFP")
    if not labels:
        return "", []
    mine = results.runs[(results.runs["part"] == part) & results.runs["ended"]]
    counts = mine.assign(n_iter=mine["n_iter"].where(mine["solved"], math.inf)).pivot_table(
        index="seed", columns="method", values="n_iter"
    )
    if labels[0] not in counts:
        return "", []
    ours = counts[labels[0]]
    others = [name for name in mine["method"].unique() if name in counts and name != labels[0]]
    return labels[0], [
        name for name in others if not (ours < counts[name])[counts[name].notna()].all()
    ]


def _of_class(study: dict[str, Any], name: str) -> list[str]:
    return [method["label"] for method in study["methods"] if method["name"] == name]
