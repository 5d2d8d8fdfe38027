"""What the tuning of a run is to search, and how: it travels with the run to its worker."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

#: Configurations of one run at most: all of them are in its record.
MAX_CONFIGURATIONS = 1000
# Points of each class that a trial is fitted to at least.
_LEAST = 10


@dataclass(frozen=True)
class Round:
    """Trials of some configurations with the same resource.

    Attributes
    ----------
    keep : int
        How many configurations take part: the best of the round before.
    points : int
        Points that each is fitted to.
    evaluations : float
        The most that each may ask for.
    """

    keep: int
    points: int
    evaluations: float = math.inf


@dataclass(frozen=True)
class Search:
    """The tuning of one run.

    Attributes
    ----------
    configurations : tuple of dict
        Values by parameter of the solver, in the order of the study.
    params : dict
        Every parameter of the solver by name, with None for what is tuned.
    seed : tuple of int
        The study's seed of tuning and the run's seed: all solvers have the same splits.
    method : {"grid", "halving"}
    resource : {"points", "kernel_evals"}
        What halving doubles.
    validation : float
        Fraction of the training part that trials are scored on; without meaning if there are folds.
    folds : int or None
    seconds, evaluations : float
        What all trials may take together.
    trial_seconds, trial_evaluations : float
        What each may take.
    """

    configurations: tuple[dict[str, Any], ...]
    params: dict[str, Any] = field(default_factory=dict)
    seed: tuple[int, int] = (0, 0)
    method: Literal["grid", "halving"] = "grid"
    resource: Literal["points", "kernel_evals"] = "points"
    validation: float = 0.25
    folds: int | None = None
    seconds: float = math.inf
    evaluations: float = math.inf
    trial_seconds: float = math.inf
    trial_evaluations: float = math.inf

    def rounds(self, n_points: int, n_classes: int) -> list[Round]:
        """The rounds of trials when so many points can be fitted to.

        Of halving [JT16]_, the first has all configurations and the last all of the resource. Where
        points are the resource there are no more rounds than leave the first one points enough.

        References
        ----------
        .. [JT16] Jamieson and Talwalkar. Non-stochastic best arm identification and hyperparameter
           optimization. AISTATS 2016.
        """
        n = len(self.configurations)
        if self.method == "grid":
            return [Round(n, n_points, self.trial_evaluations)]
        steps = int(math.log2(n))
        if self.resource == "points":
            room = math.log2(max(1.0, n_points / (_LEAST * n_classes)))
            steps = min(steps, int(room))
        rounds = []
        for i in range(steps + 1):
            share, keep = 2 ** (steps - i), -(-n // 2**i)
            if self.resource == "points":
                rounds.append(Round(keep, n_points // share, self.trial_evaluations))
            else:
                rounds.append(Round(keep, n_points, self.trial_evaluations / share))
        return rounds

    @property
    def solving_s(self) -> float:
        """Seconds of solving that all trials may take, whatever they are."""
        trials = sum(each.keep for each in self.rounds(2**62, 1)) * (self.folds or 1)
        return min(self.seconds, trials * self.trial_seconds)


def configurations(values: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Any], ...]:
    """All combinations of the values; the parameter named last varies fastest."""
    return tuple(
        dict(zip(values, combination, strict=True))
        for combination in itertools.product(*values.values())
    )
