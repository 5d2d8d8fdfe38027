"""From a task, a solver and a seed to a run: parameters, key, and why it may be skipped."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..evaluation.folds import fold_fingerprint, fold_sizes
from ..evaluation.search import Search
from ..evaluation.svm import (
    DEFAULT_TOL,
    EstimatorWork,
    FitWork,
    Fold,
    Problem,
    ReferenceInfo,
    StoppingRules,
)
from ..execution.jobs import Limits
from ..study.budget import Budget, run_limits
from ..study.parts import SolverEntry
from ..study.select import is_foreign
from ..study.svm import Study, Task, kernel_code
from .keys import canonical_json, hash_json, key_parts, numeric_versions
from .kinds import Details, Run
from .questions import DatasetInfo, SolverInfo
from .tuning import (
    plan_search,
    search_in_key,
    tuning_limits,
    with_first_values,
    with_search,
)

if TYPE_CHECKING:
    from .svm import SVMFacts

#: Label of a task, with folds also the seed.
ReferenceKey: TypeAlias = str | tuple[str, int]
#: Parameters that the task or the seed decides; the same for every solver of a study.
DECIDED_BY_TASK = ("kernel", "gamma", "degree", "coef0", "C", "fit_intercept", "random_state")


def plan_run(study: Study, facts: SVMFacts, task: Task, entry: SolverEntry, seed: int) -> Run:
    """The run of a solver on a task with a seed."""
    return _Planner(study, facts, task, entry).run(seed)


def plan_runs(
    study: Study, facts: SVMFacts, task: Task, entry: SolverEntry, seeds: Sequence[int]
) -> list[Run]:
    """The runs of a solver on a task.

    They share what does not depend on the seed. What only their records and workers need is planned
    again when it is asked for: it takes a tenth of a millisecond, and kilobytes to keep.
    """
    return [*map(_Planner(study, facts, task, entry).run, seeds)]


class _Planner:
    """Plans the runs of a solver on a task."""

    def __init__(self, study: Study, facts: SVMFacts, task: Task, entry: SolverEntry) -> None:
        self._of = study, facts, task, entry
        # The same object for all runs.
        self._detailed = self._details
        self._limits: Limits | None = None

    def run(self, seed: int) -> Run:
        """The run with a seed."""
        run, _ = _planned(*self._of, seed, self._detailed)
        if run.limits != self._limits:
            self._limits = run.limits
        return replace(run, limits=self._limits)

    def _details(self, seed: int) -> Details:
        _, details = _planned(*self._of, seed, self._detailed)
        return details


def _planned(
    study: Study,
    facts: SVMFacts,
    task: Task,
    entry: SolverEntry,
    seed: int,
    detailed: Callable[[int], Details],
) -> tuple[Run, Details]:
    """The run of a solver on a task with a seed, and its details."""
    info = facts.solvers[entry.label]
    found, certified = facts.datasets[task.label], facts.references[reference_key(task, seed)]
    planned_with = "" if isinstance(found, str) else found.fingerprint
    problem, budget = replace(task.problem(seed), fingerprint=planned_with), study.budget
    dataset = None if isinstance(found, str) else _of_fold(found, problem.fold)
    reference = None if isinstance(certified, str) else certified
    outside = "outside" in info.traits
    search = None if outside else plan_search(study, task, entry, info, seed)
    given = _given_parameters(task, with_first_values(entry), info, seed)
    failure = found if isinstance(found, str) else ""
    for name, value in given.items():
        if value == "reference":
            given[name] = None if reference is None else _rounded(reference.nu)
            if given[name] is None and not failure and not _several(dataset):
                why = certified if isinstance(certified, str) else "its w is zero"
                failure = (
                    f"{name} is to be that of the reference optimum, but there is none: {why}; "
                    f"give {name} a number in params"
                )
    params = with_search({**dict.fromkeys(info.required), **info.defaults, **given}, search)
    if search is not None:
        given |= search.configurations[0]
        search = replace(search, params=params)
    rules = _rules(budget, reference, minimises=info.traits["scalarization"] is not None)
    solved = replace(problem, fit_intercept=_fits_bias(task, info))
    work, other = _work(study, entry, info, solved, given, seed, dataset, rules, search)
    if solved != problem:
        other = "; ".join(filter(None, (_bias_words(solved), other)))
    problem = solved
    skipped = "" if dataset is None else skip_reason(study, task, entry, info, dataset)
    parts = key_parts(
        kind=study.kind,
        info=info,
        params=params,
        task={
            "fingerprint": None if dataset is None else dataset.fingerprint,
            "kernel": problem.kernel,
            "kernel_code": kernel_code(task.kernel, params.get("kernel")),
            "C": problem.C,
            "fit_intercept": problem.fit_intercept,
            "checkpoint_factor": budget.checkpoint_factor,
            "epoch_checkpoints": budget.epoch_checkpoints,
            **_rules_in_key(budget, rules),
            **search_in_key(search),
            **({"other_problem": other} if other and not skipped else {}),
        },
        seed=seed,
        labels=(task.label, entry.label),
        versions={**numeric_versions(), **info.traits.get("packages", {})},
    )
    details = Details(
        work,
        known={
            "key_parts": canonical_json(parts),
            "version": info.version,
            "solver_class": info.shown,
            "params": canonical_json(params),
            "dataset": task.dataset,
            "dataset_params": canonical_json(task.dataset_params),
            "kernel": canonical_json({**problem.kernel, **dict.fromkeys(task.tune.keys() - {"C"})}),
            "C": None if "C" in task.tune else task.C,
            "fit_intercept": task.fit_intercept,
            "other_problem": "" if skipped else other,
            "judged_by": "model" if isinstance(work, FitWork) or work.solves else "predictions",
            **_dataset_columns(dataset),
        },
    )
    run = Run(
        key=hash_json(parts),
        task=task.label,
        solver=entry.label,
        seed=seed,
        limits=tuning_limits(run_limits(budget), search, budget),
        detailed=detailed,
        n_train=None if dataset is None else dataset.n_train,
        foreign=is_foreign(entry.name) or "outside" in info.traits,
        skip_reason=skipped,
        failure=failure or info.traits.get("missing", ""),
        traits=info.traits,
        reference=reference,
    )
    return run, details


def reference_key(task: Task, seed: int) -> ReferenceKey:
    """Under which a task's reference optimum is found; with folds each seed has its own."""
    return task.label if task.folds is None else (task.label, seed)


