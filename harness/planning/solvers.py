"""What solvers and datasets are: described in a worker for planning, and listed for commands."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Collection, Mapping, Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from ...solvers.registration import entries, missing_package, registry
from ..errors import SolverError
from ..hashing import hash_files
from ..jobs import Executor
from ..loading import SolverSpec, load_named, offered, offers, shown_name, source_file
from ..study.model import (
    REFERENCE,
    Budget,
    SolverEntry,
    find,
    is_foreign,
    resolve_solver_name,
    run_limits,
)
from ..words import REASON_LIMIT, visible
from .fingerprint import source_files, version_of
from .plan import kind_named, kind_names
from .preflight import DatasetInfo, DatasetWork, DescribeWork, SolverInfo, described_solvers

#: Traits that a list of solvers shows.
SUPPORTED = ("supports_bias", "supports_no_bias", "supports_sparse")
# Characters of the first line of a docstring: what a table of solvers has room for.
_SUMMARY_LIMIT = 200


def describe_dataset(work: DatasetWork) -> DatasetInfo:
    """Load a dataset and say what it is."""
    import numpy as np
    from scipy import sparse

    from ...data_loaders import DataWarning, load
    from ...data_loaders.transforms import scale_gamma

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        dataset = load(work.dataset, work.params or None, folder=work.folder)
    notes = [str(item.message) for item in caught if issubclass(item.category, DataWarning)]
    if dataset.new:
        notes += [f"{dataset.name}: {line}" for line in dataset.decided]
    # The registered kernel width, or the one that is computed from the training part.
    gamma = dataset.default_gamma
    return DatasetInfo(
        fingerprint=dataset.fingerprint,
        n_train=int(dataset.n_train),
        n_test=int(dataset.n_test),
        n_features=int(dataset.n_features),
        sparse=bool(sparse.issparse(dataset.X_train)),
        n_classes=len(np.unique(dataset.y_train)),
        citation=dataset.citation,
        licence=dataset.licence,
        notes=tuple(notes),
        decided=dataset.decided,
        default_gamma=scale_gamma(dataset.X_train) if gamma is None else gamma,
    )


def describe_solver(work: DescribeWork) -> SolverInfo:
    """Import a solver's class and say what it is, and of which version."""
    spec = SolverSpec.parse(work.solver)
    cls = load_named(work.solver, kind=work.kind)
    kind = kind_named(work.kind)
    traits = kind.traits(cls, work.solver)
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise SolverError(f"{work.solver}: the class does not implement {missing}")
    defaults, required = _parameters(cls, work.solver, any_name="any_parameter" in traits)
    names = {*defaults, *required}
    stand_ins = {k: v for k, v in kind.stand_ins(cls).items() if k in names}
    defined_in = source_file(cls)
    files = source_files(work.solver, defined_in, work.kind)
    source_hash = hash_files(files)
    return SolverInfo(
        shown=shown_name(cls, spec),
        summary=visible(inspect.cleandoc(cls.__doc__ or "").partition("\n")[0], _SUMMARY_LIMIT),
        defaults=defaults,
        required=tuple(required),
        traits=traits,
        defined_in=str(defined_in),
        source_hash=source_hash,
        version=version_of(source_hash, spec.located() or defined_in),
        files=files,
        refusals=tuple(
            _refusal(cls, {**stand_ins, **params}, names, required) for params in work.params
        ),
    )


def _refusal(
    cls: type[Any], params: Mapping[str, Any], known: AbstractSet[str], required: Collection[str]
) -> str:
    """Why a class does not take these values; empty if it does, or cannot tell before a run."""
    values = {
        name: value
        for name, value in params.items()
        if not (isinstance(value, str) and value == REFERENCE)
    }
    if not set(values) <= known or not set(required).issubset(values):
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


def _parameters(cls: Any, name: str, *, any_name: bool = False) -> tuple[dict[str, Any], list[str]]:
    """The estimator's parameters with their defaults, and those that have none.

    With ``any_name`` it may also take parameters that it does not list.
    """
    defaults: dict[str, Any] = {}
    required: list[str] = []
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            if any_name:
                continue
            raise SolverError(
                f"{name}: __init__ takes *{parameter.name}; list every parameter by name"
            )
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            defaults[parameter.name] = parameter.default
    return defaults, required


@dataclass(frozen=True)
class Listed:
    """A line of the list of solvers."""

    name: str
    # The kinds of studies that it is for; None for a class that was not imported.
    kinds: tuple[str, ...] | None
    target: str  # "package.module:Class"
    distribution: str  # the package that it comes from; for marginbench's own "marginbench"
    supports: Mapping[str, bool] | None
    summary: str


def listed_solvers() -> tuple[list[Listed], list[str]]:
    """The solvers that studies can name, and why some that packages offer cannot be used.

    Solvers from elsewhere are not imported.
    """
    classes = {
        name: cls for kind in kind_names() for name, cls in registry(kind, missing=True).items()
    }
    listed = []
    for name, cls in classes.items():
        package = missing_package(cls)
        needs = f" Needs {package}, which is not installed." if package else ""
        listed.append(
            Listed(
                name=name,
                kinds=entries()[name].kinds,
                target=f"{cls.__module__}:{name}",
                distribution="marginbench",
                supports={flag: bool(getattr(cls, flag, False)) for flag in SUPPORTED},
                summary=visible((cls.__doc__ or "").strip().partition("\n")[0] + needs),
            )
        )
    problems = []
    for offer in offers():
        if offer.problem:
            problems.append(offer.problem)
        else:
            words = f"{offer.target}, from {offer.distribution}"
            listed.append(Listed(offer.name, None, offer.target, offer.distribution, None, words))
    return listed, problems


def described(name: str, executor: Executor) -> dict[str, SolverInfo]:
    """What a solver's class is, for each kind of studies that takes it; imported in a worker."""
    infos: dict[str, SolverInfo] = {}
    problem: SolverError | None = None
    registered = find(name, entries())
    wanted = [
        kind
        for kind in kind_names()
        if is_foreign(name) or registered is None or kind in entries()[registered].kinds
    ]
    for kind in wanted or kind_names()[:1]:
        entry = SolverEntry(name=resolve_solver_name(name, kind), label="solver")
        try:
            (infos[kind],) = described_solvers(
                [entry], kind, run_limits(Budget()), executor, lambda line: None
            ).values()
        except SolverError as error:
            problem = problem or error
    if not infos:
        assert problem is not None
        raise problem
    return infos


def origin(name: str) -> str:
    """The package that a solver of this name comes from; empty for a file or a module."""
    if is_foreign(name):
        return ""
    if find(name, entries()) is not None:
        return "marginbench"
    offer = offered(name)
    return "" if offer is None else offer.distribution


def plain(info: SolverInfo) -> dict[str, Any]:
    """What is known of a solver as JSON values; what JSON lacks goes by its ``repr``."""
    defaults = {name: _plain_value(value) for name, value in info.defaults.items()}
    return {
        "class": info.shown,
        "summary": info.summary,
        "parameters": {**dict.fromkeys(info.required, "required"), **defaults},
        "traits": dict(info.traits),
        "source": info.defined_in,
        "version": info.version,
    }


def _plain_value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
