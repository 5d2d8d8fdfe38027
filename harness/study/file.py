"""Reading a study's TOML file; errors name file, line, key, value and the nearest valid name."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...data_loaders import suggest
from ..errors import SolverError, StudyError, UserError
from ..planning.plan import kind_named, kind_names
from ..words import visible
from .grid import origins
from .mistakes import mistakes
from .model import StudyBase
from .places import Places, key_path, shown
from .select import dataset_names, find, resolve_solver_name
from .toml_lines import key_lines


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
        raise type(error)(*map(visible, error.lines)) from None


def _parsed(content: bytes, where: str, folder: str | None) -> StudyBase:
    text, values = _read_toml(content, where)
    places = Places(where, key_lines(text))
    model = _model(values, places)
    try:
        places = replace(places, origins=origins(values, model.axes()))
        study = model.model_validate(values)
    except ValidationError as error:
        raise StudyError(*mistakes(error, places, model)) from None
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
    # A mistake in a grid is one, in however many of its entries it is found.
    wrong: dict[str, type[UserError]] = {}
    tasks = []
    for table in study.task_tables:
        for number, task in enumerate(getattr(study, table)):
            path = places.written((table, number))
            known = find(getattr(task, "dataset", ""), dataset_names())
            key = "dataset" if known is None else "dataset_params"
            try:
                task = task.completed(f"{places.at((*path, key))}: {key_path(path)}.", folder)
            except StudyError as error:
                wrong |= dict.fromkeys(error.lines, StudyError)
            tasks.append(task)
    solvers = []
    paths = {}
    for number, entry in enumerate(study.solvers):
        path = paths[entry.label] = places.written((study.solver_table, number))
        place = f"{places.at((*path, 'name'))}: {key_path(path)}"
        try:
            name = resolve_solver_name(entry.name, study.kind, where=f"{place}.name", folder=folder)
            solvers.append(entry.model_copy(update={"name": name}))
            study.check_entry(entry, f"{places.at((*path, 'params'))}: {key_path(path)}")
        except SolverError as error:
            wrong[f"{place}.name: {error}"] = SolverError
        except StudyError as error:
            wrong |= dict.fromkeys(error.lines, StudyError)
    if wrong:
        raise next(iter(wrong.values()))(*wrong)
    placed = study.read_from(replace(places, solvers=paths))
    return placed.with_tasks(tasks).with_solvers(solvers)


def _not_found(name: str | Path, shipped: Mapping[str, Any]) -> str:
    text = str(name)
    if text.endswith(".toml") or os.sep in text:
        return f"no such study file: {text}"
    return f"unknown study {text!r}{suggest(text, sorted(shipped))}"
