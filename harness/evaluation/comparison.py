"""What follows from a run's own columns and from the reference optimum of its task."""

from __future__ import annotations

import math

from ..results.svm import Record
from .svm import ReferenceInfo


def fill_in_gap(record: Record) -> None:
    """The gap of a run that was killed; objectives that are not finite become unknown."""
    for name in ("primal", "dual", "gap"):
        value = getattr(record, name)
        if value is not None and not math.isfinite(value):
            setattr(record, name, None)
    if record.gap is None and record.primal is not None and record.dual is not None:
        record.gap = record.primal - record.dual


def compare_with_reference(record: Record, reference: ReferenceInfo, *, minimises: bool) -> None:
    """Fill in the columns that come from the task's reference optimum.

    Parameters
    ----------
    record : Record
    reference : ReferenceInfo
    minimises : bool
        Whether the solver minimises the task's objective; otherwise no suboptimality is defined.
    """
    record.reference_primal = reference.primal
    record.reference_gap = reference.gap
    record.reference_test_error = reference.test_error
    record.reference_nu = reference.nu
    record.reference_alpha_sum = reference.alpha_sum
    record.reference_n_free = reference.n_free
    record.reference_hash = reference.hash
    record.suboptimality = None
    if minimises and record.primal is not None and reference.primal > 0:
        record.suboptimality = (record.primal - reference.primal) / reference.primal
