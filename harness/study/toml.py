"""Studies as TOML files: read, with messages that name file, line, key, value and the nearest name.

Writing a study as a file and reading it gives an equal study.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from ...data_loaders import suggest
from ..errors import SolverError, StudyError
from ..words import plural, shown, visible
from .grid import ZIP, key_path
from .model import (
    KINDS,
    KeyPath,
    SolverEntry,
    StudyBase,
    StudyFile,
    TaskEntry,
    find,
    resolve_solver_name,
)

#: Mistakes that are reported of one study.
MAX_MISTAKES = 20
_HEADING = re.compile(r"\s*\[\[?\s*([A-Za-z_][\w.-]*)\s*\]\]?\s*")
_TABLE = "must be a table, { key = value }; in Python, a dict"
#: What to write, by the type of the problem, where the checker's own words would not say it.
_REMEDIES = {
    "tuple_type": "must be a list; for one of tables, write each as [[name]]",
    "model_type": _TABLE,
    "dict_type": _TABLE,
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
    from .feasibility import FeasibilityStudy
    from .svm import Study

    try:
        try:
            text = content.decode("utf-8-sig")
            values = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise StudyError(f"{where}: not valid TOML: {error}") from None
        origins: dict[str, list[int]] = {}
        file = StudyFile(where, text, origins)
        kind = values.get("kind", "svm")
        if kind not in KINDS:
            hint = suggest(str(kind), KINDS)
            raise StudyError(f"{file.at(('kind',))}: kind = {shown(kind)} is not known{hint}")
        model: type[StudyBase] = Study if kind == "svm" else FeasibilityStudy
        try:
            study = model.model_validate(values, context=origins)
        except ValidationError as error:
            raise StudyError(*mistakes(error, file, model)) from None
        except StudyError as error:
            raise StudyError(f"{file.at(file.written(error.at))}: {error}") from None
        return completed_study(study, file, folder)
    except StudyError as error:
        # What the file holds may be of any length, and hold any characters.
        raise StudyError(*map(visible, error.lines)) from None


def key_line(text: str, path: KeyPath) -> int | None:
    """The line of a key, a table or an entry of a list, counted from 1; None if it is not seen.

    The standard library reads TOML, but gives no lines: they are searched for the headings and the
    keys on the way. Of what is not seen it is the line of the nearest table around it.
    """
    lines = [line.partition("#")[0] for line in text.split("\n")]
    headings = {n: found[1] for n, line in enumerate(lines) if (found := _HEADING.fullmatch(line))}
    line, table, stop = -1, "", min(headings, default=len(lines))
    for part, after in zip(path, [*path[1:], 0], strict=False):
        if isinstance(part, int):
            continue
        table = f"{table}.{part}".removeprefix(".")
        places = [n for n, heading in headings.items() if heading == table and n > line]
        number = after if isinstance(after, int) else 0
        if number < len(places):
            line = places[number]
            below = (n for n, heading in headings.items() if not heading.startswith(f"{table}."))
            stop = min((n for n in below if n > line), default=len(lines))
        else:
            key = re.compile(rf"""(^|[\s{{,."']){re.escape(part)}["']?\s*[=.]""")
            keys = (n for n in range(max(line, 0), stop) if key.search(lines[n]))
            line = next(keys, line)
    return None if line < 0 else line + 1


def completed_study(study: StudyBase, file: StudyFile, folder: str | None = None) -> StudyBase:
    """The study with names in their own spelling, and what datasets decide filled in."""
    if study._file.solvers:
        return study
    # A mistake in a grid is one, in however many of its entries it is found.
    errors: dict[str, None] = {}
    completed, paths = dict[str, list[Any]](), dict[str, KeyPath]()
    for table in (*study.task_tables, study.solver_table):
        completed[table] = []
        for number, entry in enumerate(getattr(study, table)):
            path, key = file.written((table, number)), "dataset"
            try:
                if table == study.solver_table:
                    paths[entry.label], key = path, "name"
                    study.check_entry(entry)
                    name = resolve_solver_name(entry.name, study.kind, folder=folder)
                    completed[table].append(entry.model_copy(update={"name": name}))
                else:
                    completed[table].append(entry.completed(folder))
            except (StudyError, SolverError) as error:
                path = (*path, *(getattr(error, "at", ()) or (key,)))
                errors |= {
                    f"{file.at(path)}: {key_path(path)}: {line}": None for line in error.lines
                }
    if errors:
        raise StudyError(*errors)
    made = study.model_copy(update={table: tuple(each) for table, each in completed.items()})
    made._file = replace(file, solvers=paths)
    return made


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
            path = file.written(location)
            if path not in messages:
                messages[path] = f"{file.at(path)}: {_explained(problem, path, model)}"
    lines = [messages[path] for path in sorted(messages, key=lambda path: file.line(path) or 0)]
    rest = len(lines) - MAX_MISTAKES
    more = plural(rest, "more mistake")
    return lines if rest <= 0 else [*lines[:MAX_MISTAKES], f"{file.where}: {more}"]


def _explained(problem: Any, location: KeyPath, model: type[BaseModel]) -> str:
    """What is wrong at a place of a study."""
    path, kind, value = key_path(location), problem["type"], problem["input"]
    tables = (*model.task_tables, model.solver_table) if issubclass(model, StudyBase) else ()
    if kind == "extra_forbidden":
        table = _table_at(location[:-1], model)
        known = [*table.model_fields]
        known += [ZIP] if issubclass(table, SolverEntry | TaskEntry) else []
        return f"unknown key {path!r}{suggest(str(location[-1]), known)}"
    if kind in ("missing", "too_short") and path in tables:
        return f"a study needs at least one [[{path}]]"
    if kind == "missing":
        return f"the key {path!r} is missing"
    if kind == "literal_error":
        expected = problem["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")
        return f"{path} = {shown(value)} is not known{suggest(str(value), expected)}"
    message = _REMEDIES.get(kind) or problem["msg"]
    message = message.removeprefix("Input ").removeprefix("Value error, ")
    return f"{path} = {shown(value)}: {message}"


def _table_at(location: KeyPath, model: type[BaseModel]) -> type[BaseModel]:
    """The type of the table at this place of a study."""
    for part in location:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            types = (*get_args(annotation), annotation)
            model = next(each for each in types if isinstance(each, type))
    return model


def to_toml(study: StudyBase) -> str:
    """The text of a study file; what has its default is left out."""
    import tomli_w

    values = study.model_dump(exclude_defaults=True)
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
    try:
        return tomli_w.dumps(({} if study.kind == "svm" else {"kind": study.kind}) | values)
    except TypeError as error:
        raise StudyError(f"a study file cannot hold all values of the study: {error}") from None