def _of_fold(info: DatasetInfo, fold: Fold | None) -> DatasetInfo:
    if fold is None:
        return info
    n_train, n_test = fold_sizes(info.n_train, fold)
    fingerprint = fold_fingerprint(info.fingerprint, fold)
    return replace(info, fingerprint=fingerprint, n_train=n_train, n_test=n_test)


def _rules(budget: Budget, reference: ReferenceInfo | None, *, minimises: bool) -> StoppingRules:
    """What ends the run early; only an objective that has an optimum can be good enough."""
    primal = -math.inf
    if budget.stop is not None and reference is not None and minimises:
        primal = _to_ten_digits(reference.primal) * (1.0 + budget.stop.suboptimality)
    return StoppingRules(
        evaluations=budget.kernel_evals or math.inf,
        iterations=budget.iterations or math.inf,
        primal=primal,
    )


def _rules_in_key(budget: Budget, rules: StoppingRules) -> dict[str, Any]:
    """The rules as a part of the key; nothing where there are none."""
    limits = {name: value for name, value in budget.rules.items() if name != "stop"}
    return limits | ({"stop_primal": rules.primal} if math.isfinite(rules.primal) else {})


def _fits_bias(task: Task, info: SolverInfo) -> bool:
    """Whether the solver's problem has a bias: as the task says, if the solver can."""
    supported = "supports_bias" if task.fit_intercept else "supports_no_bias"
    return task.fit_intercept if info.traits[supported] else not task.fit_intercept


def _bias_words(problem: Problem) -> str:
    if problem.fit_intercept:
        return "it fits a bias, which the task has not"
    return "it fits no bias, which the task has"


