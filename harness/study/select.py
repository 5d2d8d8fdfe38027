"""Parts of a study by name: labels first, then the registries, in any case."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from ...data_loaders import Source, sources, suggest
from ..errors import StudyError
from ..planning.keys import hash_json
from ..words import visible
from .labels import label_of
from .model import MAX_RUNS, StudyBase
from .parts import MAX_LABEL, SolverEntry, TaskEntry
from .places import Places, shown
from .where import Selection, Where

if TYPE_CHECKING:
    from ..planning.entry_points import Offer

StudyT = TypeVar("StudyT", bound=StudyBase)
EntryT = TypeVar("EntryT", bound=TaskEntry | SolverEntry)
# Characters of a name that is too long for a message.
_SHOWN = 100
_AS_ESTIMATOR = "wrap a program in a classifier, as docs/outside-solvers.md shows"
#: Names that solvers no longer have, and what to use instead.
_REMOVED = {"command": _AS_ESTIMATOR, "libsvm-tools": _AS_ESTIMATOR}


def select(
    study: StudyT,
    *,
    datasets: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
    seeds: int | None = None,
    timeout: float | None = None,
    where: str | None = None,
) -> StudyT:
    """The same study with only some tasks and solvers, or with others in their place.

    Parameters
    ----------
    study : StudyBase
    datasets : sequence of str, optional
        Labels of tasks, or names of their datasets or generators, in any case; the label of a grid
        means all of its tasks. A known dataset that a study of SVM solvers does not have comes with
        its own default kernel width and C; one of the user's files is named by its path.
    solvers : sequence of str, optional
        Labels or names of solvers, or labels of grids, in any case; a registry name, one that an
        installed package offers, "file.py:Class" or "module:Class" that the study does not have
        runs with its defaults.
    seeds : int, optional
        Number of seeds; the most instances of a cell.
    timeout : float, optional
        Seconds of solving per run.
    where : str, optional
        Only runs for which this expression holds, such as ``C == 10 and solver != "SBP"``.

    Raises
    ------
    StudyError
        For an unknown name, with the nearest known one, a number out of range, or an expression
        that chooses no run.
    """
    if seeds is not None:
        if not 1 <= seeds <= MAX_RUNS:
            raise StudyError(f"the number of seeds must be from 1 to {MAX_RUNS}, not {seeds}")
        study = study.with_seeds(seeds)
    if timeout is not None:
        if not 0 < timeout < float("inf"):
            raise StudyError(f"the timeout must be a number of seconds > 0, not {timeout:g}")
        budget = study.budget.model_copy(update={"timeout": float(timeout)})
        study = study.model_copy(update={"budget": budget})
    if datasets is not None:
        study = study.with_tasks(_select_tasks(study, datasets))
    if solvers is not None:
        study = study.with_solvers(_select_solvers(study, solvers))
    study.check_size()
    if where is not None:
        study = study.restricted(_chosen_runs(study, where))
    return study


def of_its_own(study: StudyT, tasks: Sequence[TaskEntry], solvers: Sequence[str] | None) -> StudyT:
    """A study of these tasks alone, named after its tasks and solvers; all else is the default.

    Parameters
    ----------
    study : StudyBase
        One of its kind: nothing is taken from it but the solvers, if none are named.
    tasks : sequence of TaskEntry
    solvers : sequence of str, optional
        As in `select`.
    """
    entries = study.solvers
    if solvers is not None:
        entries = tuple(_select_solvers(study.with_solvers(()), solvers))
    data = [task.label for task in tasks]
    methods = [entry.label for entry in entries]
    words = [PurePath(name).stem for name in data] + (methods if solvers is not None else [])
    plain = [re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip(".-_") or "data" for word in words]
    name = "-".join(plain)
    if len(name) > MAX_LABEL:
        name = f"{name[: MAX_LABEL - 9]}-{hash_json(name)[:8]}"
    defaults = {
        key: field.get_default(call_default_factory=True)
        for key, field in type(study).model_fields.items()
        if not field.is_required()
    }
    title = f"{', '.join(methods)} on {', '.join(data)}"
    found = study.model_copy(update=defaults | {"name": name, "title": title})
    return found.read_from(Places("study")).with_tasks(tasks).with_solvers(entries)


def _chosen_runs(study: StudyBase, text: str) -> Selection:
    """The runs for which an expression holds."""
    expression = Where(text)
    facets = {
        (task.label, entry.label): _facets(task, entry)
        for task in study.tasks
        for entry in study.solvers
    }
    known: dict[str, dict[Any, None]] = {"seed": {}}
    for found in facets.values():
        for name, value in found.items():
            known.setdefault(name, {})[value if isinstance(value, Hashable) else repr(value)] = None
    expression.check_names(known)
    runs = frozenset(
        (task.label, entry.label, seed)
        for task in study.tasks
        for entry in study.solvers
        for seed in study.seeds_of(task, entry)
        if expression(facets[task.label, entry.label] | {"seed": seed})
    )
    if not runs:
        raise StudyError(f"--where {text!r}: no run of the study is chosen")
    return Selection(text, runs)


def _facets(task: TaskEntry, entry: SolverEntry) -> dict[str, Any]:
    """What is known of the runs of a solver on a task, by the names in expressions."""
    return {
        **entry.params,
        **task.facets,
        **{f"solver.{name}": value for name, value in entry.params.items()},
        **{f"task.{name}": value for name, value in task.facets.items()},
        "task": task.label,
        "solver": entry.label,
        "class": entry.class_name,
    }


def _select_tasks(study: StudyBase, names: Iterable[str]) -> list[TaskEntry]:
    """The tasks with one of these names; a dataset that has none gets one where the kind can.

    Raises
    ------
    StudyError
        For a name that is neither.
    """
    from ..planning.kinds import kind_named

    chosen: list[TaskEntry] = []
    for name in split_names(names, [task.label for task in study.tasks]):
        key = name.casefold()
        found = [task for task in study.tasks if key in map(str.casefold, task.names)]
        found = found or _of_grid(study.tasks, key)
        if not found:
            # A label of the study stays that of the study's own task, chosen or not.
            label = _free(label_of(name)[: MAX_LABEL - 4], [*chosen, *study.tasks])
            new = kind_named(study.kind).new_task(study, name, label)
            found = [new]
        chosen.extend(task for task in found if task not in chosen)
    if not chosen:
        raise StudyError("no dataset is selected")
    return chosen


def unknown_task(study: StudyBase, name: str, known: Iterable[str] = ()) -> StudyError:
    """The error for a task that there is not; it suggests the nearest name."""
    names = dict.fromkeys(text for task in study.tasks for text in task.names)
    names |= dict.fromkeys([*_stems(study.tasks), *known])
    return StudyError(f"unknown dataset {name!r}{suggest(name, list(names))}")


def _select_solvers(study: StudyBase, names: Iterable[str]) -> list[SolverEntry]:
    """The solvers with one of these labels or names; another known solver runs with its defaults.

    Raises
    ------
    StudyError
        For a name that no solver has.
    """
    chosen: list[SolverEntry] = []
    labels = [solver.label for solver in study.solvers]
    for name in split_names(names, labels):
        key = name.casefold()
        found = [solver for solver in study.solvers if key == solver.label.casefold()]
        known = label = ""
        if not found and (is_foreign(name)):
            known = resolve_solver_name(name, study.kind, where="--solver")
            found = [solver for solver in study.solvers if solver.name == known]
        elif not found:
            known = find(name, registered(study.kind)) or ""
            found = [
                solver
                for solver in study.solvers
                if key in (solver.name.casefold(), solver.class_name.casefold())
            ]
        found = found or _of_grid(study.solvers, key)
        offer = None if found or known else _offered(name, study.kind)
        if offer is not None:
            known, label = offer.target, offer.name
            found = [solver for solver in study.solvers if solver.name == known]
        if not found:
            if not known:
                raise StudyError(
                    _unknown_solver(name, study.kind, [*labels, *_stems(study.solvers)])
                )
            # A label of the study stays that of the study's own solver, chosen or not.
            found = [_new_solver(known, label, [*chosen, *study.solvers])]
        chosen.extend(solver for solver in found if solver not in chosen)
    if not chosen:
        raise StudyError("no solver is selected")
    return chosen


def _of_grid(entries: Sequence[EntryT], stem: str) -> list[EntryT]:
    """The entries whose labels a grid has made of this one, in lower case."""
    return [entry for entry in entries if entry.label.casefold().startswith(f"{stem}, ")]


def _stems(entries: Iterable[TaskEntry | SolverEntry]) -> list[str]:
    """The labels of grids that some of these may be of."""
    return [entry.label.partition(", ")[0] for entry in entries if ", " in entry.label]


def _new_solver(name: str, label: str, taken: Sequence[SolverEntry]) -> SolverEntry:
    """A solver that the study does not have, with its defaults and a label of its own.

    Without a ``label`` it is made of the name of the class.

    Raises
    ------
    StudyError
        If its file or class has a name that no table could show.
    """
    label = _free(label or name.rsplit(":", 1)[-1], taken)
    try:
        return SolverEntry.model_validate({"name": name, "label": label})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        what, words = problem["loc"][0], problem["msg"].removeprefix("Value error, ")
        raise StudyError(
            f"--solver {visible(name, _SHOWN)}: its {what} {words}; rename it, or give it a label "
            "in a study file"
        ) from None


def split_names(names: Iterable[str], labels: Iterable[str] = ()) -> list[str]:
    """Names given one by one or separated by commas, without repetitions.

    A comma that is part of one of the ``labels`` separates nothing.

    Raises
    ------
    StudyError
        For what is no text.
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


