"""What a study costs beside its runs as it grows: planning, records, resuming, pages.

python -m benchmarks.compare.scale [--runs 1000 10000] [--parts]

Each solver of a small study really runs once on each task. What came of these runs is then recorded
for every seed as if it had run each time, with times and objectives of its own, so that records are
as large as real ones and compress no better. All steps after that are commands of the user, each in
a process of its own: its CPU seconds, wall-clock time and largest resident memory, worker processes
included.

``--parts`` really runs every seed, and prints the milliseconds of a run in each part: what records
tell of it, and the rest of the time from the first start to the last record: messages, limits, the
record and its file.
"""

import argparse
import io
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from marginbench.harness.execution.local import LocalPool
from marginbench.harness.execution.progress import PlainProgress
from marginbench.harness.execution.runner import run_study
from marginbench.harness.jobs import Ended, Started, Waiting
from marginbench.harness.results.journal import runs_table
from marginbench.harness.results.svm import Record
from marginbench.harness.study.toml import load_study

_STUDY = """
name = "scale"
title = "Ten configurations, many seeds"
seeds = SEEDS
task = [
    { dataset = "checkers", dataset_params = { n_train = 300, n_test = 300 }, gamma = 10.0 },
    { dataset = "breast-cancer", gamma = 0.02 },
]
solver = [
    { name = "SBP", params = { nu = "reference", max_epochs = 10 } },
    { name = "BSGD", params = { budget = 50, max_epochs = 10 } },
    { name = "SDCA", params = { max_epochs = 30 } },
    { name = "Pegasos", params = { max_epochs = 10 } },
    { name = "Perceptron", params = { max_epochs = 5, output = "averaged" } },
]
"""
_CONFIGURATIONS = 10


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


class Replay(LocalPool):
    """A pool that does each configuration once, and hands out what came of it for all its seeds."""

    def execute(self, jobs):
        first, rng = {}, np.random.default_rng(0)
        for job in jobs:
            if getattr(job.work, "checkpoint", None) is None:  # planning
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
    """Measures this process from the first run to the last, and up to the first."""

    def __init__(self):
        super().__init__(1, io.StringIO())

    def begin(self, pending, recorded=()):
        super().begin(pending, recorded)
        self.planned_mb = _peak_mb()
        self.began = time.process_time(), time.perf_counter()

    def close(self):
        self.ended = time.process_time(), time.perf_counter()


def _peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def recorded(runs, folder, pool=Replay):
    """Plan and record so many runs in ``folder/results``: the Cost of each step."""
    folder.mkdir(parents=True, exist_ok=True)
    with pool(1, folder / "logs") as executor:
        # Reference optima and data are cached, and everything is compiled, before the clocks start.
        for name, seeds in (("first", 1), ("results", max(1, runs // _CONFIGURATIONS))):
            study = folder / f"{name}.toml"
            study.write_text(_STUDY.replace("SEEDS", str(seeds)))
            clocked, began = Clocked(), time.process_time()
            run_study(load_study(str(study)), folder / name, progress=clocked, executor=executor)
    return {
        "plan": Cost(clocked.began[0] - began, math.nan, clocked.planned_mb),
        "record": Cost(*np.subtract(clocked.ended, clocked.began), _peak_mb()),
    }


def measure_parts(runs, folder):
    """Print the milliseconds of a run in each part."""
    cost = recorded(runs, folder, LocalPool)["record"]
    table = runs_table(folder / "results", Record)[0].to_pandas()
    spent = table[["data_s", "compile_s", "wall_s", "evaluation_s"]].mean()
    wall = cost.wall_s / len(table)
    for words, seconds in {
        "data": spent["data_s"],
        "building and warm-up": spent["compile_s"],
        "solving": spent["wall_s"],
        "evaluation": spent["evaluation_s"],
        "messages, limits, record": wall - spent.sum(),
        "all, wall clock": wall,
    }.items():
        print(f"  {words:29} {1e3 * seconds:7.2f} ms")


def measure(runs, folder):
    """Print what each step costs for so many runs."""

    def show(what, cost):
        print(
            f"  {what:36} {cost.cpu_s:8.2f} s CPU {cost.wall_s:8.2f} s wall "
            f"{1e3 * cost.cpu_s / runs:7.3f} ms CPU a run {cost.peak_mb:7.0f} MB",
            flush=True,
        )

    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        costs = pool.submit(recorded, runs, folder).result()
    for name, cost in costs.items():
        show(f"{name} {runs} runs", cost)
    results = folder / "results"
    again = ("run", str(folder / "results.toml"), "--out", str(results))
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
    parser.add_argument("--parts", action="store_true", help="really run every seed")
    options = parser.parse_args()
    for runs in options.runs:
        with tempfile.TemporaryDirectory() as folder:
            (measure_parts if options.parts else measure)(runs, Path(folder))


if __name__ == "__main__":
    main()
