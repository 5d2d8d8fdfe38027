"""Facts that planning needs of solvers, datasets and optima, from workers that may fail or hang.

Solver classes are described first, so that a mistake in a study ends the command before data are
loaded. Then come the datasets, and last the reference optima.

Importing solvers and loading data takes seconds. The facts are therefore kept in the results folder
under a hash of their sources: the command of a finished study needs no worker.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import nan
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

from ...data_loaders import suggest
from ...data_loaders.atomic import replacing
from ...data_loaders.cache import datasets_folder
from ...solvers.bibliography import cited, papers
from ..errors import SolverError, StudyError
from ..evaluation.svm import ReferenceInfo
from ..hashing import canonical_json, hash_json
from ..jobs import (
    Ended,
    Executor,
    Job,
    Limits,
    Outcome,
    Send,
    Started,
    Work,
    described,
)
from ..loading import SolverSpec, load_named, shown_name, source_file
from ..storage import storing
from ..study.model import (
    REFERENCE,
    DatasetTask,
    SolverEntry,
    StudyBase,
    is_foreign,
    is_users_file,
    run_limits,
)
from ..words import REASON_LIMIT, visible
from .fingerprint import installed_packages, kernel_code, project_code, source_files, version_of
from .plan import kind_named

Say = Callable[[str], None]
T = TypeVar("T")
#: Label of a task -> its dataset, or why it cannot be loaded.
Datasets: TypeAlias = "Mapping[str, DatasetInfo | str]"

# Characters of the first line of a docstring: what a table of solvers has room for.
_SUMMARY_LIMIT = 200
# Seconds after which a job that has not ended is announced.
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
    notes: tuple[str, ...] = ()  # messages for the user
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
    citation: str = ""  # BibTeX of the papers that its docstring cites

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
    result: ClassVar[Any] = DatasetInfo

    def run(self, send: Send) -> DatasetInfo:
        send({"phase": "data"})
        import numpy as np
        from scipy import sparse

        from ...data_loaders import DataWarning, load
        from ...data_loaders.transforms import scale_gamma

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            dataset = load(self.dataset, self.params or None, folder=self.folder)
        notes = [str(item.message) for item in caught if issubclass(item.category, DataWarning)]
        if dataset.new:
            notes += [f"{dataset.name}: {line}" for line in dataset.decided]
        names = ("fingerprint", "n_train", "n_test", "n_features", "citation", "licence", "decided")
        # The registered kernel width, or the one that is computed from the training part.
        gamma = dataset.default_gamma
        return DatasetInfo(
            **{name: getattr(dataset, name) for name in names},
            sparse=bool(sparse.issparse(dataset.X_train)),
            n_classes=len(np.unique(dataset.y_train)),
            notes=tuple(notes),
            default_gamma=scale_gamma(dataset.X_train) if gamma is None else gamma,
        )


@dataclass(frozen=True)
class DescribeWork(Work):
    """Import a solver's class and describe it; ``params`` are those of each entry with it."""

    solver: str
    kind: str
    params: tuple[dict[str, Any], ...] = ()
    result: ClassVar[Any] = SolverInfo

    def run(self, send: Send) -> SolverInfo:
        send({"phase": "import"})
        spec, name = SolverSpec.parse(self.solver), self.solver
        cls = load_named(name, kind=self.kind)
        traits = kind_named(self.kind).traits(cls, name)
        if inspect.isabstract(cls):
            missing = ", ".join(sorted(cls.__abstractmethods__))
            raise SolverError(f"{name}: the class does not implement {missing}")
        listed = inspect.signature(cls).parameters.values()
        variable = [each for each in listed if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
        if variable and "any_parameter" not in traits:
            words = f"__init__ takes *{variable[0].name}; list every parameter by name"
            raise SolverError(f"{name}: {words}")
        known = {each.name: each.default for each in listed if each not in variable}
        required = tuple(n for n, default in known.items() if default is inspect.Parameter.empty)
        defaults = {n: default for n, default in known.items() if n not in required}
        # With a value that the class allows, the others are checked.
        bias = {"fit_intercept": not getattr(cls, "supports_no_bias", True)}
        stand_ins = bias if "fit_intercept" in known else {}
        defined_in, text = source_file(cls), cls.__doc__ or ""
        files = source_files(name, defined_in, self.kind)
        source_hash = hash_json(files)
        return SolverInfo(
            shown=shown_name(cls, spec),
            summary=visible(inspect.cleandoc(text).partition("\n")[0], _SUMMARY_LIMIT),
            citation="\n\n".join(papers()[label] for label in cited(text)),
            defaults=defaults,
            required=required,
            traits=traits,
            defined_in=str(defined_in),
            source_hash=source_hash,
            version=version_of(source_hash, spec.located() or defined_in),
            files=files,
            refusals=tuple(
                _refusal(cls, {**stand_ins, **params}, known) if params else ""
                for params in self.params
            ),
        )


def _refusal(cls: Any, params: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Why a class does not take these values; empty if it does, or cannot tell before a run."""
    required = {name for name, default in known.items() if default is inspect.Parameter.empty}
    # The type first: an array equals no text.
    values = {k: v for k, v in params.items() if not isinstance(v, str) or v != REFERENCE}
    if not required <= values.keys() <= known.keys():
        return ""
    try:
        estimator = cls(**values)
        for name in ("_check_common_parameters", "_check_parameters"):
            check = getattr(estimator, name, None)
            if callable(check):
                check()
    except (TypeError, ValueError) as error:
        return visible(str(error), REASON_LIMIT)
    except Exception:  # noqa: BLE001 - what else is wrong with it, its runs will tell
        return ""
    return ""


@dataclass(frozen=True)
class Facts:
    """What workers report about a study; a str is the reason why something is missing."""

    solvers: Mapping[str, SolverInfo]  # label of a solver -> its class
    # Tasks whose data are generated in the run have none.
    datasets: Datasets = field(default_factory=dict)
    # The reference optimum of each task, or of its folds, or why there is none.
    references: Mapping[str, ReferenceInfo | str] = field(default_factory=dict)
    complete: bool = True  # whether nothing failed that may be there the next time


def preflight(study: StudyBase, executor: Executor, say: Say, *, computes: bool = True) -> Facts:
    """The facts that planning needs of a study."""
    kind, limits = kind_named(study.kind), run_limits(study.budget)
    solvers = study_solvers(study, executor, say)
    by_tag: dict[str, list[DatasetTask]] = defaultdict(list)
    for task in study.tasks:
        if isinstance(task, DatasetTask):
            words = [canonical_json(task.dataset_params)] if task.dataset_params else []
            words += [f"in {task.folder}"] if task.folder else []
            by_tag[" ".join(["loading", task.dataset, *words])].append(task)
    loading = []
    for tag, tasks in by_tag.items():
        task = tasks[0]
        load = DatasetWork(task.dataset, dict(task.dataset_params), task.folder)
        loading.append((tasks, Job(tag, load, limits, foreign=task.runs_code)))
    datasets: dict[str, DatasetInfo | str] = {}
    complete = True
    for tasks, outcome in _outcomes(executor, loading, say):
        info = outcome.value
        if outcome.status != "done":
            named = "" if outcome.status == "data" else f"{tasks[0].dataset}: "
            info, complete = f"{named}{outcome.reason}", False
        else:
            for note in info.notes:
                say(note)
        datasets |= dict.fromkeys((task.label for task in tasks), info)
    references: dict[str, ReferenceInfo | str] = {}
    computing = []
    for about, job in kind.references(study, datasets):
        if isinstance(job, str):
            references[about] = job
        else:
            work: Any = job.work
            lookup = replace(work, lookup=not computes)
            computing.append((about, replace(job, work=lookup)))
    for about, outcome in _outcomes(executor, computing, say):
        if outcome.status == "done":
            references[about] = outcome.value
            if outcome.value.note:
                say(outcome.value.note)
        elif not computes:
            references[about] = _NOT_YET
            limit = dict(computing)[about].limits.seconds["solve"]
            say(f"the reference optimum of {about} is computed first, in at most {limit:g} s")
        else:
            reason = f"{outcome.status}: {outcome.reason.removeprefix('ReferenceFailure: ')}"
            references[about], complete = reason, False
            say(f"no reference optimum of {about} ({reason}); its runs go on without")
    return Facts(solvers, datasets, references, complete)


#: In the results folder: facts, and the hash of their sources.
FACTS = "facts.json"


def sources_of(study: StudyBase) -> str:
    """A hash of the study, of all code and of the user's files; "" if facts depend on more."""
    parts: list[Any] = [study.model_dump(mode="json"), project_code(), *installed_packages()]
    try:
        for entry in study.solvers:
            if is_foreign(entry.name):
                file = SolverSpec.parse(entry.name).located()
                parts.append(source_files(entry.name, file or Path(), study.kind))
        for task in study.tasks:
            parts.append(kernel_code(getattr(task, "kernel", "")))
            if isinstance(task, DatasetTask) and is_users_file(task.dataset, task.folder):
                if task.runs_code:
                    return ""
                for name in filter(None, [task.dataset, str(task.dataset_params.get("test", ""))]):
                    path = Path(task.folder or ".").joinpath(Path(name).expanduser()).resolve()
                    if path.exists():
                        parts += _states([path, *path.rglob("*")])
    except (OSError, SolverError):
        return ""
    return hash_json(parts)


def _states(files: Iterable[Path]) -> Iterator[tuple[str, int, int]]:
    for file in sorted(files):
        state = file.stat()
        yield str(file), state.st_size, state.st_mtime_ns


def _with_cached(sources: str) -> str:
    """The hash with the states of the cached datasets and reference optima."""
    optima = datasets_folder().with_name("references").glob("*.json")
    return hash_json([sources, *_states([*datasets_folder().rglob("*.parquet"), *optima])])


def read_facts(results: Path, sources: str) -> Facts | None:
    """The facts that an earlier command kept, if their sources are unchanged."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        kept = json.loads((results / FACTS).read_bytes())
        if sources and kept["sources"] == _with_cached(sources):
            facts: Facts = described(Facts, kept["facts"])
            return facts
    return None


def keep_facts(results: Path, sources: str, facts: Facts) -> None:
    """Keep facts, unless something is missing: that is tried again each time."""
    if sources and facts.complete:
        kept = {"sources": _with_cached(sources), "facts": asdict(facts)}
        with contextlib.suppress(TypeError):  # a parameter of a user's solver that JSON lacks
            content = json.dumps(kept).encode()
            with storing(results / FACTS), replacing(results / FACTS) as sink:
                sink.write(content)


def study_solvers(study: StudyBase, executor: Executor, say: Say) -> dict[str, SolverInfo]:
    """The classes of a study's solvers by label, their parameters checked."""
    solvers = described_solvers(study.solvers, study.kind, run_limits(study.budget), executor, say)
    # A mistake in a grid counts once, in however many of its entries it is.
    mistakes = dict.fromkeys(kind_named(study.kind).mistakes(study, solvers))
    if mistakes:
        raise StudyError(*mistakes)
    return solvers


def described_solvers(
    entries: Sequence[SolverEntry], kind: str, limits: Limits, executor: Executor, say: Say
) -> dict[str, SolverInfo]:
    """The classes of solvers, by label."""
    by_name: dict[str, list[SolverEntry]] = defaultdict(list)
    for entry in entries:
        by_name[entry.name].append(entry)
    jobs = []
    for name, named in by_name.items():
        work = DescribeWork(name, kind, tuple(entry.params for entry in named))
        jobs.append((name, Job(f"importing {name}", work, limits, foreign=is_foreign(name))))
    described = {}
    for name, outcome in _outcomes(executor, jobs, say):
        if outcome.status == "user":
            raise SolverError(outcome.reason)
        if outcome.status != "done":
            hint = "; raise compile_timeout in [budget]" if outcome.status == "timeout" else ""
            raise SolverError(f"{name}: cannot be imported: {outcome.reason}{hint}")
        for entry, refusal in zip(by_name[name], outcome.value.refusals, strict=True):
            described[entry.label] = replace(outcome.value, refusals=(refusal,))
    return {entry.label: described[entry.label] for entry in entries}


def _outcomes(
    executor: Executor, jobs: Sequence[tuple[T, Job]], say: Say
) -> Iterator[tuple[T, Outcome]]:
    """Run jobs, each under a tag of its own, and announce those that take more than a moment.

    A worker that crashes may have been killed by someone else: its job is done once more.
    """
    for last in (False, True):
        about = {job.tag: each for each, job in jobs}
        crashed: list[tuple[T, Job]] = []
        unannounced: dict[str, float] = {}
        for event in executor.execute(job for _, job in jobs) if jobs else ():
            if isinstance(event, Started):
                unannounced[event.job.tag] = time.monotonic() + _A_MOMENT
            elif isinstance(event, Ended):
                unannounced.pop(event.job.tag, None)
                if event.outcome.status == "crashed" and not last:
                    crashed.append((about[event.job.tag], event.job))
                else:
                    yield about[event.job.tag], event.outcome
            else:
                for tag in [tag for tag, due in unannounced.items() if time.monotonic() > due]:
                    del unannounced[tag]
                    say(f"{tag} ...")
        jobs = crashed


def parameter_mistakes(
    study: StudyBase,
    entry: SolverEntry,
    info: SolverInfo,
    decides: str,
    decided: Sequence[str],
    supplied: Sequence[str] = (),
) -> Iterator[str]:
    """What is wrong with a solver's parameters, by its class and by what its tasks decide."""
    for name in entry.params:
        prefix = study.message_prefix(entry.label, "params", name)
        if name not in info.accepted:
            free = sorted(info.accepted.difference(decided))
            yield f"{prefix}unknown parameter {name!r}{suggest(name, free)}"
        elif name in decided:
            why = f"is decided by the {decides}, the same for all solvers"
            yield f"{prefix}{name!r} {why}; remove it from params"
    missing = set(info.required).difference(entry.params, decided, supplied)
    if missing:
        names = ", ".join(sorted(missing))
        yield f"{study.message_prefix(entry.label)}give a value for {names} in params"
    for refusal in filter(None, info.refusals):
        named = [name for name in entry.params if re.search(rf"\b{re.escape(name)}\b", refusal)]
        yield f"{study.message_prefix(entry.label, 'params', *named[:1])}{refusal}"
