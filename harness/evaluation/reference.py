"""The reference optimum of a task: solved once to a certified duality gap, then frozen on disk.

Every suboptimality is measured against it, so that adding a solver changes no other one's numbers.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from platformdirs import user_cache_dir

from ...data_loaders.atomic import replacing
from ...solvers.interface.convergence import without_convergence_warnings
from ..errors import ReferenceFailure
from ..hashing import canonical_json, hash_json
from ..jobs import PhaseMessage, Send
from ..loading import load_kernel
from ..storage import storing
from .judging import build_evaluator, load_task_data
from .models import Evaluation
from .svm import Problem, ReferenceInfo, ReferenceWork

if TYPE_CHECKING:
    from ...data_loaders import Dataset
    from ...solvers import Model

_VERSION = 1
# Below this violation of the optimality conditions, float64 sums are mostly noise.
_SMALLEST_TOL = 1e-13
# Passes over the points after which coordinate ascent gives way to SMO, and fits in turn.
_LINEAR_EPOCHS = 1000
_LINEAR_ATTEMPTS = 4


@dataclass(frozen=True)
class Certificate:
    """A solution with its certified gap, as stored; objectives in C units.

    Attributes
    ----------
    task : str
        JSON: the dataset's fingerprint, kernel, C, bias and the tolerance asked for.
    support : ndarray of int64, shape (n_variables,)
        Positions of the dual variables that are not 0; of several classes all variables of the
        first class come before those of the second.
    alpha : ndarray of float64, shape (n_variables,)
        These variables, in [0, C].
    intercept : float
        0 for several classes, which have one each.
    nu : float or None
        Mean hinge loss / ||w||; None if w = 0, and for several classes.
    """

    task: str
    primal: float
    dual: float
    gap: float
    test_error: float
    n_support: int
    nu: float | None
    intercept: float
    support: npt.NDArray[np.int64]
    alpha: npt.NDArray[np.float64]

    @property
    def hash(self) -> str:
        """SHA-256 of all of the above, in hexadecimal."""
        values = {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if item.name not in ("support", "alpha")
        }
        digest = hashlib.sha256(canonical_json(values).encode())
        digest.update(np.ascontiguousarray(self.support, dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(self.alpha, dtype="<f8").tobytes())
        return digest.hexdigest()

    def info(self, note: str = "") -> ReferenceInfo:
        """What runs are compared with."""
        task = json.loads(self.task)
        C = float(task["C"])
        several = "n_classes" in task
        return ReferenceInfo(
            primal=self.primal,
            dual=self.dual,
            gap=self.gap,
            test_error=self.test_error,
            n_support=self.n_support,
            nu=self.nu,
            hash=self.hash,
            note=note,
            alpha_sum=None if several else float(self.alpha.sum()),
            n_free=None if several else int(((self.alpha > 0) & (self.alpha < C)).sum()),
        )


def reference_optimum(work: ReferenceWork, send: Send) -> ReferenceInfo:
    """The task's reference optimum, from the cache or computed and stored there."""
    send(PhaseMessage("data"))
    dataset = load_task_data(work.problem)
    n_classes = len(np.unique(dataset.y_train))
    task = describe_task(
        work.problem,
        dataset.fingerprint,
        work.tol,
        n_classes=n_classes,
        n_train=int(dataset.n_train),
    )
    path = references_folder() / f"{hash_json(task)}.parquet"
    note = ""
    try:
        return read_certificate(path, canonical_json(task)).info()
    except FileNotFoundError:
        pass
    except ValueError as error:
        note = f"{path}: the stored reference optimum is damaged ({error}); it is computed again"
    if work.lookup:
        raise ReferenceFailure("it is not in the cache")
    certificate = _certify(work, dataset, canonical_json(task), send)
    write_certificate(path, certificate)
    return certificate.info(note)


def references_folder() -> Path:
    """Where reference optima are kept: ``references`` in the cache folder."""
    root = os.environ.get("MARGINBENCH_CACHE") or user_cache_dir("marginbench")
    return Path(root).expanduser().absolute() / "references"


