"""The facts of a finished study, kept so that the same command needs no worker to see that it is.

To import solvers and to load data takes seconds. ``facts.json`` in the results folder holds what
preflight found out, under a hash of all that this follows from: the study, the code of the project
and of users' solvers, the installed packages, the files of data, and the cached reference optima.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...data_loaders.atomic import replacing
from ...data_loaders.cache import datasets_folder
from ..errors import SolverError
from ..evaluation.svm import ReferenceInfo
from ..hashing import hash_files, hash_json
from ..jobs import described
from ..loading import SolverSpec
from ..storage import storing
from ..study.model import DatasetTask, StudyBase, is_foreign, is_users_file
from .fingerprint import kernel_code, project_roots, source_files
from .plan import kind_named
from .preflight import DatasetInfo, Facts, SolverInfo

FILE_NAME = "facts.json"
# What says in a folder of Python's path which packages are installed.
_INSTALLED = (".dist-info", ".egg-info", ".pth")


def sources_of(study: StudyBase) -> str:
    """A hash of the study, of all code, and of the user's files; "" if they do not tell all."""
    try:
        parts: list[object] = [
            study.model_dump(mode="json"),
            sys.version,
            list(_installed()),
            list(_code()),
        ]
        for entry in study.solvers:
            if is_foreign(entry.name):
                file = SolverSpec.parse(entry.name).located()
                parts.append(hash_files(source_files(entry.name, file or Path(), study.kind)))
        for task in study.tasks:
            parts.append(kernel_code(getattr(task, "kernel", "")))
            if isinstance(task, DatasetTask) and is_users_file(task.dataset, task.folder):
                if task.runs_code:
                    return ""
                named = [task.dataset, str(task.dataset_params.get("test", ""))]
                for name in named:
                    path = Path(task.folder or ".").joinpath(Path(name).expanduser()).resolve()
                    if name and path.exists():
                        parts.append(list(_states([path, *path.rglob("*")])))
    except (OSError, SolverError):
        return ""
    return hash_json(parts)


def read_facts(results: Path, sources: str) -> Facts | None:
    """The facts that a command before has kept, if they are those of today."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        kept = json.loads((results / FILE_NAME).read_bytes())
        if sources and kept["sources"] == sources and kept["cache"] == _cached():
            return Facts(
                {label: described(SolverInfo, each) for label, each in kept["solvers"].items()},
                {label: described(DatasetInfo, each) for label, each in kept["datasets"].items()},
                {
                    label if seed is None else (label, seed): each
                    if isinstance(each, str)
                    else described(ReferenceInfo, each)
                    for label, seed, each in kept["references"]
                },
            )
    return None


def keep_facts(results: Path, sources: str, study: StudyBase, facts: Facts) -> None:
    """Keep facts, unless something is not to be had: that is tried again each time."""
    asked = kind_named(study.kind).references(study, facts.datasets)
    needed = {each.key for each in asked if not isinstance(each.work, str)}
    missing = [*facts.datasets.values(), *(facts.references[key] for key in needed)]
    if not sources or any(isinstance(each, str) for each in missing):
        return
    references = [
        [
            *(key if isinstance(key, tuple) else (key, None)),
            info if key not in needed else vars(info),
        ]
        for key, info in facts.references.items()
    ]
    kept = {
        "sources": sources,
        "cache": _cached(),
        "solvers": {label: vars(info) for label, info in facts.solvers.items()},
        "datasets": {label: vars(info) for label, info in facts.datasets.items()},
        "references": references,
    }
    try:
        content = json.dumps(kept)
    except TypeError:  # a parameter of a user's solver that JSON lacks
        return
    with storing(results / FILE_NAME), replacing(results / FILE_NAME) as sink:
        sink.write(content.encode())


def _cached() -> str:
    """A hash of the states of the cached datasets and reference optima."""
    folders = (datasets_folder(), datasets_folder().with_name("references"))
    return hash_json(list(_states(file for each in folders for file in each.rglob("*.parquet"))))


def _states(files: Iterable[Path]) -> Iterator[tuple[str, int, int]]:
    for file in sorted(files):
        state = file.stat()
        yield str(file), state.st_size, state.st_mtime_ns


def _installed() -> Iterator[str]:
    for folder in map(Path, sys.path):
        if folder.is_dir():
            yield from sorted(name for name in os.listdir(folder) if name.endswith(_INSTALLED))


def _code() -> Iterator[tuple[str, str]]:
    """The project's own files, its list of datasets among them."""
    for root in project_roots().values():
        for file in sorted([*root.rglob("*.py"), *root.rglob("*.toml")]):
            yield str(file), hashlib.sha256(file.read_bytes()).hexdigest()
