"""From a study to its runs: parameters, keys, and which combinations are skipped and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marginbench.harness.errors import StudyError
from marginbench.harness.jobs import DatasetInfo, ReferenceInfo, RunJob, SolverInfo, TaskJob
from marginbench.harness.keys import canonical_json, hash_json, run_key
from marginbench.harness.records import Record, file_name_of
from marginbench.harness.study import SolverEntry, Study, Task

# Parameters that the task or the seed decides; the same for every solver of a study.
_DECIDED_BY_TASK = ("kernel", "gamma", "degree", "coef0", "C", "fit_intercept", "random_state")


@dataclass(frozen=True)
class Facts:
    """What the workers found out about a study; reasons (str) stand for what is not to be had.

    Attributes
    ----------
    datasets : mapping
        Label of a task -> its dataset, or why it cannot be loaded.
    solvers : mapping
        Label of a solver -> its class.
    references : mapping
        Label of a task -> its reference optimum, or why there is none.
    """

    datasets: Mapping[str, DatasetInfo | str]
    solvers: Mapping[str, SolverInfo]
    references: Mapping[str, ReferenceInfo | str]


@dataclass(frozen=True)
class PlannedRun:
    """One solver on one task with one seed.

    Attributes
    ----------
    params : dict
        Every parameter of the estimator.
    job : RunJob
    skip_reason : str
        Why the combination is not supported; empty if it is.
    failure : str
        Why the run cannot even start; empty if it can.
    """

    key: str
    task: Task
    solver: SolverEntry
    seed: int
    params: dict[str, Any]
    job: RunJob
    skip_reason: str
    failure: str
    dataset: DatasetInfo | None
    solver_info: SolverInfo
    reference: ReferenceInfo | None

    def new_record(self, study: Study) -> Record:
        """A record with all that is known before the run."""
        info = self.dataset
        record = Record(
            key=self.key,
            study=study.name,
            task=self.task.label,
            dataset=self.task.dataset,
            dataset_params=canonical_json(self.task.dataset_params),
            fingerprint=None if info is None else info.fingerprint,
            kernel=canonical_json(self.task.kernel_description),
            C=self.task.C,
            fit_intercept=self.task.fit_intercept,
            solver=self.solver.label,
            solver_class=self.solver_info.shown,
            params=canonical_json(self.params),
            seed=self.seed,
            budget=canonical_json(study.budget.model_dump()),
            status="failed",
        )
        if info is not None:
            record.n_train, record.n_test = info.n_train, info.n_test
            record.n_features = info.n_features
        return record

    @property
    def file_name(self) -> str:
        """Name of the record's file."""
        return file_name_of(self.key, self.task.label, self.solver.label, self.seed)


def task_job(task: Task) -> TaskJob:
    """The task as workers get it."""
    assert task.C is not None
    return TaskJob(
        dataset=task.dataset,
        dataset_params=dict(task.dataset_params),
        kernel=task.kernel_description,
        C=task.C,
        fit_intercept=task.fit_intercept,
    )


def check_parameters(study: Study, solvers: Mapping[str, SolverInfo]) -> None:
    """Check each solver's parameters against its class.

    Raises
    ------
    StudyError
        For a parameter that the class does not have, one that the task decides, or a missing one.
    """
    from marginbench.data_loaders import suggest

    for entry in study.solver:
        info = solvers[entry.label]
        accepted = set(info.defaults) | set(info.required)
        for name in entry.params:
            if name not in accepted:
                free = sorted(accepted.difference(_DECIDED_BY_TASK))
                raise StudyError(
                    f"solver {entry.label!r}: unknown parameter {name!r}{suggest(name, free)}"
                )
            if name in _DECIDED_BY_TASK:
                raise StudyError(
                    f"solver {entry.label!r}: {name!r} is decided by the task, the same for all "
                    "solvers; remove it from params"
                )
        missing = set(info.required) - set(entry.params) - {*_DECIDED_BY_TASK, "nu"}
        if missing:
            raise StudyError(
                f"solver {entry.label!r}: give a value for {', '.join(sorted(missing))} in params"
            )


