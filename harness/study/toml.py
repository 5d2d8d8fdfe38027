"""Writing a study as a TOML file; reading it gives an equal study."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import StudyError
from .grid import Axes
from .model import StudyBase

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(study: StudyBase) -> str:
    """The text of a study file; what has its default is left out.

    Raises
    ------
    StudyError
        For a value that TOML cannot express, such as None or an array.
    """
    values = study.model_dump(exclude_none=True, exclude_defaults=True)
    entries = (*study.task_tables, study.solver_table)
    lines = [] if study.kind == "svm" else [f"kind = {_text(study.kind, 'kind')}"]
    tables = {name: values.pop(name) for name in (*entries, *_tables(values)) if name in values}
    values.pop("kind", None)
    lines += _pairs(values, "")
    for name, table in tables.items():
        rows = [table] if isinstance(table, Mapping) else table
        if name in study.axes():
            rows = [_plain_lists(row, study.axes()[name]) for row in rows]
        heading = f"[{name}]" if isinstance(table, Mapping) else f"[[{name}]]"
        for number, row in enumerate(rows, 1):
            place = name if isinstance(table, Mapping) else f"{name}[{number}]"
            lines += ["", heading, *_pairs(row, f"{place}.")]
    return "\n".join(lines) + "\n"


def _plain_lists(entry: Mapping[str, Any], axes: Axes) -> dict[str, Any]:
    """The entry with lists written as values where they would be read as grids."""
    return {
        key: {name: _as_value(name, item, axes) for name, item in value.items()}
        if key in axes.tables and isinstance(value, Mapping)
        else value
        for key, value in entry.items()
    }


def _as_value(name: str, item: Any, axes: Axes) -> Any:
    is_list = isinstance(item, list | tuple) and name not in axes.lists
    return {"value": item} if is_list else item


def _tables(values: Mapping[str, Any]) -> list[str]:
    return [name for name, value in values.items() if isinstance(value, Mapping)]


def _pairs(values: Mapping[str, Any], where: str) -> Iterator[str]:
    for name, value in values.items():
        yield f"{_key(name)} = {_text(value, f'{where}{name}')}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _text(value: Any, where: str) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # What has a point or an exponent is a float there as well.
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(item, where) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(str(k))} = {_text(v, f'{where}.{k}')}" for k, v in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    raise StudyError(
        f"{where} = {value!r:.60}: a study file cannot hold a {type(value).__name__}; leave it out "
        "or give a number, a text, a list or a table"
    )


def _string(text: str) -> str:
    # The escapes of JSON are those of TOML, which wants one for DEL too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
