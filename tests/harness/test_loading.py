"""From a solver's name to its class, and one line for each way in which that can fail."""

import os
import sys

import pytest

from marginbench.data_loaders.user_code import import_file
from marginbench.harness.errors import SolverError
from marginbench.harness.loading import SolverSpec, load_class, shown_name
from marginbench.harness.planning.preflight import DescribeWork
from marginbench.solvers import SMO

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
    for name, kind, message in (
        ("SMQ", "svm", r"unknown solver 'SMQ' \(did you mean 'SMO'"),
        ("MPLFP", "svm", r"unknown solver 'MPLFP' \(did you mean 'MPKFP'"),
        ("SMO", "feasibility", "unknown solver 'SMO' "),
        ("no_such_module.solvers:X", "svm", "no module named 'no_such_module'"),
        ("marginbench.solvers.smo.smo:SMQ", "svm", r"solvers\.smo\.smo defines no class 'SMQ'"),
    ):
        with pytest.raises(SolverError, match=message):
            load_class(name, kind=kind)


def test_a_file_with_modules_of_its_own(tmp_path):
    (tmp_path / "beside_it.py").write_text("TOL = 0.125\n")
    (tmp_path / "mine.py").write_text(
        f"import beside_it\n{GOOD}    default = beside_it.TOL\nNumber = 3\n"
    )
    cls = load_class("mine.py:Mine", tmp_path)
    assert issubclass(cls, SMO)
    assert cls.default == 0.125
    spec = SolverSpec.parse("mine.py:Mine", tmp_path)
    assert shown_name(cls, spec) == "mine.py:Mine"
    assert spec.path == tmp_path.resolve() / "mine.py"
    for name, message in (
        ("mine.py:Number", r"mine\.py:Number is not a class"),
        ("mine.py:", r"'mine\.py:' does not name a solver: write file\.py:Class or module:Class"),
    ):
        with pytest.raises(SolverError, match=message):
            load_class(name, tmp_path)


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("svm", None, "no such file: {path}"),
        ("svm", GOOD.replace("Mine", "Mime"), "{path} defines no class 'Mine' (did you mean 'Mim"),
        ("svm", "class Mine(:\n", "{path}, line 1: not valid Python (invalid syntax)"),
        ("svm", f"{GOOD}\nraise OSError('no')\n", "{path}: importing it raised OSError: no"),
        ("svm", "class Mine: pass\n", "{path}: Mine is not a solver; derive it from marginbench."),
        ("svm", ABSTRACT, "{path}:Mine: the class does not implement _solve"),
        ("feasibility", GOOD, "{path}:Mine: no feasibility method; give it solve(problem, *, max_"),
        ("feasibility", UNNAMED, "{path}:Mine: __init__ takes *params; list every parameter by"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path, kind, content, message):
    path = (tmp_path / "solver.py").resolve()
    if content is not None:
        path.write_text(content)
    with pytest.raises(SolverError) as caught:
        DescribeWork(f"{path}:Mine", kind).run(print)
    assert str(caught.value).startswith(message.format(path=path))
    assert "\n" not in str(caught.value)


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
