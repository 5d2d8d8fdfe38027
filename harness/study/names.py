"""Names that studies and commands give, resolved: those of solvers, datasets and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...data_loaders import DataError, Source, sources, suggest
from ...data_loaders.cache import datasets_folder
from ...data_loaders.own.finding import find_own, is_own
from ...data_loaders.own.importing import imported_names as names_in
from ...data_loaders.sources import unknown
from ...solvers.registration import solver_names
from .. import removed
from ..errors import StudyError
from ..loading import Offer, SolverSpec, offered, offers
from ..words import shown

#: The kinds of studies.
KINDS = ("svm", "feasibility")


def find(name: str, known: Iterable[str]) -> str | None:
    """The known name that this is in any case, or None."""
    exact = {candidate.casefold(): candidate for candidate in known}
    return exact.get(name.casefold())


def split_names(names: Iterable[str], labels: Iterable[str] = ()) -> list[str]:
    """Names given one by one or separated by commas, without repetitions.

    A comma that is part of one of the ``labels`` separates nothing.
    """
    whole = {label.casefold() for label in labels}
    parts: list[str] = []
    for name in [names] if isinstance(names, str) else names:
        if not isinstance(name, str):
            raise StudyError(
                f"{shown(name)} is no name; give a text, such as 'SMO' or 'file.py:Class'"
            )
        parts += [name] if name.strip().casefold() in whole else name.split(",")
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def is_foreign(name: str) -> bool:
    """Whether a solver's name means code from outside the project, not a registered solver."""
    return ":" in name


def resolve_solver_name(name: str, kind: str, *, folder: str | None = None) -> str:
    """A registry name in its own spelling; a file's path made absolute; a module's name as is.

    What an installed package offers becomes the "package.module:Class" that it stands for.
    """
    if is_foreign(name):
        return SolverSpec.parse(name, folder).checked().text
    found = find(name, solver_names(kind))
    if found is not None:
        return found
    offer = offered_solver(name, kind)
    if offer is None:
        raise StudyError(unknown_solver(name, kind))
    return offer.target


def offered_solver(name: str, kind: str) -> Offer | None:
    """What an installed package offers by this name; None for a solver of another kind."""
    return None if _other_kind(name, kind) else offered(name)


def _other_kind(name: str, kind: str) -> str:
    """The other kind of studies that a registered solver is for; empty if there is none."""
    others = (other for other in KINDS if other != kind)
    return next((other for other in others if find(name, solver_names(other)) is not None), "")


def unknown_solver(name: str, kind: str, labels: Iterable[str] = ()) -> str:
    """What is wrong with a solver's name: the nearest one, or where the name belongs."""
    other = _other_kind(name, kind)
    if other:
        return f"{name} is a solver for studies of the kind {other!r}, not {kind!r}"
    if name in removed.SOLVERS:
        return f"unknown solver {name!r}: {removed.SOLVERS[name]}"
    if name.endswith(".py"):
        return f"{name!r} is a file; name the class in it too, as in {name}:MySolver"
    known = [*labels, *solver_names(kind), *(offer.name for offer in offers())]
    return f"unknown solver {name!r}{suggest(name, list(dict.fromkeys(known)))}"


def dataset_names() -> list[str]:
    """Names of the registered datasets."""
    return [source.name for source in sources()]


def imported_names() -> list[str]:
    """Names of the imported datasets."""
    return list(names_in(datasets_folder()))


def registered_source(dataset: str) -> Source | None:
    """Where a registered dataset comes from; None for one of the user's own."""
    return next((source for source in sources() if source.name == dataset), None)


def is_users_file(dataset: str, folder: str | None) -> bool:
    """Whether the name of a dataset means a file, a folder or code of the user."""
    if dataset in dataset_names() or dataset in imported_names():
        return False
    return is_own(dataset, folder)


def checked_dataset(
    name: str, params: Mapping[str, Any], where: str = "", folder: str | None = None
) -> str:
    """The name of a dataset in its own spelling; of the user's files no content is looked at."""
    known = dataset_names()
    dataset = find(name, known)
    place = f"{where.removesuffix('.')}: " if where else ""
    try:
        source = None if dataset is None else registered_source(dataset)
        if source is not None:
            source.resolve(dict(params))
            return source.name
        if name in imported_names():
            if params:
                raise DataError(f"{name}: was imported with its options; remove dataset_params")
            return name
        if is_own(name, folder):
            find_own(name, params, folder)
            return name
    except DataError as error:
        raise StudyError(f"{place}{error}") from None
    place = f"{where}dataset: " if where else ""
    raise StudyError(f"{place}{unknown(name, [*known, *imported_names()])}")
