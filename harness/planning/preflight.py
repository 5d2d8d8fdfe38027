"""What must be known before runs can be planned, found out in workers: no failure there may hang.

Classes are described first, so that a mistake in a study ends the command before data are loaded.
Then come the datasets, each followed by the reference optima on it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from types import MappingProxyType
from typing import Any, TypeAlias

from ...data_loaders import suggest
from ..errors import SolverError, StudyError
from ..evaluation.svm import ReferenceInfo, ReferenceWork
from ..hashing import canonical_json
from ..jobs import (
    Ended,
    Executor,
    Job,
    Limits,
    Outcome,
    PhaseMessage,
    Send,
    Started,
    Work,
    described,
)
from ..study.model import SolverEntry, StudyBase, is_foreign, run_limits
from .plan import kind_named

Say = Callable[[str], None]
#: Label of a task, with folds also the seed.
ReferenceKey: TypeAlias = str | tuple[str, int]

# Seconds after which the user is told what is being waited for.
_A_MOMENT = 3.0
#: Stands for an optimum that has not been computed: no record has a key that is made of it.
_NOT_YET = ReferenceInfo(
    primal=nan, dual=nan, gap=nan, test_error=nan, n_support=0, nu=nan, hash=""
)


@dataclass(frozen=True)
class DatasetInfo:
    """What planning needs to know of a dataset."""

    fingerprint: str
    n_train: int
    n_test: int
    n_features: int
    sparse: bool
    n_classes: int
    citation: str
    licence: str
    notes: tuple[str, ...] = ()  # what the user is told now
    decided: tuple[str, ...] = ()  # what was decided when the user's own data were read
    # A kernel width to start from; None if the points are generated.
    default_gamma: float | None = None


@dataclass(frozen=True)
class SolverInfo:
    """What planning needs to know of a solver's class."""

    shown: str  # "module:Class" or "file.py:Class"
    summary: str
    defaults: dict[str, Any]  # every parameter of the solver with its default
    required: tuple[str, ...]  # parameters without a default
    # What studies of the kind ask of it: what it supports, promises and counts.
    traits: dict[str, Any]
    defined_in: str = ""  # the file that defines it
    source_hash: str = ""  # hash of the code that determines its runs
    version: str = ""  # of its code, in short
    # What the hash is made of: name of a file -> hash of its code.
    files: Mapping[str, str] = field(default_factory=dict)
    # For each entry of the study that names it: why the class does not take the values of its
    # parameters; empty if it does.
    refusals: tuple[str, ...] = ()

    @property
    def accepted(self) -> frozenset[str]:
        """The names of all parameters."""
        return frozenset(self.defaults) | frozenset(self.required)


@dataclass(frozen=True)
class DatasetWork(Work):
    """Load a dataset and describe it."""

    dataset: str
    params: dict[str, Any]
    folder: str | None = None

    def run(self, send: Send) -> DatasetInfo:
        from .solvers import describe_dataset

        send(PhaseMessage("data"))
        return describe_dataset(self)

    def parsed(self, value: Any) -> DatasetInfo:
        info: DatasetInfo = described(DatasetInfo, value)
        return info


@dataclass(frozen=True)
class DescribeWork(Work):
    """Import a solver's class and describe it, as one for studies of a kind.

    ``params`` are the parameters of each entry of the study that names it.
    """

    solver: str
    kind: str
    params: tuple[dict[str, Any], ...] = ()

    def run(self, send: Send) -> SolverInfo:
        from .solvers import describe_solver

        send(PhaseMessage("import"))
        return describe_solver(self)

    def parsed(self, value: Any) -> SolverInfo:
        info: SolverInfo = described(SolverInfo, value)
        return info