def _work(
    study: Study,
    entry: SolverEntry,
    info: SolverInfo,
    problem: Problem,
    given: dict[str, Any],
    seed: int,
    dataset: DatasetInfo | None,
    rules: StoppingRules,
    search: Search | None,
) -> tuple[FitWork | EstimatorWork, str]:
    """What a worker does, and how the solver's problem differs from the task's but for the bias."""
    traits = info.traits
    if "outside" in traits:
        differs = [
            f"it is given {name}" for name in traits["unless"] if given.get(name) is not None
        ]
        if _several(dataset) and traits["several"]:
            differs.insert(0, traits["several"])
        solves = False if differs or _several(dataset) else traits["solves"]
        tol = _tolerance({**info.defaults, **given}.get("tol"))
        work = EstimatorWork(problem, entry.name, given, seed, solves, tol)
        return work, " and ".join(differs)
    return FitWork(
        problem,
        entry.name,
        given,
        study.budget.checkpoint_factor,
        study.budget.epoch_checkpoints,
        rules=rules,
        search=search,
    ), ""


def _tolerance(given: Any) -> float:
    return float(given) if isinstance(given, int | float) else DEFAULT_TOL


def _dataset_columns(dataset: DatasetInfo | None) -> dict[str, Any]:
    if dataset is None:
        return {}
    names = ("fingerprint", "n_train", "n_test", "n_features", "n_classes")
    return {name: getattr(dataset, name) for name in names}


def _given_parameters(
    task: Task, entry: SolverEntry, info: SolverInfo, seed: int
) -> dict[str, Any]:
    """The parameters that the task, the seed and the study set, of those that the class has."""
    values: dict[str, Any] = {
        **task.kernel_parameters,
        "C": task.C,
        "fit_intercept": _fits_bias(task, info),
        "random_state": seed,
    }
    if "outside" in info.traits:
        decided = info.traits["decided"]
        return {name: values[name] for name in decided if name in values} | entry.params
    if info.traits["scalarization"] == "S":
        # What C is to the other forms of the problem.
        values["nu"] = "reference"
    values.update(entry.params)
    return {name: value for name, value in values.items() if name in info.accepted}


def skip_reason(
    study: Study, task: Task, entry: SolverEntry, info: SolverInfo, dataset: DatasetInfo | None
) -> str:
    """Why this solver cannot be run on this task by its own account; empty if it can.

    Without a dataset by what the study says alone.
    """
    if not info.traits["instrumented"]:
        counted = [name for name in ("kernel_evals", "iterations") if name in study.budget.rules]
        if counted:
            limits = " and ".join(counted)
            return f"{entry.label} does not count, so the budget's {limits} cannot limit it"
        if (task.tune or entry.tune) and study.tuning.kernel_evals is not None:
            return f"{entry.label} does not count, so kernel_evals of [tuning] cannot limit it"
    if (
        dataset is not None
        and _several(dataset)
        and info.traits["scalarization"] == "S"
        and "nu" not in entry.params
    ):
        return (
            f"{entry.label} takes nu from the reference optimum, and each of the "
            f"{dataset.n_classes} classes has another one; give nu a number in params"
        )
    outside = "outside" in info.traits
    if not entry.other_problem and not (outside and _several(dataset)):
        if task.fit_intercept and not info.traits["supports_bias"]:
            return (
                f"{entry.label} has no unregularised bias, which the task asks for; set "
                "fit_intercept = false there, or other_problem = true for the solver"
            )
        if not task.fit_intercept and not info.traits["supports_no_bias"]:
            return (
                f"{entry.label} always fits a bias, which the task has not; set "
                "fit_intercept = true there, or other_problem = true for the solver"
            )
    if outside and (task.tune or entry.tune):
        return f"{entry.label} cannot be tuned: it is of another library"
    if outside:
        kernels = info.traits["kernels"]
        if kernels and task.kernel not in kernels:
            return f"{entry.label} has no kernel {task.kernel!r}"
        return ""
    if dataset is not None and dataset.sparse and not info.traits["supports_sparse"]:
        return f"{entry.label} does not take sparse data"
    if task.kernel != "linear" and "kernel" not in info.accepted:
        return f"{entry.label} takes no kernel; the task has {task.kernel!r}"
    missing = sorted(set(task.kernel_parameters) - info.accepted - {"kernel"})
    if missing:
        return f"{entry.label} does not take the kernel's {', '.join(missing)}"
    return ""


def _several(dataset: DatasetInfo | None) -> bool:
    return dataset is not None and dataset.n_classes > 2


def _rounded(nu: float | None) -> float | None:
    return None if nu is None else _to_ten_digits(nu)


def _to_ten_digits(value: float) -> float:
    """Rounded far below the certified gap: the same after the cache was emptied."""
    return float(f"{value:.10g}")
