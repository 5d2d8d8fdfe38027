"""What a command spends on a run, by engine: many runs that take no time.

python -m benchmarks.compare.scheduling [--runs 10000] [--workers 2] [--stations 100 10000]

The session is whole: it plans, draws jobs, records each outcome in a file of its own and forecasts
the rest. Only what a worker would do is left out. "local" hands outcomes back at once, "dask" sends
each job through a scheduler to workers of a local cluster and back. "stations" decides which of so
many workers gets which job, without Dask: replies come back one at a time, in random order. CPU
seconds are those of the command's process, from the first run to the last; the scheduler and the
workers have their own.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import pickle
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from marginbench.harness.execution.engines.engine import DaskExecutor, Engine
from marginbench.harness.execution.engines.machines import Machine, this_program
from marginbench.harness.execution.engines.news import Joined, News, Replied, Reply
from marginbench.harness.execution.engines.parcels import Parcel
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
from marginbench.harness.execution.session import run_study
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

    @contextlib.contextmanager
    def opened(self, say: Callable[[str], None]) -> Iterator[Executor]:
        import psutil

        from marginbench.harness.execution.engines import serving
        from marginbench.harness.execution.engines.link import Link

        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            scheduler, address = _scheduler(stack, folder)
            for _ in range(self._workers):
                _start(stack, folder, "worker", address, "--nthreads", "1", "--no-nanny")
            stack.enter_context(mock.patch.object(serving, "serve", _serve_nothing))
            link = stack.enter_context(contextlib.closing(Link(address)))
            yield DaskExecutor(link, address, say)
            used = psutil.Process(scheduler.pid).cpu_times()
            self.scheduler_cpu_s = used.user + used.system


class Stations:
    """The engine on a cluster of imagined machines, four workers on each."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    @contextlib.contextmanager
    def opened(self, say: Callable[[str], None]) -> Iterator[Executor]:
        link: Any = Imagined(self._workers)
        yield DaskExecutor(link, "imagined", say)


class Imagined:
    """Stands for the connection to a cluster: tells of its workers, and answers for them."""

    def __init__(self, workers: int) -> None:
        environment = {"processor": "imagined", "cores_logical": 4, "memory_mb": 16_000}
        program = this_program()
        machines = [Machine(f"node{i}", environment, program) for i in range(workers // 4 + 1)]
        self._news: list[News] = [
            Joined(f"tcp://worker{i}", machines[i // 4]) for i in range(workers)
        ]
        self._sent: list[str] = []
        self._random = random.Random(0)

    def news(self, seconds: float) -> list[News]:
        found, self._news = self._news, []
        if not found and self._sent:
            place = self._random.randrange(len(self._sent))
            self._sent[place], self._sent[-1] = self._sent[-1], self._sent[place]
            found.append(Replied(self._sent.pop(), Reply(Outcome("done", dict(_OUTCOME)))))
        return found

    def send(self, address: str, number: str, parcel: Parcel) -> None:
        pickle.loads(pickle.dumps(parcel))
        self._sent.append(number)

    def recall(self, number: str) -> None:
        pass


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


def _serve_nothing(token: str, number: str, parcel: bytes) -> bytes:
    """Stands for a run: reads the job and answers."""
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


def measured(engine: Engine, runs: int) -> Clocked:
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
    parser.add_argument("--stations", type=int, nargs="*", default=[1, 100, 10_000])
    given = parser.parse_args()
    engines: dict[str, Engine] = {"local": Instant(), "dask": Dask(given.workers)}
    engines |= {f"{count} stations": Stations(count) for count in given.stations}
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
