"""Runs on generated problems: counts, the trace, and certificates that are checked from scratch."""

import json
import math
from dataclasses import replace
from time import process_time

import pytest

from marginbench.harness.evaluation import separation
from marginbench.harness.evaluation.feasibility import FeasibilityWork
from marginbench.solvers.feasibility.spaces import Space

from ..answers import carried_out as run

CELL = {"generator": "ldfp", "m": 8, "n": 100, "kappa": 1.5, "tol": 0.0}
EASY = FeasibilityWork(
    CELL, seed=1, solver="MPLFP", params={"tol": 0.0, "history": 1.25}, max_seconds=20.0
)
LAP = CELL | {"generator": "lap", "m": 3, "n": 30, "kappa": 1.0, "tol": 1e-2}
NONE = replace(EASY, problem=LAP, params={"tol": 1e-2, "history": 1.25})
THIN = replace(NONE, problem=LAP | {"m": 9, "n": 8})

METHODS = """
import json
import time
from dataclasses import replace
from marginbench import MPLFP, PCT, hyperparameters


@hyperparameters
class Mine(MPLFP):
    how: str = ""

    def solve(self, A, **limits):
        if self.how == "writes":
            A.data[:] = abs(A.data)
        if self.how == "fails on few columns" and A.data.shape[1] < 50:
            raise ValueError("too few columns")
        if self.how == "dawdles":
            time.sleep(0.2)
        found = super().solve(A, **limits)
        if self.how.startswith("{"):
            point = found.history[0]._replace(**json.loads(self.how))
            return replace(found, history=[point, *found.history[1:]])
        if self.how == "says that -y separates":
            return replace(found, y=-found.y)
        if self.how == "says that it is proven that nothing separates":
            return replace(found, status="inseparable", tol=1e9)
        return found
"""


@pytest.fixture
def mine(tmp_path):
    """Runs a method of the user's that does something besides."""
    file = tmp_path / "methods.py"
    file.write_text(METHODS)

    def carried_out(how, work=EASY):
        params = {**work.params, "how": how}
        return run(replace(work, solver=f"{file}:Mine", params=params))[0]

    return carried_out


def test_a_separator_is_found_counted_and_checked():
    found, trace, phases = run(EASY)
    assert (found["status"], found["found"], found["reason"]) == ("converged", "separable", "")
    assert found["phi_lo"] > 0
    # An iteration of mirror prox makes two products with A and two with A'.
    assert found["counters"]["matvecs"] == 4 * found["n_iter"]
    assert found["counters"]["inner_products"] == 100 * found["counters"]["matvecs"]
    assert phases == ["data", "compile", "solve", "evaluate"]
    assert trace[0].n_iter == 1
    assert trace[-1].n_iter == found["n_iter"]
    assert trace[-1].phi_lo == pytest.approx(found["phi_lo"], abs=1e-12)
    steps = [stage.n_iter for stage in trace]
    assert steps == sorted(set(steps))
    assert len(steps) < found["n_iter"]  # a grid that grows
    assert 0 <= found["cpu_s"] < 20


def test_a_certificate_that_nothing_separates():
    found, trace, _ = run(NONE)
    assert (found["status"], found["found"]) == ("converged", "inseparable")
    assert trace[-1].phi_up == pytest.approx(found["phi_up"], abs=1e-12)
    # With no more columns than rows nothing but rounding keeps a separator away.
    thin, _, _ = run(THIN)
    assert (thin["status"], thin["found"]) == ("converged", "margin_at_most_tol")
    assert max(thin["phi_up"], found["phi_up"]) <= 1e-2


def test_a_run_that_is_cut_off_keeps_what_it_has(recwarn, monkeypatch):
    cut = replace(
        NONE, problem=LAP | {"m": 9, "n": 10}, params={"tol": 0.0, "history": 1.0, "max_iter": 3}
    )
    found, trace, _ = run(cut)
    assert (found["status"], found["found"], found["n_iter"]) == ("budget", "budget", 3)
    assert found["reason"] == "max_iter=3 iterations are done"
    assert [stage.n_iter for stage in trace] == [1, 2, 3]
    monkeypatch.setattr(separation, "_MOST_POINTS", 2)
    assert [stage.n_iter for stage in run(cut)[1]] == [1, 3]
    found, _, _ = run(replace(EASY, max_seconds=1e-9))
    assert (found["status"], found["n_iter"]) == ("budget", 1)
    assert found["reason"] == "max_seconds=1e-09 are over"
    assert not recwarn.list  # the record says it


def test_a_proof_at_the_end_is_no_time_of_the_iterations(monkeypatch):
    def dear(space, x):
        started = process_time()
        while process_time() - started < 0.2:
            pass

    monkeypatch.setattr(Space, "inseparability_proof", dear)
    found, _, _ = run(NONE)
    assert found["found"] == "margin_at_most_tol"
    assert max(found["cpu_s"], found["wall_s"]) < 0.2


def test_a_false_certificate_is_wrong(mine):
    proven = "says that it is proven that nothing separates"
    for how, work, reason in (
        ("says that -y separates", EASY, "y does not separate"),
        (proven, EASY, "x does not prove that nothing separates"),
        (proven, THIN, "x does not prove that nothing separates"),
    ):
        found = mine(how, work)
        assert found["status"] == "wrong"
        assert reason in found["reason"]


@pytest.mark.parametrize(
    ("name", "possible", "impossible"),
    [
        ("iteration", [0, 1], [-1, 1000000]),
        ("matvecs", [0, 2**63 - 1], [-1, 2**63]),
        ("seconds", [0.0], [-1e-9, math.inf]),
        ("phi_lo", [-1.0], [math.nan]),
    ],
)
def test_a_history_has_only_points_that_a_run_can_have(mine, name, possible, impossible):
    for value in (*possible, *impossible):
        found = mine(json.dumps({name: value}))
        reason = "" if value in possible else "the history has a point that no run can have"
        assert found["reason"] == reason, value


def test_a_method_of_the_user_cannot_change_the_problem_and_all_that_it_does_takes_time(mine):
    with pytest.raises(ValueError, match="read-only"):
        mine("writes")
    assert mine("dawdles")["wall_s"] >= 0.2
    # The warm-up is on few columns, and proves nothing.
    found = mine("fails on few columns")
    assert (found["status"], found["found"]) == ("converged", "separable")
