"""What there is to say of solvers by name, for the commands that list and describe them."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SolverError
from ..loading import Offer, offered, offers
from ..study.budget import Budget, run_limits
from ..study.parts import SolverEntry
from ..study.select import is_foreign, resolve_solver_name
from ..words import visible
from .kinds import kind_names
from .questions import SolverInfo

#: Traits that a list of solvers shows.
SUPPORTED = ("supports_bias", "supports_no_bias", "supports_sparse")


@dataclass(frozen=True)
class Listed:
    """A line of the list of solvers.

    Attributes
    ----------
    name : str
    kinds : tuple of str or None
        The kinds of studies that it is for; None for a class that was not imported.
    target : str
        "package.module:Class".
    distribution : str
        The package that it comes from; for marginbench's own "marginbench".
    supports : mapping of str to bool, or None
    summary : str
    """

    name: str
    kinds: tuple[str, ...] | None
    target: str
    distribution: str
    supports: Mapping[str, bool] | None
    summary: str


def listed_solvers() -> tuple[list[Listed], list[str]]:
    """The solvers that studies can name, and why some that packages offer cannot be used.

    Solvers from elsewhere are not imported.
    """
    found = offers()
    usable = [_listed_offer(offer) for offer in found if not offer.problem]
    return [*_registered(), *usable], [offer.problem for offer in found if offer.problem]


def _registered() -> list[Listed]:
    from ...solvers import registry
    from ...solvers.registration import entries

    classes = {
        name: cls for kind in kind_names() for name, cls in registry(kind, missing=True).items()
    }
    return [
        Listed(
            name=name,
            kinds=entries()[name].kinds,
            target=f"{cls.__module__}:{name}",
            distribution="marginbench",
            supports={flag: bool(getattr(cls, flag, False)) for flag in SUPPORTED},
            summary=visible((cls.__doc__ or "").strip().partition("\n")[0] + _not_installed(cls)),
        )
        for name, cls in classes.items()
    ]


def _not_installed(cls: type[Any]) -> str:
    """What to install before a solver can run, for the end of its summary; mostly nothing."""
    from ...solvers.registration import missing_package

    package = missing_package(cls)
    return f" Needs {package}, which is not installed." if package else ""


def _listed_offer(offer: Offer) -> Listed:
    words = f"{offer.target}, from {offer.distribution}"
    return Listed(offer.name, None, offer.target, offer.distribution, None, words)


def described(name: str) -> dict[str, SolverInfo]:
    """What a solver's class is, for each kind of studies that takes it; imported in a worker.

    Parameters
    ----------
    name : str
        A registry name, one that a package offers, "file.py:Class" or "package.module:Class".

    Raises
    ------
    UserError
        If there is no such class, or no kind of studies takes it.
    """
    from ..execution.local import LocalPool
    from .asking import Ask

    found: dict[str, SolverInfo] = {}
    problem: SolverError | None = None
    wanted = [kind for kind in kind_names() if _takes(name, kind)]
    with tempfile.TemporaryDirectory() as logs, LocalPool(1, Path(logs)) as pool:
        ask = Ask(pool, run_limits(Budget()), lambda line: None)
        for kind in wanted or kind_names()[:1]:
            entry = SolverEntry(name=resolve_solver_name(name, kind), label="solver")
            try:
                found[kind] = ask.solvers([entry], kind)["solver"]
            except SolverError as error:
                problem = problem or error
    if not found:
        assert problem is not None
        raise problem
    return found


def _takes(name: str, kind: str) -> bool:
    """Whether a kind of studies may take the solver, as far as its name tells."""
    from ...solvers.registration import entries
    from ..study.select import find

    known = find(name, entries())
    return is_foreign(name) or known is None or kind in entries()[known].kinds


def origin(name: str) -> str:
    """The package that a solver of this name comes from; empty for a file or a module."""
    from ...solvers.registration import entries
    from ..study.select import find

    if is_foreign(name):
        return ""
    if find(name, entries()) is not None:
        return "marginbench"
    offer = offered(name)
    return "" if offer is None else offer.distribution


def plain(info: SolverInfo) -> dict[str, Any]:
    """The facts as JSON values; what JSON lacks goes by its ``repr``."""
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
