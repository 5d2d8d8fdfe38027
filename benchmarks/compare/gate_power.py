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
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.compare.common import heading, row

ROOT = Path(__file__).parents[2]
PACKAGE = "src/marginbench/__init__.py"
COUNTS = ("--suite", r"^work\.")
#: Memory advises; with a bound it gates.
MEMORY = ("--suite", r"^solve\.Fit\.peakmem")
BOUND = (*MEMORY, "--bound", "memory=1.1")
_BUSY = "BUSY"
#: Goes to the end of the package's module: it wraps what every fit passes through, so that no
#: machine code changes.
_HOOK = """

def _changed_{solver}():
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

_changed_{solver}()
"""
# What is done before and after a fit.
_MORE = (
    "spent = problem.counters.kernel_evals",
    "for i in range(round({0} * (problem.counters.kernel_evals - spent) / problem.n)):"
    " problem.oracle.row(i % problem.n)",
)
_SCALED = ("kept = self.{0}; self.{0} = type(kept)({1} * kept)", "self.{0} = kept")
_OTHER_LABELS = ("kept = problem.y.copy(); problem.y[::20] *= -1", "problem.y[:] = kept")
_ALLOCATES = ("room = np.ones({0} * 2**17)", "assert room[-1] == 1")
_FAILS = ("raise ValueError('broken on purpose')", "pass")
_FAILS_SOMETIMES = (f"if getattr(self, 'kernel', '') == 'laplacian': {_FAILS[0]}", "pass")


class Step(NamedTuple):
    """A commit: its name, the exit code that is right, the solvers it is about, and its edit.

    That is a file, a text in it (None: its end), and what takes its place.
    """

    name: str
    code: int = 0
    solver: str = ""
    edit: tuple = ()
    options: tuple = COUNTS
    environment: tuple = ()


def hook(solver, lines, *values):
    """The code that changes one solver in all of its fits."""
    before, after = (line.format(*values) for line in lines)
    return _HOOK.format(solver=solver, before=before, after=after)


def worse():
    """Twenty commits for the worse."""
    steps = [
        *(
            (f"evaluations x {1 + factor:g}", solver, _MORE, factor)
            for factor, solvers in (
                (1.0, ("SMO", "SBP")),
                (0.2, ("SDCA", "Pegasos", "CuttingPlane")),
                (0.02, ("SMO", "Perceptron", "BSGD", "Nystrom")),
            )
            for solver in solvers
        ),
        ("tolerance x 100", "SMO", _SCALED, "tol", 100),
        ("tolerance x 30", "LinearSDCA", _SCALED, "tol", 30),
        ("half the epochs", "SGD", _SCALED, "max_epochs", 0.5),
        ("a label of 20 wrong", "Pegasos", _OTHER_LABELS),
        ("a label of 20 wrong", "BatchPerceptron", _OTHER_LABELS),
        ("fails", "SDCA", _FAILS),
        ("fails with one kernel", "SBP", _FAILS_SOMETIMES),
        ("128 MiB more", "SMO", _ALLOCATES, 128),
        ("48 MiB more", "SGD", _ALLOCATES, 48),
    ]
    both = hook("SDCA", _FAILS) + hook("SMO", _MORE, 1.0)
    lost = ("solvers/stochastic/pegasos.py", None, "\nraise ImportError('on purpose')\n")
    return [
        *(
            Step(
                f"{solver}: {what}",
                2 if what.startswith("fails") else 1,
                solver,
                (PACKAGE, None, hook(solver, *code)),
                BOUND if what.endswith("MiB more") else COUNTS,
            )
            for what, solver, *code in steps
        ),
        Step("SDCA fails, SMO: evaluations x 2", 2, "SDCA SMO", (PACKAGE, None, both)),
        Step("Pegasos: cannot be imported", 2, "Pegasos", lost),
    ]


def same():
    """Twenty commits that change no number, or none at all in other circumstances."""
    commented = (
        "solvers/smo/smo.py",
        "solvers/kernels/oracle.py",
        "solvers/stochastic/pegasos.py",
        "solvers/interface/base.py",
        "harness/execution/runner.py",
        "harness/cli/app.py",
        "reports/page.py",
        "reports/analysis.py",
        "data_loaders/cache.py",
        "benchmarks/tasks.py",
        "benchmarks/work.py",
        "tests/conftest.py",
    )
    comment = "\n# A comment at the end.\n"
    version = ("pyproject.toml", 'version = "0.1.0"', 'version = "0.1.1"')
    return [
        *(Step(f"a comment in {path}", edit=(path, None, comment)) for path in commented),
        Step("README", edit=("README.md", None, "\nMore words.\n")),
        Step("another version", edit=version),
        Step("a module that nothing imports", edit=("solvers/numeric/unused.py", None, "X = 1\n")),
        Step("no change"),
        Step("no change, one thread", environment=(("OMP_NUM_THREADS", "1"),)),
        Step("no change, another hash seed", environment=(("PYTHONHASHSEED", "7"),)),
        Step("no change, both cores busy", environment=((_BUSY, "1"),)),
        Step("no change, memory", options=MEMORY),
    ]


def commit(clone, step, place):
    """Commit a step on HEAD without a working tree of its own; its hash."""
    tree = clone.parent / f"tree-{place}"
    run(["git", "worktree", "add", "--quiet", "--detach", str(tree), "base"], clone)
    if step.edit:
        path, old, new = step.edit
        file = tree / path
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if old is not None and old not in text:
            raise SystemExit(f"{step.name}: {path} has no {old!r}")
        file.write_text(text + new if old is None else text.replace(old, new), encoding="utf-8")
    run(["git", "add", "--all"], tree)
    run(["git", "commit", "--quiet", "--allow-empty", "--message", step.name], tree)
    return run(["git", "rev-parse", "HEAD"], tree).strip()


def run(words, folder):
    """The output of a command that must not fail."""
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}
    environment = {**os.environ, **names, "GIT_COMMITTER_EMAIL": "a@b"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def judge(clone, step, head):
    """The row of a step: what the command says of it."""
    words = [sys.executable, "-m", "marginbench", "regressions", "base", head, "--json"]
    environment = {**os.environ, **dict(step.environment)}
    with ExitStack() as stack:
        for _ in range(2 if _BUSY in environment else 0):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(busy.kill)
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
    hits = sum(solver in step.solver.split() for _, solver in refused)
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
        steps = [each for each in worse() + same() if options.only in each.name]
        heads = [commit(clone, each, place) for place, each in enumerate(steps)]
        heading("step", "right", "given", "cells told", "false alarms", "cells")
        rows = []
        for step, head in zip(steps, heads, strict=True):
            rows.append(judge(clone, step, head))
            row(*rows[-1])
    for title, is_worse in (("worse", True), ("same", False)):
        chosen = [each for each in rows if bool(each[1]) == is_worse]
        right = sum(each[1] == each[2] for each in chosen)
        false = sum(each[4] for each in chosen)
        print(f"{title}: {right} of {len(chosen)} right, {false} cells of other solvers told")


if __name__ == "__main__":
    main()
