"""Results folders for the tests, written through the record store as a run would."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from marginbench.harness.records import Checkpoint, Record, RecordStore
from marginbench.reports.site import write_report

ENVIRONMENT = json.dumps(
    {
        "marginbench": "0.1.0",
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "processor": "Example CPU 3000",
        "cores": 8,
        "memory_mb": 32000,
        "libraries": {"numpy": "2.1.0", "numba": "0.60.0"},
    }
)


def make_key(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def make_record(task: str, solver: str, seed: int, **fields: Any) -> Record:
    """A record with what a test leaves out filled in."""
    defaults: dict[str, Any] = {
        "key": make_key(task, solver, seed),
        "study": "example",
        "dataset": "digits",
        "solver_class": "marginbench.solvers.smo.smo:SMO",
        "status": "converged",
        "environment": ENVIRONMENT,
        "started_at": f"2024-05-06T07:08:{seed:02d}+00:00",
        "n_train": 800,
        "n_test": 200,
        "n_features": 64,
        "reference_primal": 100.0,
        "reference_gap": 1e-4,
        "reference_test_error": 0.01,
        "reference_hash": "r" * 64,
        "fingerprint": "f" * 64,
    }
    return Record(task=task, solver=solver, seed=seed, **(defaults | fields))


def make_trace(
    costs: Iterable[float | None],
    errors: Iterable[float],
    primals: Iterable[float] | None = None,
    seconds: Iterable[float] | None = None,
) -> list[Checkpoint]:
    """Checkpoints from kernel evaluations and test errors; seconds are a millionth of the cost."""
    costs, errors = list(costs), list(errors)
    primals = [200.0] * len(costs) if primals is None else list(primals)
    seconds = [(cost or 1e6) / 1e6 for cost in costs] if seconds is None else list(seconds)
    return [
        Checkpoint(
            n_iter=place + 1,
            kernel_evals=None if cost is None else int(cost),
            kernel_evals_computed=None if cost is None else int(cost) // 2,
            wall_s=second,
            cpu_s=second,
            n_support=10 * (place + 1),
            train_error=error / 2,
            test_error=error,
            primal=primal,
            dual=None,
        )
        for place, (cost, error, primal, second) in enumerate(
            zip(costs, errors, primals, seconds, strict=True)
        )
    ]


def finished(task: str, solver: str, seed: int, trace: list[Checkpoint], **fields: Any) -> Record:
    """A record whose final scores are those of its last checkpoint."""
    last = trace[-1]
    final = {
        name: getattr(last, name)
        for name in (
            *("n_iter", "kernel_evals", "kernel_evals_computed", "wall_s", "cpu_s", "n_support"),
            *("train_error", "test_error", "primal", "dual"),
        )
    }
    final["suboptimality"] = (last.primal - 100.0) / 100.0
    return make_record(task, solver, seed, trace=trace, **(final | fields))


def describe_task(label: str, **fields: Any) -> dict[str, Any]:
    return {
        "label": label,
        "dataset": "digits",
        "kernel": {"name": "rbf", "gamma": 0.02},
        "C": 10.0,
        "fit_intercept": False,
        "citation": "Alpaydin and Kaynak (1998)",
        "licence": "CC BY 4.0",
    } | fields


def describe_solver(label: str, **fields: Any) -> dict[str, Any]:
    return {
        "label": label,
        "class": f"solvers.{label.lower()}:{label}",
        "params": {"tol": 0.001},
        "scalarization": "C",
        "certificate": None,
        "instrumented": True,
        "summary": f"The solver {label}.",
    } | fields


@pytest.fixture
def make() -> SimpleNamespace:
    """The builders above, for tests."""
    return SimpleNamespace(
        record=make_record,
        trace=make_trace,
        finished=finished,
        task=describe_task,
        solver=describe_solver,
    )


def write_folder(
    folder: Path,
    records: Iterable[Record],
    tasks: Iterable[dict[str, Any]],
    solvers: Iterable[dict[str, Any]],
    missing: Iterable[tuple[str, str, int]] = (),
    **study: Any,
) -> Path:
    """Write a results folder from descriptions and records.

    Every record is planned; ``missing`` lists further planned runs without a record.
    """
    store = RecordStore(folder / "runs")
    records = list(records)
    for record in records:
        store.write(record)
    planned = [
        {
            "key": record.key,
            "file": record.file_name,
            "task": record.task,
            "solver": record.solver,
            "seed": record.seed,
        }
        for record in [*records, *(make_record(*run) for run in missing)]
    ]
    described = {
        "schema_version": 1,
        "marginbench": "0.1.0",
        "name": "example",
        "title": "An example",
        "description": "Two solvers on one task.",
        "seeds": sorted({run["seed"] for run in planned}),
        "budget": {"timeout": 60.0, "memory": 4096.0, "checkpoint_factor": 1.19},
        "jobs": 1,
        "command": "marginbench run example",
        "tasks": list(tasks),
        "solvers": list(solvers),
        "planned": planned,
    } | study
    (folder / "study.json").write_text(json.dumps(described), encoding="utf-8")
    return folder


@pytest.fixture
def write_results(tmp_path: Path) -> Callable[..., Path]:
    """``write_folder`` into the test's own folder."""
    return functools.partial(write_folder, tmp_path)


