"""Reading a study's TOML file; errors name file, key, value and the nearest valid name."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from marginbench.data_loaders import suggest
from marginbench.harness.errors import StudyError
from marginbench.harness.feasibility.study import Cell, FeasibilityStudy, Images, Method
from marginbench.harness.selection import complete_task, dataset_names, find, resolve_solver_name
from marginbench.harness.study import SolverEntry, Study, Task


def study_names() -> list[str]:
    """Names of the studies that ship with marginbench."""
    return sorted(_shipped())


def _shipped() -> dict[str, Any]:
    """Name -> TOML file of each study that ships with marginbench."""
    folder = resources.files("marginbench.studies")
    return {
        item.name.removesuffix(".toml"): item
        for item in folder.iterdir()
        if item.name.endswith(".toml")
    }


def load_study(name_or_path: str | Path) -> Study | FeasibilityStudy:
    """Load a study that ships with marginbench, or one of the user's.

    Parameters
    ----------
    name_or_path : str or Path
        Name of a shipped study, or path of a TOML file.

    Raises
    ------
    StudyError
        If there is none, or if it does not make sense; the message names file, key and value.

    Returns
    -------
    Study or FeasibilityStudy
        The latter for a file with ``kind = "feasibility"``.
    """
    shipped = _shipped()
    known = find(str(name_or_path), shipped)
    path = Path(name_or_path)
    if known is not None and not path.is_file():
        return parse_study(shipped[known].read_bytes(), where=f"{known}.toml")
    if not path.is_file():
        raise StudyError(_not_found(name_or_path, shipped))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None
    return parse_study(content, where=str(path), folder=str(path.parent.resolve()))


def parse_study(
    content: bytes, *, where: str, folder: str | None = None
) -> Study | FeasibilityStudy:
    """Build a study from the content of a TOML file.

    Parameters
    ----------
    content : bytes
    where : str
        What the messages call the file.
    folder : str, optional
        Where the files of a user's solvers are looked for; the current folder by default.

    Raises
    ------
    StudyError
    """
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{where}: not valid TOML: {error}") from None
    model: type[Study] | type[FeasibilityStudy] = FeasibilityStudy if "kind" in values else Study
    try:
        study = model.model_validate(values)
    except ValidationError as error:
        raise StudyError(_explain(error, where, model)) from None
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from None
    if isinstance(study, FeasibilityStudy):
        return _known_parts(study, where)
    tasks = tuple(_known_task(task, number, where) for number, task in enumerate(study.task, 1))
    solvers = tuple(
        _known_solver(solver, number, where, folder)
        for number, solver in enumerate(study.solver, 1)
    )
    return study.model_copy(update={"task": tasks, "solver": solvers})


def _known_task(task: Task, number: int, where: str) -> Task:
    known = dataset_names()
    dataset = find(task.dataset, known)
    if dataset is None:
        raise StudyError(
            f"{where}: task[{number}].dataset: unknown dataset {task.dataset!r}"
            f"{suggest(task.dataset, known)}"
        )
    return complete_task(task.model_copy(update={"dataset": dataset}), f"{where}: task[{number}]: ")


def _known_parts(study: FeasibilityStudy, where: str) -> FeasibilityStudy:
    """The study with names in their own spelling."""
    from marginbench.solvers.registry import feasibility_methods

    images = []
    for number, part in enumerate(study.images, 1):
        dataset = find(part.dataset, dataset_names())
        if dataset is None:
            raise StudyError(
                f"{where}: images[{number}].dataset: unknown dataset {part.dataset!r}"
                f"{suggest(part.dataset, dataset_names())}"
            )
        images.append(part.model_copy(update={"dataset": dataset}))
    methods, known = [], list(feasibility_methods())
    for number, method in enumerate(study.method, 1):
        name = find(method.name, known)
        if name is None:
            raise StudyError(
                f"{where}: method[{number}].name: unknown method {method.name!r}"
                f"{suggest(method.name, known)}"
            )
        methods.append(method.model_copy(update={"name": name}))
    return study.model_copy(update={"images": tuple(images), "method": tuple(methods)})


def _known_solver(solver: SolverEntry, number: int, where: str, folder: str | None) -> SolverEntry:
    name = resolve_solver_name(solver.name, where=f"{where}: solver[{number}].name", folder=folder)
    for parameter, value in solver.params.items():
        if value == "reference" and parameter != "nu":
            raise StudyError(
                f"{where}: solver[{number}].params.{parameter} = 'reference': only nu can be "
                "taken from the reference optimum"
            )
    return solver.model_copy(update={"name": name})


def _not_found(name: str | Path, shipped: Mapping[str, Any]) -> str:
    text = str(name)
    if text.endswith(".toml") or os.sep in text:
        return f"no such study file: {text}"
    return f"unknown study {text!r}{suggest(text, sorted(shipped))}"


def _explain(error: ValidationError, where: str, model: type[BaseModel]) -> str:
    """The first problem as one line, and how many more there are."""
    # A list whose entries are wrong is also reported as too short; that is no news.
    problems = [
        problem
        for problem in error.errors(include_url=False)
        if not (problem["type"] == "too_short" and problem["input"])
    ]
    line = _explain_one(problems[0], where, model)
    others = len(problems) - 1
    return line + (f" (and {others} more)" if others else "")


def _explain_one(problem: Any, where: str, model: type[BaseModel]) -> str:
    location: tuple[str | int, ...] = problem["loc"]
    path = _key_path(location)
    kind = problem["type"]
    if kind == "extra_forbidden":
        known = _keys_at(location[:-1], model)
        return f"{where}: unknown key {path!r}{suggest(str(location[-1]), known)}"
    if kind == "missing":
        return f"{where}: the key {path!r} is missing"
    if kind == "literal_error":
        known = [
            part.strip(" '") for part in problem["ctx"]["expected"].replace(" or ", ",").split(",")
        ]
        value = problem["input"]
        return f"{where}: {path} = {value!r} is not known{suggest(str(value), known)}"
    if kind == "too_short":
        return f"{where}: {path} is empty; a study needs at least one [[{path}]]"
    message = problem["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{where}: {path} = {_shown(problem['input'])}: {message}"


def _key_path(location: Sequence[str | int]) -> str:
    """``('task', 1, 'C')`` as ``task[2].C``: entries are counted from one, as people do."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part + 1}]"
        else:
            path += f".{part}" if path else part
    return path


def _keys_at(location: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """The valid keys of the table that stands at this place of a study."""
    tables: dict[str, type[BaseModel]] = {
        "task": Task, "solver": SolverEntry, "cell": Cell, "images": Images, "method": Method,
    }  # fmt: skip
    for part in location:
        if isinstance(part, int):
            continue
        annotation = tables.get(part) or model.model_fields[part].annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
    return list(model.model_fields)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
