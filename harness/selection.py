"""Parts of a study by name: labels first, then the registries, in any case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from marginbench.data_loaders import DataError, Source, sources, suggest
from marginbench.harness.errors import StudyError
from marginbench.harness.study import MAX_SEEDS, SolverEntry, Study, Task

Entry = TypeVar("Entry", Task, SolverEntry)


def select(
    study: Study,
    *,
    datasets: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
    seeds: int | None = None,
    timeout: float | None = None,
) -> Study:
    """The same study with only some tasks and solvers, or with others in their place.

    Parameters
    ----------
    study : Study
    datasets : sequence of str, optional
        Labels of tasks or names of datasets, in any case. A known dataset that the study does
        not have comes with its own default kernel width and C.
    solvers : sequence of str, optional
        Labels or names of solvers, in any case; a registry name, "file.py:Class" or
        "module:Class" that the study does not have runs with its defaults.
    seeds : int, optional
        Number of seeds.
    timeout : float, optional
        Seconds of solving per run.

    Raises
    ------
    StudyError
        For an unknown name, with the nearest known one, or a number out of range.
    """
    changes: dict[str, Any] = {}
    if seeds is not None:
        if not 1 <= seeds <= MAX_SEEDS:
            raise StudyError(f"the number of seeds must be from 1 to {MAX_SEEDS}, not {seeds}")
        changes["seeds"] = seeds
    if timeout is not None:
        if not 0 < timeout < float("inf"):
            raise StudyError(f"the timeout must be a number of seconds > 0, not {timeout:g}")
        changes["budget"] = study.budget.model_copy(update={"timeout": float(timeout)})
    if datasets is not None:
        changes["task"] = _select_tasks(study.task, datasets)
    if solvers is not None:
        changes["solver"] = _select_solvers(study.solver, solvers)
    return study.model_copy(update=changes)


def _select_tasks(tasks: Sequence[Task], names: Iterable[str]) -> tuple[Task, ...]:
    """The tasks with one of these labels or datasets; a dataset that has none gets one.

    Raises
    ------
    StudyError
        For a name that is neither.
    """
    chosen: list[Task] = []
    for name in split_names(names, [task.label for task in tasks]):
        found = [t for t in tasks if name.casefold() in (t.label.casefold(), t.dataset.casefold())]
        if not found:
            known = dataset_names()
            dataset = find(name, known)
            if dataset is None:
                labels = [task.label for task in tasks]
                raise StudyError(f"unknown dataset {name!r}{_hint(name, [*labels, *known])}")
            found = [complete_task(Task(dataset=dataset, label=_free(dataset, chosen)))]
        chosen.extend(task for task in found if task not in chosen)
    if not chosen:
        raise StudyError("no dataset is selected")
    return tuple(chosen)


def _select_solvers(
    solvers: Sequence[SolverEntry], names: Iterable[str]
) -> tuple[SolverEntry, ...]:
    """The solvers with one of these labels or names; another known solver runs with its defaults.

    Raises
    ------
    StudyError
        For a name that no solver has.
    """
    chosen: list[SolverEntry] = []
    labels = [solver.label for solver in solvers]
    for name in split_names(names, labels):
        key = name.casefold()
        found = [solver for solver in solvers if key == solver.label.casefold()]
        if not found and ":" in name:
            known = resolve_solver_name(name, where="--solver")
            found = [solver for solver in solvers if solver.name == known]
        elif not found:
            known = find(name, solver_names()) or ""
            found = [s for s in solvers if key in (s.name.casefold(), s.class_name.casefold())]
        if not found:
            if not known:
                hint = _hint(name, [*labels, *solver_names()])
                raise StudyError(f"unknown solver {name!r}{hint}")
            found = [SolverEntry(name=known, label=_free(known.rsplit(":", 1)[-1], chosen))]
        chosen.extend(solver for solver in found if solver not in chosen)
    if not chosen:
        raise StudyError("no solver is selected")
    return tuple(chosen)


def split_names(names: Iterable[str], labels: Iterable[str] = ()) -> list[str]:
    """Names given one by one or separated by commas, without repetitions.

    A comma that is part of one of the ``labels`` separates nothing.
    """
    whole = {label.casefold() for label in labels}
    parts: list[str] = []
    for name in names:
        parts += [name] if name.strip().casefold() in whole else name.split(",")
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def complete_task(task: Task, where: str = "") -> Task:
    """The task with the dataset's own kernel width and C where it has none.

    Raises
    ------
    StudyError
        If the dataset does not take the task's parameters.
    """
    source = _sources()[task.dataset]
    try:
        source.resolve(task.dataset_params)
    except DataError as error:
        raise StudyError(f"{where}{error}") from None
    values: dict[str, float] = {}
    if task.C is None:
        values["C"] = float(source.default_C)
    if task.gamma is None and task.kernel != "linear":
        values["gamma"] = float(source.default_gamma)
    return task.model_copy(update=values)


def resolve_solver_name(name: str, *, where: str, folder: str | None = None) -> str:
    """A registry name in its own spelling; a file's path made absolute; a module's name as is.

    Raises
    ------
    StudyError
        For an unknown registry name.
    SolverError
        For a file that does not exist or does not define the class.
    """
    from marginbench.harness.loading import SolverSpec

    if ":" in name:
        return SolverSpec.parse(name, folder).checked().text
    found = find(name, solver_names())
    if found is None:
        raise StudyError(f"{where}: unknown solver {name!r}{_hint(name, solver_names())}")
    return found


def find(name: str, known: Iterable[str]) -> str | None:
    """The known name that this is in any case, or None."""
    exact = {candidate.casefold(): candidate for candidate in known}
    return exact.get(name.casefold())


def dataset_names() -> list[str]:
    return list(_sources())


def solver_names() -> list[str]:
    from marginbench.solvers import registry

    return list(registry())


def _sources() -> Mapping[str, Source]:
    return {source.name: source for source in sources()}


def _hint(name: str, known: Iterable[str]) -> str:
    return suggest(name, list(dict.fromkeys(known)))


def _free(label: str, taken: Sequence[Task] | Sequence[SolverEntry]) -> str:
    """A label that no entry has yet: "SMO", else "SMO-2" and so on."""
    labels = {entry.label.casefold() for entry in taken}
    number, candidate = 1, label
    while candidate.casefold() in labels:
        number += 1
        candidate = f"{label}-{number}"
    return candidate
