"""What is wrong with the values of a study: a line for each mistake, from a file or from Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_origin

from pydantic import BaseModel, ValidationError

from ...data_loaders import suggest
from .grid import ZIP, Axes
from .model import table_type
from .places import Places, key_path, shown
from .toml_lines import Path

#: Mistakes that are told of one study.
MAX_MISTAKES = 20
#: What to write, by the type of the problem, where the checker's own words would not say it.
_REMEDIES = {
    "tuple_type": "write a list",
    "model_type": "write it as a table [{}]",
    "dict_type": "write it as a table, {{ key = value }}",
    "string_pattern_mismatch": "may hold letters, digits, '.', '_' and '-', none of the last three "
    "first",
    "string_too_short": "must not be empty",
}


def mistakes(error: ValidationError, places: Places, model: type[BaseModel]) -> list[str]:
    """A line for each mistake, in the order of the file.

    Parameters
    ----------
    error : pydantic.ValidationError
    places : Places
        Of the values that were checked.
    model : type
        Of what they were to make: a study or a part of one.
    """
    problems = error.errors(include_url=False)
    # A misspelt key is unknown, and the right one is missing: what was written tells more.
    misspelt = {problem["loc"][:-1] for problem in problems if problem["type"] == "extra_forbidden"}
    # A mistake in a grid is one, in however many of its entries it is found.
    found: dict[Path, str] = {}
    for problem in problems:
        kind, location = problem["type"], problem["loc"]
        # A list whose entries are wrong is also reported as too short; that is no news.
        consequence = (kind == "too_short" and problem["input"]) or (
            kind == "missing" and location[:-1] in misspelt
        )
        if not consequence:
            found.setdefault(places.written(location), _explained(problem, places, model))
    lines = [found[path] for path in sorted(found, key=lambda path: places.line(path) or 0)]
    rest = len(lines) - MAX_MISTAKES
    return lines if rest <= 0 else [*lines[:MAX_MISTAKES], f"{places.where}: {rest} more mistakes"]


def _explained(problem: Any, places: Places, model: type[BaseModel]) -> str:
    location = places.written(problem["loc"])
    where, path = places.at(location), key_path(location)
    kind, value = problem["type"], problem["input"]
    if kind == "extra_forbidden":
        return f"{where}: {_unknown_key(location, value, model)}"
    if kind == "missing":
        if path in _tables(model):
            return f"{places.where}: a study needs at least one [[{path}]]"
        return f"{where}: the key {path!r} is missing"
    if kind == "literal_error":
        known = [
            part.strip(" '") for part in problem["ctx"]["expected"].replace(" or ", ",").split(",")
        ]
        return f"{where}: {path} = {shown(value)} is not known{suggest(str(value), known)}"
    if kind == "too_short" and path in _tables(model):
        return f"{where}: {path} is empty; a study needs at least one [[{path}]]"
    if kind == "tuple_type" and path in _tables(model) and isinstance(value, dict):
        return f"{where}: [{path}] is one table where a study has a list of them; write [[{path}]]"
    if kind == "model_type" and isinstance(location[-1], int):
        return f"{where}: {path} = {shown(value)}: {_as_entry(str(location[0]), places)}"
    message = _REMEDIES.get(kind, "").format(path) or problem["msg"]
    message = message.removeprefix("Input ").removeprefix("Value error, ")
    return f"{where}: {path} = {shown(value)}: {message}"


def _as_entry(table: str, places: Places) -> str:
    """How an entry of a table is written, in a file or in Python."""
    if places.lines:
        return f"write it as a table [[{table}]]"
    if table in ("solver", "method"):
        return "give a dictionary such as {'name': 'SMO'} or {'name': 'file.py:Class'}"
    return "give a dictionary such as {'dataset': 'digits'} or {'dataset': 'file.csv'}"


def _unknown_key(location: Sequence[str | int], value: Any, model: type[BaseModel]) -> str:
    """What is wrong with a key that there is not, and the nearest that there is."""
    table = _table_at(location[:-1], model)
    known = list(table.model_fields)
    if table is not model and isinstance(getattr(table, "axes", None), Axes):
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


def _tables(model: type[BaseModel]) -> list[str]:
    """Names of the fields that hold tables of entries."""
    return [
        name
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) is tuple and hasattr(table_type(model, name), "axes")
    ]


def _bracketed(key: str, model: type[BaseModel]) -> str:
    """A key of a study as its file writes it: [[task]], [budget], 'seeds'."""
    if key in _tables(model):
        return f"[[{key}]]"
    annotation = model.model_fields[key].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{key}]"
    return repr(key)


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
