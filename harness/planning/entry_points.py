"""Solvers that installed packages offer, found by their entry points; nothing of them is imported.

A package offers a solver in its ``pyproject.toml``:

    [project.entry-points."marginbench.solvers"]
    name = "package.module:Class"

Its name then stands for ``package.module:Class`` wherever a solver is named.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import metadata

from ...solvers.registration import entries
from ..errors import SolverError
from ..words import visible
from .solvers import SolverSpec

GROUP = "marginbench.solvers"
# Name and version of a package whose metadata cannot be read.
_NAMELESS = ("a package without metadata", "")


@dataclass(frozen=True)
class Offer:
    """A solver that an installed package offers.

    Attributes
    ----------
    name : str
    target : str
        "package.module:Class".
    distribution : str
        The package with its version, such as "someone-solvers 1.2".
    problem : str
        Why the name cannot be used, one line; empty if it can.
    """

    name: str
    target: str
    distribution: str
    problem: str = ""


def offers() -> list[Offer]:
    """All solvers that are offered, by name; those that cannot be used say why."""
    found = sorted(_entry_points(), key=lambda offer: (offer.name.casefold(), offer.target))
    return [replace(offer, problem=_problem(offer, found)) for offer in found]


def offered(name: str) -> Offer | None:
    """The solver that this name, in any case, means; None if nothing of the name is offered.

    Raises
    ------
    SolverError
        If the name cannot be used.
    """
    for offer in offers():
        if offer.name.casefold() == name.casefold():
            if offer.problem:
                raise SolverError(offer.problem)
            return offer
    return None


def _entry_points() -> Iterator[Offer]:
    seen: set[str] = set()
    for distribution in metadata.distributions():
        name, version = _name_of(distribution)
        if name in seen:
            continue  # an earlier folder of the path has it
        # Several may lack their metadata.
        seen.update([name] if version else [])
        try:
            points = [point for point in distribution.entry_points if point.group == GROUP]
        except Exception:  # noqa: BLE001 - damaged metadata of any package must not get in the way
            continue
        for point in points:
            yield Offer(visible(point.name), visible(point.value), f"{name} {version}".strip())


def _name_of(distribution: metadata.Distribution) -> tuple[str, str]:
    """The name and the version of a package; no version if its metadata cannot be read."""
    try:
        name, version = distribution.metadata["Name"], distribution.version
    except Exception:  # noqa: BLE001 - as above
        return _NAMELESS
    return (visible(name), visible(version)) if name and version else _NAMELESS


def _problem(offer: Offer, all_offers: list[Offer]) -> str:
    """Why an offer cannot be used."""
    words = f"{offer.distribution} offers the solver {offer.name!r}"
    instead = f"name it {offer.target}"
    if not _is_target(offer.target):
        return f"{words} as {offer.target!r}, which is not package.module:Class; ask its authors"
    if ":" in offer.name or "," in offer.name:
        return f"{words}, a name with ':' or ','; {instead}"
    if offer.name.casefold() in map(str.casefold, entries()):
        return f"{words}, which is a solver of marginbench; {instead}"
    others = [
        other.distribution
        for other in all_offers
        if other.name.casefold() == offer.name.casefold() and other.target != offer.target
    ]
    if others:
        return f"{words}, and so does {others[0]}; {instead}"
    package = offer.target.partition(":")[0].partition(".")[0]
    if not _is_there(package):
        return f"{words}, but there is no module {package!r}; install the package again"
    return ""


def _is_target(target: str) -> bool:
    try:
        module = SolverSpec.parse(target).module
    except SolverError:
        return False
    return module is not None and all(part.isidentifier() for part in module.split("."))


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False
