"""Studies of SVM solvers as a kind: what they ask, how they are planned and described."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from marginbench.harness.asking import Ask, check_parameters
from marginbench.harness.jobs import DatasetInfo, Job, Limits, SolverInfo
from marginbench.harness.judging import Judging
from marginbench.harness.kinds import Facts, Run
from marginbench.harness.selection import dataset_names, find, unknown_task
from marginbench.harness.study import SolverEntry
from marginbench.harness.svm.comparison import compare_with_reference, fill_in_gap
from marginbench.harness.svm.judging import JUDGING, OUTSIDE
from marginbench.harness.svm.outside.planning import check_outside, program_info
from marginbench.harness.svm.outside.templates import is_command
from marginbench.harness.svm.planning import DECIDED_BY_TASK, plan_run
from marginbench.harness.svm.records import Record
from marginbench.harness.svm.study import Study, Task
from marginbench.harness.svm.work import ReferenceInfo, ReferenceWork

# Part of a worker's memory that the reference optimum may fill with kernel rows.
_CACHE_SHARE = 0.4


@dataclass(frozen=True)
class SVMFacts(Facts):
    """Also the reference optimum of each task by label, or why there is none."""

    references: Mapping[str, ReferenceInfo | str] = field(default_factory=dict)


class SVMKind:
    """Tasks x solvers x seeds, judged against a certified optimum."""

    name = "svm"
    study = Study
    record = Record

    def judging(self, traits: Mapping[str, Any]) -> Judging:
        return OUTSIDE if "outside" in traits else JUDGING

    def traits(self, cls: type[Any], name: str) -> dict[str, Any]:
        from marginbench.harness.svm.outside import estimators
        from marginbench.solvers import Solver

        if not inspect.isclass(cls) or not issubclass(cls, Solver):
            estimators.check_maker(cls, name)
            return estimators.traits_of(cls)
        return {
            "supports_bias": bool(cls.supports_bias),
            "supports_no_bias": bool(cls.supports_no_bias),
            "supports_sparse": bool(cls.supports_sparse),
            "scalarization": cls.scalarization,
            "certificate": cls.certificate,
            "instrumented": bool(cls.instrumented),
        }

    def new_task(self, study: Study, name: str, label: str) -> Task:
        dataset = find(name, dataset_names())
        if dataset is None:
            raise unknown_task(study, name, dataset_names())
        return Task(dataset=dataset, label=label.replace(name, dataset, 1)).completed()

    def facts(self, study: Study, ask: Ask) -> SVMFacts:
        programs = [entry for entry in study.solvers if is_command(entry.name)]
        others = [entry for entry in study.solvers if entry not in programs]
        solvers = ask.solvers(others, self.name)
        solvers |= {entry.label: program_info(entry) for entry in programs}
        own = [entry for entry in others if "outside" not in solvers[entry.label].traits]
        check_parameters(own, solvers, "task", DECIDED_BY_TASK, given=("nu",))
        solvers |= {
            entry.label: check_outside(entry, solvers[entry.label])
            for entry in study.solvers
            if entry not in own
        }
        datasets = ask.datasets(study.task)
        return SVMFacts(solvers, datasets, _references(study, datasets, ask))

    def plan(self, study: Study, facts: SVMFacts) -> list[Run]:
        return [
            plan_run(study, facts, task, entry, seed)
            for task in study.task
            for entry in study.solver
            for seed in range(study.n_seeds(task, entry))
        ]

    def describe(self, study: Study, facts: SVMFacts) -> dict[str, Any]:
        return {
            "seeds": list(range(study.seeds)),
            "reference": study.reference.model_dump(),
            "tasks": [_describe_task(task, facts.datasets[task.label]) for task in study.task],
            "solvers": [_describe_solver(s, facts.solvers[s.label]) for s in study.solver],
        }

    def complete(self, record: Record, run: Run) -> None:
        fill_in_gap(record)
        if run.reference is not None:
            minimises = run.traits["scalarization"] is not None and not record.other_problem
            compare_with_reference(record, run.reference, minimises=minimises)

    def is_current(self, record: Record, run: Run) -> bool:
        return run.reference is None or record.reference_hash == run.reference.hash

    def limits_hit(self, record: Record) -> frozenset[str]:
        return frozenset()

    def headline(self, record: Record) -> Iterator[str]:
        if record.wall_s is not None:
            yield f"{record.wall_s:.2f} s"
        if record.test_error is not None:
            yield f"test error {100 * record.test_error:.2f} %"
        if record.suboptimality is not None:
            yield f"suboptimality {record.suboptimality:.1e}"
        if record.n_support is not None:
            yield f"{record.n_support} support vectors"


def _references(
    study: Study, datasets: Mapping[str, DatasetInfo | str], ask: Ask
) -> dict[str, ReferenceInfo | str]:
    """The reference optimum of each task by label, or why there is none."""
    limits = Limits(
        {**ask.limits.seconds, "solve": study.reference.timeout},
        ask.limits.memory,
        ask.limits.total + study.reference.timeout,
    )
    found: dict[str, ReferenceInfo | str] = {}

    def jobs() -> Iterator[Job]:
        for task in study.task:
            info = datasets[task.label]
            if isinstance(info, str):
                found[task.label] = info
            elif not task.reference:
                found[task.label] = "the task has reference = false"
            else:
                cache_mb = _CACHE_SHARE * study.budget.memory
                work = ReferenceWork(task.problem, study.reference.tol, cache_mb)
                yield Job(task.label, work, limits, ask.threads)

    for job, outcome in ask(jobs(), "computing the reference optimum of {}"):
        label = job.tag
        if outcome.status == "done":
            found[label] = outcome.value
            if outcome.value.note:
                ask.say(outcome.value.note)
        else:
            reason = outcome.reason.removeprefix("ReferenceFailure: ")
            found[label] = f"{outcome.status}: {reason}"
            ask.say(f"no reference optimum of {label} ({found[label]}); its runs go on without")
    return found


def _describe_task(task: Task, info: DatasetInfo | str) -> dict[str, Any]:
    return {
        "label": task.label,
        "dataset": task.dataset,
        "dataset_params": dict(task.dataset_params),
        "kernel": task.kernel_description,
        "C": task.C,
        "fit_intercept": task.fit_intercept,
        "reference": task.reference,
        "citation": "" if isinstance(info, str) else info.citation,
        "licence": "" if isinstance(info, str) else info.licence,
    }


def _describe_solver(entry: SolverEntry, info: SolverInfo) -> dict[str, Any]:
    outside = "outside" in info.traits
    return {
        "label": entry.label,
        "class": info.shown,
        "params": dict(entry.params),
        "summary": info.summary,
        **{name: info.traits[name] for name in ("scalarization", "certificate", "instrumented")},
        "judged_by": "model" if info.traits["certificate"] or not outside else "predictions",
    }


KIND = SVMKind()
