"""Running a study of feasibility methods: plan, skip what is recorded, run and record the rest."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness
from data_loaders.atomic import UNFINISHED
from harness.environment import environment, version
from harness.errors import InterruptedRunError, StudyError, UserError
from harness.feasibility_records import FeasibilityOutcome, FeasibilityRecord, FeasibilityStore
from harness.feasibility_study import Cell, FeasibilityStudy, Images, Method
from harness.jobs import (
    Ended,
    Executor,
    ImagesJob,
    Job,
    Limits,
    Outcome,
    Phase,
    SeparationJob,
    Started,
)
from harness.keys import canonical_json, hash_json, numeric_versions
from harness.pool import LocalPool
from harness.progress import Progress, SilentProgress
from harness.recording import now
from harness.records import EXPECTED_STATUSES
from harness.runner import RunSummary, exclusive, write_json
from harness.sources import closure

_SCHEMA_VERSION = 1
# A run ends itself at its limit of seconds; one that does not is killed a while later.
_GRACE = 60.0
_DECIDED_BY_CELLS = ("tol", "history")
_DECIDED_BY_IMAGES = ("kernel", "gamma", "max_iter", "history")


@dataclass(frozen=True)
class PlannedFeasibilityRun:
    """One method on one instance of a cell or of images."""

    key: str
    part: Cell | Images
    method: Method
    seed: int
    job: SeparationJob | ImagesJob
    params: dict[str, Any]
    method_class: str

    def record(self, study: FeasibilityStudy) -> FeasibilityRecord:
        """A record with all that is known before the run."""
        return FeasibilityRecord(
            key=self.key,
            study=study.name,
            part=self.part.label,
            problem=canonical_json(problem_of(self.part)),
            method=self.method.label,
            method_class=self.method_class,
            params=canonical_json(self.params),
            seed=self.seed,
            budget=canonical_json(study.budget.model_dump()),
        )


def problem_of(part: Cell | Images) -> dict[str, Any]:
    """What decides the problems of a part, as JSON holds it."""
    left_out = {"label", "instances", "published"}
    return {name: value for name, value in part.model_dump().items() if name not in left_out}


def plan_feasibility(study: FeasibilityStudy) -> list[PlannedFeasibilityRun]:
    """Every run of the study: cells with the methods on columns, images with those with a kernel.

    Raises
    ------
    StudyError
        For a parameter that a method does not have, or a part without a method.
    """
    from solvers import Solver
    from solvers.registry import feasibility_methods

    known = feasibility_methods()
    sources: dict[tuple[str, bool], dict[str, str]] = {}
    runs = []
    for part in study.parts:
        images = isinstance(part, Images)
        fit = [
            method for method in study.method if issubclass(known[method.name], Solver) == images
        ]
        if not fit:
            needed = "with a kernel (MPKFP)" if images else "on columns (MPLFP)"
            raise StudyError(f"{part.label!r} needs a method {needed}; the study has none")
        for method in fit:
            cls = known[method.name]
            if (method.name, images) not in sources:
                sources[method.name, images] = _source_hashes(cls.__module__, images=images)
            runs += [
                _planned(study, part, method, cls, seed, sources[method.name, images])
                for seed in range(part.instances)
            ]
    return runs


def _planned(
    study: FeasibilityStudy,
    part: Cell | Images,
    method: Method,
    cls: type[Any],
    seed: int,
    source: dict[str, str],
) -> PlannedFeasibilityRun:
    params = _parameters(method, cls, part)
    method_class = f"{cls.__module__}:{cls.__name__}"
    identity = {
        "source": source,
        "params": params,
        "problem": problem_of(part),
        "seed": seed,
        "versions": numeric_versions(),
        "labels": [part.label, method.label],
    }
    job = _job(study, part, method, seed, method_class)
    return PlannedFeasibilityRun(hash_json(identity), part, method, seed, job, params, method_class)


def _parameters(method: Method, cls: type[Any], part: Cell | Images) -> dict[str, Any]:
    """Every parameter of the method; StudyError for one that it has not, or that is decided."""
    from data_loaders import suggest

    defaults: dict[str, Any] = cls().get_params()
    for name in method.params:
        if name not in defaults:
            raise StudyError(
                f"method {method.label!r}: unknown parameter {name!r}{suggest(name, defaults)}"
            )
        for kind, section, decided in (
            (Cell, "cell", _DECIDED_BY_CELLS),
            (Images, "images", _DECIDED_BY_IMAGES),
        ):
            if isinstance(part, kind) and name in decided:
                raise StudyError(f"method {method.label!r}: {name!r} is decided by [[{section}]]")
    given = {"tol": part.tol} if isinstance(part, Cell) else {}
    return defaults | given | method.params


def _source_hashes(module: str, *, images: bool) -> dict[str, str]:
    """Hashes of the method's source, of all it imports of the project, and of what measures it."""
    root = Path(harness.__file__).resolve().parents[1]
    measuring = "image_classes.py" if images else "separation.py"
    files = [root.joinpath(*module.split(".")).with_suffix(".py"), root / "harness" / measuring]
    return {name: hash_json(path.read_text("utf-8")) for name, path in closure(files).items()}


