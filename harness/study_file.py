"""Reading a study's TOML file; errors name file, line, key, value and the nearest valid name."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel, ValidationError

from marginbench.data_loaders import suggest
from marginbench.harness.errors import SolverError, StudyError
from marginbench.harness.grids import ZIP, origins
from marginbench.harness.kinds import kind_named, kind_names
from marginbench.harness.places import Places, key_path, shown
from marginbench.harness.selection import dataset_names, find, resolve_solver_name
from marginbench.harness.study import StudyBase, table_type
from marginbench.harness.toml_lines import key_lines
from marginbench.harness.words import visible

#: What to write, by the type of the problem, where the checker's own words would not say it.
_REMEDIES = {
    "tuple_type": "write a list",
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
        Where the user's files are looked for, solvers and data; the current folder by default.

    Raises
    ------
    StudyError
    """
    try:
        return _parsed(content, where, folder)
    except (StudyError, SolverError) as error:
        # What the file holds may be of any length, and hold any characters.
        raise type(error)(visible(str(error))) from None


def _parsed(content: bytes, where: str, folder: str | None) -> StudyBase:
    text, values = _read_toml(content, where)
    places = Places(where, key_lines(text))
    model = _model(values, places)
    try:
        places = replace(places, origins=origins(values, model.axes()))
        study = model.model_validate(values)
    except ValidationError as error:
        raise StudyError(_explain(error, places, model)) from None
    except StudyError as error:
        raise StudyError(f"{places.at(places.written(error.at))}: {error}") from None
    return completed_study(study, places, folder)


def _read_toml(content: bytes, where: str) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file, and its values."""
    try:
        text = content.decode("utf-8-sig")
        return text, tomllib.loads(text)
    except RecursionError:
        raise StudyError(f"{where}: not valid TOML: nested too deeply") from None
    except ValueError as error:  # also of a number with more digits than Python reads
        raise StudyError(f"{where}: not valid TOML: {error}") from None


def _model(values: Mapping[str, Any], places: Places) -> type[StudyBase]:
    """The type of study that a file means."""
    kind = values.get("kind", "svm")
    if kind not in kind_names():
        hint = suggest(str(kind), kind_names())
        raise StudyError(f"{places.at(('kind',))}: kind = {shown(kind)} is not known{hint}")
    return kind_named(kind).study


def completed_study(study: StudyBase, places: Places, folder: str | None = None) -> StudyBase:
    """The study with names in their own spelling, and what datasets decide filled in.

    Parameters
    ----------
    study : StudyBase
    places : Places
        Where the messages say that its entries stand.
    folder : str, optional
        Where the files of a user's solvers and data are looked for; the current folder by default.

    Raises
    ------
    StudyError
    """
    tasks = []
    for table in study.task_tables:
        for number, task in enumerate(getattr(study, table)):
            path = places.written((table, number))
            known = find(getattr(task, "dataset", ""), dataset_names())
            key = "dataset" if known is None else "dataset_params"
            tasks.append(task.completed(f"{places.at((*path, key))}: {key_path(path)}.", folder))
    solvers = []
    paths = {}
    for number, entry in enumerate(study.solvers):
        path = paths[entry.label] = places.written((study.solver_table, number))
        place = f"{places.at((*path, 'name'))}: {key_path(path)}"
        try:
            name = resolve_solver_name(entry.name, study.kind, where=f"{place}.name", folder=folder)
        except SolverError as error:
            raise SolverError(f"{place}.name: {error}") from None
        study.check_entry(entry, f"{places.at((*path, 'params'))}: {key_path(path)}")
        solvers.append(entry.model_copy(update={"name": name}))
    placed = study.read_from(replace(places, solvers=paths))
    return placed.with_tasks(tasks).with_solvers(solvers)


def _not_found(name: str | Path, shipped: Mapping[str, Any]) -> str:
    text = str(name)
    if text.endswith(".toml") or os.sep in text:
        return f"no such study file: {text}"
    return f"unknown study {text!r}{suggest(text, sorted(shipped))}"


def _explain(error: ValidationError, places: Places, model: type[StudyBase]) -> str:
    """The first problem as one line, and how many more there are."""
    # A list whose entries are wrong is also reported as too short; that is no news.
    problems = [
        problem
        for problem in error.errors(include_url=False)
        if not (problem["type"] == "too_short" and problem["input"])
    ]
    # A misspelt key is unknown, and the right one is missing: what was written tells more.
    problems.sort(key=lambda problem: problem["type"] != "extra_forbidden")
    line = _explain_one(problems[0], places, model)
    # A mistake in a grid is one, in however many of its entries it is found.
    written = {places.written(problem["loc"]) for problem in problems}
    others = len(written) - 1
    return line + (f" (and {others} more)" if others else "")


def _explain_one(problem: Any, places: Places, model: type[StudyBase]) -> str:
    location = places.written(problem["loc"])
    where, path = places.at(location), key_path(location)
    kind, value = problem["type"], problem["input"]
    if kind == "extra_forbidden":
        return f"{where}: {_unknown_key(location, value, model)}"
    if kind == "missing":
        if path in model.axes():
            return f"{places.where}: a study needs at least one [[{path}]]"
        return f"{where}: the key {path!r} is missing"
    if kind == "literal_error":
        known = [
            part.strip(" '") for part in problem["ctx"]["expected"].replace(" or ", ",").split(",")
        ]
        return f"{where}: {path} = {shown(value)} is not known{suggest(str(value), known)}"
    if kind == "too_short" and path in model.axes():
        return f"{where}: {path} is empty; a study needs at least one [[{path}]]"
    if kind == "tuple_type" and path in model.axes() and isinstance(value, dict):
        return f"{where}: [{path}] is one table where a study has a list of them; write [[{path}]]"
    message = _REMEDIES.get(kind, "").format(path) or problem["msg"]
    message = message.removeprefix("Input ").removeprefix("Value error, ")
    return f"{where}: {path} = {shown(value)}: {message}"


def _unknown_key(location: Sequence[str | int], value: Any, model: type[StudyBase]) -> str:
    """What is wrong with a key that there is not, and the nearest that there is."""
    table = _table_at(location[:-1], model)
    known = list(table.model_fields)
    if table is not model and getattr(table, "axes", None):
        known.append(ZIP)
    name = str(location[-1])
    hint = suggest(name, known)
    if len(location) > 1 or not _is_table(value):
        return f"unknown key {key_path(location)!r}{hint}"
    for key in known:
        hint = hint.replace(f"'{key}'", _bracketed(key, model))
    written = f"[[{name}]]" if isinstance(value, list) else f"[{name}]"
    return f"unknown table {written}{hint}"


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    )


def _bracketed(key: str, model: type[StudyBase]) -> str:
    """A key of a study as its file writes it: [[task]], [budget], 'seeds'."""
    if key in model.axes():
        return f"[[{key}]]"
    annotation = model.model_fields[key].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{key}]"
    return repr(key)


def _table_at(location: Sequence[str | int], model: type[StudyBase]) -> type[BaseModel]:
    """The type of the table that stands at this place of a study."""
    table: type[BaseModel] = model
    for part in location:
        if isinstance(part, int):
            continue
        annotation = table.model_fields[part].annotation
        if get_origin(annotation) is tuple:
            table = table_type(table, part)
        elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
            table = annotation
    return table
