"""What planning asks a worker about datasets and solver classes."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import warnings
from collections.abc import Collection, Mapping, Set as AbstractSet
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..errors import SolverError
from ..study.model import REFERENCE
from ..words import REASON_LIMIT, visible
from .keys import hash_files, source_files
from .kinds import kind_named
from .questions import DatasetInfo, DatasetWork, DescribeWork, SolverInfo
from .solvers import SolverSpec, load_named, shown_name, source_file
from .versions import version_of

if TYPE_CHECKING:
    from ...data_loaders import Dataset

# Characters of the first line of a docstring: what a table of solvers has room for.
_SUMMARY_LIMIT = 200
# Bytes of a file of code.
_LARGEST_CODE = 2**24


def describe_dataset(work: DatasetWork) -> DatasetInfo:
    """Load a dataset and say what it is.

    Raises
    ------
    DataError
        If it cannot be loaded.
    """
    from ...data_loaders import DataWarning, load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        dataset = load(work.dataset, work.params or None, folder=work.folder)
    notes = [str(item.message) for item in caught if issubclass(item.category, DataWarning)]
    if dataset.new:
        notes += [f"{dataset.name}: {line}" for line in dataset.decided]
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
        default_gamma=_gamma(dataset),
    )


def _gamma(dataset: Dataset) -> float:
    """The registered kernel width, or the one that is computed from the training part."""
    from ...data_loaders.transforms import scale_gamma

    known = dataset.default_gamma
    return scale_gamma(dataset.X_train) if known is None else known


def describe_solver(work: DescribeWork) -> SolverInfo:
    """Import a solver's class and say what it is, and of which version.

    Raises
    ------
    SolverError
        As :func:`describe_class`.
    """
    return with_version(work, describe_class(work))


def describe_class(work: DescribeWork) -> SolverInfo:
    """Import a solver's class and say what it is.

    Raises
    ------
    SolverError
        If it cannot be imported, is no solver for this kind of studies or leaves something
        abstract.
    """
    spec = SolverSpec.parse(work.solver)
    cls = load_named(work.solver, kind=work.kind)
    kind = kind_named(work.kind)
    traits = kind.traits(cls, work.solver)
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise SolverError(f"{work.solver}: the class does not implement {missing}")
    defaults, required = _parameters(cls, work.solver, any_name="any_parameter" in traits)
    known = {*defaults, *required}
    stand_ins = {k: v for k, v in kind.stand_ins(cls).items() if k in known}
    return SolverInfo(
        shown=shown_name(cls, spec),
        defined_in=str(source_file(cls)),
        summary=visible(inspect.cleandoc(cls.__doc__ or "").partition("\n")[0], _SUMMARY_LIMIT),
        defaults=defaults,
        required=tuple(required),
        traits=traits,
        refusals=tuple(
            _refusal(cls, {**stand_ins, **params}, known, required) for params in work.params
        ),
    )


def with_version(work: DescribeWork, info: SolverInfo) -> SolverInfo:
    """The same with the version of the code, which is read and not run.

    Raises
    ------
    SolverError
        If there is no such code.
    """
    spec = SolverSpec.parse(work.solver)
    defined_in = Path(info.defined_in)
    # What the name says comes first: the class itself may say anything.
    named = spec.located()
    starts = dict.fromkeys(file for file in (named, defined_in) if file and _is_code(file))
    if not starts:
        raise SolverError(f"{work.solver}: its code cannot be found")
    judging = kind_named(work.kind).judging(info.traits)
    package = None if spec.module is None else spec.module.partition(".")[0]
    installed = installed_version(package) if package and "outside" in info.traits else ""
    if installed:
        files = source_files([], judging) | {installed: hashlib.sha256(b"").hexdigest()}
    else:
        files = source_files(list(starts), judging, local_folder=spec.folder, package=package)
        if "outside" in info.traits:
            # What it imports does the work, and is no part of the project.
            imported = (installed_version(name) for name in _imported_packages(next(iter(starts))))
            files |= {found: hashlib.sha256(b"").hexdigest() for found in imported if found}
    source_hash = hash_files(files)
    version = version_of(source_hash, next(iter(starts)))
    return replace(info, source_hash=source_hash, version=version, files=files)


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


@cache
def installed_version(package: str) -> str:
    """Name and version of the installed distribution that has a package; empty if none has.

    A package that is developed in a folder of its own has no version that tells its code.
    """
    spec = importlib.util.find_spec(package)
    places = [] if spec is None else [*(spec.submodule_search_locations or ()), spec.origin or ""]
    for name in metadata.packages_distributions().get(package, ()):
        found = metadata.distribution(name)
        root = Path(str(found.locate_file("")))
        if any(Path(place).is_relative_to(root) for place in places):
            return f"{name} {found.version}"
    return ""


def _imported_packages(file: Path) -> set[str]:
    """The packages that a file imports, by their first names; none if it is not Python."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError):
        return set()
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names if name}


def _is_code(file: Path) -> bool:
    return file.is_file() and file.stat().st_size <= _LARGEST_CODE


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
