"""What must be known before runs can be planned, found out in workers: nothing of it may hang."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from marginbench.harness.errors import SolverError
from marginbench.harness.jobs import (
    DatasetInfo,
    DatasetJob,
    DescribeJob,
    Ended,
    Executor,
    Job,
    Limits,
    Outcome,
    ReferenceInfo,
    ReferenceJob,
    SolverInfo,
    Started,
)
from marginbench.harness.keys import canonical_json
from marginbench.harness.svm.planning import Facts, check_parameters, task_job
from marginbench.harness.study import Study, Task

Say = Callable[[str], None]

# Seconds after which the user is told what is being waited for.
_A_MOMENT = 3.0
# Part of a worker's memory that the reference optimum may fill with kernel rows.
_CACHE_SHARE = 0.4


def gather_facts(study: Study, executor: Executor, *, say: Say, threads: int = 1) -> Facts:
    """Import the solvers, load the datasets, and get the reference optima.

    Parameters
    ----------
    study : Study
    executor : Executor
    say : callable
        Takes one line for the user: what takes long, what was put right.
    threads : int

    Raises
    ------
    SolverError
        If a solver cannot be imported.
    StudyError
        If a solver does not take the parameters that the study gives it.
    """
    limits = study_limits(study)
    solvers = _solvers(study, executor, limits, threads, say)
    check_parameters(study, solvers)
    datasets = _datasets(study, executor, limits, threads, say)
    references = _references(study, executor, datasets, threads, say)
    return Facts(datasets=datasets, solvers=solvers, references=references)


def study_limits(study: Study) -> Limits:
    """The limits of a run of this study."""
    budget = study.budget
    return Limits(
        seconds={
            "data": budget.data_timeout,
            "compile": budget.compile_timeout,
            "solve": budget.timeout,
            "evaluate": budget.evaluation_timeout,
        },
        memory=budget.memory,
    )


def is_foreign(name: str) -> bool:
    """Whether a solver's name means code from outside the project, not a registered solver."""
    return ":" in name


def _solvers(
    study: Study, executor: Executor, limits: Limits, threads: int, say: Say
) -> dict[str, SolverInfo]:
    names = dict.fromkeys(entry.name for entry in study.solver)
    jobs = (
        Job(name, DescribeJob(name), limits, threads, foreign=is_foreign(name)) for name in names
    )
    found: dict[str, SolverInfo] = {}
    for job, outcome in _run(executor, jobs, say, "importing {}"):
        if outcome.status == "user":
            raise SolverError(outcome.reason)
        if outcome.status != "done":
            raise SolverError(f"{job.tag}: importing it failed: {outcome.reason}")
        found[job.tag] = outcome.value
    return {entry.label: found[entry.name] for entry in study.solver}


def _datasets(
    study: Study, executor: Executor, limits: Limits, threads: int, say: Say
) -> dict[str, DatasetInfo | str]:
    wanted = {_dataset_tag(task): task for task in study.task}
    jobs = (
        Job(tag, DatasetJob(task.dataset, dict(task.dataset_params)), limits, threads)
        for tag, task in wanted.items()
    )
    found: dict[str, DatasetInfo | str] = {}
    for job, outcome in _run(executor, jobs, say, "loading {}"):
        if outcome.status == "done":
            found[job.tag] = outcome.value
            for note in outcome.value.notes:
                say(note)
        else:
            found[job.tag] = _data_reason(wanted[job.tag].dataset, outcome)
    return {task.label: found[_dataset_tag(task)] for task in study.task}


def _references(
    study: Study,
    executor: Executor,
    datasets: dict[str, DatasetInfo | str],
    threads: int,
    say: Say,
) -> dict[str, ReferenceInfo | str]:
    found: dict[str, ReferenceInfo | str] = {}
    limits = study_limits(study)
    limits = Limits({**limits.seconds, "solve": study.reference.timeout}, limits.memory)

    def jobs() -> Iterator[Job]:
        for task in study.task:
            info = datasets[task.label]
            if isinstance(info, str):
                found[task.label] = info
            elif not task.reference:
                found[task.label] = "the study asks for none"
            elif info.n_classes != 2:
                found[task.label] = f"{task.dataset} has {info.n_classes} classes"
            else:
                work = ReferenceJob(
                    task_job(task), study.reference.tol, _CACHE_SHARE * study.budget.memory
                )
                yield Job(task.label, work, limits, threads)

    for job, outcome in _run(executor, jobs(), say, "computing the reference optimum of {}"):
        label = job.tag
        if outcome.status == "done":
            found[label] = outcome.value
            if outcome.value.note:
                say(outcome.value.note)
        else:
            reason = outcome.reason.removeprefix("ReferenceFailure: ")
            found[label] = f"{outcome.status}: {reason}"
            say(f"no reference optimum of {label} ({found[label]}); its runs go on without")
    return found


def _run(
    executor: Executor, jobs: Iterable[Job], say: Say, words: str
) -> Iterator[tuple[Job, Outcome]]:
    """Run jobs; what takes more than a moment is announced in these words."""
    unannounced: dict[str, float] = {}
    for event in executor.execute(iter(jobs)):
        if isinstance(event, Started):
            unannounced[event.job.tag] = time.monotonic() + _A_MOMENT
        elif isinstance(event, Ended):
            unannounced.pop(event.job.tag, None)
            yield event.job, event.outcome
        else:
            for tag in [tag for tag, due in unannounced.items() if time.monotonic() > due]:
                del unannounced[tag]
                say(words.format(tag) + " ...")


def _dataset_tag(task: Task) -> str:
    return f"{task.dataset} {canonical_json(task.dataset_params)}".removesuffix(" {}")


def _data_reason(dataset: str, outcome: Outcome) -> str:
    if outcome.status == "data":
        return outcome.reason
    return f"{dataset}: {outcome.reason}"
