"""What a study says of tuning, as the search of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ..errors import StudyError
from ..evaluation.search import MAX_CONFIGURATIONS, Search, configurations
from ..execution.jobs import Limits
from ..study.budget import Budget
from ..study.parts import SolverEntry
from ..study.svm import Study, Task
from .questions import SolverInfo


def plan_search(
    study: Study, task: Task, entry: SolverEntry, info: SolverInfo, seed: int
) -> Search | None:
    """The search of a run; None if nothing is tuned.

    Values of C and of the kernel concern those solvers that take such a parameter.

    Raises
    ------
    StudyError
        If there are too many configurations.
    """
    values = {name: tried for name, tried in task.tune.items() if name in info.accepted}
    values |= entry.tune
    if not values:
        return None
    number = math.prod(len(tried) for tried in values.values())
    if number > MAX_CONFIGURATIONS:
        raise StudyError(
            f"{entry.label!r} on {task.label!r} has {number} configurations to choose from; give "
            f"fewer values in tune, at most {MAX_CONFIGURATIONS} combinations"
        )
    tuning, budget = study.tuning, study.budget
    return Search(
        configurations=configurations(values),
        seed=(tuning.seed, seed),
        method=tuning.method,
        resource=tuning.resource,
        validation=tuning.validation or Search.validation,
        folds=tuning.folds,
        seconds=tuning.seconds or math.inf,
        evaluations=tuning.kernel_evals or math.inf,
        trial_seconds=budget.timeout,
        trial_evaluations=budget.kernel_evals or math.inf,
    )


def with_first_values(entry: SolverEntry) -> SolverEntry:
    """A solver with the first of the values that it is to choose from."""
    first = {name: tried[0] for name, tried in entry.tune.items()}
    return entry.model_copy(update={"params": {**entry.params, **first}})


def with_search(params: Mapping[str, Any], search: Search | None) -> dict[str, Any]:
    """Parameters with None for what is tuned."""
    return dict(params) | ({} if search is None else dict.fromkeys(search.configurations[0]))


def search_in_key(search: Search | None) -> dict[str, Any]:
    """The whole protocol as a part of the key; the timeout of a trial decides what is chosen."""
    if search is None:
        return {}
    # JSON has no infinity; a limit that is not set is left out. The parameters are in the key.
    protocol = {name: value for name, value in asdict(search).items() if value != math.inf}
    del protocol["params"]
    return {"tuning": protocol}


def tuning_limits(limits: Limits, search: Search | None, budget: Budget) -> Limits:
    """Limits with room for tuning, which ends itself unless something hangs."""
    if search is None:
        return limits
    seconds = 2.0 * search.solving_s + budget.evaluation_timeout
    return replace(
        limits, seconds={**limits.seconds, "tune": seconds}, total=limits.total + seconds
    )