def _simulated(
    rng: np.random.Generator,
    n_test: int,
    final: float,
    speed: float,
    per_second: float,
    kind: str,
) -> list[Checkpoint]:
    """A plausible run: the error falls to its final value, the objective to the optimum."""
    end = 10 ** rng.uniform(6.4, 6.9)
    costs = np.geomspace(2e3 * rng.uniform(1, 1.4), end, 48).astype(int)
    progress = np.log(costs / 1e3)
    error = final + 0.45 * np.exp(-speed * progress)
    error = np.round(np.clip(error * np.exp(rng.normal(0, 0.06, 48)), 0, 1) * n_test) / n_test
    excess = 30 * np.exp(-1.15 * speed * progress * (1 if kind == "slow" else 1.5))
    excess = excess * np.exp(rng.normal(0, 0.12, 48)) + (2e-3 if kind == "slow" else 0)
    seconds = 0.004 + costs / per_second
    return make_trace(costs, error, 100 * (1 + excess), seconds)


@pytest.fixture(scope="session")
def realistic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks, six solvers, three seeds, with the failures that a real study has."""
    rng = np.random.default_rng(7)
    n_tests = {"digits": 540, "adult": 16281}
    floors = {"digits": 0.011, "adult": 0.149}
    kinds = {
        "SMO": (0.55, 9e6, "fast"),
        "SDCA": (0.8, 4e6, "fast"),
        "Pegasos": (0.5, 5e6, "slow"),
        "SBP": (1.0, 6e6, "slow"),
        "Perceptron": (0.7, 8e6, "slow"),
    }
    records: list[Record] = []
    for task, n_test in n_tests.items():
        sizes = {"n_test": n_test, "n_train": 3 * n_test, "reference_test_error": floors[task]}
        for solver, (speed, rate, kind) in kinds.items():
            for seed in range(3):
                final = floors[task] * (1.35 if kind == "slow" else 1.0)
                trace = _simulated(rng, n_test, final, speed, rate, kind)
                record = finished(task, solver, seed, trace, **sizes)
                if solver == "Perceptron":
                    record.suboptimality = None
                if (task, solver, seed) == ("digits", "Pegasos", 2):
                    record.status, record.reason = "timeout", "killed after 60.0 s of solving"
                    record.trace = trace[:30]
                if (task, solver, seed) == ("adult", "SDCA", 1):
                    record.status, record.trace = "crashed", []
                    record.reason = "the worker process ended with signal 11 (SIGSEGV)"
                records.append(record)
        for seed in range(3):
            if task == "adult":
                reason = "LIBSVM needs a dense kernel of 9.5 GB, more than the 4096 MB allowed"
                records.append(make_record(task, "LIBSVM", seed, status="skipped", reason=reason))
                continue
            trace = make_trace(
                [None], [6 / 540], [100.002], seconds=[0.4 * float(rng.uniform(0.9, 1.1))]
            )
            records.append(finished(task, "LIBSVM", seed, trace, **sizes))
    solvers = [describe_solver(label) for label in kinds]
    solvers[-1] |= {"scalarization": None}
    solvers.append(describe_solver("LIBSVM", instrumented=False))
    return write_folder(
        tmp_path_factory.mktemp("realistic"),
        records,
        [describe_task("digits"), describe_task("adult", dataset="adult", C=1.0)],
        solvers,
        title="Kernel solvers on digits and adult",
        description="How fast five ways of training a kernel SVM reach the error of the optimum, "
        "counted in kernel evaluations and in seconds.",
    )


@pytest.fixture(scope="session")
def realistic_page(realistic: Path) -> Path:
    """The report of the realistic results."""
    return write_report(realistic, "marginbench run example")
