"""What holds for studies of every kind: cells and images are the two sorts of feasibility tasks."""

from __future__ import annotations

import io
import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from marginbench.harness.errors import SolverError
from marginbench.harness.execution.progress import PlainProgress
from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning.plan import kind_named, wider_limits
from marginbench.harness.planning.preflight import preflight
from marginbench.harness.results.journal import Journal
from marginbench.harness.results.measures import columns_of, measures_of
from marginbench.harness.study.model import StudyBase
from marginbench.harness.study.select import select
from marginbench.harness.study.toml import load_study, parse_study, study_names

from .answers import FakeExecutor, Lenient

MISBEHAVE = """
import os
from pathlib import Path

# Who imports this.
with Path(__file__).with_name("imported").open("a") as log:
    log.write(f"{os.getpid()}\\n")


def misbehave(how):
    if how == "raises":
        raise ArithmeticError("step size is zero\\nsecond line")
"""
SVM_SOLVER = '''
from marginbench import Solution, Solver


class Mine(Solver):
    """A user's solver."""

    def __init__(self, kernel="rbf", *, gamma=1.0, C=1.0, how=""):
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.how = how

    def _solve(self, problem, monitor):
        if problem.n > 50:
            problem.oracle.row(0)
            misbehave(self.how)
        return Solution(problem.expansion(0.5 * problem.y), 1, "budget")
'''
METHOD_ON_COLUMNS = '''
from marginbench import MPLFP


class Mine:
    """A user's method on columns."""

    def __init__(self, tol=0.0, how=""):
        self.tol = tol
        self.how = how

    def solve(self, problem, *, max_seconds):
        if problem.data.shape[1] > 50:
            misbehave(self.how)
        return MPLFP(tol=self.tol).solve(problem, max_seconds=max_seconds)
'''
KERNEL_METHOD = '''
from marginbench import MPKFP, hyperparameters


@hyperparameters
class Mine(MPKFP):
    """A user's kernel method."""

    how: str = ""

    def _iterate(self, space, progress):
        misbehave(self.how)
        return super()._iterate(space, progress)
'''


@dataclass(frozen=True)
class Case:
    """A sort of studies: its tables, its solvers, and what its records must hold."""

    kind: str
    head: str
    table: str
    task: str
    dataset: str
    known: str
    own: str
    filled: tuple[str, ...]

    def study(self, folder, *hows, **budget):
        """Two runs of a known solver, one of the user's, and one for each misbehaviour."""
        (folder / "mine.py").write_text(MISBEHAVE + self.own)
        text = f'{self.head}\n[budget]\ntimeout = 20.0\n[[{self.table}]]\nname = "{self.known}"\n'
        text += "seeds = 2\n"  # also of a deterministic one
        for how in ("", *hows):
            text += f'[[{self.table}]]\nname = "mine.py:Mine"\nseeds = 1\n'
            text += f'label = "{how}"\nparams = {{ how = "{how}" }}\n' if how else ""
        study = parse_study(text.encode(), where="small.toml", folder=str(folder))
        return study.model_copy(update={"budget": study.budget.model_copy(update=budget)})


CASES = {
    "svm": Case(
        "svm",
        'name = "small"\nseeds = 2\n[reference]\ntol = 1e-3\n[[task]]\ndataset = "checkers"\n'
        "dataset_params = { n_train = 100, n_test = 50 }\ngamma = 10.0\nC = 1.0",
        "solver",
        "checkers",
        "checkers",
        "SMO",
        SVM_SOLVER,
        ("fingerprint", "n_train", "primal", "suboptimality", "reference_hash", "n_support"),
    ),
    "cells": Case(
        "feasibility",
        'kind = "feasibility"\nname = "small"\n[[cell]]\nlabel = "easy"\ngenerator = "ldfp"\n'
        "tol = 0.0\nm = 8\nn = 100\ninstances = 2",
        "method",
        "easy",
        "ldfp",
        "MPLFP",
        METHOD_ON_COLUMNS,
        ("problem", "found", "phi_lo", "phi_up"),
    ),
    "images": Case(
        "feasibility",
        'kind = "feasibility"\nname = "small"\n[[images]]\nlabel = "two digits"\n'
        'dataset = "digits"\nn_train = 60\nn_validation = 20\ngammas = [0.5, 2.0]\n'
        "tuning_iterations = 5\nstages = [5, 10]\ninstances = 2",
        "method",
        "two digits",
        "digits",
        "MPKFP",
        KERNEL_METHOD,
        ("problem", "fingerprint", "gamma", "validation", "tuning_s", "train_error", "test_error"),
    ),
}


