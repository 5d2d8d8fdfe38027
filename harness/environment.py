"""The setting of a run: software, processor and memory; no names of hosts or users."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

_LIBRARIES = {name: name for name in ("numpy", "scipy", "numba", "pyarrow")}
_LIBRARIES["sklearn"] = "scikit-learn"
# Seconds that git may take; a version without its commit is better than a wait.
_PATIENCE = 5.0
_CODE = ("src", "data_loaders", "solvers", "harness", "reports", "studies", "pyproject.toml")


def version() -> str:
    """The installed version of marginbench; "unknown" where its metadata are missing."""
    try:
        return metadata.version("marginbench")
    except metadata.PackageNotFoundError:
        return "unknown"


def environment() -> dict[str, Any]:
    """The setting as every run records it; the commit is None when not run from a checkout."""
    import psutil

    commit, dirty = _checkout_state()
    return {
        "marginbench": version(),
        "commit": commit,
        "dirty": dirty,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": psutil.cpu_count(logical=False) or os.cpu_count(),
        "cores_logical": os.cpu_count(),
        "memory_mb": round(psutil.virtual_memory().total / 1e6),
        "libraries": {name: metadata.version(package) for name, package in _LIBRARIES.items()},
        "blas": _blas(),
    }


@cache
def _checkout_state() -> tuple[str | None, bool | None]:
    """Commit and whether files differ from it; (None, None) outside a checkout of the project."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists() or not (root / "pyproject.toml").exists():
        return None, None
    commit = git(root, "rev-parse", "HEAD")
    # Untracked files count where they are code; results and notes elsewhere do not.
    changes = git(root, "status", "--porcelain", "--", *_CODE) if commit else None
    return commit, None if changes is None else bool(changes)


def git(folder: Path, *arguments: str) -> str | None:
    """The output of git; None if it fails, or takes too long."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        output = subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=_PATIENCE)
        return output.decode().strip()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _blas() -> str:
    """The numeric libraries that NumPy and SciPy bring along: name, version, kernel, threading."""
    # A library is listed once it is loaded, and each of the two brings its own.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    keys = ("internal_api", "version", "architecture", "threading_layer")
    pools = {
        " ".join(str(pool[key]) for key in keys if pool.get(key))
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    }
    # Libraries load in any order; the same environment must read the same.
    return ", ".join(sorted(pools))