def describe_task(
    problem: Problem, fingerprint: str, tol: float, *, n_classes: int = 2, n_train: int = 0
) -> dict[str, Any]:
    """All that the reference optimum depends on."""
    return {
        **({"n_classes": n_classes, "n_train": n_train} if n_classes > 2 else {}),
        "version": _VERSION,
        "fingerprint": fingerprint,
        "kernel": problem.shown_kernel,
        **({"kernel_code": problem.kernel_code} if problem.kernel_code else {}),
        "C": problem.C,
        "fit_intercept": problem.fit_intercept,
        "tol": tol,
    }


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Store a certificate atomically."""
    row = asdict(certificate) | {"hash": certificate.hash}
    table = pa.Table.from_pylist([row], schema=_SCHEMA)
    with storing(path, "set MARGINBENCH_CACHE to a folder with room that can be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as sink:
            pq.write_table(table, sink, compression="zstd")


def read_certificate(path: Path, task: str) -> Certificate:
    """Read a stored certificate and verify it."""
    if not path.exists():
        raise FileNotFoundError(path)
    try:
        row: dict[str, Any] = pq.ParquetFile(path).read().to_pylist()[0]
        stored = row.pop("hash")
        row["support"] = np.array(row["support"], dtype=np.int64)
        row["alpha"] = np.array(row["alpha"], dtype=np.float64)
        certificate = Certificate(**row)
    except (OSError, pa.ArrowException, LookupError, TypeError) as error:
        raise ValueError((str(error).splitlines() or [type(error).__name__])[0]) from None
    if certificate.hash != stored:
        raise ValueError("its content does not have the hash that it was stored with")
    if certificate.task != task:
        raise ValueError("it belongs to another task")
    return certificate


_NUMBERS = ("primal", "dual", "gap", "test_error", "nu", "intercept")
_SCHEMA = pa.schema(
    {
        **dict.fromkeys(("task", "hash"), pa.string()),
        **dict.fromkeys(_NUMBERS, pa.float64()),
        "n_support": pa.int64(),
        "support": pa.list_(pa.int64()),
        "alpha": pa.list_(pa.float64()),
    }
)


def _certify(work: ReferenceWork, dataset: Dataset, task: str, send: Send) -> Certificate:
    """Solve, tighter and tighter, until the gap that is recomputed from scratch is small enough."""
    from ...solvers import SMO, LinearSDCA, Solver

    problem = work.problem
    evaluator = build_evaluator(problem, dataset, certificate=True)
    # Solvers with their first tolerance and how often they may try.
    attempts: list[tuple[Solver, float, float]] = []
    if problem.kernel["name"] == "linear" and not problem.fit_intercept:
        # By dual coordinate ascent on w, which needs no kernel, unless that converges too slowly.
        ascent = LinearSDCA(C=problem.C, stopping="gap", max_epochs=_LINEAR_EPOCHS, random_state=0)
        attempts.append((ascent, work.tol, _LINEAR_ATTEMPTS))
    smo = SMO(
        load_kernel(problem.kernel),
        C=problem.C,
        fit_intercept=problem.fit_intercept,
        dtype="float64",
        cache_size=work.cache_mb,
    )
    attempts.append((smo, 10.0 * work.tol, math.inf))
    solved_s, best = 0.0, math.inf
    for solver, tol, most in attempts:
        attempt, best = 0, math.inf
        while tol >= _SMALLEST_TOL and attempt < most:
            attempt += 1
            send(PhaseMessage("solve", solved_s))
            started = time.perf_counter()
            with without_convergence_warnings():
                solver.set_params(tol=tol).fit(dataset.X_train, dataset.y_train)
            solved_s += time.perf_counter() - started
            send(PhaseMessage("evaluate", solved_s))
            evaluation = evaluator.evaluate(solver.model_)
            relative = _relative_gap(evaluation)
            best = min(best, relative)
            if relative <= work.tol:
                return _certificate(task, solver.model_, evaluation)
            if solver.status_ != "converged":
                break
            tol *= min(0.1, 0.5 * work.tol / relative)
    raise ReferenceFailure(
        f"SMO certifies a relative duality gap of {best:.3g} at best; {work.tol:g} is asked for"
    )


def _relative_gap(evaluation: Evaluation) -> float:
    if evaluation.primal is None or evaluation.gap is None or not evaluation.finite:
        return math.inf
    return evaluation.gap / evaluation.primal if evaluation.primal > 0 else 0.0


def _certificate(task: str, model: Model, evaluation: Evaluation) -> Certificate:
    assert evaluation.primal is not None
    assert evaluation.dual is not None
    assert evaluation.gap is not None
    assert evaluation.squared_norm is not None
    if evaluation.squared_norm < 0:
        raise ReferenceFailure("the kernel is not positive semidefinite: ||w||^2 < 0")
    norm = math.sqrt(evaluation.squared_norm)
    parts = getattr(model, "parts", (model,))
    variables = [_dual_variables(part) for part in parts]
    several = len(parts) > 1
    # Variables of class c come after those of all points for the classes before.
    starts = np.arange(len(parts)) * json.loads(task).get("n_train", 0)
    return Certificate(
        task=task,
        primal=evaluation.primal,
        dual=evaluation.dual,
        gap=evaluation.gap,
        test_error=evaluation.test_error,
        n_support=evaluation.n_support if several else len(variables[0][0]),
        nu=evaluation.mean_hinge / norm if norm > 0 and not several else None,
        intercept=0.0 if several else float(model.intercept),
        support=np.concatenate(
            [start + support for start, (support, _) in zip(starts, variables, strict=True)]
        ),
        alpha=np.concatenate([alpha for _, alpha in variables]),
    )


def _dual_variables(model: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Which of them are not 0, and these: coefficients are y_i alpha_i with alpha_i >= 0."""
    if hasattr(model, "dual_coef"):
        support = np.flatnonzero(model.dual_coef)
        return support, np.abs(model.dual_coef[support])
    return np.asarray(model.support, dtype=np.int64), np.abs(model.coef)
