"""Studies as TOML files: read, with messages that name file, line, key, value and the nearest name.

Writing a study as a file and reading it gives an equal study.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel, ValidationError

from ...data_loaders import suggest
from ..errors import SolverError, StudyError, UserError
from ..words import shown, visible
from .grid import ZIP, Axes
from .model import (
    KINDS,
    KeyPath,
    StudyBase,
    StudyFile,
    dataset_names,
    find,
    key_path,
    resolve_solver_name,
    table_type,
)

#: Mistakes that are reported of one study.
MAX_MISTAKES = 20
# Characters that are read to find lines: more are not worth the wait.
_PATIENCE = 5_000_000
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
    name = find(str(name_or_path), shipped)
    path = Path(name_or_path)
    if name is not None and not path.is_file():
        return parse_study(shipped[name].read_bytes(), where=f"{name}.toml")
    if not path.is_file():
        text = str(name_or_path)
        if text.endswith(".toml") or os.sep in text:
            raise StudyError(f"no such study file: {text}")
        raise StudyError(f"unknown study {text!r}{suggest(text, sorted(shipped))}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None
    return parse_study(content, where=str(path), folder=str(path.parent.resolve()))


def parse_study(content: bytes, *, where: str, folder: str | None = None) -> StudyBase:
    """Build a study from the content of a TOML file."""
    try:
        return _parsed(content, where, folder)
    except (StudyError, SolverError) as error:
        # What the file holds may be of any length, and hold any characters.
        raise type(error)(*map(visible, error.lines)) from None


def _parsed(content: bytes, where: str, folder: str | None) -> StudyBase:
    try:
        text = content.decode("utf-8-sig")
        values = tomllib.loads(text)
    except RecursionError:
        raise StudyError(f"{where}: not valid TOML: nested too deeply") from None
    except UnicodeDecodeError:
        raise StudyError(f"{where}: is not UTF-8 text; convert the file to UTF-8") from None
    except ValueError as error:  # also of a number with more digits than Python reads
        raise StudyError(f"{where}: not valid TOML: {error}") from None
    origins: dict[str, list[int]] = {}
    file = StudyFile(where, text, origins)
    kind = values.get("kind", "svm")
    if kind not in KINDS:
        hint = suggest(str(kind), list(KINDS))
        raise StudyError(f"{file.at(('kind',))}: kind = {shown(kind)} is not known{hint}")
    model = study_type(str(kind))
    try:
        study = model.model_validate(values, context=origins)
    except ValidationError as error:
        raise StudyError(*mistakes(error, file, model)) from None
    except StudyError as error:
        raise StudyError(f"{file.at(file.written(error.at))}: {error}") from None
    return completed_study(study, file, folder)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of each key, table and entry of a list, counted from 1.

    The standard library reads TOML, but gives no lines. Each statement of a file is TOML by itself:
    it ends with the first line up to which it can be read.
    """
    lines: dict[KeyPath, int] = {}
    entries: dict[KeyPath, int] = {}
    table: KeyPath = ()
    statement, start, left = "", 1, _PATIENCE

    def note(path: KeyPath, value: Any) -> None:
        lines.setdefault(path, start)
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, item in items:
                note((*path, key), item)

    for number, line in enumerate(text.split("\n"), 1):
        start, before = (start, statement) if statement else (number, "")
        statement = f"{before}{line}\n"
        if before and not any(mark in line for mark in ("]", "}", '"""', "'''")):
            continue
        left -= len(statement)
        if left < 0:
            break
        try:
            values = tomllib.loads(statement)
        except (ValueError, RecursionError):
            continue
        if statement.lstrip().startswith("["):
            table = ()
            while values:
                ((key, values),) = values.items()
                table += (key,)
                lines.setdefault(table, start)
                if isinstance(values, list):
                    values = {}
                    entries[table] = entries.get(table, -1) + 1
                if table in entries:
                    table += (entries[table],)
                    lines.setdefault(table, start)
        else:
            for key, value in values.items():
                note((*table, key), value)
        statement = ""
    return lines


def study_type(kind: str) -> type[StudyBase]:
    """The type of the studies of a kind."""
    from .feasibility import FeasibilityStudy
    from .svm import Study

    types: dict[str, type[StudyBase]] = {"svm": Study, "feasibility": FeasibilityStudy}
    return types[kind]


def completed_study(study: StudyBase, file: StudyFile, folder: str | None = None) -> StudyBase:
    """The study with names in their own spelling, and what datasets decide filled in."""
    # A mistake in a grid is one, in however many of its entries it is found.
    errors: dict[str, type[UserError]] = {}
    tasks = []
    for table in study.task_tables:
        for number, task in enumerate(getattr(study, table)):
            path = file.written((table, number))
            try:
                tasks.append(task.completed(key_path(path), folder))
            except StudyError as error:
                registered = find(getattr(task, "dataset", ""), dataset_names())
                at = file.at((*path, "dataset" if registered is None else "dataset_params"))
                errors |= dict.fromkeys((f"{at}: {line}" for line in error.lines), StudyError)
    solvers = []
    paths = {}
    for number, entry in enumerate(study.solvers):
        path = paths[entry.label] = file.written((study.solver_table, number))
        try:
            name = resolve_solver_name(entry.name, study.kind, folder=folder)
            solvers.append(entry.model_copy(update={"name": name}))
        except (SolverError, StudyError) as error:
            at = file.at((*path, "name"))
            errors[f"{at}: {key_path(path)}.name: {error}"] = type(error)
            continue
        try:
            study.check_entry(entry, key_path(path))
        except StudyError as error:
            at = file.at((*path, *(error.at or ("params",))))
            errors[f"{at}: {error}"] = StudyError
    if errors:
        raise next(iter(errors.values()))(*errors)
    placed = study.read_from(replace(file, solvers=paths))
    return placed.with_tasks(tasks).with_solvers(solvers)


