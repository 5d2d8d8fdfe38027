"""Studies of feasibility methods as a kind: what they ask, how they are planned and described."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import SolverError, StudyError
from ..evaluation.feasibility import CellWork, ImagesWork
from ..hashing import canonical_json, hash_json
from ..planning.fingerprint import key_parts
from ..results.feasibility import FeasibilityRecord
from ..study.feasibility import Cell, FeasibilityStudy, Images
from ..study.model import SolverEntry, is_foreign, is_users_file, run_limits
from .plan import Configuration, Details, Kind, Run
from .preflight import DatasetInfo, Facts, SolverInfo, check_parameters

# A run on a cell ends itself at its limit of seconds; one that does not is killed a while later.
_GRACE = 60.0
# Keys of a table that say how it is run and shown, not what the problem is.
_NO_PROBLEM = frozenset({"label", "instances", "published"})


class FeasibilityKind(Kind):
    """Cells x methods on columns, images x kernel methods, each on several instances."""

    name = "feasibility"
    study = FeasibilityStudy
    record = FeasibilityRecord

    def traits(self, cls: type[Any], name: str) -> dict[str, Any]:
        from ...solvers.feasibility.kernel_methods import KernelFeasibilityMethod

        if inspect.isclass(cls) and issubclass(cls, KernelFeasibilityMethod):
            return {"takes": "kernel"}
        if callable(getattr(cls, "solve", None)):
            return {"takes": "columns"}
        raise SolverError(
            f"{name}: no feasibility method; give it solve(problem, *, max_seconds), or derive it "
            "from MPKFP or another kernel method"
        )

    def check_solvers(
        self, study: FeasibilityStudy, solvers: Mapping[str, SolverInfo]
    ) -> dict[str, SolverInfo]:
        """Raises StudyError also for a task that none of the methods fits."""
        for task in study.tasks:
            fitting = _fitting(study, task, solvers)
            if not fitting:
                needed = (
                    "on columns (MPLFP)" if task.takes == "columns" else "with a kernel (MPKFP)"
                )
                raise StudyError(f"{task.label!r} needs a method {needed}; add one as a [[method]]")
            decided = (*task.decides, "history")
            check_parameters(study, fitting, solvers, f"[[{task.table}]]", decided)
        return dict(solvers)

    def data_tasks(self, study: FeasibilityStudy) -> Sequence[Images]:
        return study.images

    def seeds(
        self, study: FeasibilityStudy, task: Cell | Images, entry: SolverEntry, info: SolverInfo
    ) -> Sequence[int]:
        fits = info.traits["takes"] == task.takes
        return study.seeds_of(task, entry, info.traits) if fits else []

    def configuration(
        self, study: FeasibilityStudy, facts: Facts, task: Cell | Images, entry: SolverEntry
    ) -> Configuration:
        return _Configuration(study, facts, task, entry)

    def describe(self, study: FeasibilityStudy, facts: Facts) -> dict[str, Any]:
        return {
            "source": study.source,
            "tasks": [
                {"type": task.table, **task.model_dump(), **_credit(facts.datasets.get(task.label))}
                for task in study.tasks
            ],
            "solvers": [
                {
                    "label": entry.label,
                    "name": entry.class_name,
                    "class": facts.solvers[entry.label].shown,
                    "params": dict(entry.params),
                    "summary": facts.solvers[entry.label].summary,
                    **facts.solvers[entry.label].traits,
                }
                for entry in study.solvers
            ],
        }

    def limits_hit(self, record: FeasibilityRecord) -> frozenset[str]:
        """A method that ends at its seconds says so, and keeps what it has."""
        cut_off = record.reason.startswith("max_seconds=")
        return frozenset({"timeout"}) if cut_off else frozenset()

    def headline(self, record: FeasibilityRecord) -> Iterator[str]:
        if record.found in ("separable", "inseparable"):
            yield record.found
        if record.found == "margin_at_most_tol" and record.phi_up is not None:
            yield f"margin at most {record.phi_up:.2g}"
        if record.n_iter is not None:
            yield f"{record.n_iter} iterations"
        if record.wall_s is not None:
            yield f"{record.wall_s:.2f} s"
        if record.test_error is not None:
            yield f"test error {100 * record.test_error:.2f} %"


def _fitting(
    study: FeasibilityStudy, task: Cell | Images, solvers: Mapping[str, SolverInfo]
) -> list[SolverEntry]:
    """The methods that take what a task has."""
    return [s for s in study.solvers if solvers[s.label].traits["takes"] == task.takes]


class _Configuration(Configuration):
    """A method on a cell or on images."""

    def __init__(
        self, study: FeasibilityStudy, facts: Facts, task: Cell | Images, entry: SolverEntry
    ) -> None:
        self.study, self.task, self.entry = study, task, entry
        self.info = facts.solvers[entry.label]
        dataset = facts.datasets.get(task.label)
        self.fingerprint = dataset.fingerprint if isinstance(dataset, DatasetInfo) else None
        self.failure = dataset if isinstance(dataset, str) else ""
        decided = {"tol": task.tol} if isinstance(task, Cell) else {}
        # A user's method need not have it.
        self.given = {k: v for k, v in decided.items() if k in self.info.accepted} | entry.params
        self.params = {**dict.fromkeys(self.info.required), **self.info.defaults, **self.given}
        self.shown = {k: v for k, v in task.model_dump().items() if k not in _NO_PROBLEM}
        self.problem = dict(self.shown)
        if isinstance(task, Images) and is_users_file(task.dataset, task.folder):
            # Where a user's file is makes no difference; the fingerprint says what is in it.
            del self.problem["dataset"], self.problem["dataset_params"]
        self.limits = run_limits(study.budget, _GRACE if isinstance(task, Cell) else 0.0)

    def run(self, seed: int) -> Run:
        return Run(
            key=hash_json(self._key_parts(seed)),
            task=self.task.label,
            solver=self.entry.label,
            seed=seed,
            limits=self.limits,
            detailed=self.details,
            foreign=is_foreign(self.entry.name),
            failure=self.failure,
            traits=self.info.traits,
        )

    def details(self, seed: int) -> Details:
        task, entry = self.task, self.entry
        work: CellWork | ImagesWork
        if isinstance(task, Cell):
            work = CellWork(
                generator=task.generator,
                m=task.m,
                n=task.n,
                kappa=task.kappa,
                seed=seed,
                solver=entry.name,
                params=self.given,
                max_seconds=self.study.budget.timeout,
                tol=task.tol,
            )
        else:
            work = ImagesWork(
                dataset=task.dataset,
                dataset_params=dict(task.dataset_params),
                n_train=task.n_train,
                n_validation=task.n_validation,
                unit_norm=task.unit_norm,
                gammas=task.gammas,
                tuning_iterations=task.tuning_iterations,
                stages=task.stages,
                seed=seed,
                solver=entry.name,
                params=self.given,
                folder=task.folder,
                fingerprint=self.fingerprint or "",
            )
        known = {
            "key_parts": canonical_json(self._key_parts(seed)),
            "version": self.info.version,
            "solver_class": self.info.shown,
            "params": canonical_json(self.params),
            "problem": canonical_json(self.shown),
            "fingerprint": self.fingerprint,
        }
        return Details(work, known)

    def _key_parts(self, seed: int) -> dict[str, Any]:
        return key_parts(
            kind=self.study.kind,
            info=self.info,
            params=self.params,
            task={"problem": self.problem, "fingerprint": self.fingerprint},
            seed=seed,
            labels=(self.task.label, self.entry.label),
        )


def _credit(dataset: DatasetInfo | str | None) -> dict[str, Any]:
    """Whom to cite for the data, and what was decided when the user's own were read."""
    if not isinstance(dataset, DatasetInfo):
        return {}
    return {
        "citation": dataset.citation,
        "licence": dataset.licence,
        "decided": list(dataset.decided),
    }


KIND = FeasibilityKind()
