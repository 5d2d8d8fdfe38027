"""What travels to the machine of a worker: a job, the user's solver file, and what must be there.

Data never travel: a worker loads them as a local run would, and compares their fingerprint with the
one that was planned with. Neither do installed packages and programs, which are compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from ....data_loaders.atomic import replacing
from ....solvers.registration import entries
from ...hashing import hash_files
from ...loading import SolverSpec
from ...planning.fingerprint import files_beside, installed_version, source_files
from ...storage import storing
from ..jobs import Job, Work


class UnfitError(Exception):
    """A machine lacks what a run needs; the message says what."""


@dataclass(frozen=True)
class Parcel:
    """A job, complete.

    Attributes
    ----------
    job : Job
    file : str
        The user's file with the solver; empty if the solver is installed.
    files : mapping
        That file and the modules beside it that it imports: path below its folder -> content.
    needs : mapping
        What must be the same there: what it is -> its version or hash.
    """

    job: Job
    file: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)

    def unpacked(self, folder: Path) -> Job:
        """The job as it can be done here.

        Parameters
        ----------
        folder : Path
            Takes the user's files, in a folder of their own named by their content.

        Raises
        ------
        UnfitError
            If something that it needs is missing or differs.
        StorageError
            If the files cannot be written.
        """
        found = needs_of(self.job.work)
        for what, wanted in self.needs.items():
            if found.get(what) != wanted:
                raise UnfitError(f"{what} is missing or not that of the command; install the same")
        if not self.file:
            return self.job
        place = folder / _digest(self.files)
        for name, content in self.files.items():
            _write(place / name, content)
        name = f"{place / self.file}:{_solver_of(self.job.work).rpartition(':')[2]}"
        return replace(self.job, work=_with_solver(self.job.work, name))


class Packer:
    """Makes parcels; a solver's files are read once, so that all of its runs are of one version."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[str, dict[str, bytes]]] = {}

    def packed(self, job: Job) -> Parcel:
        """The job with all that it needs.

        Raises
        ------
        OSError
            If a file of the solver cannot be read.
        """
        solver = _solver_of(job.work)
        if solver not in self._files:
            self._files[solver] = _own_files(solver)
        file, files = self._files[solver]
        return Parcel(job, file, files, needs_of(job.work))


def needs_of(work: Work) -> dict[str, str]:
    """What of this machine enters the key of a run besides the program: what -> version or hash."""
    fit: Any = getattr(work, "fit", None)
    if hasattr(fit, "command"):
        from ...evaluation.outside.commands import programs

        return {f"the program {name}": digest for name, digest in programs(fit.command).items()}
    spec = SolverSpec.parse(_solver_of(work))
    if spec.module is not None:
        return {f"the module {spec.module}": _version_of_module(spec)}
    package = _package_of(spec.registry_name or "")
    return {f"the package {package}": _version_of_package(package)} if package else {}


def _solver_of(work: Work) -> str:
    """The name of the solver that a work runs; of a program, its own."""
    fit: Any = getattr(work, "fit", None)
    return str(getattr(work, "solver", getattr(fit, "name", "")))


def _with_solver(work: Any, name: str) -> Work:
    """The same work with the solver under another name."""
    changed: Work = (
        replace(work, solver=name)
        if hasattr(work, "solver")
        else replace(work, fit=replace(work.fit, name=name))
    )
    return changed


def _own_files(solver: str) -> tuple[str, dict[str, bytes]]:
    """The user's file of a solver by its name, and all that travel with it."""
    spec = SolverSpec.parse(solver)
    if spec.path is None or spec.folder is None:
        return "", {}
    return spec.path.name, {
        name: file.read_bytes() for name, file in files_beside(spec.path).items()
    }


def _version_of_module(spec: SolverSpec) -> str:
    """Version of the distribution that a solver is in, or the hash of its code; empty: no such."""
    package = (spec.module or "").partition(".")[0]
    file = spec.located()
    if file is None:
        return ""
    files = source_files(f"{spec.module}:{spec.class_name}", file, "svm")
    return f"{installed_version(package)} {hash_files(files)}"


def _package_of(name: str) -> str:
    """The package that a registered solver needs besides marginbench's own; empty for none."""
    entry = entries().get(name)
    if entry is None or not entry.module.startswith("marginbench.solvers.peers."):
        return ""
    package: str = getattr(getattr(import_module(entry.module), name), "requires", "")
    return package


def _version_of_package(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()[:32]


def _write(path: Path, content: bytes) -> None:
    """Write a file unless it is there; a run before may have changed it."""
    with storing(path):
        if path.is_file() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as sink:
            sink.write(content)
