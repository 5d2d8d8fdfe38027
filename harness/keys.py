"""Run keys: one hash of all that determines what a run computes.

Two runs with the same key give the same numbers, timings apart; limits that only cut a run short
(timeout, memory, parallel jobs) are not part of it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from marginbench.harness.sources import closure

# Changes to what the harness measures must not be mixed with older measurements.
_MEASUREMENT = ("evaluation.py", "tracing.py")


def run_key(
    *,
    source_hash: str,
    solver_class: str,
    params: Mapping[str, Any],
    task: Mapping[str, Any],
    seed: int,
    checkpoint_factor: float,
    epoch_checkpoints: bool = False,
    versions: Mapping[str, str] | None = None,
) -> str:
    """SHA-256, in hexadecimal, of the canonical JSON of all that determines a run.

    Parameters
    ----------
    source_hash : str
        From :func:`source_hash`.
    solver_class : str
        "module:Class" or "file.py:Class".
    params : mapping
        Every parameter of the estimator; one taken from the reference optimum by its value.
    task : mapping
        The dataset's fingerprint, the kernel, C and whether there is a bias.
    seed : int
    checkpoint_factor : float
    epoch_checkpoints : bool
    versions : mapping, optional
        Versions of the numeric libraries; the installed ones by default.
    """
    return hash_json(
        {
            "source": source_hash,
            "class": solver_class,
            "params": params,
            "task": task,
            "seed": seed,
            "checkpoint_factor": checkpoint_factor,
            "epoch_checkpoints": epoch_checkpoints,
            "versions": numeric_versions() if versions is None else dict(versions),
        }
    )


def source_hash(
    solver_file: Path, *, local_folder: Path | None = None, package: str | None = None
) -> str:
    """SHA-256 of the solver's file, all it imports of the project, and the measuring modules.

    Parameters
    ----------
    solver_file : Path
        The file that defines the class.
    local_folder : Path, optional
        For a user's file: its folder, whose modules count too.
    package : str, optional
        For a class of an installed package: the package, whose modules count too.
    """
    here = Path(__file__).resolve().parent
    files = closure([solver_file, *(here / name for name in _MEASUREMENT)], local_folder, package)
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


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
