"""What a study costs beside its runs as it grows: planning, records, resuming, pages.

python -m benchmarks.compare.scale [--runs 1000 10000]

Each solver of a small study really runs once on each task. What came of these runs is then recorded
for every seed as if it had run each time, with times and objectives of its own, so that records are
as large as real ones and compress no better. All steps after that are commands of the user, each in
a process of its own: its CPU seconds, wall-clock time and largest resident memory, worker processes
included.
"""

import argparse
import io
import os
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import psutil

from benchmarks.report import Cost, command
from marginbench.harness.execution.local import LocalPool
from marginbench.harness.execution.progress import PlainProgress
from marginbench.harness.execution.runner import run_study
from marginbench.harness.jobs import Ended, Started, Waiting
from marginbench.harness.study.toml import load_study

STUDY = """
name = "{name}"
title = "Ten configurations, many seeds"
seeds = {seeds}
task = [
    {{ dataset = "checkers", dataset_params = {{ n_train = 300, n_test = 300 }}, gamma = 10.0 }},
    {{ dataset = "breast-cancer", gamma = 0.02 }},
]
solver = [
    {solvers}
]
"""
_SOLVERS = """
    { name = "SBP", params = { nu = "reference", max_epochs = 10 } },
    { name = "BSGD", params = { budget = 50, max_epochs = 10 } },
    { name = "SDCA", params = { max_epochs = 30 } },
    { name = "Pegasos", params = { max_epochs = 10 } },
    { name = "Perceptron", params = { max_epochs = 5, output = "averaged" } },
"""
_CONFIGURATIONS = 10


class Replay(LocalPool):
    """A pool that does each configuration once, and hands out what came of it for all its seeds."""

    def execute(self, jobs):
        first, rng = {}, np.random.default_rng(0)
        for job in jobs:
            if job.work.checkpoint is None:  # planning
                yield from super().execute(iter([job]))
                continue
            name = f"{job.work.problem.dataset} {job.work.solver}"
            if name not in first:
                events = [*super().execute(iter([job]))]
                [first[name]] = (event.outcome for event in events if isinstance(event, Ended))
            yield Started(job)
            yield Ended(job, _varied(first[name], rng))
            yield Waiting()


def _varied(outcome, rng):
    """The outcome with other times and slightly larger objectives."""
    slower, worse = 1 + rng.random((2, len(outcome.trace) + 1))
    trace = [
        replace(
            point,
            wall_s=point.wall_s * slower[i],
            cpu_s=point.cpu_s * slower[i],
            primal=point.primal and point.primal * (1 + 1e-6 * worse[i]),
        )
        for i, point in enumerate(outcome.trace)
    ]
    times = {name: outcome.value[name] * slower[-1] for name in ("wall_s", "cpu_s")}
    return replace(outcome, trace=trace, value=outcome.value | times)


class Clocked(PlainProgress):
    """Measures this process and its workers from the first run to the last, and up to the first."""

    def __init__(self):
        super().__init__(1, io.StringIO())
        self.cpu_s = self.worker_s = self.wall_s = self.planned_cpu_s = self.planned_mb = 0.0

    def begin(self, pending, recorded=()):
        super().begin(pending, recorded)
        self.planned_mb = _peak_mb()
        self.planned_cpu_s = time.process_time()
        self._began = self.planned_cpu_s, _workers_s(), time.perf_counter()

    def close(self):
        ended = time.process_time(), _workers_s(), time.perf_counter()
        self.cpu_s, self.worker_s, self.wall_s = np.subtract(ended, self._began).tolist()


def _peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _workers_s():
    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return sum(each.user + each.system for each in times)


def recorded(study, results):
    """Plan and record a study, in this process: CPU seconds and megabytes of each step."""
    clocked, began = Clocked(), time.process_time()
    with tempfile.TemporaryDirectory() as logs, Replay(1, Path(logs)) as pool:
        run_study(load_study(study), results, progress=clocked, executor=pool)
    return {
        "plan": (clocked.planned_cpu_s - began, clocked.planned_mb),
        "record": (clocked.cpu_s, _peak_mb()),
    }


def measured(runs, folder):
    """Print what each step costs for so many runs."""

    def show(what, cost):
        print(
            f"  {what:36} {cost.cpu_s:8.2f} s CPU {cost.wall_s:8.2f} s wall "
            f"{1e3 * cost.cpu_s / runs:7.3f} ms CPU a run {cost.peak_mb:7.0f} MB",
            flush=True,
        )

    study, first, results = (folder / name for name in ("scale.toml", "first.toml", "results"))
    for path, seeds in ((study, max(1, runs // _CONFIGURATIONS)), (first, 1)):
        path.write_text(STUDY.format(name="scale", seeds=seeds, solvers=_SOLVERS))
    # Reference optima and data are cached, and everything is compiled, before the clocks start.
    command("run", str(first), "--out", str(folder / "first"))
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        costs = pool.submit(recorded, str(study), results).result()
    for name, (cpu_s, peak_mb) in costs.items():
        show(f"{name} {runs} runs", Cost(cpu_s, float("nan"), peak_mb))
    again = ("run", str(study), "--out", str(results))
    show("resume and page", command(*again))
    show("resume, nothing changed", command(*again))
    [journal] = (results / "journal").glob("*.jsonl")
    with journal.open("r+b") as file:
        file.seek(-1000, os.SEEK_END)
        file.write(b"#")
    show("resume, one record lost, and page", command(*again))
    show("watch --once", command("watch", str(results), "--once"))
    show("report, nothing changed", command("report", str(results)))
    page, table = results / "report.html", results / "runs.parquet"
    page.unlink()
    show("report", command("report", str(results)))
    page.unlink()
    table.unlink()
    show("report, without runs.parquet", command("report", str(results)))
    for path in (*(results / "journal").iterdir(), table, results / "study.json", page):
        print(f"  {path.name}: {path.stat().st_size / runs:.0f} bytes a run", flush=True)
    show("export", command("export", str(results), "--out", str(folder / "out")))


def main():
    """Print a table for each number of runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, nargs="+", default=[1_000, 10_000])
    for runs in parser.parse_args().runs:
        with tempfile.TemporaryDirectory() as folder:
            measured(runs, Path(folder))


if __name__ == "__main__":
    main()
