"""Which version of a solver a run used, and what the files behind it were.

A version is told by content: the first ten digits of the hash of the solver's source, of all that
it imports of the project, and of the code that judges its runs. Where the file of the solver is in
a clean git work tree, the commit that last changed it follows: ``3f2a9c01d4 git:abc1234def``.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from ...data_loaders.atomic import replacing
from ..hashing import hash_files
from ..storage import storing
from .preflight import SolverInfo

_DIGITS = 10
_FOLDER = "sources"
# Seconds that git may take; a version without its commit is better than a wait.
_PATIENCE = 5.0


def version_of(source_hash: str, file: Path) -> str:
    """The version of a solver.

    Parameters
    ----------
    source_hash : str
        Hash of its source.
    file : Path
        The file that defines it.
    """
    commit = _commit_of(file)
    return version_digits(source_hash) + (f" git:{commit}" if commit else "")


def version_digits(source_hash: str) -> str:
    """The version of code whose commit is not known."""
    return source_hash[:_DIGITS]


def content_version(version: str) -> str:
    """What a version says of the code alone; the commit may differ for the same code."""
    return version.partition(" ")[0]


def _commit_of(file: Path) -> str:
    """The commit that last changed a file of a clean work tree; empty if there is none."""
    if _git(file.parent, "status", "--porcelain", "--untracked-files=no") != "":
        return ""
    found = _git(file.parent, "log", "-1", f"--abbrev={_DIGITS}", "--format=%h", "--", file.name)
    return found or ""


def _git(folder: Path, *arguments: str) -> str | None:
    """What git answers; None if it cannot."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def write_sources(results: Path, solvers: Iterable[SolverInfo]) -> None:
    """Write ``sources/HASH.json`` for each source hash: name of a file -> hash of its code.

    A file that is there and whole is left as it is.

    Parameters
    ----------
    results : Path
        The results folder.
    solvers : iterable of SolverInfo
    """
    for info in solvers:
        if not info.files or read_sources(results, info.source_hash) is not None:
            continue
        path = _path(results, info.source_hash)
        with storing(path.parent):
            path.parent.mkdir(exist_ok=True)
        with storing(path), replacing(path) as sink:
            sink.write((json.dumps(dict(sorted(info.files.items())), indent=2) + "\n").encode())


def read_sources(results: Path, source_hash: str) -> Mapping[str, str] | None:
    """The files behind a source hash, by name; None if they are not stored, or are damaged."""
    try:
        found = json.loads(_path(results, source_hash).read_bytes())
        # The hash is that of the files, so it tells whether they are all there.
        return found if hash_files(found) == source_hash else None
    except (OSError, ValueError, AttributeError, TypeError):
        return None


def _path(results: Path, source_hash: str) -> Path:
    return results / _FOLDER / f"{source_hash}.json"
