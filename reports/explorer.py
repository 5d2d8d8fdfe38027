"""What the explorer, the interactive figure of a page, is given: the checkpoints, compactly.

Runs, targets and levels are those of the statistics; the script on the page only chooses, draws
and aggregates them. What a run spent until it stays at a target is given as the place of a
checkpoint, so the script compares no rounded number with a level.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup

from ..harness.results.measures import Measure, counter_measures
from ..harness.words import visible
from . import formatting
from .analysis import Analysis
from .described import SvmTask
from .drawing.canvas import COLOR_VARIABLES
from .frames import other_problem_solvers, records
from .panels.traces import reference_of
from .solved import solved
from .statistics import integrity
from .statistics.epochs import epochs_frame
from .statistics.targets import Target, costs_to_target

#: Checkpoints of a run that the explorer gets at most.
MOST_POINTS = 200
#: Numbers that it gets in all, so that the page of a large study stays small: 3 to 5 MB.
MOST_NUMBERS = 500_000
#: Checkpoints of a run that it gets in any case.
FEWEST_POINTS = 24
#: Seeds that it gets in any case; others where there is room.
FEWEST_SEEDS = 5

_RUN = ["task", "solver", "seed"]
_TARGETS = (
    *(Target("suboptimality", margin) for margin in (0.1, 0.01, 0.001)),
    *(Target("test_error", margin) for margin in (0.0, 0.005, 0.01)),
)
# Formats of what a run spends; an error or an objective has another one.
_SPENT = ("count", "integer", "seconds")
_LAST = 10**6  # the place of measures that no table has a place for

# Columns that follow from the checkpoints, in this order after those that the records declare.
_FURTHER = {
    "certified_gap": Measure(
        "Certified gap",
        "certified gap, as a fraction of the objective",
        "scientific",
        better="lower",
    ),
    "maintenance_fraction": Measure(
        "Maintenance", "maintenance events per iteration in the epoch", "percent", better="lower"
    ),
    "margin_gap": Measure(
        "Gap", "gap between the bounds on the margin", "scientific", better="lower"
    ),
    "phi_lo": Measure("Lower bound", "lower bound on the margin", "scientific", better="higher"),
    "phi_up": Measure("Upper bound", "upper bound on the margin", "scientific", better="lower"),
}
# Costs by a power of n, the number of training points, so that tasks of other sizes compare.
_PER_POINTS = (
    ("evaluations", 2, "{words} per n²"),
    ("n_iter", 1, "{words} per training point (epochs)"),
)


@dataclass(frozen=True)
class _Chosen:
    """The checkpoints with all columns to choose from.

    Attributes
    ----------
    traces : DataFrame
    costs, values : dict of str to Measure
        What can be on the horizontal and on the vertical axis, by column, in reading order.
    """

    traces: pd.DataFrame
    costs: dict[str, Measure]
    values: dict[str, Measure]

    @property
    def columns(self) -> list[str]:
        """The columns of the runs, in the order of their numbers."""
        return [*self.costs, *self.values]


def explorer_json(analysis: Analysis) -> Markup:
    """The data as JSON, safe inside a ``script`` element, for :meth:`.Analysis.ask`."""
    data = analysis.ask(explorer_data)
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def explorer_data(analysis: Analysis) -> dict[str, Any] | None:
    """What the explorer shows, for :meth:`.Analysis.ask`.

    Returns
    -------
    dict or None
        ``words`` (what tasks, solvers and seeds are called), ``tasks``, ``solvers``, ``costs``,
        ``values`` (their ``column`` is a place in the columns of the runs), ``targets`` (of the
        profiles), ``runs`` (none that was skipped), ``times`` (why times do not compare; empty:
        they do), ``thinned`` (runs that show only some of their checkpoints) and ``most`` (how
        many of them), ``shown_seeds`` and ``all_seeds`` (how many). None if no run has a checkpoint
        to draw.
    """
    chosen = _chosen(analysis)
    if not chosen.costs or not chosen.values:
        return None
    tried = analysis.runs[analysis.runs["status"] != "skipped"]
    seeds = sorted(tried["seed"].unique())
    shown = _shown_seeds(seeds, len(tried) * len(chosen.columns))
    if len(shown) < len(seeds):
        tried = tried[tried["seed"].isin(shown)]
        chosen = replace(chosen, traces=chosen.traces[chosen.traces["seed"].isin(shown)])
    targets = _targets(analysis, chosen.traces)
    groups = chosen.traces.groupby(_RUN, sort=False).indices
    states = {run: np.asarray(rows, dtype=np.intp) for run, rows in groups.items()}
    share = MOST_NUMBERS // max(len(states) * len(chosen.columns), 1)
    most = min(max(share, FEWEST_POINTS), MOST_POINTS)
    return {
        "words": vars(analysis.words),
        "tasks": [_task(analysis, task.label) for task in analysis.study.tasks],
        "solvers": _solvers(analysis),
        "costs": _costs(analysis, chosen),
        "values": [
            _axis(measure, len(chosen.costs) + place) | {"name": name, "better": measure.better}
            for place, (name, measure) in enumerate(chosen.values.items())
        ],
        "targets": [
            {name: getattr(target, name) for name in ("name", "words", "stays", "first")}
            for target in targets
        ],
        "runs": _runs(analysis, tried, chosen, states, targets, most),
        "times": _times(analysis),
        "thinned": sum(len(places) > most for places in states.values()),
        "most": most,
        "shown_seeds": len(shown),
        "all_seeds": len(seeds),
    }


def _shown_seeds(seeds: list[int], columns: int) -> list[int]:
    """The first seeds, as many as there is room for; ``columns`` are those of all runs."""
    room = MOST_NUMBERS // (FEWEST_POINTS * max(columns, 1) // max(len(seeds), 1) or 1)
    return seeds[: max(room, FEWEST_SEEDS)]


def _chosen(analysis: Analysis) -> _Chosen:
    traces = _with_further(analysis.traces, analysis.runs)
    known = [name for name in analysis.measures if name in traces and traces[name].notna().any()]
    measures = {name: analysis.measures[name] for name in known}
    measures = dict(sorted(measures.items(), key=lambda item: item[1].table or _LAST))
    costs = {name: item for name, item in measures.items() if _is_cost(item)}
    # A counter that nobody used is no axis, and a sum of one counter is that counter.
    unused = set(counter_measures()) - set(analysis.counters)
    costs = {n: item for n, item in costs.items() if n not in unused and (traces[n] > 0).any()}
    first = {item.words: name for name, item in reversed(costs.items())}
    costs = {name: item for name, item in costs.items() if first[item.words] == name}
    values = {name: item for name, item in measures.items() if not _is_cost(item)}
    values |= {n: item for n, item in _FURTHER.items() if n in traces and traces[n].notna().any()}
    return _Chosen(traces, costs, values)


def _is_cost(measure: Measure) -> bool:
    """Whether a measure is what a run spends: counted or timed, and not ranked by itself."""
    return measure.format in _SPENT and not measure.better


def _with_further(traces: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of the checkpoints that no record declares a measure for."""
    if {"phi_lo", "phi_up"} <= set(traces):
        return traces.assign(margin_gap=traces["phi_up"] - traces["phi_lo"])
    if not {"primal", "dual"} <= set(traces):
        return traces
    gap = (traces["primal"] - traces["dual"]) / traces["primal"]
    found = traces.assign(certified_gap=gap.where(traces["minimises"]))
    return _with_maintenance(found, runs)


