"""Studies of feasibility methods as a kind: what they ask, how they are planned and described."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import SolverError
from ..evaluation.feasibility import FeasibilityWork
from ..hashing import canonical_json
from ..jobs import Work
from ..results.feasibility import FeasibilityRecord
from ..study.feasibility import Cell, FeasibilityStudy, Images
from ..study.model import SolverEntry, is_users_file, run_limits
from .plan import Configuration, Kind, Seeded
from .preflight import Facts, SolverInfo, parameter_mistakes

# A run on a cell ends itself at its limit of seconds; one that does not is killed a while later.
_GRACE = 60.0
# Keys of a table that say how it is run and shown, not what the problem is.
_NO_PROBLEM = frozenset({"label", "instances", "published"})


class _Configuration(Configuration):
    """A method on a cell or on images."""

    def __init__(
        self, study: FeasibilityStudy, facts: Facts, task: Cell | Images, entry: SolverEntry
    ) -> None:
        super().__init__(study, facts, task, entry)
        decided = {"tol": task.tol} if isinstance(task, Cell) else {}
        # A user's method need not have it.
        self.explicit = {k: v for k, v in decided.items() if k in self.info.accepted} | entry.params
        self.params = {**dict.fromkeys(self.info.required), **self.info.defaults, **self.explicit}
        self.fingerprint = None if self.dataset is None else self.dataset.fingerprint
        self.problem = {k: v for k, v in task.model_dump().items() if k not in _NO_PROBLEM}
        # Where a user's file is makes no difference; the fingerprint says what is in it.
        is_own = isinstance(task, Images) and is_users_file(task.dataset, task.folder)
        left_out = ("dataset", "dataset_params") if is_own else ()
        keyed = {k: v for k, v in self.problem.items() if k not in left_out}
        self._parts = {"problem": keyed, "fingerprint": self.fingerprint}
        self._columns = {
            "problem": canonical_json(self.problem),
            "fingerprint": self.fingerprint,
        }
        if isinstance(task, Cell):
            self.limits = run_limits(study.budget, _GRACE)

    def seeded(self, seed: int) -> Seeded:
        def work() -> Work:
            return FeasibilityWork(
                self.problem,
                seed,
                self.entry.name,
                self.explicit,
                self.study.budget.timeout,
                getattr(self.task, "folder", None),
                self.fingerprint or "",
            )

        # The data are drawn from by the seed; how many points that leaves is no news.
        return Seeded(seed, self.params, self._parts, self._columns, work, self.failure)


class FeasibilityKind(Kind):
    """Cells x methods on columns, images x kernel methods, each on several instances."""

    name = "feasibility"
    study = FeasibilityStudy
    record = FeasibilityRecord
    configuration = _Configuration

    def traits(self, cls: type[Any], name: str) -> dict[str, Any]:
        from ...solvers.feasibility.base import KernelFeasibilityMethod

        if inspect.isclass(cls) and issubclass(cls, KernelFeasibilityMethod):
            return {"takes": "kernel"}
        if callable(getattr(cls, "solve", None)):
            return {"takes": "columns"}
        raise SolverError(
            f"{name}: no feasibility method; give it solve(problem, *, max_seconds), or derive it "
            "from MPKFP or another kernel method"
        )

    def mistakes(self, study: FeasibilityStudy, solvers: Mapping[str, SolverInfo]) -> Iterator[str]:
        tasks: list[Cell | Images] = [*study.cell, *study.images]
        for task in tasks:
            fitting = [s for s in study.solvers if solvers[s.label].traits["takes"] == task.takes]
            if not fitting:
                on_columns = task.takes == "columns"
                needed = "on columns (MPLFP)" if on_columns else "with a kernel (MPKFP)"
                yield f"{task.label!r} needs a method {needed}; add one as a [[method]]"
            for entry in fitting:
                info, decided = solvers[entry.label], (*task.decides, "history")
                yield from parameter_mistakes(study, entry, info, f"[[{task.table}]]", decided)

    def about(self, study: FeasibilityStudy) -> dict[str, Any]:
        return {"source": study.source}

    def about_task(self, task: Cell | Images) -> dict[str, Any]:
        return {"type": task.table}

    def about_solver(self, entry: SolverEntry, traits: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": entry.class_name, **traits}

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


KIND = FeasibilityKind()
