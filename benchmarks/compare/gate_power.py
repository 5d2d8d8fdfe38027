"""How well the gate tells: commits that make something worse on purpose, and commits that do not.

``python -m benchmarks.compare.gate_power`` clones this checkout, commits each step on top of HEAD,
runs ``marginbench regressions`` on it as a user would, and prints a table: the exit code that is
right and the one that came, how many cells of the solver that was changed are told, and the cells
of other solvers that are, which would be false alarms. ``--only WORD`` takes the steps with the
word in their names. It takes about a minute a step: one at a time, as they share what is measured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.compare.common import heading, row

ROOT = Path(__file__).parents[2]
PACKAGE = "src/marginbench/__init__.py"
#: Goes to the end of the package's module: it wraps what every fit passes through, so that no
#: machine code changes. ``before`` and ``after`` are done around a fit.
_HOOK = """

def _changed():
    import numpy as np
    from marginbench.solvers.interface import base
    original = base.Solver._checked_solve

    def solve(self, problem, monitor):
        if type(self).__name__ != {solver!r}:
            return original(self, problem, monitor)
        {before}
        try:
            return original(self, problem, monitor)
        finally:
            {after}

    base.Solver._checked_solve = solve

_changed()
"""
_FAILS = "raise ValueError('broken on purpose')"


class Step(NamedTuple):
    """A commit: its name, the exit code that is right, the solver it is about, and its edit.

    That is what is added to the end of a file.
    """

    name: str
    code: int = 0
    solver: str = ""
    path: str = PACKAGE
    text: str = ""
    options: tuple = ("--suite", r"^work\.")
    environment: tuple = ()  # pairs of a name and a value


def changed(what, solver, before, after="pass", code=1, **more):
    """The step that changes one solver in all of its fits."""
    text = _HOOK.format(solver=solver, before=before, after=after)
    return Step(f"{solver}: {what}", code, solver, text=text, **more)


def more_evaluations(solver, share):
    """The step after which a fit requests so many more entries, as a share of what it did."""
    rows = f"{share} * (problem.counters.kernel_evals - spent) / problem.n"
    return changed(
        f"evaluations x {1 + share:g}",
        solver,
        "spent = problem.counters.kernel_evals",
        f"for i in range(round({rows})): problem.oracle.row(i % problem.n)",
    )


def scaled(what, solver, name, factor):
    """The step after which a fit has so many times a parameter."""
    before = f"kept = self.{name}; self.{name} = type(kept)({factor} * kept)"
    return changed(what, solver, before, f"self.{name} = kept")


def wrong_labels(solver):
    """The step after which a fit sees one label of 20 wrong."""
    before = "kept = problem.y.copy(); problem.y[::20] *= -1"
    return changed("a label of 20 wrong", solver, before, "problem.y[:] = kept")


#: Memory advises; with a bound it gates.
_MEMORY = ("--suite", r"^solve\.Fit\.peakmem", "--bound", "memory=1.1")
WORSE = [
    *(more_evaluations(solver, 1.0) for solver in ("SMO", "SBP")),
    *(more_evaluations(solver, 0.2) for solver in ("SDCA", "Pegasos", "SGD", "CuttingPlane")),
    *(more_evaluations(solver, 0.02) for solver in ("SMO", "Perceptron", "BSGD", "Nystrom")),
    scaled("tolerance x 100", "SMO", "tol", 100),
    scaled("tolerance x 30", "LinearSDCA", "tol", 30),
    scaled("half the epochs", "SGD", "max_epochs", 0.5),
    *map(wrong_labels, ("Pegasos", "BatchPerceptron")),
    changed("fails", "SDCA", _FAILS, code=2),
    changed("fails with one kernel", "SBP", f"if self.kernel == 'laplacian': {_FAILS}", code=2),
    *(
        changed(
            f"{size} MiB more",
            solver,
            f"room = np.ones({size} * 2**17)",
            "assert room[-1] == 1",
            options=_MEMORY,
        )
        for solver, size in (("SMO", 128), ("SGD", 48))
    ),
    Step(
        "Pegasos: cannot be imported",
        2,
        "Pegasos",
        "solvers/stochastic/pegasos.py",
        "\nraise ImportError('on purpose')\n",
    ),
]
#: Change no number, or nothing at all in other circumstances.
SAME = [
    *(
        Step(f"a comment in {path}", path=path, text="\n# A comment at the end.\n")
        for path in (
            "solvers/smo/smo.py",
            "solvers/kernels/oracle.py",
            "solvers/stochastic/pegasos.py",
            "solvers/interface/base.py",
            "harness/execution/runner.py",
            "harness/cli/app.py",
            "reports/page.py",
            "reports/analysis.py",
            "data_loaders/cache.py",
            "data_loaders/transforms.py",
            "benchmarks/tasks.py",
            "benchmarks/work.py",
            "tests/conftest.py",
            "pyproject.toml",
            "README.md",
        )
    ),
    Step("a module that nothing imports", path="solvers/numeric/unused.py", text="X = 1\n"),
    Step("no change"),
    Step("no change, one thread", environment=(("OMP_NUM_THREADS", "1"),)),
    Step("no change, another hash seed", environment=(("PYTHONHASHSEED", "7"),)),
    Step("no change, memory", options=_MEMORY[:2]),
]


def commit(clone, step):
    """Commit a step on top of the base; its hash."""
    run(["git", "switch", "--quiet", "--detach", "base"], clone)
    with (clone / step.path).open("a", encoding="utf-8") as file:
        file.write(step.text)
    run(["git", "add", "--all"], clone)
    run(["git", "commit", "--quiet", "--allow-empty", "--message", step.name], clone)
    return run(["git", "rev-parse", "HEAD"], clone).strip()


def run(words, folder):
    """The output of a command that must not fail."""
    names = {
        f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **names}, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def judge(clone, step, head):
    """The row of a step: what the command says of it."""
    words = [sys.executable, "-m", "marginbench", "regressions", "base", head, "--json"]
    environment = {**os.environ, **dict(step.environment)}
    done = subprocess.run(
        [*words, *step.options], cwd=clone, env=environment, capture_output=True, text=True
    )
    if not done.stdout.strip():
        print(done.stderr, file=sys.stderr)
        return [step.name, step.code, done.returncode, 0, 0, 0]
    report = json.loads(done.stdout)
    rows = [each for each in report["values"] if each["beyond"]]
    rows += [each for each in report["not_compared"] if each["outcome"] in ("failed in B", "gone")]
    refused = {(each["task"], each["solver"]) for each in rows}
    hits = sum(solver == step.solver for _, solver in refused)
    cells = len(report["cells"])
    return [step.name, step.code, done.returncode, hits, len(refused) - hits, cells]


def main():
    """Commit and judge the steps, and print the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--only", default="", help="steps with this word")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name, "clone")
        run(["git", "clone", "--quiet", str(ROOT), str(clone)], ROOT)
        run(["git", "tag", "base"], clone)
        heading("step", "right", "given", "cells told", "false alarms", "cells")
        for title, steps in (("worse", WORSE), ("same", SAME)):
            rows = []
            for step in steps:
                if options.only in step.name:
                    rows.append(judge(clone, step, commit(clone, step)))
                    row(*rows[-1])
            right = sum(each[1] == each[2] for each in rows)
            false = sum(each[4] for each in rows)
            print(f"{title}: {right} of {len(rows)} right, {false} cells of other solvers told")


if __name__ == "__main__":
    main()
