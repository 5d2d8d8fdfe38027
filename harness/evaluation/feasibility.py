"""The work of studies of feasibility methods."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ..jobs import Send, Work
from ..results.feasibility import FeasibilityRecord


@dataclass(frozen=True)
class FeasibilityWork(Work):
    """Run a method on a generated problem, or train it on each class of images against the rest.

    ``problem`` is what the cell or the images of the study say. The certificate of the one and the
    predictors of the other are checked.
    """

    problem: dict[str, Any]
    seed: int
    solver: str
    params: dict[str, Any]
    max_seconds: float = math.inf  # on a generated problem
    folder: str | None = None  # where the path of the user's data begins
    fingerprint: str = ""  # of the data that were planned with
    record: ClassVar[Any] = FeasibilityRecord

    def run(self, send: Send) -> dict[str, Any]:
        from .separation import classify, separate

        return (separate if "generator" in self.problem else classify)(self, send)
