"""What a study costs beside its runs as it grows: planning, records, resuming, pages.

python -m benchmarks.compare.scale [--runs 1000 10000] [--keep FOLDER]

Each solver of a small study really runs once on each task. What came of these runs is then recorded
for every seed as if it had run each time, with times and objectives of its own, so that records are
as large as real ones and compress no better. All steps after that are commands of the user, each in
a process of its own: its CPU seconds, wall-clock time and largest resident memory, worker processes
included.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.report import Cost, command
from marginbench.harness.execution.local import LocalPool
from marginbench.harness.execution.progress import PlainProgress, Recorded
from marginbench.harness.execution.runner import run_study
from marginbench.harness.jobs import (
    Ended,
    Event,
    Executor,
    Job,
    Outcome,
    Started,
    Waiting,
)
from marginbench.harness.planning.plan import Run
from marginbench.harness.study.toml import load_study

_STUDY = """
name = "scale"
title = "Ten configurations, many seeds"
seeds = {seeds}

[[task]]
label = "checkers"
dataset = "checkers"
dataset_params = {{ n_train = 300, n_test = 300 }}
kernel = "rbf"
gamma = 10.0
C = 1.0

[[task]]
label = "breast-cancer"
dataset = "breast-cancer"
kernel = "rbf"
gamma = 0.02
C = 1.0

[[solver]]
name = "SBP"
params = {{ nu = "reference", max_epochs = 10 }}

[[solver]]
name = "BSGD"
params = {{ budget = 50, max_epochs = 10 }}

[[solver]]
name = "SDCA"
params = {{ max_epochs = 30 }}

[[solver]]
name = "Pegasos"
params = {{ max_epochs = 10 }}

[[solver]]
name = "Perceptron"
params = {{ max_epochs = 5, output = "averaged" }}
"""
_CONFIGURATIONS = 10


class Replay:
    """An engine that does each configuration once, and hands out the outcome for all its seeds."""

    def __init__(self) -> None:
        self._outcomes: dict[str, Outcome] = {}
        self._rng = np.random.default_rng(0)

    def check(self) -> None:
        pass

    def close(self) -> None:
        pass

    @contextlib.contextmanager
    def opened(self, say: Callable[[str], None]) -> Iterator[Executor]:
        with tempfile.TemporaryDirectory() as logs, LocalPool(1, Path(logs)) as self._pool:
            yield self

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        for job in jobs:
            yield Started(job)
            yield Ended(job, self._outcome(job))
            yield Waiting()

    def _outcome(self, job: Job) -> Outcome:
        work = job.work
        name = f"{work.problem.dataset} {work.solver}"  # type: ignore[attr-defined]
        if name not in self._outcomes:
            events = list(self._pool.execute(iter([job])))
            (self._outcomes[name],) = (e.outcome for e in events if isinstance(e, Ended))
        return self._varied(self._outcomes[name])

    def _varied(self, outcome: Outcome) -> Outcome:
        """The outcome with other times and slightly larger objectives."""
        slower, worse = 1 + self._rng.random((2, len(outcome.trace) + 1))
        trace = [
            replace(
                point,
                wall_s=point.wall_s * slower[i],
                cpu_s=point.cpu_s * slower[i],
                primal=point.primal and point.primal * (1 + 1e-6 * worse[i]),
            )
            for i, point in enumerate(outcome.trace)
        ]
        value = outcome.value
        times = {name: value[name] * slower[-1] for name in ("wall_s", "cpu_s")}
        return replace(outcome, trace=trace, value={**value, **times})


class Clocked(PlainProgress):
    """Measures this process from the first run to the last, and up to the first."""

    def __init__(self) -> None:
        super().__init__(1, io.StringIO())
        self.cpu_s = self.wall_s = self.planned_cpu_s = self.planned_mb = 0.0
        self._began = (0.0, 0.0)

    def begin(self, pending: Sequence[Run], recorded: Recorded = ()) -> None:
        super().begin(pending, recorded)
        self.planned_mb = _peak_mb()
        self.planned_cpu_s = time.process_time()
        self._began = self.planned_cpu_s, time.perf_counter()

    def close(self) -> None:
        self.cpu_s = time.process_time() - self._began[0]
        self.wall_s = time.perf_counter() - self._began[1]


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def session(study: str, results: str) -> None:
    """Plan and record a study, in this process; prints what it cost as JSON."""
    clocked, began = Clocked(), time.process_time()
    loaded = load_study(study)
    run_study(loaded, Path(results), progress=clocked, engine=Replay())
    costs = {
        "plan": [clocked.planned_cpu_s - began, clocked.planned_mb],
        "record": [clocked.cpu_s, _peak_mb()],
    }
    print(json.dumps(costs))


def measured(runs: int, folder: Path) -> None:
    """Print what each step costs for so many runs."""
    study, results = folder / "scale.toml", folder / "results"
    study.write_text(_STUDY.format(seeds=max(1, runs // _CONFIGURATIONS)))
    # Reference optima and data are cached, and everything is compiled, before the clocks start.
    first = folder / "first.toml"
    first.write_text(_STUDY.format(seeds=1))
    command("run", str(first), "--out", str(folder / "first"))
    words = [sys.executable, "-m", "benchmarks.compare.scale", "--session", str(study)]
    costs = json.loads(subprocess.check_output([*words, str(results)], text=True))
    for name, (cpu_s, peak_mb) in costs.items():
        _show(f"{name} {runs} runs", runs, Cost(cpu_s, float("nan"), peak_mb))
    again = ("run", str(study), "--out", str(results))
    _show("resume and page", runs, command(*again))
    _show("resume, nothing changed", runs, command(*again))
    _lose_one(results)
    _show("resume, one record lost, and page", runs, command(*again))
    _show("watch --once", runs, command("watch", str(results), "--once"))
    _show("report, nothing changed", runs, command("report", str(results)))
    (results / "report.html").unlink()
    _show("report", runs, command("report", str(results)))
    (results / "report.html").unlink()
    (results / "runs.parquet").unlink()
    _show("report, without runs.parquet", runs, command("report", str(results)))
    _say_sizes(results, runs)
    _show("export", runs, command("export", str(results), "--out", str(folder / "out")))


def _lose_one(results: Path) -> None:
    """Damage the line of the last record."""
    path = min((results / "journal").glob("*.jsonl"))
    with path.open("r+b") as file:
        file.seek(-1000, os.SEEK_END)
        file.write(b"#")


def _show(what: str, runs: int, cost: Cost) -> None:
    print(
        f"  {what:36} {cost.cpu_s:8.2f} s CPU {cost.wall_s:8.2f} s wall "
        f"{1e3 * cost.cpu_s / runs:7.3f} ms CPU a run {cost.peak_mb:7.0f} MB",
        flush=True,
    )


def _say_sizes(results: Path, runs: int) -> None:
    sizes = {
        "journal": sum(path.stat().st_size for path in (results / "journal").glob("*.jsonl")),
        **{
            name: (results / name).stat().st_size
            for name in ("runs.parquet", "study.json", "report.html")
        },
    }
    for name, size in sizes.items():
        print(f"  {name}: {size / runs:.0f} bytes a run", flush=True)


def main() -> None:
    """Print a table for each number of runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--keep", type=Path, help="an empty folder that keeps the results")
    parser.add_argument("--session", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.session:
        session(*options.session)
        return
    for runs in options.runs:
        with contextlib.ExitStack() as stack:
            folder = options.keep and options.keep / str(runs)
            folder = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folder.mkdir(parents=True, exist_ok=True)
            measured(runs, folder)


if __name__ == "__main__":
    main()