@dataclass(frozen=True)
class Ran:
    """A study that was run, that of an SVM by worker processes, with one solver that raises."""

    case: Case
    study: StudyBase
    results: Path
    by_workers: bool

    def copied(self, folder):
        """The results in a folder that a test may spoil."""
        return Path(shutil.copytree(self.results, folder / "results"))


def records_of(results):
    return {(record.solver, record.seed): record for record in Journal(results).records()}


def again(study, results, **options):
    """Run a study in this process: its summary, how many runs were done, what was said."""
    executor, stream = Lenient(), io.StringIO()
    progress = PlainProgress(stream=stream)
    summary = run_study(study, results, executor=executor, progress=progress, **options)
    return summary, executor.runs, stream.getvalue()


@pytest.fixture(scope="session", params=CASES)
def ran(request, tmp_path_factory):
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp(f"kind-{request.param}")
    study = case.study(folder, "raises")
    results = folder / "results"
    by_workers = request.param == "svm"
    executor = None if by_workers else Lenient()
    run_study(study, results, jobs=2, executor=executor, command="the command")
    return Ran(case, study, results, by_workers)


def test_every_run_is_recorded_with_the_columns_of_its_kind(ran):
    records = records_of(ran.results)
    assert set(records) == {(ran.case.known, 0), (ran.case.known, 1), ("Mine", 0), ("raises", 0)}
    described = json.loads((ran.results / "study.json").read_text())
    assert (described["kind"], described["command"]) == (ran.case.kind, "the command")
    assert {run["key"] for run in described["planned"]} == {r.key for r in records.values()}
    for (solver, _), record in records.items():
        assert type(record) is kind_named(ran.case.kind).record
        assert (record.study, record.task) == ("small", ran.case.task)
        assert record.started_at.endswith("+00:00")
        assert json.loads(record.environment)["libraries"]["numpy"]
        assert json.loads(record.budget)["timeout"] == 20.0
        if solver == "raises":
            assert record.status == "failed"
            assert record.reason == "ArithmeticError: step size is zero"
            assert "in misbehave" in record.traceback or not ran.by_workers
            continue
        assert record.status in ("converged", "budget"), record.reason
        for name in ("n_iter", "wall_s", "cpu_s", *ran.case.filled):
            assert getattr(record, name) not in (None, "", "{}"), name
        assert record.counters
        assert set(record.counters) <= set(measures_of(type(record)))
        if ran.by_workers:
            assert record.trace
            assert record.jobs == 2
            assert record.data_s is not None
            assert record.compile_s is not None
            assert 50 < record.peak_memory_mb < 4096
    known, mine = records[ran.case.known, 0], records["Mine", 0]
    assert known.solver_class == f"marginbench:{ran.case.known}"
    assert mine.solver_class == "mine.py:Mine"
    assert json.loads(mine.params)["how"] == ""


@pytest.mark.parametrize("ran", ["svm"], indirect=True)
def test_only_workers_import_a_users_file(ran):
    pids = (ran.results.parent / "imported").read_text().split()
    # One describes the class, and each run has a worker of its own.
    assert len(pids) == len(set(pids)) == 3
    assert str(os.getpid()) not in pids


