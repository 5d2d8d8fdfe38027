"""What a command spends on a run, by engine: many runs that take no time.

python -m benchmarks.compare.scheduling [--runs 10000] [--workers 2]

The session is whole: it plans, draws jobs, records each outcome in a file of its own and forecasts
the rest. Only what a worker would do is left out. "local" hands outcomes back at once, "dask" sends
each job through a scheduler to workers of a local cluster and back. CPU seconds are those of the
command's process, from the first run to the last; the scheduler and the workers have their own.
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
from unittest import mock

from marginbench.harness.engines.engine import DaskExecutor
from marginbench.harness.jobs import Ended, Event, Executor, Job, Outcome, Started, Waiting
from marginbench.harness.kinds import Run
from marginbench.harness.outcomes import Ending
from marginbench.harness.progress import PlainProgress
from marginbench.harness.session import run_study
from marginbench.harness.svm.study import Study

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

    @contextlib.contextmanager
    def opened(self, say: Callable[[str], None]) -> Iterator[Executor]:
        from marginbench.harness.engines import serving
        from marginbench.harness.engines.link import Link

        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            address = _scheduler(stack, folder)
            for _ in range(self._workers):
                _start(stack, folder, "worker", address, "--nthreads", "1", "--no-nanny")
            stack.enter_context(mock.patch.object(serving, "serve", _serve_nothing))
            link = stack.enter_context(contextlib.closing(Link(address)))
            yield DaskExecutor(link, address, say)


def _scheduler(stack: contextlib.ExitStack, folder: Path) -> str:
    """Start a scheduler; its address."""
    file = folder / "scheduler.json"
    address = ("--scheduler-file", str(file), "--host", "127.0.0.1", "--port", "0")
    _start(stack, folder, "scheduler", *address)
    while not file.exists() or not file.read_text().endswith("}"):
        time.sleep(0.05)
    return str(json.loads(file.read_text())["address"])


def _start(stack: contextlib.ExitStack, folder: Path, *command: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", command[0], "--no-dashboard", *command[1:]],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.kill)


def _serve_nothing(token: str, number: str, parcel: bytes) -> bytes:
    """Stands for a run: reads the job and answers."""
    from marginbench.harness.engines.news import Reply

    pickle.loads(parcel)
    return pickle.dumps(Reply(Outcome("done", dict(_OUTCOME))))


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


def measured(name: str, runs: int, workers: int) -> Clocked:
    """A study of so many runs on an engine."""
    clocked = Clocked()
    engine = Instant() if name == "local" else Dask(workers)
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
    print(f"{given.runs} runs; of the command alone, for each run:")
    for name in ("local", "dask"):
        found = measured(name, given.runs, given.workers)
        cpu, wall = (1e3 * seconds / given.runs for seconds in (found.cpu_s, found.wall_s))
        print(f"  {name:6} {cpu:6.2f} ms CPU, {wall:6.2f} ms wall clock", flush=True)


if __name__ == "__main__":
    main()
