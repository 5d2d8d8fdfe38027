"""Running a study of solvers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from marginbench.harness.jobs import Executor, Job, Limits, Outcome
from marginbench.harness.svm.planning import Facts, PlannedRun, plan
from marginbench.harness.asking import gather_facts, is_foreign, study_limits
from marginbench.harness.progress import Progress
from marginbench.harness.recording import compare_with_reference, record_of, record_without_run
from marginbench.harness.records import EXPECTED_STATUSES, Record, RecordStore
from marginbench.harness.session import RunSummary, Session
from marginbench.harness.study import Study

_TIMEOUTS = ("timeout", "compile_timeout", "data_timeout", "evaluation_timeout")


def run_study(
    study: Study,
    results: Path,
    *,
    jobs: int = 1,
    threads: int = 1,
    retry_failed: bool = False,
    command: str = "",
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> RunSummary:
    """Run a study and record every run; those that are recorded already are not repeated.

    Parameters
    ----------
    study : Study
    results : Path
        The results folder; records go to ``results/runs``.
    jobs : int
        Runs at the same time. More than one disturbs the timings.
    threads : int
        Threads of numeric libraries per run.
    retry_failed : bool
        Run again what did not go as planned.
    command : str
        The command line that reproduces this, for the report.
    progress : Progress, optional
        Shows what happens; nothing by default.
    executor : Executor, optional
        Where to run; worker processes on this machine by default.

    Raises
    ------
    UserError
        If the study, a solver or the results folder is not usable.
    InterruptedRunError
        If the user interrupts; what was recorded stays.
    """
    session = _StudySession(
        study,
        RecordStore(results / "runs"),
        results,
        jobs=jobs,
        threads=threads,
        progress=progress,
    )
    return session.conduct(executor=executor, command=command, retry_failed=retry_failed)


class _StudySession(Session[Study, PlannedRun, Record]):
    """One call of :func:`run_study`."""

    facts: Facts
    # Solvers whose warm-up was once cut short: compiling again cannot take as long.
    slow_to_compile: frozenset[str] = frozenset()

    def _plan(self, executor: Executor) -> list[PlannedRun]:
        self.facts = gather_facts(self.study, executor, say=self.progress.say, threads=self.threads)
        return plan(self.study, self.facts)

    def _data_errors(self) -> Iterable[str]:
        return (found for found in self.facts.datasets.values() if isinstance(found, str))

    def _without_run(self, run: PlannedRun) -> Record | None:
        return record_without_run(run, self.study) if run.failure or run.skip_reason else None

    def _kept(self, record: Record, run: PlannedRun) -> Record:
        """Compared with the reference optimum, if that was not there at the time."""
        if run.reference is not None and record.reference_hash != run.reference.hash:
            record = replace(record)
            compare_with_reference(record, run)
            self.store.write(record)
        return record

    def _job(self, run: PlannedRun) -> Job:
        return Job(
            tag=run.key,
            work=run.job,
            limits=self._limits(run),
            threads=self.threads,
            foreign=is_foreign(run.solver.name),
        )

    def _limits(self, run: PlannedRun) -> Limits:
        limits = study_limits(self.study)
        if run.solver.label not in self.slow_to_compile:
            return limits
        seconds = min(limits.seconds["compile"], limits.seconds["solve"])
        return Limits({**limits.seconds, "compile": seconds}, limits.memory)

    def _record_of(self, run: PlannedRun, outcome: Outcome) -> Record:
        if outcome.status == "timeout" and outcome.phase == "compile":
            self.slow_to_compile |= {run.solver.label}
        return record_of(run, outcome, self.study)

    def _line(self, record: Record) -> str:
        reason = f" ({record.reason})" if record.reason else ""
        return f"{record.task} / {record.solver} / seed {record.seed}: {record.status}{reason}"

    def _begin(self, pending: Sequence[PlannedRun]) -> None:
        self.progress.begin(pending)

    def _started(self, run: PlannedRun) -> None:
        self.progress.started(run)

    def _ended(self, record: Record) -> None:
        self.progress.ended(record)

    def _again(self, record: Record, *, retry_failed: bool) -> bool:
        if record.status in EXPECTED_STATUSES:
            return False
        if retry_failed:
            return True
        before: dict[str, float] = json.loads(record.budget)
        budget = self.study.budget.model_dump()
        if record.status == "timeout":
            return any(budget[name] > before.get(name, 0.0) for name in _TIMEOUTS)
        return record.status == "memory" and budget["memory"] > before.get("memory", 0.0)

    def _description(self) -> dict[str, Any]:
        study, facts = self.study, self.facts
        return {
            "seeds": list(range(study.seeds)),
            "reference": study.reference.model_dump(),
            "tasks": [_describe_task(task, facts) for task in study.task],
            "solvers": [_describe_solver(entry, facts) for entry in study.solver],
            "planned": [
                {
                    "key": run.key,
                    "file": run.file_name,
                    "task": run.task.label,
                    "solver": run.solver.label,
                    "seed": run.seed,
                }
                for run in self.runs
            ],
        }


def _describe_task(task: Any, facts: Facts) -> dict[str, Any]:
    info = facts.datasets[task.label]
    return {
        "label": task.label,
        "dataset": task.dataset,
        "dataset_params": dict(task.dataset_params),
        "kernel": task.kernel_description,
        "C": task.C,
        "fit_intercept": task.fit_intercept,
        "reference": task.reference,
        "citation": "" if isinstance(info, str) else info.citation,
        "licence": "" if isinstance(info, str) else info.licence,
    }


def _describe_solver(entry: Any, facts: Facts) -> dict[str, Any]:
    info = facts.solvers[entry.label]
    return {
        "label": entry.label,
        "class": info.shown,
        "params": dict(entry.params),
        "scalarization": info.scalarization,
        "certificate": info.certificate,
        "instrumented": info.instrumented,
        "summary": info.summary,
    }
