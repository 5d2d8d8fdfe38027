"""What is asked of workers before a study is planned, and their answers.

Like :mod:`marginbench.harness.execution.jobs` it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..execution.jobs import PhaseMessage, Send, Work, described


@dataclass(frozen=True)
class DatasetWork(Work):
    """Load a dataset and describe it."""

    dataset: str
    params: dict[str, Any]
    folder: str | None = None

    def run(self, send: Send) -> DatasetInfo:
        from .describing import describe_dataset

        send(PhaseMessage("data"))
        return describe_dataset(self)

    def parsed(self, value: Any) -> DatasetInfo:
        found: DatasetInfo = described(DatasetInfo, value)
        return found


@dataclass(frozen=True)
class DatasetInfo:
    """What planning needs to know of a dataset.

    Attributes
    ----------
    notes : tuple of str
        What the user is told now.
    decided : tuple of str
        What was decided when the user's own data were read.
    default_gamma : float or None
        A kernel width to start from; None if the points are generated.
    """

    fingerprint: str
    n_train: int
    n_test: int
    n_features: int
    sparse: bool
    n_classes: int
    citation: str
    licence: str
    notes: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()
    default_gamma: float | None = None


@dataclass(frozen=True)
class DescribeWork(Work):
    """Import a solver's class and describe it, as one for studies of a kind.

    ``params`` are the parameters of each entry of the study that names it.
    """

    solver: str
    kind: str
    params: tuple[dict[str, Any], ...] = ()

    def run(self, send: Send) -> SolverInfo:
        from .describing import describe_solver

        send(PhaseMessage("import"))
        return describe_solver(self)

    def parsed(self, value: Any) -> SolverInfo:
        found: SolverInfo = described(SolverInfo, value)
        return found


@dataclass(frozen=True)
class SolverInfo:
    """What planning needs to know of a solver's class.

    Attributes
    ----------
    shown : str
        "module:Class" or "file.py:Class".
    defaults : dict
        Every parameter of the solver with its default.
    required : tuple of str
        Parameters without a default.
    traits : dict
        What studies of the kind ask of it: what it supports, promises and counts.
    defined_in : str
        The file that defines it.
    source_hash : str
        Hash of its source and of all that it imports of the project.
    version : str
        Of its code, in short.
    files : mapping
        What the hash of its source is made of: name of a file -> hash of its code.
    refusals : tuple of str
        For each entry of the study that names it: why the class does not take the values of its
        parameters; empty if it does.
    """

    shown: str
    summary: str
    defaults: dict[str, Any]
    required: tuple[str, ...]
    traits: dict[str, Any]
    defined_in: str = ""
    source_hash: str = ""
    version: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()

    @property
    def accepted(self) -> frozenset[str]:
        """The names of all parameters."""
        return frozenset(self.defaults) | frozenset(self.required)
