"""``study.json``: the description of a results folder's study, with a checksum."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...data_loaders.atomic import replacing
from ..errors import UserError
from ..hashing import hash_json
from ..storage import storing

SCHEMA_VERSION = 4
FILE_NAME = "study.json"
#: Task, solver and seed.
Cell = tuple[str, str, int]
_DIGEST = "digest"


class DamagedDescriptionError(UserError):
    """A ``study.json`` that was changed since it was written."""


def cell_of(run: Mapping[str, Any]) -> Cell:
    """Task, solver and seed of a run as ``study.json`` plans it."""
    return run["task"], run["solver"], run["seed"]


def planned_keys(description: Mapping[str, Any]) -> dict[Cell, str]:
    """The key of each planned run."""
    return {cell_of(run): run["key"] for run in description.get("planned", ())}


def write_description(folder: Path, values: dict[str, Any]) -> bool:
    """Write ``study.json`` with its digest, unless it says the same already; whether it did."""
    path = folder / FILE_NAME
    digest = hash_json(values)
    with storing(path):
        with contextlib.suppress(UserError):
            if hash_json(read_description(folder)) == digest:
                return False
        stored = {**values, _DIGEST: digest}
        text = json.dumps(stored, indent=2, ensure_ascii=False, default=repr) + "\n"
        with replacing(path) as sink:
            sink.write(text.encode("utf-8", "backslashreplace"))
    return True


def read_description(folder: Path) -> dict[str, Any] | None:
    """The content of ``study.json``; None if there is no such file."""
    path = folder / FILE_NAME
    try:
        content: dict[str, Any] = json.loads(path.read_bytes().decode("utf-8"))
        is_intact = content.pop(_DIGEST) == hash_json(content)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        is_intact = False
    if not is_intact:
        raise DamagedDescriptionError(
            f"{path}: damaged (its content does not match its digest); a run of the study writes "
            "it anew"
        )
    version = content.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{path}: written by another release of marginbench (schema version {version}, this "
            f"release reads {SCHEMA_VERSION}); use that release or choose another folder"
        )
    return content