def test_damaged_lines_are_named_and_their_runs_done_again(ran, tmp_path):
    results = ran.copied(tmp_path)
    (path,) = Journal(results).segments()
    first = Journal(results).current[ran.case.task, ran.case.known, 0]
    before = Journal(results).load(first)
    content = bytearray(path.read_bytes())
    content[first.offset + first.size // 2] ^= 1
    path.write_bytes(content)
    described = results / "study.json"
    described.write_text(described.read_text().replace("small", "smell"))
    summary, runs, said = again(ran.study, results)
    assert (summary.already_recorded, runs) == (3, 1)
    assert "moved to _study.json.damaged, written anew" in said
    (line,) = [line for line in said.splitlines() if str(path) in line]
    assert line.endswith(f"(byte {first.offset}) is damaged; the run is done again")
    found = records_of(results)
    assert found[ran.case.known, 0].counters == before.counters
    assert len(found) == len(pq.read_table(results / "runs.parquet")) == 4


def test_a_selection_runs_only_what_it_names(ran, tmp_path):
    results = ran.copied(tmp_path)
    for selection, planned in (
        ({"solvers": [ran.case.known.lower()]}, 2),
        ({"solvers": ["Mine", "raises"]}, 2),
        ({"datasets": [ran.case.dataset.upper()], "seeds": 1}, 3),
        ({"timeout": 5.0, "seeds": 1, "solvers": ["Mine"]}, 1),
    ):
        summary, runs, _ = again(select(ran.study, **selection), results)
        # A limit that only cuts a run short does not change it.
        assert (summary.planned, summary.already_recorded, runs) == (planned, planned, 0)


@pytest.mark.parametrize(
    ("before", "now", "done"),
    [(1.0, 2.0, 1), (1.0, None, 1), (1.0, 1.0, 0), (2.0, 1.0, 0), (None, 1.0, 0), (None, None, 0)],
)
def test_no_limit_of_cpu_time_is_the_widest(ran, before, now, done):
    budgets = [
        ran.study.budget.model_copy(update={"cpu_timeout": limit}) for limit in (before, now)
    ]
    record = records_of(ran.results)[ran.case.known, 1]
    cut_off = replace(record, status="timeout", budget=json.dumps(budgets[0].limits()))
    assert len(wider_limits(kind_named(ran.study.kind), budgets[1], cut_off)) == done


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (
            "import time; time.sleep(1000)",
            "importing the solver took longer than 0.5 s; raise compile_timeout in [budget]",
        ),
        ("import os; os._exit(3)", "the process ended with exit code 3 while importing"),
    ],
    ids=["hangs", "exits"],
)
def test_a_file_that_cannot_be_imported_ends_the_command_and_nothing_else(tmp_path, first, message):
    case = CASES["cells"]
    study = case.study(tmp_path, compile_timeout=0.5)
    study = select(study, solvers=["Mine"])
    (tmp_path / "mine.py").write_text(f"{first}\n{MISBEHAVE}{case.own}")
    with pytest.raises(SolverError) as caught:
        run_study(study, tmp_path / "results")
    assert str(caught.value).startswith(str(tmp_path / "mine.py"))
    assert message in str(caught.value)
    assert not (tmp_path / "imported").exists()
    assert not (tmp_path / "results" / "journal").exists()


@pytest.mark.parametrize("name", study_names())
def test_every_shipped_study_can_be_planned(name):
    study = select(load_study(name), seeds=1)
    kind = kind_named(study.kind)
    facts = preflight(study, FakeExecutor(), lambda line: None)
    runs = kind.plan(study, facts)
    assert {run.task for run in runs} == {task.label for task in study.tasks}
    assert {run.solver for run in runs} == {entry.label for entry in study.solvers}
    assert len({run.key for run in runs}) == len(runs)
    for run in runs:
        # Packages of peers are not those of the tests.
        assert not run.failure or run.failure.endswith("pip install 'marginbench[peers]'")
        assert set(run.columns) <= set(columns_of(kind.record))
    json.dumps(kind.describe(study, facts))
