"""Studies of SVM solvers as a kind: what they ask, how they are planned and described."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Any

from ..evaluation.comparison import compare_with_reference, fill_in_gap
from ..evaluation.svm import ReferenceInfo, ReferenceWork
from ..execution.jobs import Job, Limits
from ..results.svm import Record
from ..study.datasets import is_users_file
from ..study.parts import SolverEntry
from ..study.select import (
    dataset_names,
    find,
    imported_names,
    is_foreign,
    unknown_task,
)
from ..study.svm import Study, Task
from .asking import Ask, check_parameters
from .judging import Judging
from .kinds import Facts, Run
from .questions import DatasetInfo, SolverInfo
from .svm_judging import JUDGING, OUTSIDE
from .svm_runs import (
    DECIDED_BY_TASK,
    ReferenceKey,
    plan_runs,
    reference_key,
    skip_reason,
)
from .tuning import with_first_values

# Traits of solvers that study.json tells.
_DESCRIBED_TRAITS = ("scalarization", "certificate", "instrumented", "deterministic")
# Why no study may set class_weight.
_WEIGHTED = "changes the problem, which is that of the task and the same for every solver"
# Part of a worker's memory that the reference optimum may fill with kernel rows.
_CACHE_SHARE = 0.4
#: Stands for an optimum that has not been computed: no record has a key that is made of it.
_NOT_YET = ReferenceInfo(
    primal=math.nan,
    dual=math.nan,
    gap=math.nan,
    test_error=math.nan,
    n_support=0,
    nu=math.nan,
    hash="",
)


@dataclass(frozen=True)
class SVMFacts(Facts):
    """Also the reference optimum of each task, or of its folds, or why there is none."""

    references: Mapping[ReferenceKey, ReferenceInfo | str] = field(default_factory=dict)

    def completed(self, study: Study) -> Study:
        """The study with the kernel widths that were computed from the data."""
        return _with_gammas(study, self.datasets)


class SVMKind:
    """Tasks x solvers x seeds, judged against a certified optimum."""

    name = "svm"
    study = Study
    record = Record

    def judging(self, traits: Mapping[str, Any]) -> Judging:
        return OUTSIDE if "outside" in traits else JUDGING

    def traits(self, cls: type[Any], name: str) -> dict[str, Any]:
        from ...solvers import Solver
        from ..evaluation import estimators

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
            "deterministic": _is_deterministic(cls, foreign=is_foreign(name)),
            **_package_traits(cls),
        }

    def new_task(self, study: Study, name: str, label: str) -> Task:
        dataset = find(name, dataset_names())
        if dataset is None:
            imported = imported_names()
            if name not in imported and not is_users_file(name, None):
                raise unknown_task(study, name, [*dataset_names(), *imported])
            return Task(dataset=name, label=label).completed()
        return Task(dataset=dataset, label=label.replace(name, dataset, 1)).completed()

    def stand_ins(self, cls: type[Any]) -> dict[str, Any]:
        return {"fit_intercept": not getattr(cls, "supports_no_bias", True)}

    def solvers(self, study: Study, ask: Ask) -> dict[str, SolverInfo]:
        solvers = ask.solvers(study.solvers, self.name)
        own = [entry for entry in study.solvers if "outside" not in solvers[entry.label].traits]
        check_parameters(
            study,
            [with_first_values(entry) for entry in own],
            solvers,
            "task",
            DECIDED_BY_TASK,
            given=("nu",),
            refused={"class_weight": _WEIGHTED},
        )
        for entry in study.solvers:
            if entry in own:
                continue
            info = solvers[entry.label]
            if info.traits["any_parameter"]:
                known = {**info.defaults, **dict.fromkeys(entry.params)}
                info = solvers[entry.label] = replace(info, defaults=known)
            decided = [*info.traits["decided"], "random_state"]
            check_parameters(study, [entry], {entry.label: info}, "task", decided)
        return solvers

    def seeds(
        self, study: Study, task: Task, entry: SolverEntry, info: SolverInfo
    ) -> Sequence[int]:
        return study.seeds_of(task, entry, info.traits)

    def skip_reason(self, study: Study, task: Task, entry: SolverEntry, info: SolverInfo) -> str:
        return skip_reason(study, task, entry, info, None)

    def facts(self, study: Study, ask: Ask) -> SVMFacts:
        solvers = self.solvers(study, ask)
        for line in _run_once(study, solvers):
            ask.say(line)
        datasets = ask.datasets(study.task)
        for line in _untested_folds(study):
            ask.say(line)
        study = _with_gammas(study, datasets)
        return SVMFacts(solvers, datasets, _references(study, solvers, datasets, ask))

    def plan(self, study: Study, facts: SVMFacts) -> list[Run]:
        study = facts.completed(study)
        runs = [
            run
            for task in study.task
            for entry in study.solver
            for run in plan_runs(
                study,
                facts,
                task,
                entry,
                self.seeds(study, task, entry, facts.solvers[entry.label]),
            )
        ]
        study.check_chosen(runs)
        return runs

    def describe(self, study: Study, facts: SVMFacts) -> dict[str, Any]:
        study = facts.completed(study)
        return {
            "seeds": list(range(study.seeds)),
            "reference": study.reference.model_dump(),
            "tuning": study.tuning.model_dump(exclude_none=True),
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


def _with_gammas(study: Study, datasets: Mapping[str, DatasetInfo | str]) -> Study:
    def one(task: Task) -> Task:
        info = datasets[task.label]
        # A study that was built in Python was never completed.
        task = task if task.C is not None else task.completed(folder=task.folder)
        return task if isinstance(info, str) else task.with_gamma(info.default_gamma)

    return study.with_tasks([one(task) for task in study.task])


def _package_traits(cls: type[Any]) -> dict[str, Any]:
    """The version of the package that a solver needs, for its keys, or that it is missing."""
    from ...solvers.registration import missing_package

    if not cls.requires:
        return {}
    if missing_package(cls):
        words = f"{cls.__name__} needs the package {cls.requires}, which is not installed"
        return {"missing": f"{words}: pip install 'marginbench[peers]'"}
    return {"packages": {cls.requires: metadata.version(cls.requires)}}


def _is_deterministic(cls: type[Any], *, foreign: bool) -> bool:
    """Whether every seed gives the same model.

    A class from outside must say so itself: what it inherits may not hold for what it adds.
    """
    if not foreign:
        return bool(cls.deterministic) or "random_state" not in inspect.signature(cls).parameters
    says = next(base for base in cls.__mro__ if "deterministic" in vars(base))
    own = says is cls or not says.__module__.startswith("marginbench.")
    return own and bool(cls.deterministic)


def _run_once(study: Study, solvers: Mapping[str, SolverInfo]) -> Iterator[str]:
    """A line about the solvers of which one run tells as much as many."""
    names = dict.fromkeys(
        entry.class_name
        for entry in study.solver
        for task in study.task
        if study.seeds > 1
        and entry.seeds is None
        and study.repeats_itself(task, entry, solvers[entry.label].traits)
    )
    if names:
        verb = "is" if len(names) == 1 else "are"
        task = "task" if all(task.folds is None for task in study.task) else "task without folds"
        yield f"{', '.join(names)} {verb} deterministic: one run a {task} instead of {study.seeds}"


def _untested_folds(study: Study) -> Iterator[str]:
    for task in study.task:
        if task.folds is not None and study.seeds < task.folds and study.selection is None:
            yield (
                f"{task.label}: only {study.seeds} of {task.folds} folds are run; set seeds = "
                f"{task.folds} for all"
            )


def _references(
    study: Study,
    solvers: Mapping[str, SolverInfo],
    datasets: Mapping[str, DatasetInfo | str],
    ask: Ask,
) -> dict[ReferenceKey, ReferenceInfo | str]:
    """The reference optimum of each task, or of each of its folds, or why there is none."""
    limits = Limits(
        {**ask.limits.seconds, "solve": study.reference.timeout},
        ask.limits.memory,
        ask.limits.total + study.reference.timeout,
    )
    found: dict[ReferenceKey, ReferenceInfo | str] = {}
    # What a job is about, by its name on the terminal.
    asked: dict[str, ReferenceKey] = {}

    def jobs() -> Iterator[Job]:
        for task in study.task:
            info = datasets[task.label]
            for seed in _reference_seeds(study, solvers, task):
                key = reference_key(task, seed)
                if isinstance(info, str):
                    found[key] = info
                elif task.why_no_reference:
                    found[key] = task.why_no_reference
                else:
                    cache_mb = _CACHE_SHARE * study.budget.memory
                    problem = replace(task.problem(seed), fingerprint=info.fingerprint)
                    work = ReferenceWork(
                        problem, study.reference.tol, cache_mb, lookup=not ask.computes
                    )
                    tag = task.label if task.folds is None else f"{task.label}, seed {seed}"
                    while tag in asked:  # another task may have this very label
                        tag += "'"
                    asked[tag] = key
                    yield Job(tag, work, limits, ask.threads)

    for job, outcome in ask(jobs(), "computing the reference optimum of {}"):
        key = asked[job.tag]
        if outcome.status == "done":
            found[key] = outcome.value
            if outcome.value.note:
                ask.say(outcome.value.note)
        elif not ask.computes:
            found[key] = _NOT_YET
            ask.say(
                f"the reference optimum of {job.tag} is computed first, in at most "
                f"{study.reference.timeout:g} s"
            )
        else:
            reason = outcome.reason.removeprefix("ReferenceFailure: ")
            found[key] = f"{outcome.status}: {reason}"
            ask.say(f"no reference optimum of {job.tag} ({found[key]}); its runs go on without")
    return found


def _reference_seeds(study: Study, solvers: Mapping[str, SolverInfo], task: Task) -> Sequence[int]:
    """Seeds of which a reference optimum is needed: one unless each has a fold of its own."""
    if task.folds is None:
        return [0]
    seeds = (study.seeds_of(task, entry, solvers[entry.label].traits) for entry in study.solver)
    return sorted(set().union(*seeds))


def _describe_task(task: Task, info: DatasetInfo | str) -> dict[str, Any]:
    return {
        "label": task.label,
        "dataset": task.dataset,
        "dataset_params": dict(task.dataset_params),
        "kernel": task.kernel_description,
        "C": task.problem(0).C,
        "fit_intercept": task.fit_intercept,
        "reference": not task.why_no_reference,
        "folds": task.folds,
        "tune": dict(task.tune),
        "citation": "" if isinstance(info, str) else info.citation,
        "licence": "" if isinstance(info, str) else info.licence,
        "decided": [] if isinstance(info, str) else list(info.decided),
    }


def _describe_solver(entry: SolverEntry, info: SolverInfo) -> dict[str, Any]:
    outside = "outside" in info.traits
    return {
        "label": entry.label,
        "class": info.shown,
        "params": dict(entry.params),
        "tune": dict(entry.tune),
        "summary": info.summary,
        **{name: info.traits.get(name, False) for name in _DESCRIBED_TRAITS},
        "judged_by": "model" if info.traits["certificate"] or not outside else "predictions",
    }


KIND = SVMKind()
