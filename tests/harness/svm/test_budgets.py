"""Runs that end at a count or at an objective: the same for every solver, whatever it says."""

from __future__ import annotations

from typing import Any

import pytest

from marginbench.harness.errors import StudyError
from marginbench.harness.evaluation.svm import FitWork, Problem, StoppingRules
from marginbench.harness.jobs import CheckpointMessage, Message
from marginbench.harness.results.svm import Checkpoint
from marginbench.harness.study.feasibility import FeasibilityStudy

N = 200
DATA = {"n_train": N, "n_test": 100}
GAUSSIAN = Problem("checkers", DATA, {"name": "rbf", "gamma": 3.0}, 1.0, False)


def run(
    solver: str, rules: StoppingRules, **params: Any
) -> tuple[dict[str, Any], list[Checkpoint]]:
    """The columns that a run found out, and its checkpoints."""
    messages: list[Message] = []
    params = {"gamma": 3.0, "random_state": 0, **params}
    columns = FitWork(GAUSSIAN, solver, params, 1.19, rules=rules).run(messages.append)
    return columns, [m.checkpoint for m in messages if isinstance(m, CheckpointMessage)]


@pytest.mark.parametrize("solver", ["SBP", "Pegasos", "Perceptron", "SDCA", "BSGD"])
def test_evaluations_end_a_run_within_one_step(solver: str) -> None:
    params = {"nu": 0.1} if solver == "SBP" else {}
    columns, trace = run(solver, StoppingRules(evaluations=2500), max_epochs=1000, **params)
    counted = columns["counters"]["kernel_evals"]
    # A step asks for one row at most, and for as many entries again with maintenance.
    assert 2500 <= counted <= 2500 + 2 * N
    assert columns["status"] == "budget"
    assert columns["reason"] == f"used {counted} of 2500 evaluations"
    assert trace[-1].n_iter == columns["n_iter"]


def test_a_solver_that_ends_by_itself_beyond_the_limit_is_out_of_budget_as_well() -> None:
    # SMO with large working sets asks once in a round, here when it has converged.
    free, _ = run("SMO", StoppingRules())
    assert free["status"] == "converged"
    asked = free["counters"]["kernel_evals"]
    limited, _ = run("SMO", StoppingRules(evaluations=asked - 1))
    assert limited["status"] == "budget"
    assert run("SMO", StoppingRules(evaluations=asked + 1))[0]["status"] == "converged"


def test_iterations_end_a_run_at_the_next_checkpoint() -> None:
    columns, trace = run("Pegasos", StoppingRules(iterations=1000), max_epochs=1000)
    assert columns["status"] == "budget"
    assert columns["reason"] == f"used {columns['n_iter']} of 1000 iterations"
    # Checkpoints are a factor of 1.19 apart.
    before = [state.n_iter for state in trace if state.n_iter < columns["n_iter"]]
    assert before[-1] < 1000 <= columns["n_iter"] < 1.19 * 1000 + 1


def test_a_run_that_is_good_enough_ends() -> None:
    free, whole = run("SDCA", StoppingRules(), max_epochs=50)
    target = 1.01 * free["primal"]
    columns, trace = run("SDCA", StoppingRules(primal=target), max_epochs=50)
    assert (columns["status"], columns["reason"]) == (
        "budget",
        "reached the suboptimality asked for",
    )
    assert columns["primal"] <= target
    assert len(trace) < len(whole)
    # The last two are the checkpoint that ended it and the returned model.
    assert all(state.primal > target for state in trace[:-2])


@pytest.mark.parametrize(
    ("name", "value"),
    [("kernel_evals", 1e6), ("iterations", 10), ("stop", {"suboptimality": 0.1})],
)
def test_feasibility_methods_have_their_own_limits(name: str, value: Any) -> None:
    cell = {"label": "c", "generator": "ldfp", "m": 5, "n": 10, "kappa": 1.0, "tol": 0.0}
    study = {"name": "s", "cell": [cell], "method": [{"name": "VN"}]}
    FeasibilityStudy.model_validate(study)
    with pytest.raises(StudyError, match=f"budget.{name} is for studies of SVM solvers"):
        FeasibilityStudy.model_validate({**study, "budget": {name: value}})
