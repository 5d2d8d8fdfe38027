"""Stamps: digests that tell cheaply whether what a result was made of is still the same."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir

from ....data_loaders.atomic import replacing
from ...errors import RecordError
from ...hashing import hash_json
from ..sealing import seal_of
from ..store import RecordStore

_FOLDER = "remembered"
# Of results folders and pages; the ones longest not written go first.
_MOST_FILES = 200


def program_stamp() -> str:
    """A digest of the program: its files, the versions of all installed packages, and Python's.

    Files count by name, size, inode and time of change, packages by the names of their metadata.
    """
    files = sorted(_files_of_program())
    packages = sorted(
        name
        for folder in sys.path
        for name in _names_in(Path(folder))
        if name.endswith((".dist-info", ".egg-info", ".egg-link"))
    )
    return hash_json([sys.version, sys.executable, files, packages])


def _files_of_program() -> Iterator[tuple[str, int, int, int]]:
    for package in ("data_loaders", "solvers", "harness", "reports", "studies"):
        found = find_spec(f"marginbench.{package}")
        for root in (found.submodule_search_locations or ()) if found else ():
            yield from _stamps_below(root)


def _stamps_below(root: str) -> Iterator[tuple[str, int, int, int]]:
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _stamps_below(entry.path)
            else:
                at = entry.stat()
                yield entry.path, at.st_size, at.st_mtime_ns, at.st_ino


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def records_stamp(store: RecordStore) -> dict[str, str]:
    """Name of each record -> a digest that stands for what it says.

    The bytes of every file are read and compared with their checksums; nothing is interpreted.

    Raises
    ------
    RecordError
        If a record is damaged or has no checksum.
    """
    if store.unreadable or any(file.damaged for file in store.compacted_files):
        raise RecordError("a compacted file is damaged")
    found = {name: file.digest(name) for name, file in store.rows.items()}
    # A file of its own goes before a row.
    return found | {path.name: seal_of(path) for path in store.paths()}


def remembered(results: Path, what: str) -> dict[str, Any]:
    """What was kept about a results folder; empty if there is nothing, or it is damaged."""
    try:
        digest, _, text = _path(results, what).read_text(encoding="utf-8").partition("\n")
        found = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return {}
    intact = hashlib.sha256(text.encode()).hexdigest() == digest
    return found if intact and isinstance(found, dict) else {}


def remember(results: Path, what: str, values: dict[str, Any]) -> None:
    """Keep something about a results folder in the cache folder, if that can be written."""
    text = json.dumps(values)
    content = f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}".encode()
    path = _path(results, what)
    with contextlib.suppress(OSError):  # it saves time, and no result depends on it
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as sink:
            sink.write(content)
        oldest = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        for file in oldest[:-_MOST_FILES]:
            file.unlink()


def _path(results: Path, what: str) -> Path:
    root = os.environ.get("MARGINBENCH_CACHE") or user_cache_dir("marginbench")
    digest = hashlib.sha256(os.fsencode(results.resolve())).hexdigest()
    return Path(root).expanduser().absolute() / _FOLDER / f"{digest[:32]}-{what}.json"
