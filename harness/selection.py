"""Parts of a study by name: labels first, then the registries, in any case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from marginbench.data_loaders import Source, sources, suggest
from marginbench.harness.errors import StudyError
from marginbench.harness.study import MAX_SEEDS, SolverEntry, StudyBase, TaskEntry, label_of
from marginbench.harness.words import visible

StudyT = TypeVar("StudyT", bound=StudyBase)
# Characters of a name that is too long for a message.
_SHOWN = 100


def select(
    study: StudyT,
    *,
    datasets: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
    seeds: int | None = None,
    timeout: float | None = None,
) -> StudyT:
    """The same study with only some tasks and solvers, or with others in their place.

    Parameters
    ----------
    study : StudyBase
    datasets : sequence of str, optional
        Labels of tasks, or names of their datasets or generators, in any case. A known dataset
        that a study of SVM solvers does not have comes with its own default kernel width and C;
        one of the user's files is named by its path.
    solvers : sequence of str, optional
        Labels or names of solvers, in any case; a registry name, "file.py:Class" or
        "module:Class" that the study does not have runs with its defaults.
    seeds : int, optional
        Number of seeds; the most instances of a cell.
    timeout : float, optional
        Seconds of solving per run.

    Raises
    ------
    StudyError
        For an unknown name, with the nearest known one, or a number out of range.
    """
    if seeds is not None:
        if not 1 <= seeds <= MAX_SEEDS:
            raise StudyError(f"the number of seeds must be from 1 to {MAX_SEEDS}, not {seeds}")
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
    return study


def _select_tasks(study: StudyBase, names: Iterable[str]) -> list[TaskEntry]:
    """The tasks with one of these names; a dataset that has none gets one where the kind can.

    Raises
    ------
    StudyError
        For a name that is neither.
    """
    from marginbench.harness.kinds import kind_named

    chosen: list[TaskEntry] = []
    for name in split_names(names, [task.label for task in study.tasks]):
        key = name.casefold()
        found = [task for task in study.tasks if key in map(str.casefold, task.names)]
        if not found:
            # A label of the study stays that of the study's own task, chosen or not.
            label = _free(label_of(name), [*chosen, *study.tasks])
            new = kind_named(study.kind).new_task(study, name, label)
            found = [new]
        chosen.extend(task for task in found if task not in chosen)
    if not chosen:
        raise StudyError("no dataset is selected")
    return chosen


def unknown_task(study: StudyBase, name: str, known: Iterable[str] = ()) -> StudyError:
    """The error for a task that there is not; it suggests the nearest name."""
    names = dict.fromkeys([*(text for task in study.tasks for text in task.names), *known])
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
        known = ""
        if not found and is_foreign(name):
            known = resolve_solver_name(name, study.kind, where="--solver")
            found = [solver for solver in study.solvers if solver.name == known]
        elif not found:
            known = find(name, registered(study.kind)) or ""
            found = [
                solver
                for solver in study.solvers
                if key in (solver.name.casefold(), solver.class_name.casefold())
            ]
        if not found:
            if not known:
                names = list(dict.fromkeys([*labels, *registered(study.kind)]))
                raise StudyError(_unknown_solver(name, study.kind, names))
            # A label of the study stays that of the study's own solver, chosen or not.
            found = [_new_solver(known, [*chosen, *study.solvers])]
        chosen.extend(solver for solver in found if solver not in chosen)
    if not chosen:
        raise StudyError("no solver is selected")
    return chosen


def _new_solver(name: str, taken: Sequence[SolverEntry]) -> SolverEntry:
    """A solver that the study does not have, with its defaults and a label of its own.

    Raises
    ------
    StudyError
        If its file or class has a name that no table could show.
    """
    label = _free(name.rsplit(":", 1)[-1], taken)
    try:
        return SolverEntry(name=name, label=label)
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
    """
    whole = {label.casefold() for label in labels}
    parts: list[str] = []
    for name in names:
        parts += [name] if name.strip().casefold() in whole else name.split(",")
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def is_foreign(name: str) -> bool:
    """Whether a solver's name means code from outside the project, not a registered solver."""
    return ":" in name


def resolve_solver_name(name: str, kind: str, *, where: str, folder: str | None = None) -> str:
    """A registry name in its own spelling; a file's path made absolute; a module's name as is.

    Raises
    ------
    StudyError
        For an unknown registry name.
    SolverError
        For a file that does not exist or does not define the class.
    """
    from marginbench.harness.loading import SolverSpec

    if is_foreign(name):
        return SolverSpec.parse(name, folder).checked().text
    found = find(name, registered(kind))
    if found is None:
        raise StudyError(f"{where}: {_unknown_solver(name, kind, registered(kind))}")
    return found


def registered(kind: str) -> list[str]:
    """Names of the registered solvers for a kind of studies."""
    from marginbench.solvers.registration import solver_names

    return solver_names(kind)


def _unknown_solver(name: str, kind: str, known: Sequence[str]) -> str:
    """What is wrong with a solver's name: the nearest one, or where the name belongs."""
    from marginbench.harness.kinds import kind_names

    for other in kind_names():
        if other != kind and find(name, registered(other)) is not None:
            return f"{name} is a solver for studies of the kind {other!r}, not {kind!r}"
    if name.endswith(".py"):
        return f"{name!r} is a file; name the class in it too, as in {name}:MySolver"
    return f"unknown solver {name!r}{suggest(name, list(known))}"


def find(name: str, known: Iterable[str]) -> str | None:
    """The known name that this is in any case, or None."""
    exact = {candidate.casefold(): candidate for candidate in known}
    return exact.get(name.casefold())


def dataset_names() -> list[str]:
    """Names of the registered datasets."""
    return list(_sources())


def imported_names() -> list[str]:
    """Names of the imported datasets."""
    from marginbench.data_loaders.cache import datasets_folder
    from marginbench.data_loaders.own.entries import imported_names as names_in

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
