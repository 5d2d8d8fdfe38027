"""Records of runs of feasibility methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .measures import Measure, column
from .records import CheckpointBase, RecordBase


@dataclass(frozen=True, kw_only=True)
class Stage(CheckpointBase):
    """A run after some iterations; ``wall_s`` leaves out a kernel matrix that is shared."""

    phi_lo: float = column("lower bound on the margin; images: the least of all classes")
    phi_up: float = column("upper bound on the margin; images: the largest of all classes")


@dataclass(kw_only=True)
class FeasibilityRecord(RecordBase):
    """The outcome of one run of a feasibility method on one instance."""

    kind: ClassVar[str] = "feasibility"
    checkpoint: ClassVar[type[CheckpointBase]] = Stage

    problem: str = column("all that the cell or the images say", default="{}", json="object")
    fingerprint: str | None = column("images: SHA-256 of the data's content", default=None)
    found: str = column(
        '"separable" or "inseparable": proven, and checked; "margin_at_most_tol": phi_up <= tol, '
        "whether anything separates is not known; "
        '"budget": none of these, of images: not all classes are separable',
        default="",
    )
    phi_lo: float | None = column("lower bound on the margin, recomputed", default=None)
    phi_up: float | None = column("upper bound on the margin, recomputed", default=None)
    gamma: float | None = column(
        "images: the width that was chosen",
        default=None,
        measure=Measure("Width", "width", "number"),
    )
    validation: str = column("images: width -> validation error", default="{}", json="object")
    tuning_s: float | None = column("images: seconds of choosing the width", default=None)