def _job(
    study: FeasibilityStudy, part: Cell | Images, method: Method, seed: int, method_class: str
) -> SeparationJob | ImagesJob:
    if isinstance(part, Cell):
        return SeparationJob(
            generator=part.generator,
            m=part.m,
            n=part.n,
            kappa=part.kappa,
            seed=seed,
            method=method_class,
            params={"tol": part.tol, **method.params},
            max_seconds=study.budget.timeout,
        )
    return ImagesJob(
        dataset=part.dataset,
        dataset_params=dict(part.dataset_params),
        n_train=part.n_train,
        n_validation=part.n_validation,
        unit_norm=part.unit_norm,
        gammas=part.gammas,
        tuning_iterations=part.tuning_iterations,
        stages=part.stages,
        seed=seed,
        method=method_class,
        params=dict(method.params),
    )


def run_feasibility(
    study: FeasibilityStudy,
    results: Path,
    *,
    jobs: int = 1,
    threads: int = 1,
    retry_failed: bool = False,
    command: str = "",
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> RunSummary:
    """Run a study of feasibility methods; runs that are recorded already are not repeated.

    Parameters
    ----------
    study, results, jobs, threads, retry_failed, command, progress, executor
        As for :func:`harness.runner.run_study`.

    Raises
    ------
    UserError
        If the study or the results folder is not usable.
    InterruptedRunError
        If the user interrupts; what was recorded stays.
    """
    if jobs < 1:
        raise UserError(f"the number of jobs must be at least 1, not {jobs}")
    progress = progress or SilentProgress()
    with exclusive(results), contextlib.ExitStack() as stack:
        session = _Session(study, results, jobs, threads, progress)
        session.prepare(command, retry_failed=retry_failed)
        if executor is None:
            executor = stack.enter_context(LocalPool(jobs, results / "logs"))
        try:
            session.run_pending(executor)
        except KeyboardInterrupt:
            executor.close()
            raise InterruptedRunError(
                f"interrupted; {len(session.records)} of {len(session.runs)} runs are recorded in "
                f"{results}; the same command continues{': ' if command else ''}{command}"
            ) from None
        finally:
            progress.close()
        return session.summary()


@dataclass
class _Session:
    """One call of :func:`run_feasibility`."""

    study: FeasibilityStudy
    results: Path
    jobs: int
    threads: int
    progress: Progress
    records: dict[str, FeasibilityRecord] = field(default_factory=dict)
    pending: list[PlannedFeasibilityRun] = field(default_factory=list)
    data_errors: list[str] = field(default_factory=list)
    already: int = 0

    def __post_init__(self) -> None:
        self.runs = plan_feasibility(self.study)
        self.store = FeasibilityStore(self.results / "runs")
        self.environment = canonical_json(environment())

    def prepare(self, command: str, *, retry_failed: bool) -> None:
        """Write study.json, and find out what is recorded already."""
        for leftover in self.store.folder.glob(f"{UNFINISHED}*"):
            leftover.unlink(missing_ok=True)
        write_json(self.results / "study.json", self._description(command))
        for run in self.runs:
            record = self.store.recorded(
                run.record(self.study).file_name, run.key, self.progress.say
            )
            if record is None or self._again(record, retry_failed=retry_failed):
                self.pending.append(run)
            else:
                self.records[run.key] = record
        self.already = len(self.records)
        # Neighbours in time must not be neighbours in the plan: machines drift.
        random.Random(self.study.name).shuffle(self.pending)
        if self.already:
            self.progress.say(
                f"{self.already} of {len(self.runs)} runs already recorded in {self.results}"
            )

    def run_pending(self, executor: Executor) -> None:
        """Run what is left; each record is written as soon as its run ends."""
        by_key = {run.key: run for run in self.pending}
        started: dict[str, str] = {}
        for event in executor.execute(self._jobs()):
            if isinstance(event, Started):
                started[event.job.tag] = now()
            elif isinstance(event, Ended):
                run = by_key[event.job.tag]
                record = self._record_of(run, event.outcome)
                record.started_at = started[run.key]
                self.store.write(record)
                self.records[run.key] = record
                done = len(self.records) - self.already
                self.progress.say(f"[{done}/{len(self.pending)}] {outcome_line(record)}")
            else:
                self.progress.refresh()

    def summary(self) -> RunSummary:
        """What became of the planned runs."""
        ended = [self.records[run.key] for run in self.runs if run.key in self.records]
        return RunSummary(
            results=self.results,
            planned=len(self.runs),
            already_recorded=self.already,
            statuses=dict(Counter(record.status for record in ended)),
            unexpected=tuple(
                outcome_line(record) for record in ended if record.status not in EXPECTED_STATUSES
            ),
            data_errors=tuple(dict.fromkeys(self.data_errors)),
        )

    def _jobs(self) -> Iterator[Job]:
        budget = self.study.budget
        for run in self.pending:
            grace = _GRACE if isinstance(run.job, SeparationJob) else 0.0
            seconds: dict[Phase, float] = {
                "data": budget.data_timeout,
                "compile": budget.compile_timeout,
                "solve": budget.timeout + grace,
                "evaluate": budget.evaluation_timeout,
            }
            yield Job(run.key, run.job, Limits(seconds, budget.memory), self.threads)

    def _record_of(self, run: PlannedFeasibilityRun, outcome: Outcome) -> FeasibilityRecord:
        record = run.record(self.study)
        record.jobs, record.threads, record.environment = self.jobs, self.threads, self.environment
        record.peak_memory_mb = outcome.peak_memory_mb
        record.reason, record.traceback = outcome.reason, outcome.traceback
        if isinstance(outcome.value, FeasibilityOutcome):
            record.take(outcome.value)
        elif outcome.status in ("timeout", "memory", "crashed"):
            record.status = outcome.status
        elif outcome.status == "data":
            self.data_errors.append(outcome.reason)
        return record

    def _again(self, record: FeasibilityRecord, *, retry_failed: bool) -> bool:
        """Whether a recorded run is to be run again: it failed, or has more time now."""
        if record.status not in EXPECTED_STATUSES and retry_failed:
            return True
        before: dict[str, float] = json.loads(record.budget)
        cut_off = record.status == "timeout" or record.reason.startswith("max_seconds=")
        if cut_off:
            return self.study.budget.timeout > before["timeout"]
        return record.status == "memory" and self.study.budget.memory > before["memory"]

    def _description(self, command: str) -> dict[str, Any]:
        """The content of study.json."""
        study = self.study
        return {
            "schema_version": _SCHEMA_VERSION,
            "kind": "feasibility",
            "marginbench": version(),
            "name": study.name,
            "title": study.title or study.name,
            "description": study.description,
            "source": study.source,
            "budget": study.budget.model_dump(),
            "jobs": self.jobs,
            "threads": self.threads,
            "command": command,
            "parts": [_described(part) for part in study.parts],
            "methods": [method.model_dump() for method in study.method],
            "planned": [
                {"key": run.key, "part": run.part.label, "method": run.method.label,
                 "seed": run.seed}
                for run in self.runs
            ],
        }  # fmt: skip


def _described(part: Cell | Images) -> dict[str, Any]:
    return {"type": "cell" if isinstance(part, Cell) else "images", **part.model_dump()}


def outcome_line(record: FeasibilityRecord) -> str:
    """One finished run in one line."""
    words = [f"{record.part} · {record.method} · instance {record.seed}: {record.status}"]
    if record.found in ("separable", "inseparable"):
        words.append(record.found)
    if record.n_iter is not None:
        words.append(f"{record.n_iter} iterations")
    if record.solve_s is not None:
        words.append(f"{record.solve_s:.2f} s")
    if record.test_error is not None:
        words.append(f"test error {100 * record.test_error:.2f} %")
    line = ", ".join(words)
    return f"{line} ({record.reason})" if record.reason else line
