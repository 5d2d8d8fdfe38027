"""From a solver's name to its class, and one line for each way in which that can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from marginbench.harness.errors import SolverError
from marginbench.harness.loading import SolverSpec, load_class, shown_name
from marginbench.solvers import SMO

GOOD = """
from marginbench.solvers import SMO

class Mine(SMO):
    '''A solver of one's own.'''
"""


def test_names_of_the_registry_and_of_modules() -> None:
    assert load_class("SMO") is SMO
    assert load_class("marginbench.solvers.smo.smo:SMO") is SMO
    assert shown_name(SMO, SolverSpec.parse("SMO")) == "marginbench.solvers.smo.smo:SMO"


def test_a_file_with_modules_of_its_own(tmp_path: Path) -> None:
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
        (
            "class Mine: pass\n",
            "solver.py:Mine",
            "{path}: Mine is not a solver; derive it from marginbench.Solver",
        ),
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
def test_what_is_wrong_with_a_file_is_one_line(
    tmp_path: Path, content: str | None, name: str, message: str
) -> None:
    path = tmp_path / "solver.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SolverError) as caught:
        load_class(name, tmp_path)
    assert str(caught.value) == message.format(path=path.resolve())


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(SolverError, match="no module named 'no_such_module'"):
        load_class("no_such_module.solvers:X")
    with pytest.raises(SolverError, match=r"unknown solver 'SMQ' \(did you mean 'SMO'"):
        load_class("SMQ")
    with pytest.raises(SolverError, match=r"solvers\.smo defines no class 'SMQ'"):
        load_class("marginbench.solvers.smo.smo:SMQ")
