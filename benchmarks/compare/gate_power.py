"""How well the gate tells: commits that make something worse on purpose, and commits that do not.

``python -m benchmarks.compare.gate_power`` clones this checkout, commits each step on top of HEAD,
runs ``marginbench regressions`` on it as a user would, and prints a table: the exit code that is
right and the one that came, how many cells of the solver that was changed are told, and the cells
of other solvers that are, which would be false alarms. ``--only WORD`` takes the steps with the
word in their names, ``--jobs`` runs several at a time. It takes about a minute a step.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = "src/marginbench/__init__.py"
COUNTS = ("--suite", r"^work\.")
_BUSY = "BUSY"
#: Memory advises; with a bound it gates.
MEMORY = ("--suite", r"^solve\.Fit\.peakmem")
BOUND = (*MEMORY, "--bound", "memory=1.1")
#: Goes to the end of the package's module: it wraps what every fit passes through, so that no
#: machine code changes.
_HOOK = """

def _changed():
    import numpy as np
    from marginbench.solvers.interface import base
    original = base.Solver._checked_solve

    def solve(self, problem, monitor):
        if type(self).__name__ != {solver!r}:
            return original(self, problem, monitor)
        {body}

    base.Solver._checked_solve = solve

_changed()
"""
_MORE = """spent = problem.counters.kernel_evals
        solution = original(self, problem, monitor)
        spent = problem.counters.kernel_evals - spent
        for i in range(round({factor} * spent / problem.n)):
            problem.oracle.row(i % problem.n)
        return solution"""
_FAILS = """raise ValueError("broken on purpose")"""
_FAILS_SOMETIMES = """if getattr(self, "kernel", "") == "laplacian":
            raise ValueError("broken on purpose")
        return original(self, problem, monitor)"""
_NOT_A_NUMBER = """solution = original(self, problem, monitor)
        solution.model.coef[:] = np.nan
        return solution"""
_LOOSER = """kept = self.tol
        self.tol = {factor} * kept
        try:
            return original(self, problem, monitor)
        finally:
            self.tol = kept"""
_SHORTER = """kept = self.max_epochs
        self.max_epochs = max(1, kept // {factor})
        try:
            return original(self, problem, monitor)
        finally:
            self.max_epochs = kept"""
_OTHER_LABELS = """kept = problem.y.copy()
        problem.y[::20] *= -1
        try:
            return original(self, problem, monitor)
        finally:
            problem.y[:] = kept"""
_ALLOCATES = """room = np.ones({megabytes} * 2**17)
        solution = original(self, problem, monitor)
        assert room[-1] == 1
        return solution"""


class Step(NamedTuple):
    """A commit: its name, the exit code that is right, the solver it is about, its edits."""

    name: str
    code: int
    solver: str
    edits: tuple = ()
    options: tuple = COUNTS
    environment: tuple = ()


def hooked(name, code, solver, body, options=COUNTS):
    """A step that changes one solver in all of its fits."""
    return Step(
        name, code, solver, ((PACKAGE, None, _HOOK.format(solver=solver, body=body)),), options
    )


def worse():
    """Twenty commits for the worse."""
    more = [
        hooked(f"{solver}: evaluations x {1 + factor:g}", 1, solver, _MORE.format(factor=factor))
        for factor, solvers in (
            (1.0, ("SMO", "SBP")),
            (0.2, ("SDCA", "Pegasos", "CuttingPlane")),
            (0.02, ("SMO", "Perceptron", "BSGD", "Nystrom")),
        )
        for solver in solvers
    ]
    both = _HOOK.format(solver="SDCA", body=_FAILS) + _HOOK.format(
        solver="SMO", body=_MORE.format(factor=1.0)
    ).replace("_changed", "_changed_too")
    return [
        *more,
        hooked("SMO: tolerance x 100", 1, "SMO", _LOOSER.format(factor=100)),
        hooked("LinearSDCA: tolerance x 30", 1, "LinearSDCA", _LOOSER.format(factor=30)),
        hooked("SGD: half the epochs", 1, "SGD", _SHORTER.format(factor=2)),
        hooked("Pegasos: a label of 20 wrong", 1, "Pegasos", _OTHER_LABELS),
        hooked("BatchPerceptron: a label of 20 wrong", 1, "BatchPerceptron", _OTHER_LABELS),
        hooked("SDCA: fails", 2, "SDCA", _FAILS),
        hooked("SBP: fails with one kernel", 2, "SBP", _FAILS_SOMETIMES),
        Step("SDCA fails, SMO: evaluations x 2", 2, "SDCA SMO", ((PACKAGE, None, both),)),
        Step(
            "Pegasos: cannot be imported",
            2,
            "Pegasos",
            (("solvers/stochastic/pegasos.py", None, "\nraise ImportError('on purpose')\n"),),
        ),
        hooked("SMO: 128 MiB more", 1, "SMO", _ALLOCATES.format(megabytes=128), BOUND),
        hooked("SGD: 48 MiB more", 1, "SGD", _ALLOCATES.format(megabytes=48), BOUND),
    ]


def same():
    """Twenty commits that change no number, or none at all in other circumstances."""
    comment = "\n# A comment at the end.\n"
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
    return [
        *(Step(f"a comment in {path}", 0, "", ((path, None, comment),)) for path in commented),
        Step("README", 0, "", (("README.md", None, "\nMore words.\n"),)),
        Step(
            "another version",
            0,
            "",
            (("pyproject.toml", 'version = "0.1.0"', 'version = "0.1.1"'),),
        ),
        Step(
            "a module that nothing imports",
            0,
            "",
            (("solvers/numeric/unused.py", None, "X = 1\n"),),
        ),
        Step("no change", 0, ""),
        Step("no change, one thread", 0, "", environment=(("OMP_NUM_THREADS", "1"),)),
        Step("no change, another hash seed", 0, "", environment=(("PYTHONHASHSEED", "7"),)),
        Step("no change, both cores busy", 0, "", environment=((_BUSY, "1"),)),
        Step("no change, memory", 0, "", options=MEMORY),
    ]


def commit(clone, step, place):
    """Commit a step on HEAD without a working tree of its own; its hash."""
    tree = clone.parent / f"tree-{place}"
    run(["git", "worktree", "add", "--quiet", "--detach", str(tree), "base"], clone)
    for path, old, new in step.edits:
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
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 if _BUSY in environment else 0)
    ]
    try:
        done = subprocess.run(
            [*words, *step.options], cwd=clone, env=environment, capture_output=True, text=True
        )
    finally:
        for each in busy:
            each.kill()
    hits, false, n_cells = 0, 0, 0
    if done.stdout.strip():
        report = json.loads(done.stdout)
        rows = [row for row in report["values"] if row["beyond"]]
        rows += [row for row in report["not_compared"] if row["outcome"] in ("failed in B", "gone")]
        refused = {(row["task"], row["solver"]) for row in rows}
        own = [solver for _, solver in refused if solver in step.solver.split()]
        hits, false = len(own), len(refused) - len(own)
        n_cells = len(report["cells"])
    else:
        print(done.stderr, file=sys.stderr)
    return [step.name, step.code, done.returncode, hits, false, n_cells]


def main():
    """Commit and judge the steps, and print the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--only", default="", help="steps with this word")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", help="a new folder for the clone, which stays there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        clone = Path(options.keep or name) / "clone"
        clone.parent.mkdir(parents=True, exist_ok=True)
        run(["git", "clone", "--quiet", str(ROOT), str(clone)], ROOT)
        run(["git", "tag", "base"], clone)
        steps = [each for each in worse() + same() if options.only in each.name]
        heads = [commit(clone, each, place) for place, each in enumerate(steps)]
        print("| step | right | given | cells told | false alarms | cells |")
        print("|---|---|---|---|---|---|", flush=True)
        rows = []
        with ThreadPoolExecutor(options.jobs) as pool:
            for row in pool.map(lambda pair: judge(clone, *pair), zip(steps, heads, strict=True)):
                rows.append(row)
                print(f"| {' | '.join(map(str, row))} |", flush=True)
    for code, title in ((1, "worse"), (0, "same")):
        chosen = [row for row in rows if bool(row[1]) == bool(code)]
        right = sum(row[1] == row[2] for row in chosen)
        false = sum(row[4] for row in chosen)
        print(f"{title}: {right} of {len(chosen)} right, {false} cells of other solvers told")


if __name__ == "__main__":
    main()
