"""Running a study of feasibility methods: plan, skip what is recorded, run and record the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marginbench import harness
from marginbench.harness.errors import StudyError
from marginbench.harness.feasibility.records import (
    FeasibilityOutcome,
    FeasibilityRecord,
    FeasibilityStore,
)
from marginbench.harness.feasibility.study import Cell, FeasibilityStudy, Images, Method
from marginbench.harness.jobs import Executor, ImagesJob, Job, Limits, Outcome, Phase, SeparationJob
from marginbench.harness.keys import canonical_json, hash_json, numeric_versions
from marginbench.harness.progress import Progress
from marginbench.harness.records import EXPECTED_STATUSES, file_name_of
from marginbench.harness.session import RunSummary, Session
from marginbench.harness.sources import closure

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

    @property
    def file_name(self) -> str:
        """Name of the record's file."""
        return file_name_of(self.key, self.part.label, self.method.label, self.seed)

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
    from marginbench.solvers import Solver
    from marginbench.solvers.registry import feasibility_methods

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
    from marginbench.data_loaders import suggest

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
        As for :func:`marginbench.harness.runner.run_study`.

    Raises
    ------
    UserError
        If the study or the results folder is not usable.
    InterruptedRunError
        If the user interrupts; what was recorded stays.
    """
    session = _FeasibilitySession(
        study,
        FeasibilityStore(results / "runs"),
        results,
        jobs=jobs,
        threads=threads,
        progress=progress,
    )
    return session.conduct(executor=executor, command=command, retry_failed=retry_failed)


class _FeasibilitySession(Session[FeasibilityStudy, PlannedFeasibilityRun, FeasibilityRecord]):
    """One call of :func:`run_feasibility`."""

    data_errors: tuple[str, ...] = ()

    def _plan(self, executor: Executor) -> list[PlannedFeasibilityRun]:
        return plan_feasibility(self.study)

    def _data_errors(self) -> Iterable[str]:
        return self.data_errors

    def _job(self, run: PlannedFeasibilityRun) -> Job:
        budget = self.study.budget
        grace = _GRACE if isinstance(run.job, SeparationJob) else 0.0
        seconds: dict[Phase, float] = {
            "data": budget.data_timeout,
            "compile": budget.compile_timeout,
            "solve": budget.timeout + grace,
            "evaluate": budget.evaluation_timeout,
        }
        return Job(run.key, run.job, Limits(seconds, budget.memory), self.threads)

    def _record_of(self, run: PlannedFeasibilityRun, outcome: Outcome) -> FeasibilityRecord:
        record = run.record(self.study)
        record.peak_memory_mb = outcome.peak_memory_mb
        record.reason, record.traceback = outcome.reason, outcome.traceback
        if isinstance(outcome.value, FeasibilityOutcome):
            record.take(outcome.value)
        elif outcome.status in ("timeout", "memory", "crashed"):
            record.status = outcome.status
        elif outcome.status == "data":
            self.data_errors += (outcome.reason,)
        return record

    def _line(self, record: FeasibilityRecord) -> str:
        return outcome_line(record)

    def _ended(self, record: FeasibilityRecord) -> None:
        done = len(self.records) - self.already_recorded
        self.progress.say(f"[{done}/{len(self.pending)}] {outcome_line(record)}")

    def _again(self, record: FeasibilityRecord, *, retry_failed: bool) -> bool:
        """It failed, or has more time or memory now."""
        if record.status not in EXPECTED_STATUSES and retry_failed:
            return True
        before: dict[str, float] = json.loads(record.budget)
        cut_off = record.status == "timeout" or record.reason.startswith("max_seconds=")
        if cut_off:
            return self.study.budget.timeout > before["timeout"]
        return record.status == "memory" and self.study.budget.memory > before["memory"]

    def _description(self) -> dict[str, Any]:
        study = self.study
        return {
            "kind": "feasibility",
            "source": study.source,
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