@dataclass(frozen=True)
class Facts:
    """What workers found out about a study; a reason (str) stands for what is not to be had."""

    solvers: Mapping[str, SolverInfo]  # label of a solver -> its class
    # Label of a task -> its dataset, or why it cannot be loaded. Tasks whose data are generated
    # in the run have none.
    datasets: Mapping[str, DatasetInfo | str] = field(default_factory=dict)
    # The reference optimum of each task, or of its folds, or why there is none.
    references: Mapping[ReferenceKey, ReferenceInfo | str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReferenceQuestion:
    """A reference optimum that a kind of studies needs."""

    key: ReferenceKey
    task: str  # label of the task, whose dataset it is on
    about: str  # what the user is told that it is of
    work: Callable[[DatasetInfo], ReferenceWork]  # makes the work, from what the dataset is
    without: str  # why there is none by the task's own account; empty if there is to be one
    timeout: float  # seconds of solving
    foreign: bool = False  # whether the work runs code from outside the project


def preflight(
    study: StudyBase, executor: Executor, say: Say, *, threads: int = 1, computes: bool = True
) -> Facts:
    """Find out what planning must know of a study."""
    kind, limits = kind_named(study.kind), run_limits(study.budget)
    solvers = study_solvers(study, executor, say, threads=threads)
    for line in kind.remarks(study, solvers):
        say(line)
    datasets: dict[str, DatasetInfo | str] = {}
    references: dict[ReferenceKey, ReferenceInfo | str] = {}

    def dataset_question(tag: str, tasks: Sequence[Any]) -> _Question:
        first = tasks[0]
        work = DatasetWork(first.dataset, dict(first.dataset_params), first.folder)

        def take(outcome: Outcome) -> None:
            info = outcome.value
            if outcome.status != "done":
                named = "" if outcome.status == "data" else f"{first.dataset}: "
                info = f"{named}{outcome.reason}"
            elif info.notes:
                for note in info.notes:
                    say(note)
            datasets.update(dict.fromkeys((task.label for task in tasks), info))

        job = Job(f"loading {tag}", work, limits, threads, first.runs_code)
        return _Question(lambda: job, take)

    def reference_question(wanted: ReferenceQuestion) -> _Question:
        longer = Limits(
            {**limits.seconds, "solve": wanted.timeout},
            limits.memory,
            limits.total + wanted.timeout,
        )

        def job() -> Job | None:
            info = datasets[wanted.task]
            if isinstance(info, str) or wanted.without:
                references[wanted.key] = info if isinstance(info, str) else wanted.without
                return None
            work = replace(wanted.work(info), lookup=not computes)
            tag = f"computing the reference optimum of {wanted.about}"
            return Job(tag, work, longer, threads, wanted.foreign)

        def take(outcome: Outcome) -> None:
            if outcome.status == "done":
                references[wanted.key] = outcome.value
                if outcome.value.note:
                    say(outcome.value.note)
            elif not computes:
                references[wanted.key] = _NOT_YET
                say(
                    f"the reference optimum of {wanted.about} is computed first, in at most "
                    f"{wanted.timeout:g} s"
                )
            else:
                reason = f"{outcome.status}: {outcome.reason.removeprefix('ReferenceFailure: ')}"
                references[wanted.key] = reason
                say(f"no reference optimum of {wanted.about} ({reason}); its runs go on without")

        return _Question(job, take, ready=lambda: wanted.task in datasets)

    questions = [dataset_question(*item) for item in _by_dataset(kind.data_tasks(study)).items()]
    questions += map(reference_question, kind.references(study))
    _ask(executor, questions, say)
    return Facts(solvers, datasets, references)


def study_solvers(
    study: StudyBase, executor: Executor, say: Say, *, threads: int = 1
) -> dict[str, SolverInfo]:
    """The classes of a study's solvers by label, their parameters checked.

    The parameters are those of :func:`preflight`.
    """
    solvers = described_solvers(
        study.solvers, study.kind, run_limits(study.budget), executor, say, threads=threads
    )
    return kind_named(study.kind).check_solvers(study, solvers)


def described_solvers(
    entries: Sequence[SolverEntry],
    kind: str,
    limits: Limits,
    executor: Executor,
    say: Say,
    *,
    threads: int = 1,
) -> dict[str, SolverInfo]:
    """The classes of solvers, by label."""
    alike: dict[str, list[SolverEntry]] = {}
    for entry in entries:
        alike.setdefault(entry.name, []).append(entry)
    infos: dict[str, SolverInfo] = {}
    refusals: dict[str, tuple[str, ...]] = {}

    def class_question(name: str, params: tuple[dict[str, Any], ...]) -> _Question:
        def take(outcome: Outcome) -> None:
            if outcome.status == "user":
                raise SolverError(outcome.reason)
            if outcome.status != "done":
                hint = "; raise compile_timeout in [budget]" if outcome.status == "timeout" else ""
                raise SolverError(f"{name}: cannot be imported: {outcome.reason}{hint}")
            infos[name] = outcome.value

        work = DescribeWork(name, kind, params)
        job = Job(f"importing {name}", work, limits, threads, is_foreign(name))
        return _Question(lambda: job, take)

    def refusal_question(name: str, params: tuple[dict[str, Any], ...]) -> _Question:
        def take(outcome: Outcome) -> None:
            if outcome.status == "done":  # what goes wrong here, runs will tell
                refusals[name] = outcome.value.refusals

        work = DescribeWork(name, kind, params)
        job = Job(f"checking the parameters of {name}", work, limits, threads, True)
        return _Question(lambda: job, take)

    questions = []
    for name, named in alike.items():
        params = tuple(entry.params for entry in named)
        # To make an object of a class from outside may do anything: that is another job.
        questions.append(class_question(name, () if is_foreign(name) else params))
        if is_foreign(name) and any(params):
            questions.append(refusal_question(name, params))
    _ask(executor, questions, say)
    return {
        entry.label: replace(
            infos[name],
            refusals=refusals.get(name, infos[name].refusals)[number : number + 1],
        )
        for name, named in alike.items()
        for number, entry in enumerate(named)
    }


@dataclass(frozen=True, eq=False)
class _Question:
    """Something to ask a worker.

    ``job`` gives None if there is nothing to ask after all; ``ready`` says whether what the job
    depends on is known.
    """

    job: Callable[[], Job | None]
    take: Callable[[Outcome], None]
    ready: Callable[[], bool] = lambda: True


def _ask(executor: Executor, questions: Iterable[_Question], say: Say) -> None:
    """Ask workers; what takes more than a moment is announced.

    A worker that crashes may have been killed by someone else: its job is tried once again.
    """
    waiting = list(questions)
    again: set[_Question] = set()
    while waiting:
        asked: dict[int, tuple[Job, _Question]] = {}

        def jobs(asked: dict[int, tuple[Job, _Question]] = asked) -> Iterator[Job]:
            while waiting and waiting[0].ready():
                question = waiting.pop(0)
                job = question.job()
                if job is not None:
                    asked[id(job)] = job, question
                    yield job

        unannounced: dict[str, float] = {}
        for event in executor.execute(jobs()):
            if isinstance(event, Started):
                unannounced[event.job.tag] = time.monotonic() + _A_MOMENT
            elif isinstance(event, Ended):
                unannounced.pop(event.job.tag, None)
                _, question = asked[id(event.job)]
                if event.outcome.status == "crashed" and question not in again:
                    again.add(question)
                    waiting.insert(0, question)
                else:
                    question.take(event.outcome)
            else:
                for tag in [tag for tag, due in unannounced.items() if time.monotonic() > due]:
                    del unannounced[tag]
                    say(f"{tag} ...")


def _by_dataset(tasks: Sequence[Any]) -> dict[str, list[Any]]:
    """Tasks by the name of their data, with all that tells them from others."""
    folders: dict[str, str | None] = {}
    alike: dict[str, list[Any]] = {}
    for task in tasks:
        tag = f"{task.dataset} {canonical_json(task.dataset_params)}".removesuffix(" {}")
        if folders.setdefault(tag, task.folder) != task.folder:
            tag = f"{tag} in {task.folder}"
        alike.setdefault(tag, []).append(task)
    return alike


def check_parameters(
    study: StudyBase,
    entries: Sequence[SolverEntry],
    solvers: Mapping[str, SolverInfo],
    decides: str,
    decided: Sequence[str],
    given: Sequence[str] = (),
    refused: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Check each solver's parameters against its class."""
    # A mistake in a grid counts once, in however many of its entries it is.
    wrong: dict[str, None] = {}
    for entry in entries:
        info = solvers[entry.label]
        for name in entry.params:
            prefix = study.message_prefix(entry.label, "params", name)
            if name not in info.accepted:
                free = sorted(info.accepted.difference(decided, refused))
                wrong[f"{prefix}unknown parameter {name!r}{suggest(name, free)}"] = None
            elif name in decided:
                wrong[
                    f"{prefix}{name!r} is decided by the {decides}, the same for all solvers; "
                    "remove it from params"
                ] = None
            elif name in refused:
                wrong[f"{prefix}{name!r} {refused[name]}; remove it from params"] = None
        missing = set(info.required).difference(entry.params, decided, given)
        if missing:
            names = ", ".join(sorted(missing))
            wrong[f"{study.message_prefix(entry.label)}give a value for {names} in params"] = None
        for refusal in filter(None, info.refusals):
            named = [name for name in entry.params if re.search(rf"\b{re.escape(name)}\b", refusal)]
            wrong[f"{study.message_prefix(entry.label, 'params', *named[:1])}{refusal}"] = None
    if wrong:
        raise StudyError(*wrong)
