"""What a run costs beside its solving, by part: short runs in the local pool.

python -m benchmarks.compare.overhead [--runs 300] [--rounds 3]

Solvers run for milliseconds with so many seeds on two small tasks; everything is cached and
compiled. The parts are those that records tell: loading the data, the warm-up, the fit and its
evaluation. What is left of the wall-clock time from the first start to the last record is the work
around them: messages, limits, the record and its file. Of CPU time only CPU time is subtracted:
that of the command and its worker, less that of the fits. Values are medians of the rounds.
"""

import argparse
import tempfile
from pathlib import Path

import pandas as pd

from benchmarks.compare.scale import STUDY, Clocked
from marginbench.harness.execution.local import LocalPool
from marginbench.harness.execution.runner import run_study
from marginbench.harness.results.journal import runs_table
from marginbench.harness.results.svm import Record
from marginbench.harness.study.toml import load_study

_PARTS = {
    "data_s": "data",
    "compile_s": "building and warm-up",
    "wall_s": "solving",
    "evaluation_s": "evaluation",
}
_SOLVERS = """
    { name = "Pegasos", params = { max_epochs = 5 } },
    { name = "Perceptron", params = { max_epochs = 5, output = "averaged" } },
    { name = "BSGD", params = { budget = 50, max_epochs = 10 } },
"""
_CONFIGURATIONS = 6


def measured(seeds):
    """Milliseconds of a run in each part, on average."""
    with tempfile.TemporaryDirectory() as name, LocalPool(1, Path(name) / "logs") as pool:
        # The worker loads compiled code when it first needs it.
        for n, results in ((1, Path(name, "first")), (seeds, Path(name, "results"))):
            clocked, study = Clocked(), Path(name, "overhead.toml")
            study.write_text(STUDY.format(name="overhead", seeds=n, solvers=_SOLVERS))
            run_study(load_study(str(study)), results, progress=clocked, executor=pool)
        runs = runs_table(results, Record)[0].to_pandas()
    means = runs[[*_PARTS, "cpu_s"]].mean()
    wall, worker, command = (
        spent / len(runs) for spent in (clocked.wall_s, clocked.worker_s, clocked.cpu_s)
    )
    return 1e3 * pd.Series(
        {words: means[name] for name, words in _PARTS.items()}
        | {
            "messages, limits, record": wall - means[[*_PARTS]].sum(),
            "all, wall clock": wall,
            "beside solving and evaluation": wall - means["wall_s"] - means["evaluation_s"],
            "CPU of the worker": worker,
            "CPU of the command": command,
            "CPU beside solving": worker + command - means["cpu_s"],
        }
    )


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    seeds = max(1, options.runs // _CONFIGURATIONS)
    medians = pd.DataFrame([measured(seeds) for _ in range(options.rounds)]).median()
    for words, milliseconds in medians.items():
        print(f"  {words:29} {milliseconds:7.2f} ms")


if __name__ == "__main__":
    main()
