"""``marginbench check``: what it prints, when it ends early, and what the reference solvers say."""

import json
import re
from pathlib import Path

import pytest

from marginbench.harness.conformance import running
from marginbench.harness.conformance.running import (
    CHECKS,
    CheckWork,
    Finding,
    check_solver,
    checked,
)
from marginbench.harness.conformance.scaffold import write_solver
from marginbench.harness.errors import SolverError
from marginbench.harness.jobs import Outcome
from marginbench.harness.loading import load_class
from marginbench.solvers.interface.base import WeightedSolver
from marginbench.solvers.registration import registry, solver_names

from ..answers import FakeExecutor


class Workers(FakeExecutor):
    """An executor of checks whose outcomes are given by the name of the check."""

    def answer(self, job):
        if not job.work.check:
            return Outcome("done", Finding("", "pass", "estimator"))
        self.ran.append(job.tag)
        return self.outcomes.get(job.tag, Outcome("done", Finding(job.tag, "pass")))


NAMES = list(CHECKS["estimator"])
LATE = Outcome("timeout", reason="solving took longer than 5 s")
UNFIT = Outcome("done", Finding("fit", "fail", "no"))
CRASHED = Outcome("crashed", reason="killed by SIGSEGV while solving")


@pytest.mark.parametrize(
    ("outcomes", "failed", "last", "why"),
    [
        ({"counters": LATE, "saving": CRASHED}, ["counters", "saving"], NAMES[-1], ""),
        # After a gate or three limits nothing else is run.
        ({"fit": UNFIT}, ["fit"], "fit", "mend 'fit' first"),
        (dict.fromkeys(NAMES[4:], LATE), NAMES[4:7], NAMES[6], "3 checks ran into limits; mend t"),
    ],
)
def test_a_check_that_hangs_or_crashes_is_a_finding_and_the_next_may_go_on(
    outcomes, failed, last, why
):
    workers = Workers(**outcomes)
    found = list(check_solver("x.py:X", ["svm"], timeout=5, executor=workers))
    end = NAMES.index(last) + 1
    assert [item.check for item in found] == NAMES
    assert workers.ran == NAMES[:end]
    assert [item.check for item in found if item.verdict == "fail"] == failed
    for item in found[:end]:
        assert item.detail.startswith(outcomes[item.check].reason if item.check in failed else "")
    for item in found[end:]:
        assert item.verdict == "not run"
        assert item.detail.startswith(why)


def test_findings_are_printed_one_a_line_or_as_json_and_something_to_mend_is_exit_code_1(
    run, monkeypatch
):
    def check_solver(name, kinds, *, timeout):
        yield Finding("fit", "pass")
        yield Finding("labels", "fail", f"{name} {' '.join(kinds)} {timeout:g}")

    monkeypatch.setattr(running, "check_solver", check_solver)
    code, out, err = run("check", "smo")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "pass            fit",
        "fail            labels           SMO svm 30",
        "2 checks: 1 pass, 1 fail",
    ]
    code, out, _ = run("check", "PCT", "--json", "--timeout", "2")
    assert code == 1
    assert json.loads(out) == {
        "solver": "PCT",
        "checks": [
            {"check": "fit", "verdict": "pass", "detail": ""},
            {"check": "labels", "verdict": "fail", "detail": "PCT feasibility 2"},
        ],
    }