def plan(study: Study, facts: Facts) -> list[PlannedRun]:
    """Every run of the study, tasks first, then solvers, then seeds."""
    return [
        _plan_run(study, facts, task, entry, seed)
        for task in study.task
        for entry in study.solver
        for seed in range(min(study.seeds, entry.seeds or study.seeds))
    ]


def _plan_run(study: Study, facts: Facts, task: Task, entry: SolverEntry, seed: int) -> PlannedRun:
    info = facts.solvers[entry.label]
    found, certified = facts.datasets[task.label], facts.references[task.label]
    dataset = None if isinstance(found, str) else found
    reference = None if isinstance(certified, str) else certified
    given = _given_parameters(task, entry, info, seed)
    failure = found if isinstance(found, str) else ""
    for name, value in given.items():
        if value == "reference":
            given[name] = None if reference is None else _rounded(reference.nu)
            if given[name] is None and not failure:
                why = certified if isinstance(certified, str) else "its w is zero"
                failure = f"{name} is to be that of the reference optimum, but there is none: {why}"
    params = {**dict.fromkeys(info.required), **info.defaults, **given}
    job = task_job(task)
    key = run_key(
        source_hash=info.source_hash,
        solver_class=info.shown,
        params=params,
        task={
            "fingerprint": None if dataset is None else dataset.fingerprint,
            "kernel": job.kernel,
            "C": job.C,
            "fit_intercept": job.fit_intercept,
        },
        seed=seed,
        checkpoint_factor=study.budget.checkpoint_factor,
        epoch_checkpoints=study.budget.epoch_checkpoints,
    )
    return PlannedRun(
        # One record per label: the same configuration under two labels is two runs.
        key=hash_json([key, task.label, entry.label]),
        task=task,
        solver=entry,
        seed=seed,
        params=params,
        job=RunJob(
            task=job,
            solver=entry.name,
            params=given,
            checkpoint_factor=study.budget.checkpoint_factor,
            epoch_checkpoints=study.budget.epoch_checkpoints,
        ),
        skip_reason="" if dataset is None else _skip_reason(task, entry, info, dataset),
        failure=failure,
        dataset=dataset,
        solver_info=info,
        reference=reference,
    )


def _given_parameters(
    task: Task, entry: SolverEntry, info: SolverInfo, seed: int
) -> dict[str, Any]:
    """The parameters that the task, the seed and the study set, of those that the class has."""
    accepted = set(info.defaults) | set(info.required)
    values: dict[str, Any] = {
        **task.kernel_parameters,
        "C": task.C,
        "fit_intercept": task.fit_intercept,
        "random_state": seed,
    }
    if info.scalarization == "S":
        # What C is to the other forms of the problem.
        values["nu"] = "reference"
    values.update(entry.params)
    return {name: value for name, value in values.items() if name in accepted}


def _skip_reason(task: Task, entry: SolverEntry, info: SolverInfo, dataset: DatasetInfo) -> str:
    """Why this solver cannot be run on this task by its own account; empty if it can."""
    if dataset.n_classes != 2:
        return f"{task.dataset} has {dataset.n_classes} classes; the solvers are binary"
    if task.fit_intercept and not info.supports_bias:
        return f"{entry.label} has no unregularised bias, which the task asks for"
    if not task.fit_intercept and not info.supports_no_bias:
        return f"{entry.label} always fits a bias, which the task has not"
    if dataset.sparse and not info.supports_sparse:
        return f"{entry.label} does not take sparse data"
    accepted = set(info.defaults) | set(info.required)
    if task.kernel != "linear" and "kernel" not in accepted:
        return f"{entry.label} takes no kernel; the task has {task.kernel!r}"
    missing = sorted(set(task.kernel_parameters) - accepted - {"kernel"})
    if missing:
        return f"{entry.label} does not take the kernel's {', '.join(missing)}"
    return ""


def _rounded(nu: float | None) -> float | None:
    """To ten digits, far below the certified gap: the same after the cache was emptied."""
    return None if nu is None else float(f"{nu:.10g}")
