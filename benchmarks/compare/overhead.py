"""What a run costs beside its solving, by part: short runs in the local pool.

python -m benchmarks.compare.overhead [--runs 300] [--rounds 3]

Solvers run for milliseconds with so many seeds on two small tasks; everything is cached and
compiled. The parts are those that records tell: loading the data, the warm-up, the fit and its
evaluation. What is left of the wall-clock time from the first start to the last record is the work
around them: messages, limits, the record and its file. Of CPU time only CPU time is subtracted:
that of the command and its worker, less that of the fits. Values are medians of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.compare.scale import Clocked
from marginbench.harness.execution.local import LocalPool
from marginbench.harness.execution.progress import Recorded
from marginbench.harness.execution.runner import run_study
from marginbench.harness.jobs import Ended, Event, Job
from marginbench.harness.planning.plan import Run
from marginbench.harness.study.svm import Study

_PARTS = ("data_s", "compile_s", "wall_s", "evaluation_s")
_TASKS = [
    {
        "dataset": "checkers",
        "dataset_params": {"n_train": 300, "n_test": 300},
        "gamma": 10.0,
        "C": 1.0,
    },
    {"dataset": "breast-cancer", "gamma": 0.02, "C": 1.0},
]
_SOLVERS = [
    {"name": "Pegasos", "params": {"max_epochs": 5}},
    {"name": "Perceptron", "params": {"max_epochs": 5, "output": "averaged"}},
    {"name": "BSGD", "params": {"budget": 50, "max_epochs": 10}},
]


class Watched(LocalPool):
    """The pool, which keeps what its runs say of their parts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(1, folder)
        self.parts: list[list[float]] = []

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        for event in super().execute(jobs):
            if isinstance(event, Ended) and isinstance(event.outcome.value, dict):
                self.parts.append([event.outcome.value[name] for name in (*_PARTS, "cpu_s")])
            yield event

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the worker."""
        worker = self._warm.get(0)
        return 0.0 if worker is None else worker.cpu_s()


class Both(Clocked):
    """Measures the worker as well, from the first run to the last."""

    def __init__(self, pool: Watched) -> None:
        super().__init__()
        self._pool = pool
        self.worker_s = 0.0

    def begin(self, pending: Sequence[Run], recorded: Recorded = ()) -> None:
        self._pool.parts.clear()
        self._before = self._pool.cpu_s
        super().begin(pending, recorded)

    def close(self) -> None:
        super().close()
        self.worker_s = self._pool.cpu_s - self._before


def measured(seeds: int) -> dict[str, float]:
    """Seconds of a run in each part, on average."""
    with tempfile.TemporaryDirectory() as folder, Watched(Path(folder) / "logs") as pool:
        # The worker loads compiled code when it first needs it.
        _run(1, Path(folder) / "first", pool)
        clocked = _run(seeds, Path(folder) / "results", pool)
        runs = len(pool.parts)
    sums = map(sum, zip(*pool.parts, strict=True))
    *parts, cpu_s = (part / runs for part in sums)
    seconds_of = dict(zip(_PARTS, parts, strict=True))
    wall, worker, command = (
        seconds / runs for seconds in (clocked.wall_s, clocked.worker_s, clocked.cpu_s)
    )
    return seconds_of | {
        "rest": wall - sum(parts),
        "wall": wall,
        "overhead": wall - seconds_of["wall_s"] - seconds_of["evaluation_s"],
        "worker": worker,
        "command": command,
        "cpu": worker + command - cpu_s,
    }


def _run(seeds: int, results: Path, pool: Watched) -> Both:
    study = Study.model_validate(
        {"name": "overhead", "seeds": seeds, "task": _TASKS, "solver": _SOLVERS}
    )
    clocked = Both(pool)
    summary = run_study(study, results, progress=clocked, executor=pool)
    assert len(pool.parts) == summary.planned, summary
    return clocked


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    seeds = max(1, options.runs // (len(_TASKS) * len(_SOLVERS)))
    rounds = [measured(seeds) for _ in range(options.rounds)]
    medians = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    words = {
        "data_s": "data",
        "compile_s": "building and warm-up",
        "wall_s": "solving",
        "evaluation_s": "evaluation",
        "rest": "messages, limits, record",
        "wall": "all, wall clock",
        "overhead": "beside solving and evaluation",
        "worker": "CPU of the worker",
        "command": "CPU of the command",
        "cpu": "CPU beside solving",
    }
    for name, text in words.items():
        print(f"  {text:29} {1e3 * medians[name]:7.2f} ms")


if __name__ == "__main__":
    main()
