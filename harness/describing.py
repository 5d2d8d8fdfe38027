"""What planning asks a worker about datasets and solver classes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Mapping, Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from marginbench.harness.errors import SolverError
from marginbench.harness.jobs import DatasetInfo, DatasetWork, DescribeWork, SolverInfo
from marginbench.harness.keys import hash_files, source_files
from marginbench.harness.kinds import kind_named
from marginbench.harness.loading import SolverSpec, load_class, shown_name, source_file
from marginbench.harness.study import REFERENCE
from marginbench.harness.versions import version_of
from marginbench.harness.words import REASON_LIMIT, visible

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
    from marginbench.data_loaders import DataWarning, load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        dataset = load(work.dataset, work.params or None)
    return DatasetInfo(
        fingerprint=dataset.fingerprint,
        n_train=int(dataset.n_train),
        n_test=int(dataset.n_test),
        n_features=int(dataset.n_features),
        sparse=bool(sparse.issparse(dataset.X_train)),
        n_classes=len(np.unique(dataset.y_train)),
        citation=dataset.citation,
        licence=dataset.licence,
        notes=tuple(str(item.message) for item in caught if issubclass(item.category, DataWarning)),
    )


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
    cls = load_class(work.solver, kind=work.kind)
    kind = kind_named(work.kind)
    traits = kind.traits(cls, work.solver)
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise SolverError(f"{work.solver}: the class does not implement {missing}")
    defaults, required = _parameters(cls, work.solver)
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
    files = source_files(
        list(starts),
        kind_named(work.kind).judging(info.traits),
        local_folder=spec.folder,
        package=None if spec.module is None else spec.module.partition(".")[0],
    )
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


def _is_code(file: Path) -> bool:
    return file.is_file() and file.stat().st_size <= _LARGEST_CODE


def _parameters(cls: type[Any], name: str) -> tuple[dict[str, Any], list[str]]:
    """The estimator's parameters with their defaults, and those that have none."""
    defaults: dict[str, Any] = {}
    required: list[str] = []
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise SolverError(
                f"{name}: __init__ takes *{parameter.name}; list every parameter by name"
            )
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            defaults[parameter.name] = parameter.default
    return defaults, required
