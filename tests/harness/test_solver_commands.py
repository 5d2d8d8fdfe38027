"""``marginbench solvers`` and ``marginbench solver``."""

import json
import math
from dataclasses import replace

import pytest

from marginbench.harness.cli import solvers
from marginbench.harness.planning.preflight import SolverInfo
from marginbench.solvers.registration import entries


def test_every_solver_is_listed(run):
    code, out, err = run("solvers")
    assert (code, err) == (0, "")
    listed = json.loads(run("solvers", "--json")[1])
    assert [item["name"] for item in listed] == [line.split()[0] for line in out.splitlines()[1:]]
    by_name = {item["name"]: item for item in listed}
    assert by_name.keys() == entries().keys()
    assert by_name["MPKFP"]["kinds"] == ["svm", "feasibility"]
    assert by_name["SMO"]["supports"]["supports_bias"] is True


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
