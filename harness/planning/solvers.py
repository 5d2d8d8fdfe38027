"""Solvers as commands list them: all that studies can name, and what one of them is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...solvers.registration import entries, missing_package, registry
from ..errors import SolverError
from ..imports import scientific_imports
from ..jobs import Executor
from ..loading import offered, offers
from ..study.model import (
    KINDS,
    Budget,
    SolverEntry,
    find,
    is_foreign,
    resolve_solver_name,
    run_limits,
)
from ..words import visible
from .preflight import SolverInfo, described_solvers

#: Traits that a list of solvers shows.
SUPPORTED = ("supports_bias", "supports_no_bias", "supports_sparse")


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
    with scientific_imports():
        classes = {
            name: cls for kind in KINDS for name, cls in registry(kind, missing=True).items()
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
        for kind in KINDS
        if is_foreign(name) or registered is None or kind in entries()[registered].kinds
    ]
    for kind in wanted or KINDS[:1]:
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
    """A solver as JSON values; what JSON lacks goes by its ``repr``."""
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
