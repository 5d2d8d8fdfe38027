"""From a solver's name to its class, and one line for each way in which that can fail."""

import os
import sys

import pytest

from marginbench.data_loaders.user_code import import_file
from marginbench.harness.errors import SolverError
from marginbench.harness.loading import SolverSpec, load_class, shown_name
from marginbench.harness.planning.preflight import DescribeWork, describe_solver
from marginbench.solvers import SMO

GOOD = """
from marginbench.solvers import SMO

class Mine(SMO):
    '''A solver of one's own.'''
"""


def test_names_of_the_registry_and_of_modules():
    assert load_class("SMO") is SMO
    assert load_class("marginbench.solvers.smo.smo:SMO") is SMO
    assert shown_name(SMO, SolverSpec.parse("SMO")) == "marginbench:SMO"


def test_a_file_with_modules_of_its_own(tmp_path):
    (tmp_path / "beside_it.py").write_text("TOL = 0.125\n")
    (tmp_path / "mine.py").write_text(f"import beside_it\n{GOOD}    default = beside_it.TOL\n")
    cls = load_class("mine.py:Mine", tmp_path)
    assert issubclass(cls, SMO)
    assert cls.default == 0.125
    spec = SolverSpec.parse("mine.py:Mine", tmp_path)
    assert shown_name(cls, spec) == "mine.py:Mine"
    assert spec.folder == tmp_path.resolve()


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (None, "solver.py:Mine", "no such file: {path}"),
        (GOOD, "solver.py:Mime", "{path} defines no class 'Mime' (did you mean 'Mine'?)"),
        ("class Mine(:\n", "solver.py:Mine", "{path}, line 1: not valid Python (invalid syntax)"),
        ("Mine = 3\n", "solver.py:Mine", "{path}: Mine is not a class"),
        (
            f"{GOOD}\nraise OSError('no licence')\n",
            "solver.py:Mine",
            "{path}: importing it raised OSError: no licence",
        ),
        (
            GOOD,
            "solver.py:",
            "'solver.py:' does not name a solver: write file.py:Class or module:Class",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path, content, name, message):
    path = tmp_path / "solver.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SolverError) as caught:
        load_class(name, tmp_path)
    assert str(caught.value) == message.format(path=path.resolve())


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("svm", "class Mine: pass\n", "Mine is not a solver; derive it from marginbench.Solver"),
        ("svm", "from marginbench import Solver\nclass Mine(Solver): pass\n", "does not implement"),
        ("feasibility", "class Mine: pass\n", "no feasibility method; give it solve(problem, *,"),
        ("feasibility", GOOD, "no feasibility method; give it solve(problem, *, max_seconds), or"),
        (
            "feasibility",
            "class Mine:\n    def __init__(self, **params): pass\n    def solve(self, A): pass\n",
            "__init__ takes *params; list every parameter by name",
        ),
    ],
)
def test_a_class_that_is_none_for_the_kind_is_refused(tmp_path, kind, content, message):
    path = tmp_path / "solver.py"
    path.write_text(content)
    with pytest.raises(SolverError) as caught:
        describe_solver(DescribeWork(f"{path}:Mine", kind))
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_each_kind_has_solvers_of_its_own():
    assert load_class("MPLFP", kind="feasibility").__name__ == "MPLFP"
    assert load_class("MPKFP", kind="feasibility") is load_class("MPKFP", kind="svm")
    with pytest.raises(SolverError, match=r"unknown solver 'MPLFP' \(did you mean 'MPKFP'"):
        load_class("MPLFP")
    with pytest.raises(SolverError, match="unknown solver 'SMO' "):
        load_class("SMO", kind="feasibility")


def test_a_module_that_is_not_there():
    with pytest.raises(SolverError, match="no module named 'no_such_module'"):
        load_class("no_such_module.solvers:X")
    with pytest.raises(SolverError, match=r"unknown solver 'SMQ' \(did you mean 'SMO'"):
        load_class("SMQ")
    with pytest.raises(SolverError, match=r"solvers\.smo\.smo defines no class 'SMQ'"):
        load_class("marginbench.solvers.smo.smo:SMQ")


def test_bytecode_of_an_earlier_text_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for number in (1, 2):
        texts = {"own": "from next_to_it import value\n", "next_to_it": f"value = {number}\n"}
        for name, text in texts.items():
            path = tmp_path / f"{name}.py"
            path.write_text(text)
            os.utime(path, (1e9, 1e9))
        monkeypatch.delitem(sys.modules, "next_to_it", raising=False)
        assert import_file(tmp_path / "own.py").value == number
