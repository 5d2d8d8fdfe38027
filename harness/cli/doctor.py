"""The command that checks whether this machine is fit for measurements."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from ..errors import EXIT_OK, EXIT_RUNS
from .output import Json, in_columns, show

State = Literal["ok", "note", "wrong"]

#: Packages of the extras, and what they are for.
_EXTRAS = {
    "cloud": ("obstore", "results in object stores"),
    "dask": ("distributed", "clusters"),
    "peers": ("sklearnex", "solvers of other libraries"),
    "regressions": ("asv", "regressions of commits"),
}
# Processes of others beyond this share of the cores disturb times.
_BUSY_SHARE = 0.25
_LEAST_FREE_GB = 2.0


class Finding(NamedTuple):
    """The result of one check of the installation."""

    check: str
    state: State
    found: str


def doctor(as_json: Json = False) -> int:
    """Run all checks and print them; the exit code."""
    findings = [*_findings()]
    document = [item._asdict() for item in findings]
    show(document, in_columns([("CHECK", "STATE", "FOUND"), *findings]), as_json=as_json)
    return EXIT_RUNS if any(item.state == "wrong" for item in findings) else EXIT_OK


def _findings() -> Iterator[Finding]:
    import psutil

    from ...data_loaders.cache import datasets_folder
    from ...data_loaders.files import MIRROR_VARIABLE
    from ...solvers.numeric.compiling import cache_folder
    from ..environment import environment

    def advised(check: str, found: str, advice: str) -> Finding:
        return Finding(check, "note" if advice else "ok", found + advice)

    machine = environment()
    commit = f", commit {machine['commit'][:10]}" if machine["commit"] else ""
    changed = ", with changes that are not committed" if machine["dirty"] else ""
    yield Finding("marginbench", "ok", f"{machine['marginbench']}{commit}{changed}")
    versions = (f"{name} {version}" for name, version in machine["libraries"].items())
    yield Finding("libraries", "ok", f"Python {machine['python']}, {', '.join(versions)}")
    missing = [
        f"{extra} ({what})" for extra, (name, what) in _EXTRAS.items() if find_spec(name) is None
    ]
    absent = f"not installed: {'; '.join(missing)}" if missing else ""
    yield advised("extras", "" if missing else "all installed", absent)
    yield Finding("platform", "ok", f"{machine['platform']}, {machine['processor']}")
    logical = machine["cores_logical"] or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    found = f"{machine['cores'] or logical}, {logical} logical, {usable} for this process"
    yield Finding("cores", "ok", found)
    busy = psutil.cpu_percent(interval=0.5) / 100
    advice = ": times measured now are disturbed" if busy > _BUSY_SHARE else ""
    yield advised("other work", f"{100 * busy:.0f} % of the processor", advice)
    governors = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    names = sorted({path.read_text(encoding="ascii").strip() for path in governors})
    if names:
        varies = ": its speed varies; 'performance' makes times steadier"
        yield advised("clock", ", ".join(names), "" if names == ["performance"] else varies)
    yield Finding("BLAS", "ok", machine["blas"])
    memory = psutil.virtual_memory()
    advice = "" if memory.available > 0.25 * memory.total else "; other programs use much of it"
    free = f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB free"
    yield advised("memory", free, advice)
    yield _writable("datasets", datasets_folder())
    yield _writable("compiled code", cache_folder())
    yield _writable("this folder", Path.cwd())
    mirror = os.environ.get(MIRROR_VARIABLE, "").strip()
    if not mirror or "://" in mirror or Path(mirror).expanduser().is_dir():
        none = f"none: datasets are downloaded ({MIRROR_VARIABLE} is unset)"
        yield Finding("mirror", "ok", mirror or none)
    else:
        yield Finding("mirror", "wrong", f"{mirror}: no such folder; correct {MIRROR_VARIABLE}")


def _writable(what: str, folder: Path) -> Finding:
    """Whether files can be written into a folder, which may first be made."""
    existing = next(each for each in (folder, *folder.parents) if each.is_dir())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"marginbench")
        free = shutil.disk_usage(existing).free / 1e9
    except OSError as error:
        return Finding(what, "wrong", f"{folder}: cannot be written ({error.strerror or error})")
    low = free < _LEAST_FREE_GB
    return Finding(what, "note" if low else "ok", f"{folder}, {free:.1f} GB free")
