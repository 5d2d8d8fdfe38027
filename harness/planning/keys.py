"""Run keys: one hash of all that determines what a run computes.

Two runs with the same key give the same numbers, timings apart; limits that only cut a run short
(timeout, memory, parallel jobs) are not part of it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .judging import Judging
from .sources import closure, code_hash, project_file

if TYPE_CHECKING:
    from .questions import SolverInfo


def key_parts(
    *,
    kind: str,
    info: SolverInfo,
    params: Mapping[str, Any],
    task: Mapping[str, Any],
    seed: int,
    labels: tuple[str, str],
    versions: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """All that determines a run, by name; the run's key is its :func:`hash_json`.

    Parameters
    ----------
    kind : str
        Name of the kind of studies.
    info : SolverInfo
        Of the solver's class; its ``source_hash`` covers what judges the run as well.
    params : mapping
        Every parameter of the solver; one taken from the reference optimum by its value.
    task : mapping
        What determines the task: of the data the fingerprint.
    seed : int
    labels : tuple of str
        Of task and solver: the same configuration under two labels is two runs.
    versions : mapping, optional
        Versions of the numeric libraries; the installed ones by default.
    """
    return {
        "kind": kind,
        "source": info.source_hash,
        "class": info.shown,
        "params": params,
        "task": task,
        "seed": seed,
        "labels": labels,
        "versions": numeric_versions() if versions is None else dict(versions),
    }


def source_hash(
    solver_file: Path,
    judging: Judging,
    *,
    local_folder: Path | None = None,
    package: str | None = None,
) -> str:
    """SHA-256 of the code of the solver, of all it imports of the project, and of what judges it.

    The parameters are those of :func:`source_files`.
    """
    return hash_files(
        source_files([solver_file], judging, local_folder=local_folder, package=package)
    )


def hash_files(files: Mapping[str, str]) -> str:
    """SHA-256 of files of code, each given by its name and its hash."""
    lines = (f"{name}\0{digest}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def source_files(
    solver_files: Sequence[Path],
    judging: Judging,
    *,
    local_folder: Path | None = None,
    package: str | None = None,
) -> dict[str, str]:
    """The code of the solver, of all it imports of the project, and of what judges it.

    Comments and docstrings do not count.

    Parameters
    ----------
    solver_files : sequence of Path
        The file that the solver's name leads to, and the one that defines the class.
    judging : Judging
        The files that measure and judge runs of this kind.
    local_folder : Path, optional
        For a user's file: its folder, whose modules count too.
    package : str, optional
        For a class of an installed package: the package, whose modules count too.

    Returns
    -------
    dict
        Name of a file -> hash of its code.
    """
    followed = [project_file(name) for name in judging.followed]
    files = closure([*solver_files, *followed], local_folder, package)
    files |= {name: project_file(name) for name in judging.harness}
    return {name: code_hash(path) for name, path in files.items()}


@cache
def numeric_versions() -> dict[str, str]:
    """Versions of Python (minor) and of the libraries that numbers depend on."""
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in ("numpy", "scipy", "numba", "scikit-learn"):
        versions[name] = metadata.version(name)
    return versions


def hash_json(value: Any) -> str:
    """SHA-256, in hexadecimal, of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces; what JSON does not know goes by its ``repr``."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)
