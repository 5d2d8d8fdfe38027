"""Solvers that installed packages offer: named and run like others, and never in the way."""

import json
import math
import sys
from dataclasses import replace

import pytest

from marginbench.harness.cli import solvers
from marginbench.harness.errors import StudyError
from marginbench.harness.planning.preflight import SolverInfo
from marginbench.harness.study.model import resolve_solver_name
from marginbench.harness.study.select import select
from marginbench.harness.study.toml import load_study

MODULE = """
import sys

print("imported", file=sys.stderr)

from marginbench import SMO

class Theirs(SMO):
    '''A solver of someone else.'''
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package with these entry points into a folder of the path; returns the folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def make(points, name="their-solvers", module="their_solvers"):
        (folder / f"{module}.py").write_text(MODULE)
        info = folder / f"{name.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[marginbench.solvers]\n{points}\n")
        return folder

    return make


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Every command is in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_a_name_that_a_package_offers_is_a_solver(install, tmp_path):
    install("Theirs = their_solvers:Theirs\nsmo = their_solvers:Theirs")
    assert resolve_solver_name("theirs", "svm") == "their_solvers:Theirs"
    (entry,) = select(load_study("quickstart"), solvers=["THEIRS"]).solvers
    # The target is what a key is made of, as if the class had been named itself.
    assert (entry.name, entry.label) == ("their_solvers:Theirs", "Theirs")
    # A study file names it, and the command line finds the study's own, with its parameters.
    file = tmp_path / "study.toml"
    file.write_text(
        'name = "x"\n[[task]]\ndataset = "digits"\n'
        '[[solver]]\nname = "theirs"\nparams = { tol = 1.0 }\n'
    )
    (entry,) = select(load_study(file), solvers=["Theirs"]).solvers
    found = (entry.name, entry.label, entry.params)
    assert found == ("their_solvers:Theirs", "theirs", {"tol": 1.0})
    assert "their_solvers" not in sys.modules
    with pytest.raises(StudyError, match=r"unknown solver 'Thiers' \(did you mean 'Theirs'\?\)"):
        resolve_solver_name("Thiers", "svm")
    # Names that are taken mean one solver.
    install("Theirs = others:Theirs", name="others", module="others")
    assert resolve_solver_name("smo", "svm") == "SMO"
    assert resolve_solver_name("theirs", "svm") == "others:Theirs"


def test_offers_are_listed_without_being_imported(run, install):
    install("theirs = their_solvers:Theirs\nSMO = their_solvers:Theirs")
    code, out, err = run("solvers")
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("theirs "))
    assert line.split() == [
        *("theirs", "?", "?", "?", "?"),
        *("their_solvers:Theirs,", "from", "their-solvers", "1.2"),
    ]
    assert err == ""
    listed = {item["name"]: item for item in json.loads(run("solvers", "--json")[1])}
    assert listed["theirs"]["distribution"] == "their-solvers 1.2"
    assert listed["theirs"]["kinds"] is None
    assert listed["SMO"]["distribution"] == "marginbench"
    assert listed["MPKFP"]["kinds"] == ["svm", "feasibility"]
    assert listed["SMO"]["supports"]["supports_bias"] is True


@pytest.mark.slow
def test_what_is_offered_is_described(run, install):
    install("theirs = their_solvers:Theirs")
    code, out, _ = run("solver", "theirs")
    assert code == 0
    assert out.startswith("A solver of someone else.\n")
    assert "package           their-solvers 1.2\n" in out
    assert "\n  max_iter " in out
    assert "their_solvers" not in sys.modules


def test_odd_defaults_and_no_parameters_at_all_can_be_shown(run, monkeypatch):
    info = SolverInfo(
        "odd.py:Odd", "Odd.", {"most": math.inf, "by": ("\u202e",)}, ("nu",), {"scalarization": "C"}
    )
    monkeypatch.setattr(solvers, "_described", lambda name, executor: {"svm": info})
    found = json.loads(run("solver", "odd.py:Odd", "--json")[1], parse_constant=pytest.fail)
    assert found["svm"]["parameters"] == {"nu": "required", "most": "inf", "by": "('\\u202e',)"}
    assert "\nscalarization  'C'\n" in run("solver", "odd.py:Odd")[1]
    info = replace(info, defaults={}, required=())
    monkeypatch.setattr(solvers, "_described", lambda name, executor: {"svm": info})
    code, out, _ = run("solver", "odd.py:Odd")
    assert code == 0
    assert out.endswith("parameters:\n  none\n")
