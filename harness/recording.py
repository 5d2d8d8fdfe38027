"""From the outcome of a run to its record, whether it came back or was killed."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import UTC, datetime

from marginbench.harness.jobs import Outcome, ReferenceInfo, RunResult
from marginbench.harness.svm.planning import PlannedRun
from marginbench.harness.records import Record
from marginbench.harness.study import Study


def now() -> str:
    """The time, ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def record_of(run: PlannedRun, outcome: Outcome, study: Study) -> Record:
    """The record of a run that was started.

    The scores and counts of a run that was killed are those of its last checkpoint; ``wall_s`` is
    the time that the solver had been given by then.
    """
    record = run.new_record(study)
    record.peak_memory_mb = outcome.peak_memory_mb
    record.reason, record.traceback = outcome.reason, outcome.traceback
    record.trace = list(outcome.trace)
    if isinstance(outcome.value, RunResult):
        for name, value in asdict(outcome.value).items():
            setattr(record, name, value)
    else:
        record.status = outcome.status if outcome.status in ("timeout", "memory") else "failed"
        if outcome.status == "crashed":
            record.status = "crashed"
        _fill_from_trace(record, outcome)
    for name in ("primal", "dual", "gap"):
        value = getattr(record, name)
        if value is not None and not math.isfinite(value):
            setattr(record, name, None)
    compare_with_reference(record, run)
    return record


def record_without_run(run: PlannedRun, study: Study) -> Record:
    """The record of a run that is skipped or cannot start."""
    record = run.new_record(study)
    record.started_at = now()
    record.status = "failed" if run.failure else "skipped"
    record.reason = run.failure or run.skip_reason
    compare_with_reference(record, run)
    return record


def compare_with_reference(record: Record, run: PlannedRun) -> None:
    """Fill the columns that come from the task's reference optimum."""
    reference = run.reference
    if reference is None:
        return
    record.reference_primal = reference.primal
    record.reference_gap = reference.gap
    record.reference_test_error = reference.test_error
    record.reference_nu = reference.nu
    record.reference_alpha_sum = reference.alpha_sum
    record.reference_n_free = reference.n_free
    record.reference_hash = reference.hash
    record.suboptimality = _suboptimality(record, run, reference)


def _suboptimality(record: Record, run: PlannedRun, reference: ReferenceInfo) -> float | None:
    """(primal - reference) / reference; None if the solver minimises another objective."""
    if run.solver_info.scalarization is None or record.primal is None or reference.primal <= 0:
        return None
    return (record.primal - reference.primal) / reference.primal


def _fill_from_trace(record: Record, outcome: Outcome) -> None:
    record.data_s = outcome.data_s
    record.compile_s = outcome.compile_s
    record.evaluation_s = outcome.evaluation_s
    if outcome.phase in ("solve", "evaluate"):
        record.wall_s = outcome.solve_s
    if not outcome.trace:
        return
    last = outcome.trace[-1]
    record.n_iter = last.n_iter
    record.kernel_evals = last.kernel_evals
    record.kernel_evals_computed = last.kernel_evals_computed
    record.inner_products = last.inner_products
    record.cpu_s = last.cpu_s
    record.n_support = last.n_support
    record.train_error, record.test_error = last.train_error, last.test_error
    record.primal, record.dual = last.primal, last.dual
    if last.primal is not None and last.dual is not None:
        record.gap = last.primal - last.dual
