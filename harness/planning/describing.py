"""What planning asks a worker about datasets and solver classes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Mapping, Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..errors import SolverError
from ..hashing import hash_files
from ..loading import SolverSpec, load_named, shown_name, source_file
from ..planning.fingerprint import source_files
from ..study.model import REFERENCE
from ..words import REASON_LIMIT, visible
from .kinds import kind_named
from .questions import DatasetInfo, DatasetWork, DescribeWork, SolverInfo
from .versions import version_of

if TYPE_CHECKING:
    from ...data_loaders import Dataset

# Characters of the first line of a docstring: what a table of solvers has room for.
_SUMMARY_LIMIT = 200


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
    from ...data_loaders.own.widths import scale_gamma

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
    defined_in = Path(info.defined_in)
    files = source_files(work.solver, defined_in, work.kind)
    source_hash = hash_files(files)
    named = SolverSpec.parse(work.solver).located() or defined_in
    version = version_of(source_hash, named)
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
