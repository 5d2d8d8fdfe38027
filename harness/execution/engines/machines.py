"""What is known of the machine of a worker, and whether its program is the command's."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...environment import environment, version
from ...hashing import canonical_json
from ...planning.fingerprint import numeric_versions, project_roots


@dataclass(frozen=True)
class Program:
    """What decides the numbers of a run besides its job.

    Attributes
    ----------
    version : str
        Of marginbench.
    code : str
        SHA-256 of all files of the packages that keys are made of.
    libraries : mapping
        Versions of Python and of the libraries that numbers depend on.
    """

    version: str
    code: str
    libraries: Mapping[str, str]

    def difference(self, other: Program) -> str:
        """How another program differs, in words; empty if its runs have the same keys."""
        if other.version != self.version:
            return f"has marginbench {other.version}, the command has {self.version}"
        if other.code != self.code:
            return f"has other code of marginbench {self.version} than the command"
        for name, wanted in self.libraries.items():
            found = other.libraries.get(name, "none")
            if found != wanted:
                return f"has {name} {found}, the command has {wanted}"
        return ""


@dataclass(frozen=True)
class Machine:
    """Where a worker runs.

    Attributes
    ----------
    name : str
        Of its host. It is shown, but not recorded with runs that went well.
    environment : dict
        What is recorded with every run.
    program : Program
    """

    name: str
    environment: dict[str, Any]
    program: Program

    @property
    def setting(self) -> str:
        """The environment as records have it."""
        return canonical_json(self.environment)

    @property
    def model(self) -> tuple[str, int, int]:
        """Processor, cores and memory in GB: machines of one model are timed together."""
        found = self.environment
        # What firmware keeps for itself differs by some megabytes.
        return found["processor"], found["cores_logical"], round(found["memory_mb"] / 1000)

    @property
    def model_words(self) -> str:
        """The model in words."""
        processor, cores, memory = self.model
        return f"{processor}, {cores} cores, {memory} GB"


def this_program() -> Program:
    """The program of this process."""
    digest = hashlib.sha256()
    for package, folder in project_roots().items():
        for file in sorted(folder.rglob("*.py")):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{package}/{file.relative_to(folder).as_posix()}\0{content}\n".encode())
    return Program(version(), digest.hexdigest(), numeric_versions())


def this_machine() -> Machine:
    """The machine of this process."""
    return Machine(platform.node(), environment(), this_program())
