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
from marginbench.harness.errors import SolverError, StudyError
from marginbench.harness.kinds import kind_named, kind_names
from marginbench.harness.selection import find, resolve_solver_name
from marginbench.harness.study import StudyBase, table_type

#: What to write, by the type of the problem, where the checker's own words would not say it.
_REMEDIES = {
    "tuple_type": "write a list, or for each entry a table [[{}]]",
    "model_type": "write it as a table [{}]",
    "dict_type": "write it as a table, {{ key = value }}",
    "string_pattern_mismatch": "may hold letters, digits, '.', '_' and '-', none of the last three "
    "first",
    "string_too_short": "must not be empty",
}


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


def load_study(name_or_path: str | Path) -> StudyBase:
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
    StudyBase
        Of the type of its kind: a file says ``kind = "feasibility"``, or is of SVM solvers.
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


def parse_study(content: bytes, *, where: str, folder: str | None = None) -> StudyBase:
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
    model = _model(values, where)
    try:
        study = model.model_validate(values)
    except ValidationError as error:
        raise StudyError(_explain(error, where, model)) from None
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from None
    return completed_study(study, where, folder)


def _model(values: Mapping[str, Any], where: str) -> type[StudyBase]:
    """The type of study that a file means."""
    kind = values.get("kind", "svm")
    if kind not in kind_names():
        raise StudyError(f"{where}: kind = {kind!r} is not known{suggest(str(kind), kind_names())}")
    return kind_named(kind).study


def completed_study(study: StudyBase, where: str, folder: str | None = None) -> StudyBase:
    """The study with names in their own spelling, and what datasets decide filled in.

    Parameters
    ----------
    study : StudyBase
    where : str
        What the messages call it.
    folder : str, optional
        Where the files of a user's solvers are looked for; the current folder by default.

    Raises
    ------
    StudyError
    """
    tasks = [
        task.completed(f"{where}: {table}[{number}].")
        for table in study.task_tables
        for number, task in enumerate(getattr(study, table), 1)
    ]
    solvers = []
    for number, entry in enumerate(study.solvers, 1):
        place = f"{where}: {study.solver_table}[{number}]"
        try:
            name = resolve_solver_name(entry.name, study.kind, where=f"{place}.name", folder=folder)
        except SolverError as error:
            raise SolverError(f"{place}.name: {error}") from None
        study.check_entry(entry, place)
        solvers.append(entry.model_copy(update={"name": name}))
    return study.with_tasks(tasks).with_solvers(solvers)


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
    # A misspelt key is unknown, and the right one is missing: what was written tells more.
    problems.sort(key=lambda problem: problem["type"] != "extra_forbidden")
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
        if path in getattr(model, "task_tables", ()) or path == getattr(model, "solver_table", ""):
            return f"{where}: a study needs at least one [[{path}]]"
        return f"{where}: the key {path!r} is missing"
    if kind == "literal_error":
        known = [
            part.strip(" '") for part in problem["ctx"]["expected"].replace(" or ", ",").split(",")
        ]
        value = problem["input"]
        return f"{where}: {path} = {value!r} is not known{suggest(str(value), known)}"
    if kind == "too_short":
        return f"{where}: {path} is empty; a study needs at least one [[{path}]]"
    message = _REMEDIES.get(kind, "").format(path) or problem["msg"]
    message = message.removeprefix("Input ").removeprefix("Value error, ")
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
    for part in location:
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
        else:
            model = table_type(model, part)
    return list(model.model_fields)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