def resolve_solver_name(name: str, kind: str, *, where: str = "", folder: str | None = None) -> str:
    """A registry name in its own spelling; a file's path made absolute; a module's name as is.

    What an installed package offers becomes the "package.module:Class" that it stands for.

    Raises
    ------
    StudyError
        For an unknown name.
    SolverError
        For a file that does not exist or does not define the class, or an offer of no use.
    """
    from ..planning.solvers import SolverSpec

    if is_foreign(name):
        return SolverSpec.parse(name, folder).checked().text
    found = find(name, registered(kind))
    if found is not None:
        return found
    offer = _offered(name, kind)
    if offer is None:
        place = f"{where}: " if where else ""
        raise StudyError(f"{place}{_unknown_solver(name, kind)}")
    return offer.target


def registered(kind: str) -> list[str]:
    """Names of the registered solvers for a kind of studies."""
    from ...solvers.registration import solver_names

    return solver_names(kind)


def _offered(name: str, kind: str) -> Offer | None:
    """What an installed package offers by this name; None if it is one of another kind's solvers.

    Raises
    ------
    SolverError
        If the name is offered, but cannot be used.
    """
    from ..planning.entry_points import offered

    return None if _kind_of_registered(name, kind) else offered(name)


def _kind_of_registered(name: str, kind: str) -> str:
    """The other kind of studies that a registered solver is for; empty if there is none."""
    from ..planning.kinds import kind_names

    others = (other for other in kind_names() if other != kind)
    return next((other for other in others if find(name, registered(other)) is not None), "")