def _with_maintenance(traces: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add the share of maintenance events at the checkpoints that end an epoch."""
    epochs = epochs_frame(runs).dropna(subset=["n_iter", "maintenance_fraction"])
    if epochs.empty:
        return traces
    key = [*_RUN, "n_iter"]
    noted = epochs[[*key, "maintenance_fraction"]].drop_duplicates(key, keep="last")
    return traces.merge(noted, on=key, how="left")


@dataclass(frozen=True)
class _Target:
    """A target of the profiles.

    Attributes
    ----------
    name : str
    words, stays, first : str
        The target, and what runs do that stay there, or are there for the first time.
    places : DataFrame
        For each run that has the target the number of the checkpoint from which it stays there
        (``stays``) and of the first one there (``first``), infinite for never.
    """

    name: str
    words: str
    stays: str
    first: str
    places: pd.DataFrame


def _targets(analysis: Analysis, traces: pd.DataFrame) -> list[_Target]:
    if analysis.kind == "feasibility":
        return [_certificate(analysis)]
    found = []
    for target in _TARGETS:
        places = costs_to_target(analysis.runs, traces, target, "checkpoint")
        if not places.empty:
            words = f"{'within' if target.margin else 'at'} {target.words}"
            name = f"{target.value}-{target.margin:g}"
            stays, first = f"that stay {words}", f"that have once been {words}, best so far"
            places = places.rename(columns={"value": "stays"})
            found.append(_Target(name, words, stays, first, places))
    return found


def _certificate(analysis: Analysis) -> _Target:
    """The certificate of a problem, which ends a run of a feasibility method."""
    runs = analysis.ask(solved).runs
    tried = runs[runs["status"] != "skipped"]
    last = analysis.traces.groupby(_RUN)["checkpoint"].last().rename("stays")
    places = tried[[*_RUN, "solved"]].join(last, on=_RUN)
    places["stays"] = places["stays"].where(places["solved"], np.inf).fillna(np.inf)
    words = "with a certificate"
    ends = f"that end {words}"
    return _Target("certificate", words, ends, ends, places.assign(first=places["stays"]))


def _task(analysis: Analysis, label: str) -> dict[str, Any]:
    """A task with what its figures mark: the reference, and the least error above none."""
    found: dict[str, Any] = {"label": visible(label), "lines": {}, "zeros": {}, "notes": {}}
    solvers = list(analysis.styles)
    others = other_problem_solvers(analysis.runs, label)
    found["notes"] = {str(solvers.index(name)): "another problem" for name in others}
    if not analysis.tasks_of(SvmTask):
        return found
    reference = reference_of(analysis.runs, label)
    if reference.test_error is not None:
        words = f"reference optimum, {formatting.percent(reference.test_error)}"
        found["lines"]["test_error"] = [_rounded(reference.test_error), words]
    if reference.resolution is not None:
        words = "resolution of the certificate"
        found["lines"]["suboptimality"] = [_rounded(reference.resolution), words]
    if reference.n_test:
        found["zeros"]["test_error"] = _rounded(0.5 / reference.n_test)
    return found


def _solvers(analysis: Analysis) -> list[dict[str, Any]]:
    return [
        {
            "label": visible(label),
            "color": COLOR_VARIABLES.get(style.color, "--muted"),
            "marker": style.marker,
            "dashes": list(style.dashes),
        }
        for label, style in analysis.styles.items()
    ]


def _axis(measure: Measure, column: int) -> dict[str, Any]:
    return {"words": measure.words, "format": measure.format, "column": column}


def _costs(analysis: Analysis, chosen: _Chosen) -> list[dict[str, Any]]:
    """The costs as they are, then those in units of a power of n."""
    found = [
        _axis(measure, place) | {"name": name, "power": 0}
        for place, (name, measure) in enumerate(chosen.costs.items())
    ]
    if "n_train" not in analysis.runs or not analysis.runs["n_train"].notna().any():
        return found
    places = {name: place for place, name in enumerate(chosen.costs)}
    for name, power, words in _PER_POINTS:
        if name in places:
            axis = _axis(chosen.costs[name], places[name])
            axis |= {"words": words.format(words=axis["words"]), "format": "number"}
            found.append(axis | {"name": f"{name}/n{power}", "power": power})
    return found


def _times(analysis: Analysis) -> str:
    if integrity.times_compare(analysis.runs, analysis.environments):
        return ""
    return "Times of these runs do not compare: see “Read with care”."


def _runs(
    analysis: Analysis,
    tried: pd.DataFrame,
    chosen: _Chosen,
    states: Mapping[Any, npt.NDArray[np.intp]],
    targets: list[_Target],
    most: int,
) -> list[dict[str, Any]]:
    """The runs that were not skipped, each with the columns of its checkpoints."""
    tasks = {task.label: place for place, task in enumerate(analysis.study.tasks)}
    solvers = {label: place for place, label in enumerate(analysis.styles)}
    numbers = chosen.traces[chosen.columns].to_numpy(np.float64)
    reached = [_by_run(target.places) for target in targets]
    rows = []
    for run in records(tried):
        key = (run["task"], run["solver"], run["seed"])
        points = numbers[states[key]] if key in states else numbers[:0]
        goals = [found.get(key) for found in reached]
        needed = {place for goal in goals if goal for place in goal if place >= 0}
        kept = kept_places(len(points), most, needed | _extremes(points, chosen))
        place_of = {place: new for new, place in enumerate(kept)} | {-1: -1}
        row = {
            "task": tasks[run["task"]],
            "solver": solvers[run["solver"]],
            "seed": int(run["seed"]),
            "status": run["status"],
            "ok": bool(run["ok"]),
            "columns": _columns(points[kept]),
            "reach": [goal and [place_of[place] for place in goal] for goal in goals],
        }
        n_train = run.get("n_train", np.nan)
        rows.append(row | ({} if math.isnan(n_train) else {"n": int(n_train)}))
    return rows


def _by_run(places: pd.DataFrame) -> dict[Any, tuple[int, int]]:
    """The checkpoints of each run from which it stays at a target, and first at it; -1: never."""
    return {
        (row["task"], row["solver"], row["seed"]): (_place(row["stays"]), _place(row["first"]))
        for row in records(places)
    }


def _place(checkpoint: float) -> int:
    return int(checkpoint) if math.isfinite(checkpoint) else -1


def _extremes(points: npt.NDArray[np.float64], chosen: _Chosen) -> set[int]:
    """The checkpoints with the best of each value."""
    found = set()
    for measure, column in zip(chosen.values.values(), points.T[len(chosen.costs) :], strict=True):
        if not np.isnan(column).all():
            best = np.nanargmax if measure.better == "higher" else np.nanargmin
            found.add(int(best(column)))
    return found


def kept_places(n: int, most: int, needed: Iterable[int]) -> list[int]:
    """Which of the checkpoints of a run are kept: evenly spread ones, and those that are needed.

    Parameters
    ----------
    n : int
        Checkpoints of the run.
    most : int
        How many are kept, unless more are needed.
    needed : iterable of int
        Kept in any case, as are the first and the last.

    Returns
    -------
    list of int
        Ascending.
    """
    if n <= most:
        return list(range(n))
    always = {0, n - 1, *needed}
    spread = np.linspace(0, n - 1, max(most - len(always), 0) + 2)
    return sorted(always | set(spread.round().astype(int).tolist()))


def _columns(points: npt.NDArray[np.float64]) -> list[list[float | None] | int | None]:
    """Each column of a run; None where nothing is known, a number where it equals that column."""
    found: list[list[float | None] | int | None] = []
    places: dict[tuple[float | None, ...], int] = {}
    for place, column in enumerate(points.T.tolist()):
        values = [_rounded(value) for value in column]
        same = places.setdefault(tuple(values), place)
        known = any(value is not None for value in values)
        found.append(None if not known else values if same == place else same)
    return found


def _rounded(value: float) -> float | None:
    """Five significant digits, an integer where it is one; None for what is not finite."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded.is_integer() else rounded
