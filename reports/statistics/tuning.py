"""What tuned runs chose, and what that cost."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .. import formatting, wording
from ..described import SvmStudy, SvmTask
from ..frames import by_solver, json_object

_METHODS = {"grid": "grid search", "halving": "successive halving"}


@dataclass(frozen=True)
class Choices:
    """The tuning of a solver on a task.

    Attributes
    ----------
    solver : str
    chosen : list of (dict, int)
        Values by parameter, and the number of runs that chose them, the most frequent first.
    wall_s : float
        Median seconds inside the solver in all trials of a run.
    evaluations : float
        Median evaluations of all trials of a run; NaN where they are not counted.
    incomplete : int
        Runs whose tuning ended before every configuration had been tried.
    """

    solver: str
    chosen: list[tuple[dict[str, Any], int]]
    wall_s: float
    evaluations: float
    incomplete: int


def tuning_choices(runs: pd.DataFrame) -> list[Choices]:
    """What the tuned runs of a task chose, by solver, in the order of the study.

    Parameters
    ----------
    runs : DataFrame
        The runs of one task, of :class:`marginbench.reports.results.Results`.
    """
    found = []
    for _, solver, tuned in by_solver(runs[~runs["tuning"].isin(["", "[]"])]):
        trials = [json.loads(text) for text in tuned["tuning"]]
        chosen: Counter[str] = Counter()
        for params, tried in zip(tuned["params"], trials, strict=True):
            values = json_object(params)
            chosen[json.dumps({name: values.get(name) for name in tried[0]["params"]})] += 1
        found.append(
            Choices(
                solver=solver,
                chosen=[(json.loads(text), count) for text, count in chosen.most_common()],
                wall_s=float(tuned["tuning_wall_s"].median()),
                evaluations=float(tuned["tuning_evals"].median()),
                incomplete=sum(any(t["ended"] == "not tried" for t in tried) for tried in trials),
            )
        )
    return found


def tuning_sentences(study: SvmStudy, task: SvmTask, choices: Sequence[Choices]) -> list[str]:
    """How the solvers of a task were tuned, what each chose and what that cost."""
    if not choices:
        return []
    folds = study.tuning.get("folds")
    held_out = f"{100 * study.tuning.get('validation', 0.25):g} % of the training part held out"
    split = f"{folds}-fold cross-validation on the training part" if folds else held_out
    method = _METHODS[study.tuning.get("method", "grid")]
    sentences = [f"Tuned by {method} with {split}:"]
    sentences += [f"{_choice_words(each)}{'.' if each is choices[-1] else ';'}" for each in choices]
    if task.tune:
        sentences.append(
            "Each solver has its own problem, so objectives are not compared and there is no "
            "reference optimum."
        )
    return sentences


def _choice_words(choices: Choices) -> str:
    """ "SMO chose C = 1, gamma = 10 (3 runs), at 0.46 s and 3.6M evaluations a run"."""
    chosen = " or ".join(
        f"{wording.parameters(values)} ({formatting.plural(count, 'run')})"
        for values, count in choices.chosen
    )
    costs = [formatting.seconds(choices.wall_s)]
    if not math.isnan(choices.evaluations):
        costs.append(f"{formatting.count(choices.evaluations)} evaluations")
    words = f"{choices.solver} chose {chosen}, at {' and '.join(costs)} a run"
    if choices.incomplete:
        tuned = f"the tuning of {formatting.plural(choices.incomplete, 'run')}"
        words += f" ({tuned} ran out of its budget)"
    return words