def _unknown_solver(name: str, kind: str, labels: Iterable[str] = ()) -> str:
    """What is wrong with a solver's name: the nearest one, or where the name belongs."""
    from ..planning.entry_points import offers

    other = _kind_of_registered(name, kind)
    if other:
        return f"{name} is a solver for studies of the kind {other!r}, not {kind!r}"
    if name in _REMOVED:
        return f"unknown solver {name!r}: {_REMOVED[name]}"
    if name.endswith(".py"):
        return f"{name!r} is a file; name the class in it too, as in {name}:MySolver"
    known = [*labels, *registered(kind), *(offer.name for offer in offers())]
    return f"unknown solver {name!r}{suggest(name, list(dict.fromkeys(known)))}"


def find(name: str, known: Iterable[str]) -> str | None:
    """The known name that this is in any case, or None."""
    exact = {candidate.casefold(): candidate for candidate in known}
    return exact.get(name.casefold())


def dataset_names() -> list[str]:
    """Names of the registered datasets."""
    return list(_sources())


def imported_names() -> list[str]:
    """Names of the imported datasets."""
    from ...data_loaders.cache import datasets_folder
    from ...data_loaders.own.entries import imported_names as names_in

    return list(names_in(datasets_folder()))


def source_of(dataset: str) -> Source:
    """Where a registered dataset comes from."""
    return _sources()[dataset]


def _sources() -> Mapping[str, Source]:
    return {source.name: source for source in sources()}


def _free(label: str, taken: Sequence[Any]) -> str:
    """A label that no entry has yet: "SMO", else "SMO-2" and so on."""
    labels = {entry.label.casefold() for entry in taken}
    number, candidate = 1, label
    while candidate.casefold() in labels:
        number += 1
        candidate = f"{label}-{number}"
    return candidate
