"""What holds for studies of every kind: cells and images are the two sorts of feasibility tasks."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from marginbench.harness.errors import SolverError
from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning.plan import kind_named
from marginbench.harness.planning.preflight import preflight
from marginbench.harness.results.journal import Journal
from marginbench.harness.results.measures import columns_of, measures_of
from marginbench.harness.study.model import StudyFile
from marginbench.harness.study.select import select
from marginbench.harness.study.toml import completed_study, load_study, study_names

from .answers import FakeExecutor, Lenient, Told
from .conftest import BOARD

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
    """A sort of studies: its table of solvers, one of them, and what its records must hold."""

    kind: str
    table: str
    known: str
    method: str
    filled: str
    tasks: dict

    def study(self, folder):
        """Two runs of a known solver, also of a deterministic one, and two of the user's."""
        (folder / "mine.py").write_text(OWN.format(self))
        mine = {"name": f"{folder}/mine.py:Mine", "seeds": 1}
        raises = {"label": "raises", "params": {"how": "raises"}}
        solvers = [{"name": self.known, "seeds": 2}, mine, mine | raises]
        study = {"name": "small", "budget": {"timeout": 20.0}, self.table: solvers, **self.tasks}
        return completed_study(kind_named(self.kind).study(**study), StudyFile("study"))


SVM = Case(
    *("svm", "solver", "SMO", "_solve"),
    "fingerprint n_train primal suboptimality reference_hash n_support",
    {
        "seeds": 2,
        "reference": {"tol": 1e-3},
        "task": [BOARD | {"label": "the task", "reference": True}],
    },
)
CELL = {"label": "the task", "generator": "ldfp", "tol": 0.0, "m": 8, "n": 100, "instances": 2}
CELLS = Case(
    *("feasibility", "method", "MPLFP", "_iterates"),
    "problem found phi_lo phi_up",
    {"cell": [CELL]},
)
DRAWN = {"label": "the task", "dataset": "digits", "n_train": 60, "n_validation": 20}
TUNED = {"gammas": [0.5, 2.0], "tuning_iterations": 5, "stages": [5, 10], "instances": 2}
IMAGES = Case(
    *("feasibility", "method", "MPKFP", "_iterates"),
    "problem fingerprint gamma validation tuning_s train_error test_error",
    {"images": [DRAWN | TUNED]},
)


def records_of(results):
    return {(record.solver, record.seed): record for record in Journal(results).records()}


@pytest.fixture(scope="module", params=[SVM, CELLS, IMAGES], ids=["svm", "cells", "images"])
def ran(request, tmp_path_factory):
    """A case, its study and the results, those of an SVM by worker processes."""
    case, folder = request.param, tmp_path_factory.mktemp("kind")
    study, results = case.study(folder), folder / "results"
    executor = None if case is SVM else Lenient()
    run_study(study, results, jobs=2, executor=executor, command="the command")
    return case, study, results


def test_every_run_is_recorded_with_the_columns_of_its_kind(ran):
    case, _, results = ran
    records = records_of(results)
    assert set(records) == {(case.known, 0), (case.known, 1), ("Mine", 0), ("raises", 0)}
    described = json.loads((results / "study.json").read_text())
    assert (described["kind"], described["command"]) == (case.kind, "the command")
    assert {run["key"] for run in described["planned"]} == {r.key for r in records.values()}
    for (solver, _), record in records.items():
        assert type(record) is kind_named(case.kind).record
        assert (record.study, record.task) == ("small", "the task")
        assert record.started_at.endswith("+00:00")
        environment = json.loads(record.environment)
        assert set(environment["libraries"]) == {"numpy", "scipy", "numba", "sklearn", "pyarrow"}
        assert environment["blas"]
        assert environment["memory_mb"] > 100
        # Neither hosts nor users are named.
        words = set(re.findall(r"[^\s\"/]+", record.environment))
        assert words.isdisjoint((platform.node(), getpass.getuser()))
        assert json.loads(record.budget)["timeout"] == 20.0
        if solver == "raises":
            assert record.status == "failed"
            assert record.reason == "ArithmeticError: step size is zero"
            assert f"in {case.method}" in record.traceback or case is not SVM
            continue
        assert record.status in ("converged", "budget"), record.reason
        for name in ("n_iter", "wall_s", "cpu_s", *case.filled.split()):
            assert getattr(record, name) not in (None, "", "{}"), name
        assert record.counters
        assert set(record.counters) <= set(measures_of(type(record)))
        if case is SVM:
            assert record.trace
            assert record.jobs == 2
            assert record.data_s is not None
            assert record.compile_s is not None
            assert 50 < record.peak_memory_mb < 4096
    known, mine = records[case.known, 0], records["Mine", 0]
    assert known.solver_class == f"marginbench:{case.known}"
    assert mine.solver_class == "mine.py:Mine"
    assert json.loads(mine.params)["how"] == ""
    if case is SVM:
        # Of the user's file one worker describes the class, and each run has one of its own.
        pids = (results.parent / "imported").read_text().split()
        assert len(pids) == len(set(pids)) == 3
        assert str(os.getpid()) not in pids


def test_damaged_lines_are_named_and_their_runs_done_again(ran, tmp_path):
    case, study, results = ran
    results = Path(shutil.copytree(results, tmp_path / "results"))
    (path,) = Journal(results).segments()
    first = Journal(results).current["the task", case.known, 0]
    before = Journal(results).load(first)
    content = bytearray(path.read_bytes())
    content[first.offset + first.size // 2] ^= 1
    path.write_bytes(content)
    described = results / "study.json"
    described.write_text(described.read_text().replace("small", "smell"))
    executor, told = Lenient(), Told()
    summary = run_study(study, results, executor=executor, progress=told)
    assert (summary.already_recorded, executor.runs) == (3, 1)
    assert any("study.json: damaged (its content does" in line for line in told.lines)
    (line,) = [line for line in told.lines if str(path) in line]
    assert line.endswith(f"(byte {first.offset}) is damaged; the run is done again")
    found = records_of(results)
    assert found[case.known, 0].counters == before.counters
    assert len(found) == len(pq.read_table(results / "runs.parquet")) == 4


def test_a_file_that_ends_its_process_when_it_is_imported_ends_the_command(tmp_path):
    study = select(CELLS.study(tmp_path), solvers=["raises"])
    (tmp_path / "mine.py").write_text("import os; os._exit(3)\nclass Mine: pass\n")
    with pytest.raises(SolverError) as caught:
        run_study(study, tmp_path / "results")
    assert str(caught.value).startswith(str(tmp_path / "mine.py"))
    assert "the process ended with exit code 3 while importing" in str(caught.value)
    assert not (tmp_path / "results" / "journal").exists()


@pytest.mark.parametrize("name", study_names())
def test_every_shipped_study_is_described_and_can_be_planned(name):
    study = select(load_study(name), seeds=1)
    assert (study.name, bool(study.title and study.description.strip())) == (name, True)
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
