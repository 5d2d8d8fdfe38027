"""The command ``marginbench report`` on large results folders: CPU seconds, memory, size of page.

``python -m benchmarks.report`` writes folders of simulated records, of up to 100 000
checkpoints each (:data:`SHAPES`), runs the command on them in a process of its own, and prints
what it spent. ``--folder DIR`` measures a folder that exists instead.
For asv there is a smaller folder.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from marginbench.harness.results.description import SCHEMA_VERSION, write_description
from marginbench.harness.results.journal import Journal, record_line
from marginbench.harness.results.svm import Checkpoint, Record, packed


class Shape(NamedTuple):
    """How many of each a folder has; checkpoints are those of one run."""

    tasks: int
    solvers: int
    seeds: int
    checkpoints: int


SHAPES = {
    "2000 runs of 50": Shape(tasks=10, solvers=10, seeds=20, checkpoints=50),
    "200 runs of 500": Shape(tasks=5, solvers=8, seeds=5, checkpoints=500),
    "2000 runs of 3": Shape(tasks=10, solvers=10, seeds=20, checkpoints=3),
    "400 cells": Shape(tasks=20, solvers=20, seeds=5, checkpoints=3),
}
SMALL = Shape(tasks=4, solvers=5, seeds=5, checkpoints=50)

_N_TRAIN, _N_TEST = 4_000, 2_000
_OPTIMUM, _OPTIMAL_ERROR = 100.0, 0.05
_ENVIRONMENT = {
    "marginbench": "0.1.0",
    "commit": "0" * 40,
    "dirty": False,
    "processor": "Simulated",
    "cores": 8,
    "memory_mb": 32000,
    "libraries": {"numba": "0.60.0", "numpy": "2.1.0", "scipy": "1.14.0"},
}
_TASK = {
    "dataset": "simulated",
    "kernel": {"name": "rbf", "gamma": 0.1},
    "C": 1.0,
    "fit_intercept": False,
}


class LargeReport:
    timeout = 300
    rounds = 1
    repeat = 1

    def setup_cache(self):
        folder = Path("report-speed")
        write(folder, SMALL)
        return command("report", str(folder)), page_mb(folder)

    def track_cpu(self, spent):
        return spent[0].cpu_s

    track_cpu.unit = "CPU seconds"

    def track_peak_memory(self, spent):
        return spent[0].peak_mb

    track_peak_memory.unit = "megabytes"

    def track_page(self, spent):
        return spent[1]

    track_page.unit = "megabytes"


class Cost(NamedTuple):
    """What a command took; memory is that of its largest process."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def command(*words):
    """The Cost of a command of the user, in a process of its own; words stand behind its name."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "marginbench", *words], stdout=said, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(words)} ended with {status}: {said.read().decode()}")
    seconds = used.ru_utime + used.ru_stime
    return Cost(seconds, time.perf_counter() - began, used.ru_maxrss * 1024 / 1e6)


def page_mb(folder):
    """The size of the page of a results folder."""
    return (folder / "report.html").stat().st_size / 1e6


def write(folder, shape, seed=0):
    """Write a results folder of simulated records; the same arguments give the same page.

    One run in 50 fails half way. The last two solvers do not minimise the objective. Of more than
    four, the one before them is seen only at its end.
    """
    rng = np.random.default_rng(seed)
    tasks = [f"task-{place}" for place in range(shape.tasks)]
    solvers = [
        {
            "label": f"Solver{place}",
            "class": f"simulated:Solver{place}",
            "params": {"tol": 0.001},
            "scalarization": None if place >= shape.solvers - 2 else "C",
            "instrumented": shape.solvers <= 4 or place != shape.solvers - 3,
            "summary": "Simulated.",
        }
        for place in range(shape.solvers)
    ]
    folder.mkdir(parents=True)
    journal, planned = Journal(folder), []
    for task in tasks:
        hard = rng.random(_N_TEST)
        for solver in solvers:
            speed = rng.uniform(0.5, 1.0)
            for number in range(shape.seeds):
                record = _record(rng, task, solver, number, speed, shape.checkpoints, hard)
                journal.append(record_line(record))
                names = ("key", "task", "solver", "seed")
                planned.append({name: getattr(record, name) for name in names})
    described = {
        "schema_version": SCHEMA_VERSION,
        "kind": "svm",
        "marginbench": "0.1.0",
        "name": "large",
        "title": "A large study",
        "seeds": list(range(shape.seeds)),
        "budget": {"timeout": 60.0, "memory": 4096.0, "checkpoint_factor": 1.19},
        "command": "marginbench run large",
        "tasks": [{"label": task, **_TASK} for task in tasks],
        "solvers": solvers,
        "planned": planned,
    }
    journal.close()
    write_description(folder, described)


def _record(rng, task, solver, seed, speed, n, hard):
    trace = _trace(rng, speed, n, instrumented=solver["instrumented"])
    failed, last = rng.random() < 0.02, vars(trace[-1])
    mistakes = hard < last["test_error"]
    if not solver["instrumented"]:
        trace = []
    return Record(
        key=f"{task} {solver['label']} {seed}".encode().hex().ljust(64, "0")[:64],
        study="large",
        task=task,
        solver=solver["label"],
        solver_class=solver["class"],
        seed=seed,
        status="timeout" if failed else "converged",
        reason="killed after 60.0 s of solving" if failed else "",
        started_at=f"2024-05-06T07:08:{seed % 60:02d}+00:00",
        environment=json.dumps(_ENVIRONMENT),
        dataset="simulated",
        n_train=_N_TRAIN,
        n_test=_N_TEST,
        n_features=64,
        n_classes=2,
        fingerprint="f" * 64,
        suboptimality=None if solver["scalarization"] is None else last["primal"] / _OPTIMUM - 1,
        mistakes=packed(mistakes),
        reference_primal=_OPTIMUM,
        reference_gap=1e-4,
        reference_test_error=_OPTIMAL_ERROR,
        reference_hash="r" * 64,
        trace=trace[: len(trace) // 2] if failed else trace,
        **last | {"test_error": float(mistakes.mean())},
    )


def _trace(rng, speed, n, *, instrumented):
    """Checkpoints: the test error falls to that of the optimum, the objective to its value."""
    costs = np.geomspace(2e3 * rng.uniform(1, 1.4), 10 ** rng.uniform(6.4, 6.9), n).astype(int)
    progress = np.log(costs / 1e3)
    errors = (_OPTIMAL_ERROR + 0.45 * np.exp(-speed * progress)) * np.exp(rng.normal(0, 0.06, n))
    errors = np.round(np.clip(errors, 0, 1) * _N_TEST) / _N_TEST
    excess = 30 * np.exp(-1.5 * speed * progress) * np.exp(rng.normal(0, 0.12, n))
    return [
        Checkpoint(
            n_iter=place + 1,
            counters={"kernel_evals": cost, "kernel_evals_computed": cost // 2}
            if instrumented
            else None,
            wall_s=0.004 + cost / 5e6,
            cpu_s=0.004 + cost / 5e6,
            n_support=min(10 * (place + 1), _N_TRAIN),
            train_error=error / 2,
            test_error=error,
            primal=_OPTIMUM * (1 + above),
            dual=None,
        )
        for place, (cost, error, above) in enumerate(
            zip(costs.tolist(), errors.tolist(), excess.tolist(), strict=True)
        )
    ]


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--folder", action="append", type=Path, default=[])
    options = parser.parse_args()
    print(f"{'folder':<24} {'CPU s':>7} {'wall s':>7} {'peak MB':>8} {'page MB':>8}")
    with tempfile.TemporaryDirectory() as temporary:
        folders = list(options.folder)
        for name in options.shape or ([] if folders else SHAPES):
            folders.append(Path(temporary, name.replace(" ", "-")))
            write(folders[-1], SHAPES[name])
        for folder in folders:
            cost = command("report", str(folder))
            print(f"{folder.name:<24} {cost.cpu_s:7.1f} {cost.wall_s:7.1f} {cost.peak_mb:8.0f} "
                  f"{page_mb(folder):8.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
