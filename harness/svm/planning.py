"""From a task, a solver and a seed to a run: parameters, key, and why it may be skipped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from marginbench.harness.jobs import DatasetInfo, SolverInfo
from marginbench.harness.keys import canonical_json, hash_json, key_parts
from marginbench.harness.kinds import Run
from marginbench.harness.selection import is_foreign
from marginbench.harness.study import SolverEntry, run_limits
from marginbench.harness.svm.outside.planning import plan_outside, refusal
from marginbench.harness.svm.outside.work import OutsideWork
from marginbench.harness.svm.study import Study, Task, kernel_code
from marginbench.harness.svm.work import DEFAULT_TOL, FitWork, Problem

if TYPE_CHECKING:
    from marginbench.harness.svm.kind import SVMFacts

#: Parameters that the task or the seed decides; the same for every solver of a study.
DECIDED_BY_TASK = ("kernel", "gamma", "degree", "coef0", "C", "fit_intercept", "random_state")


def plan_run(study: Study, facts: SVMFacts, task: Task, entry: SolverEntry, seed: int) -> Run:
    """The run of a solver on a task with a seed."""
    info = facts.solvers[entry.label]
    found, certified = facts.datasets[task.label], facts.references[task.label]
    dataset = None if isinstance(found, str) else found
    reference = None if isinstance(certified, str) else certified
    given = _given_parameters(task, entry, info, seed)
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
    params = {**dict.fromkeys(info.required), **info.defaults, **given}
    problem, budget = _solved_problem(task, info), study.budget
    work, other = _work(study, entry, info, problem, given, params, seed, dataset)
    if problem != task.problem:
        other = "; ".join(filter(None, (_bias_words(problem), other)))
    skipped = "" if dataset is None else _skip_reason(task, entry, info, dataset)
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
            **({"other_problem": other} if other and not skipped else {}),
        },
        seed=seed,
        labels=(task.label, entry.label),
    )
    return Run(
        key=hash_json(parts),
        task=task.label,
        solver=entry.label,
        seed=seed,
        work=work,
        limits=run_limits(budget),
        known={
            "key_parts": canonical_json(parts),
            "version": info.version,
            "solver_class": info.shown,
            "params": canonical_json(params),
            "dataset": task.dataset,
            "dataset_params": canonical_json(task.dataset_params),
            "kernel": canonical_json(problem.kernel),
            "C": task.C,
            "fit_intercept": task.fit_intercept,
            "other_problem": "" if skipped else other,
            "judged_by": "predictions" if _predicts(work) else "model",
            **_dataset_columns(dataset),
        },
        foreign=is_foreign(entry.name) or "outside" in info.traits,
        skip_reason=skipped,
        failure=failure or info.traits.get("missing", ""),
        traits=info.traits,
        reference=reference,
    )


def _solved_problem(task: Task, info: SolverInfo) -> Problem:
    """The task's problem, with or without a bias as the solver's always is."""
    supported = "supports_bias" if task.fit_intercept else "supports_no_bias"
    if info.traits[supported]:
        return task.problem
    return replace(task.problem, fit_intercept=not task.fit_intercept)


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
    params: dict[str, Any],
    seed: int,
    dataset: DatasetInfo | None,
) -> tuple[FitWork | OutsideWork, str]:
    """What a worker does, and how the solver's problem differs from the task's but for the bias."""
    if "outside" in info.traits:
        plan = plan_outside(entry, info, problem, given, seed, several=_several(dataset))
        return plan.work, plan.other_problem
    return FitWork(
        problem,
        entry.name,
        given,
        study.budget.checkpoint_factor,
        study.budget.epoch_checkpoints,
        tol=_tolerance(params.get("tol")),
        certificate=info.traits["certificate"] == "dual",
        instrumented=bool(info.traits["instrumented"]),
    ), ""


def _predicts(work: FitWork | OutsideWork) -> bool:
    return isinstance(work, OutsideWork) and not work.solves


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
        "fit_intercept": _solved_problem(task, info).fit_intercept,
        "random_state": seed,
    }
    if "outside" in info.traits:
        decided = info.traits["decided"] if info.traits["outside"] == "estimator" else ()
        return {name: values[name] for name in decided if name in values} | entry.params
    if info.traits["scalarization"] == "S":
        # What C is to the other forms of the problem.
        values["nu"] = "reference"
    values.update(entry.params)
    return {name: value for name, value in values.items() if name in info.accepted}


def _skip_reason(task: Task, entry: SolverEntry, info: SolverInfo, dataset: DatasetInfo) -> str:
    """Why this solver cannot be run on this task by its own account; empty if it can."""
    if _several(dataset) and info.traits["scalarization"] == "S" and "nu" not in entry.params:
        return (
            f"{entry.label} takes nu from the reference optimum, and each of the "
            f"{dataset.n_classes} classes has another one; give nu a number in params"
        )
    outside = "outside" in info.traits
    if not entry.other_problem and not (outside and _several(dataset)):
        if task.fit_intercept and not info.traits["supports_bias"]:
            return f"{entry.label} has no unregularised bias, which the task asks for"
        if not task.fit_intercept and not info.traits["supports_no_bias"]:
            return f"{entry.label} always fits a bias, which the task has not"
    if outside:
        return refusal(entry, info, task.kernel_description, _several(dataset))
    if dataset.sparse and not info.traits["supports_sparse"]:
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
    """To ten digits, far below the certified gap: the same after the cache was emptied."""
    return None if nu is None else float(f"{nu:.10g}")
