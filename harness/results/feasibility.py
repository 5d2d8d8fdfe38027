"""Records of runs of feasibility methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .measures import Measure, column
from .records import CheckpointBase, RecordBase

_RENAMED = {
    "part": "task",
    "method": "solver",
    "method_class": "solver_class",
    "solve_s": "wall_s",
}
_COUNTS = ("matvecs", "inner_products", "kernel_evals", "kernel_evals_computed")


@dataclass(frozen=True, kw_only=True)
class Stage(CheckpointBase):
    """A run after some iterations.

    ``wall_s`` are seconds of iterations, without a kernel matrix that is shared.
    """

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

    @classmethod
    def upgraded(cls, row: dict[str, Any]) -> dict[str, Any]:
        """Of version 1, which had names of its own and a column per counter.

        Up to version 5 a margin of at most tol passed for inseparable.
        """
        if row.get("schema_version") in range(1, 6) and row.get("found") == "inseparable":
            row = row | {"found": "margin_at_most_tol"}
        if row.get("schema_version") != 1:
            return super().upgraded(row)
        row = {_RENAMED.get(name, name): value for name, value in row.items()}
        counts = {name: row.pop(name, None) for name in _COUNTS}
        row["counters"] = {k: v for k, v in counts.items() if v is not None} or None
        row |= {"fingerprint": None, "evaluation_s": None, "schema_version": 4}
        if row["trace"] is not None:
            row["trace"] = [_stage(old) for old in row["trace"]]
        return super().upgraded(row)


def _stage(old: dict[str, Any]) -> dict[str, Any]:
    """A stage of version 1 in today's columns."""
    kept = {name: old[name] for name in ("phi_lo", "phi_up", "test_error")}
    return kept | {
        "n_iter": old["iteration"],
        "wall_s": old["seconds"],
        "counters": {"matvecs": old["matvecs"]},
    }
