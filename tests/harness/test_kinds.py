"""What holds for studies of every kind: cells and images are the two sorts of feasibility tasks."""

from __future__ import annotations

import io
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from marginbench.harness.errors import SolverError
from marginbench.harness.execution.progress import PlainProgress
from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning.plan import kind_named
from marginbench.harness.planning.preflight import preflight
from marginbench.harness.results.journal import Journal
from marginbench.harness.results.measures import columns_of, measures_of
from marginbench.harness.study.model import StudyBase
from marginbench.harness.study.select import select
from marginbench.harness.study.toml import load_study, parse_study, study_names

from .answers import FakeExecutor, Lenient

#: A user's solver, and a note of who imports its file.
OWN = """
import os
from pathlib import Path

from marginbench import {0.known}, hyperparameters

with Path(__file__).with_name("imported").open("a") as log:
    log.write(f"{{os.getpid()}}\\n")


@hyperparameters
class Mine({0.known}):
    how: str = ""

    def {0.method}(self, problem, *rest):
        if self.how:
            raise ArithmeticError("step size is zero\\nsecond line")
        return super().{0.method}(problem, *rest)
"""


@dataclass(frozen=True)
class Case:
    """A sort of studies: its tables, its solvers, and what its records must hold."""

    kind: str
    head: str
    table: str
    task: str
    known: str
    method: str
    filled: tuple[str, ...]

    def study(self, folder):
        """Two runs of a known solver, also of a deterministic one, and two of the user's."""
        (folder / "mine.py").write_text(OWN.format(self))
        text = f"""
            name = "small"
            {self.head}
            [[{self.table}]]
            name = "{self.known}"
            seeds = 2
            [[{self.table}]]
            name = "mine.py:Mine"
            seeds = 1
            [[{self.table}]]
            name = "mine.py:Mine"
            label = "raises"
            seeds = 1
            params = {{ how = "raises" }}
            [budget]
            timeout = 20.0
        """
        return parse_study(text.encode(), where="small.toml", folder=str(folder))


CASES = {
    "svm": Case(
        "svm",
        'seeds = 2\n[reference]\ntol = 1e-3\n[[task]]\ndataset = "checkers"\n'
        "dataset_params = { n_train = 100, n_test = 50 }\ngamma = 10.0\nC = 1.0",
        "solver",
        "checkers",
        "SMO",
        "_solve",
        ("fingerprint", "n_train", "primal", "suboptimality", "reference_hash", "n_support"),
    ),
    "cells": Case(
        "feasibility",
        'kind = "feasibility"\n[[cell]]\nlabel = "easy"\ngenerator = "ldfp"\n'
        "tol = 0.0\nm = 8\nn = 100\ninstances = 2",
        "method",
        "easy",
        "MPLFP",
        "_iterate",
        ("problem", "found", "phi_lo", "phi_up"),
    ),
    "images": Case(
        "feasibility",
        'kind = "feasibility"\n[[images]]\nlabel = "two digits"\n'
        'dataset = "digits"\nn_train = 60\nn_validation = 20\ngammas = [0.5, 2.0]\n'
        "tuning_iterations = 5\nstages = [5, 10]\ninstances = 2",
        "method",
        "two digits",
        "MPKFP",
        "_iterate",
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


def records_of(results):
    return {(record.solver, record.seed): record for record in Journal(results).records()}


@pytest.fixture(scope="module", params=CASES)
def ran(request, tmp_path_factory):
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp(f"kind-{request.param}")
    study, results, by_workers = case.study(folder), folder / "results", request.param == "svm"
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
            assert f"in {ran.case.method}" in record.traceback or not ran.by_workers
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
    results = Path(shutil.copytree(ran.results, tmp_path / "results"))
    (path,) = Journal(results).segments()
    first = Journal(results).current[ran.case.task, ran.case.known, 0]
    before = Journal(results).load(first)
    content = bytearray(path.read_bytes())
    content[first.offset + first.size // 2] ^= 1
    path.write_bytes(content)
    described = results / "study.json"
    described.write_text(described.read_text().replace("small", "smell"))
    executor, stream = Lenient(), io.StringIO()
    summary = run_study(
        ran.study, results, executor=executor, progress=PlainProgress(stream=stream)
    )
    assert (summary.already_recorded, executor.runs) == (3, 1)
    said = stream.getvalue()
    assert "moved to _study.json.damaged, written anew" in said
    (line,) = [line for line in said.splitlines() if str(path) in line]
    assert line.endswith(f"(byte {first.offset}) is damaged; the run is done again")
    found = records_of(results)
    assert found[ran.case.known, 0].counters == before.counters
    assert len(found) == len(pq.read_table(results / "runs.parquet")) == 4


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
    study = select(CASES["cells"].study(tmp_path), solvers=["raises"])
    budget = study.budget.model_copy(update={"compile_timeout": 0.5})
    (tmp_path / "mine.py").write_text(f"{first}\nclass Mine: pass\n")
    with pytest.raises(SolverError) as caught:
        run_study(study.model_copy(update={"budget": budget}), tmp_path / "results")
    assert str(caught.value).startswith(str(tmp_path / "mine.py"))
    assert message in str(caught.value)
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