def mistakes(error: ValidationError, file: StudyFile, model: type[BaseModel]) -> list[str]:
    """A line for each mistake, in the order of the file."""
    problems = error.errors(include_url=False)
    # A misspelt key is unknown, and the right one is missing: what was written tells more.
    misspelt = {problem["loc"][:-1] for problem in problems if problem["type"] == "extra_forbidden"}
    # A mistake in a grid is one, in however many of its entries it is found.
    messages: dict[KeyPath, str] = {}
    for problem in problems:
        kind, location = problem["type"], problem["loc"]
        # A list whose entries are wrong is also reported as too short; that is no news.
        consequence = (kind == "too_short" and problem["input"]) or (
            kind == "missing" and location[:-1] in misspelt
        )
        if not consequence:
            messages.setdefault(file.written(location), _explained(problem, file, model))
    lines = [messages[path] for path in sorted(messages, key=lambda path: file.line(path) or 0)]
    rest = len(lines) - MAX_MISTAKES
    return lines if rest <= 0 else [*lines[:MAX_MISTAKES], f"{file.where}: {rest} more mistakes"]


def _explained(problem: Any, file: StudyFile, model: type[BaseModel]) -> str:
    location = file.written(problem["loc"])
    where, path = file.at(location), key_path(location)
    kind, value = problem["type"], problem["input"]
    if kind == "extra_forbidden":
        return f"{where}: {_unknown_key(location, model)}"
    if kind == "missing":
        if path in _tables(model):
            return f"{file.where}: a study needs at least one [[{path}]]"
        return f"{where}: the key {path!r} is missing"
    if kind == "literal_error":
        expected = [
            part.strip(" '") for part in problem["ctx"]["expected"].replace(" or ", ",").split(",")
        ]
        return f"{where}: {path} = {shown(value)} is not known{suggest(str(value), expected)}"
    if kind == "too_short" and path in _tables(model):
        return f"{where}: {path} is empty; a study needs at least one [[{path}]]"
    if kind == "tuple_type" and path in _tables(model) and isinstance(value, dict):
        return f"{where}: [{path}] is one table where a study has a list of them; write [[{path}]]"
    message = _REMEDIES.get(kind, "").format(path) or problem["msg"]
    if kind == "model_type" and isinstance(location[-1], int):
        message = f"write it as a table [[{location[0]}]]" if file.text else "give a dictionary"
    message = message.removeprefix("Input ").removeprefix("Value error, ")
    return f"{where}: {path} = {shown(value)}: {message}"


def _unknown_key(location: Sequence[str | int], model: type[BaseModel]) -> str:
    """What is wrong with a key that there is not, and the nearest that there is."""
    table = _table_at(location[:-1], model)
    keys = list(table.model_fields)
    if table is not model and isinstance(getattr(table, "axes", None), Axes):
        keys.append(ZIP)
    return f"unknown key {key_path(location)!r}{suggest(str(location[-1]), keys)}"


def _tables(model: type[BaseModel]) -> list[str]:
    """Names of the fields that hold tables of entries."""
    return [
        name
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) is tuple and hasattr(table_type(model, name), "axes")
    ]


def _table_at(location: Sequence[str | int], model: type[BaseModel]) -> type[BaseModel]:
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


def to_toml(study: StudyBase) -> str:
    """The text of a study file; what has its default is left out."""
    import tomli_w

    values = study.model_dump(exclude_none=True, exclude_defaults=True)
    kind = {} if study.kind == "svm" else {"kind": study.kind}
    for table, axes in study.axes().items():
        for entry in values.get(table, ()):
            # A list that would be read as a grid.
            for key in set(axes.tables).intersection(entry):
                entry[key] = {
                    name: {"value": item}
                    if isinstance(item, list | tuple) and name not in axes.lists
                    else item
                    for name, item in entry[key].items()
                }
    _check_writable(values, ())
    return tomli_w.dumps(kind | {name: item for name, item in values.items() if name != "kind"})


def _check_writable(value: Any, path: KeyPath) -> None:
    if isinstance(value, Mapping | list | tuple):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            _check_writable(item, (*path, key))
    elif not isinstance(value, str | int | float):
        raise StudyError(
            f"{key_path(path)} = {value!r:.60}: a study file cannot hold a "
            f"{type(value).__name__}; leave it out or give a number, a text, a list or a table"
        )