def test_a_class_is_checked_for_the_kind_of_studies_that_takes_it(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from marginbench import PCT, SMO\nclass A(SMO): pass\nclass B(PCT): pass\n")
    kinds = ("svm", "feasibility")
    for name, expected in (
        (f"{file}:A", "estimator"),
        (f"{file}:B", "method"),
        ("MPKFP", "estimator"),
    ):
        assert CheckWork(name, kinds).run(lambda message: None).detail == expected
    with pytest.raises(SolverError, match="no feasibility method"):
        CheckWork(f"{file}:A", ("feasibility",)).run(lambda message: None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine.py"], "'mine.py' is a file; name the class in it too, as in mine.py:MySolver"),
        (["mine.py:X"], "no such file: "),
        (["sklearn.svm:SVC"], "sklearn.svm:SVC is not derived from marginbench.Solver; a class wi"),
        (["SMO", "--kind", "svn"], "unknown kind 'svn' (did you mean 'svm'?)"),
        (["SMO", "--timeout", "0"], "--timeout must be a number of seconds > 0, not 0"),
        (["SMO", "--timeout", "inf"], "--timeout must be a number of seconds > 0, not inf"),
    ],
)
def test_a_mistake_is_one_line(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("check", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"marginbench: {message}")
    assert err.count("\n") == 1


PAGE = Path(__file__).parents[3] / "docs" / "adding-a-solver.md"


def test_the_page_lists_every_check_and_its_short_example_passes(tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\| `.*\n)+", page, re.MULTILINE)
    listed = [re.findall(r"`([a-z0-9 -]+)`(?=[^|]*\| )", table) for table in tables]
    for sort, names in CHECKS.items():
        assert any(found[: len(names)] == [*names] for found in listed), sort
    example = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "centroid.py").write_text(example[1])
    cls = load_class("centroid.py:Centroid", tmp_path)
    found = [checked(cls, "estimator", check) for check in CHECKS["estimator"]]
    assert [item for item in found if item.verdict == "fail"] == []


FRAGILE = """
import os
import numpy as np
from scipy import sparse
from good_solver import GoodSolver

class Fragile(GoodSolver):
    def _solve(self, problem, monitor):
        if sparse.issparse(problem.X):
            while True:
                pass
        if problem.X.dtype == np.float32:
            os._exit(3)
        return super()._solve(problem, monitor)
"""


@pytest.mark.slow
def test_a_solver_that_hangs_and_ends_its_process_is_checked_to_the_end(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen = ("constructor", "sparse data", "float32 data")
    monkeypatch.setattr(running, "CHECKS", {"estimator": chosen})
    write_solver("GoodSolver", tmp_path)
    (tmp_path / "fragile.py").write_text(FRAGILE)
    code, out, _ = run("check", "fragile.py:Fragile", "--timeout", "1", "--json")
    passed, sparse, float32 = json.loads(out)["checks"]
    assert code == 1
    assert (passed["check"], passed["verdict"]) == ("constructor", "pass")
    assert "solving took longer than 1 s" in sparse["detail"]
    assert "exit code 3" in float32["detail"]


@pytest.mark.slow
@pytest.mark.parametrize("name", registry())
def test_every_reference_solver_passes_what_it_promises(name):
    cls = registry()[name]
    parameters, is_own = cls().get_params(), ".peers." not in cls.__module__
    # Falkon has all points of a small set as centres, and then is done in one iteration.
    records = is_own and name != "Falkon"
    promised = {
        "objective": cls.scalarization is not None,
        "certificate": cls.certificate is not None,
        "weights": issubclass(cls, WeightedSolver),
        "kernel function": "kernel" in parameters and cls.supports_callable_kernel,
        "limits": not {"max_iter", "max_epochs"}.isdisjoint(parameters),
        "counters": is_own,
        "checkpoints": records,
        "stopping": records,
    }
    # tests/solvers/test_estimators.py has what scikit-learn says of each.
    checks = [check for check in CHECKS["estimator"] if check != "scikit-learn"]
    found = [checked(cls, "estimator", check) for check in checks]
    assert [item for item in found if item.verdict == "fail"] == []
    lacking = {check for check, holds in promised.items() if not holds}
    assert {item.check for item in found if item.verdict != "pass"} == lacking


COLUMNS = [name for name in solver_names("feasibility") if name not in solver_names("svm")]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "PCT" else pytest.mark.slow) for name in COLUMNS],
)
def test_every_method_on_columns_passes(name):
    cls = registry("feasibility")[name]
    found = [checked(cls, "method", check) for check in CHECKS["method"]]
    assert [item for item in found if item.verdict != "pass"] == []
