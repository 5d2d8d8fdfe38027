"""What a command spends on a run, by engine: many runs that take no time.

python -m benchmarks.compare.scheduling [--runs 10000] [--workers 2]

The session is whole: it plans, draws jobs, records each outcome and forecasts the rest. Only what a
worker would do is left out. "local" hands outcomes back at once, "dask" sends each job through a
scheduler to workers of a local cluster and back. CPU seconds are those of the command's process,
from the first run to the last; the scheduler and the workers have their own.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from marginbench.harness.execution.jobs import (
    Ended,
    Event,
    Executor,
    Job,
    Outcome,
    Started,
    Waiting,
)
from marginbench.harness.execution.outcomes import Ending
from marginbench.harness.execution.progress import PlainProgress
from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning.plan import Run
from marginbench.harness.study.svm import Study

_OUTCOME = {"status": "budget", "n_iter": 5, "wall_s": 0.001, "test_error": 0.1}
_TASK = {
    "dataset": "checkers",
    "dataset_params": {"n_train": 50, "n_test": 50},
    "gamma": 10.0,
    "C": 1.0,
    "reference": False,
}


class Instant:
    """An engine that hands outcomes back at once."""

    def check(self) -> None:
        pass

    @contextlib.contextmanager
    def opened(self, say: Callable[[str], None]) -> Iterator[Executor]:
        yield self

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        for job in jobs:
            yield Started(job)
            yield Ended(job, Outcome("done", dict(_OUTCOME)))
            yield Waiting()

    def close(self) -> None:
        pass


class Dask:
    """The engine on a cluster of processes here, whose workers do nothing."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        #: CPU seconds of the scheduler.
        self.scheduler_cpu_s = 0.0

    def check(self) -> None:
        pass

    @contextlib.contextmanager
    def opened(self, say: Callable[[str], None]) -> Iterator[Executor]:
        import psutil

        from marginbench.harness.execution import dask

        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            scheduler, address = _scheduler(stack, folder)
            for _ in range(self._workers):
                _start(stack, folder, "worker", address, "--nthreads", "1", "--no-nanny")
            stack.enter_context(mock.patch.object(dask, "execute", _execute_nothing))
            yield stack.enter_context(contextlib.closing(dask.DaskExecutor(address, say)))
            used = psutil.Process(scheduler.pid).cpu_times()
            self.scheduler_cpu_s = used.user + used.system


def _scheduler(stack: contextlib.ExitStack, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start a scheduler; it and its address."""
    file = folder / "scheduler.json"
    address = ("--scheduler-file", str(file), "--host", "127.0.0.1", "--port", "0")
    process = _start(stack, folder, "scheduler", *address)
    while not file.exists() or not file.read_text().endswith("}"):
        time.sleep(0.05)
    return process, str(json.loads(file.read_text())["address"])


def _start(stack: contextlib.ExitStack, folder: Path, *command: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", command[0], "--no-dashboard", *command[1:]],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def _execute_nothing(topic: str, parcel: bytes) -> bytes:
    """Stands for a run: reads the job and answers."""
    from distributed import get_worker

    pickle.loads(parcel)
    worker = get_worker()
    machine = worker.plugins["marginbench"].machine.name
    worker.log_event(topic, (worker.get_current_task(), worker.address, machine))
    done = Outcome("done", dict(_OUTCOME), setting={"environment": "{}", "started_at": ""})
    return pickle.dumps((worker.address, machine, done, False))


class Clocked(PlainProgress):
    """Measures this process from the first run to the last."""

    def __init__(self) -> None:
        super().__init__(1, io.StringIO())
        self.cpu_s = self.wall_s = 0.0
        self._began = (0.0, 0.0)

    def begin(self, pending: Sequence[Run], recorded: Sequence[tuple[Run, Ending]] = ()) -> None:
        super().begin(pending, recorded)
        self._began = time.process_time(), time.perf_counter()

    def close(self) -> None:
        self.cpu_s = time.process_time() - self._began[0]
        self.wall_s = time.perf_counter() - self._began[1]


def measured(engine: Any, runs: int) -> Clocked:
    """A study of so many runs on an engine."""
    clocked = Clocked()
    study = Study.model_validate(
        {
            "name": "scheduling",
            "seeds": runs,
            "task": [_TASK],
            "solver": [{"name": "Pegasos", "params": {"max_epochs": 2}}],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        summary = run_study(study, Path(folder) / "results", progress=clocked, engine=engine)
    assert summary.statuses == {"budget": runs}, summary
    return clocked


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    engines: dict[str, Any] = {"local": Instant(), "dask": Dask(given.workers)}
    print(f"{given.runs} runs; of the command alone, for each run:")
    for name, engine in engines.items():
        found = measured(engine, given.runs)
        cpu, wall = (1e3 * seconds / given.runs for seconds in (found.cpu_s, found.wall_s))
        print(f"  {name:16} {cpu:6.2f} ms CPU, {wall:6.2f} ms wall clock", flush=True)
        if isinstance(engine, Dask):
            its = 1e3 * engine.scheduler_cpu_s / given.runs
            print(f"  {'':16} {its:6.2f} ms CPU of Dask's scheduler, its start included")


if __name__ == "__main__":
    main()
