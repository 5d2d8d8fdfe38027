"""From a solver's name to its class, and one line for each way in which that can fail."""

import os
import sys

import pytest

from marginbench.data_loaders.user_code import import_file
from marginbench.harness.errors import SolverError
from marginbench.harness.loading import SolverSpec, load_class, shown_name
from marginbench.harness.planning.preflight import DescribeWork
from marginbench.solvers import SMO

from .conftest import write

#: Stands for a file of the test, and a class in it.
FILE, MINE = "FILE", "FILE:Mine"
GOOD = """
from marginbench.solvers import SMO

class Mine(SMO):
    '''A solver of one's own.'''
"""
ABSTRACT = "from marginbench import Solver\nclass Mine(Solver): pass\n"
UNNAMED = "class Mine:\n    def __init__(self, **params): pass\n    def solve(self, A): pass\n"


def test_names_of_the_registry_and_of_modules():
    assert load_class("SMO") is SMO
    assert load_class("marginbench.solvers.smo.smo:SMO") is SMO
    assert shown_name(SMO, SolverSpec.parse("SMO")) == "marginbench:SMO"
    # Each kind has solvers of its own.
    assert load_class("MPLFP", kind="feasibility").__name__ == "MPLFP"
    assert load_class("MPKFP", kind="feasibility") is load_class("MPKFP", kind="svm")


def test_a_file_with_modules_of_its_own(tmp_path):
    mine = f"import beside_it\n{GOOD}    default = beside_it.TOL\nNumber = 3\n"
    write(tmp_path, {"mine.py": mine, "beside_it.py": "TOL = 0.125\n"})
    cls = load_class("mine.py:Mine", tmp_path)
    assert issubclass(cls, SMO)
    assert cls.default == 0.125
    spec = SolverSpec.parse("mine.py:Mine", tmp_path)
    assert shown_name(cls, spec) == "mine.py:Mine"
    assert spec.path == tmp_path.resolve() / "mine.py"
    with pytest.raises(SolverError, match=r"mine\.py:Number is not a class"):
        load_class("mine.py:Number", tmp_path)


@pytest.mark.parametrize(
    ("kind", "name", "content", "message"),
    [
        ("svm", "SMQ", "", "unknown solver 'SMQ' (did you mean 'SMO'"),
        ("svm", "MPLFP", "", "unknown solver 'MPLFP' (did you mean 'MPKFP'"),
        ("feasibility", "SMO", "", "unknown solver 'SMO' "),
        ("svm", "no_such_module.solvers:X", "", "no module named 'no_such_module'"),
        ("svm", "marginbench.solvers:SMQ", "", "marginbench.solvers defines no class 'SMQ'"),
        ("svm", MINE, "", "no such file: {path}"),
        ("svm", f"{FILE}:", GOOD, "'{path}:' does not name a solver: write file.py:Class or mod"),
        ("svm", MINE, GOOD.replace("Mine", "Mime"), "{path} defines no class 'Mine' (did you mean"),
        ("svm", MINE, "class Mine(:\n", "{path}, line 1: not valid Python (invalid syntax)"),
        ("svm", MINE, f"{GOOD}\nraise OSError('no')\n", "{path}: importing it raised OSError: no"),
        ("svm", MINE, "class Mine: pass\n", "{path}: Mine is not a solver; derive it from margin"),
        ("svm", MINE, ABSTRACT, "{path}:Mine: the class does not implement _solve"),
        ("feasibility", MINE, GOOD, "{path}:Mine: no feasibility method; give it solve(problem, *"),
        ("feasibility", MINE, UNNAMED, "{path}:Mine: __init__ takes *params; list every paramete"),
    ],
)
def test_what_is_no_solver_is_told_in_one_line(tmp_path, kind, name, content, message):
    path = (tmp_path / "solver.py").resolve()
    if content:
        path.write_text(content)
    with pytest.raises(SolverError) as caught:
        DescribeWork(name.replace(FILE, str(path)), kind).run(print)
    assert str(caught.value).startswith(message.format(path=path))
    assert "\n" not in str(caught.value)


def test_bytecode_of_an_earlier_text_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for number in (1, 2):
        beside = {"next_to_it.py": f"value = {number}\n"}
        write(tmp_path, {"own.py": "from next_to_it import value\n", **beside})
        for path in tmp_path.glob("*.py"):
            os.utime(path, (1e9, 1e9))
        monkeypatch.delitem(sys.modules, "next_to_it", raising=False)
        assert import_file(tmp_path / "own.py").value == number
