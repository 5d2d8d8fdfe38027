"""Runs on generated problems: counts, the trace, and certificates that are checked from scratch."""

from dataclasses import replace
from time import process_time

import pytest

from marginbench.harness.errors import StudyError
from marginbench.harness.evaluation.feasibility import CellWork
from marginbench.harness.study.feasibility import FeasibilityStudy
from marginbench.solvers.feasibility.spaces import Space

from ..answers import carried_out as run

EASY = CellWork(
    generator="ldfp", m=8, n=100, kappa=1.5, seed=1, solver="MPLFP",
    params={"tol": 0.0, "history": 1.25}, max_seconds=20.0,
)  # fmt: skip
NONE = replace(EASY, generator="lap", m=3, n=30, kappa=1.0, params={"tol": 1e-2, "history": 1.25})

METHODS = '''
import time
from dataclasses import replace
from marginbench import MPLFP, PCT


class Prover(MPLFP):
    """Says that it is proven that nothing separates."""

    def solve(self, A, **limits):
        return replace(super().solve(A, **limits), status="inseparable", tol=1e9)


class Liar(MPLFP):
    """Says that -y separates."""

    def solve(self, A, **limits):
        result = super().solve(A, **limits)
        return replace(result, y=-result.y)


class Writer(PCT):
    """Changes the problem that it is to solve."""

    def solve(self, A, **limits):
        A.data[:] = abs(A.data)
        return super().solve(A, **limits)


class Dawdler(PCT):
    """Its own seconds are not all that it takes."""

    def solve(self, A, **limits):
        time.sleep(0.2)
        return super().solve(A, **limits)


class FailsOnFewColumns(PCT):
    def solve(self, A, **limits):
        if A.data.shape[1] < 50:
            raise ValueError("too few columns")
        return super().solve(A, **limits)
'''


@pytest.fixture
def methods(tmp_path):
    file = tmp_path / "methods.py"
    file.write_text(METHODS)
    return file


def test_a_separator_is_found_counted_and_checked():
    found, trace, phases = run(EASY)
    assert (found["status"], found["found"], found["reason"]) == ("converged", "separable", "")
    assert found["phi_lo"] > 0
    # An iteration of mirror prox makes two products with A and two with A'.
    assert found["counters"]["matvecs"] == 4 * found["n_iter"]
    assert found["counters"]["inner_products"] == 100 * found["counters"]["matvecs"]
    assert "iterations" not in found["counters"]
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
    # With no more columns than rows nothing but rounding keeps a separator away.
    thin, _, _ = run(replace(NONE, m=9, n=8))
    assert (thin["status"], thin["found"]) == ("converged", "margin_at_most_tol")
    assert thin["phi_up"] <= 1e-2
    assert found["phi_up"] <= 1e-2
    assert trace[-1].phi_up == pytest.approx(found["phi_up"], abs=1e-12)


def test_a_run_that_is_cut_off_keeps_what_it_has(recwarn):
    cut = replace(NONE, m=9, n=10, params={"tol": 0.0, "history": 1.0, "max_iter": 3})
    found, trace, _ = run(cut)
    assert (found["status"], found["found"], found["n_iter"]) == ("budget", "budget", 3)
    assert found["reason"] == "max_iter=3 iterations are done"
    assert [stage.n_iter for stage in trace] == [1, 2, 3]
    found, _, _ = run(replace(EASY, max_seconds=1e-9))
    assert (found["status"], found["n_iter"]) == ("budget", 1)
    assert found["reason"] == "max_seconds=1e-09 are over"
    assert not recwarn.list  # the record says it


def test_a_proof_at_the_end_is_no_time_of_the_iterations(monkeypatch):
    def dear(space, x):
        started = process_time()
        while process_time() - started < 0.3:
            pass

    monkeypatch.setattr(Space, "inseparability_proof", dear)
    found, _, _ = run(NONE)
    assert found["found"] == "margin_at_most_tol"
    assert found["cpu_s"] < 0.3
    assert found["wall_s"] < 0.3


def test_the_seed_gives_the_instance():
    first, again, other = (run(replace(EASY, seed=seed))[0]["phi_lo"] for seed in (0, 0, 1))
    assert first == again != other


def test_a_false_certificate_is_wrong(methods):
    found, _, _ = run(replace(EASY, solver=f"{methods}:Liar"))
    assert found["status"] == "wrong"
    assert "y does not separate" in found["reason"]
    for work in (EASY, replace(NONE, m=9, n=8)):
        found, _, _ = run(replace(work, solver=f"{methods}:Prover"))
        assert found["status"] == "wrong"
        assert "x does not prove that nothing separates" in found["reason"]


def test_a_method_cannot_change_the_problem(methods):
    with pytest.raises(ValueError, match="read-only"):
        run(replace(EASY, solver=f"{methods}:Writer", params={}))


def test_all_that_a_method_of_the_user_does_takes_time(methods):
    found, _, _ = run(replace(EASY, solver=f"{methods}:Dawdler", params={}))
    assert found["wall_s"] >= 0.2


def test_a_method_that_fails_on_the_few_columns_of_the_warm_up_is_run(methods):
    found, _, _ = run(replace(EASY, solver=f"{methods}:FailsOnFewColumns"))
    assert (found["status"], found["found"]) == ("converged", "separable")


@pytest.mark.parametrize(
    ("name", "value"),
    [("kernel_evals", 1e6), ("iterations", 10), ("stop", {"suboptimality": 0.1})],
)
def test_feasibility_methods_have_their_own_limits(name, value):
    cell = {"label": "c", "generator": "ldfp", "m": 5, "n": 10, "kappa": 1.0, "tol": 0.0}
    study = {"name": "s", "cell": [cell], "method": [{"name": "VN"}]}
    FeasibilityStudy.model_validate(study)
    with pytest.raises(StudyError, match=f"budget.{name} is for studies of SVM solvers"):
        FeasibilityStudy.model_validate({**study, "budget": {name: value}})
