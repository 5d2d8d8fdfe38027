"""Which combinations of a task and a solver are planned, and why others are skipped."""

from __future__ import annotations

from typing import Any

import pytest

from harness.jobs import DatasetInfo, SolverInfo
from harness.planning import Facts, plan
from harness.study import Study

KERNEL_SOLVER = {"kernel": "rbf", "gamma": 1.0, "degree": 3, "coef0": 0.0, "C": 1.0}
FEATURE_SOLVER = {"gamma": 1.0, "C": 1.0}
LINEAR_SOLVER = {"C": 1.0}
RBF = {"kernel": "rbf", "gamma": 0.5}
POLY = {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0}


def skip_reason(
    task: dict[str, Any], defaults: dict[str, Any], *, sparse: bool = False, **solver: Any
) -> str:
    """Why a solver with these parameters is skipped on a task."""
    study = Study.model_validate(
        {
            "name": "small",
            "seeds": 1,
            "task": [{"label": "T", "dataset": "digits", "C": 1.0, **task}],
            "solver": [{"name": "SMO", "label": "S"}],
        }
    )
    known = {
        "shown": "module:S",
        "source_hash": "0" * 64,
        "summary": "",
        "defaults": defaults,
        "required": (),
        "supports_bias": True,
        "supports_no_bias": True,
        "supports_sparse": True,
        "scalarization": "C",
        "certificate": None,
        "instrumented": True,
    }
    dataset = DatasetInfo("f" * 64, 100, 50, 3, sparse, 2, "cite", "CC0")
    facts = Facts({"T": dataset}, {"S": SolverInfo(**(known | solver))}, {"T": "none"})
    [run] = plan(study, facts)
    return run.skip_reason


@pytest.mark.parametrize(
    ("task", "defaults", "reason"),
    [
        ({"kernel": "linear"}, LINEAR_SOLVER, ""),
        ({"kernel": "linear"}, KERNEL_SOLVER, ""),
        ({"kernel": "linear"}, FEATURE_SOLVER, ""),
        (RBF, KERNEL_SOLVER, ""),
        (POLY, KERNEL_SOLVER, ""),
        (RBF, LINEAR_SOLVER, "S takes no kernel; the task has 'rbf'"),
        (POLY, LINEAR_SOLVER, "S takes no kernel; the task has 'poly'"),
        (RBF, {"kernel": "rbf", "C": 1.0}, "S does not take the kernel's gamma"),
        (
            POLY,
            {"kernel": "rbf", "gamma": 1.0, "C": 1.0},
            "S does not take the kernel's coef0, degree",
        ),
    ],
)
def test_a_kernel_is_asked_for_only_where_the_task_has_one(
    task: dict[str, Any], defaults: dict[str, Any], reason: str
) -> None:
    assert skip_reason(task, defaults) == reason


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("without_bias", [False, True])
def test_a_bias_is_what_the_task_says(bias: bool, with_bias: bool, without_bias: bool) -> None:
    reason = skip_reason(
        {"kernel": "linear", "fit_intercept": bias},
        LINEAR_SOLVER,
        supports_bias=with_bias,
        supports_no_bias=without_bias,
    )
    if bias:
        assert reason == (
            "" if with_bias else "S has no unregularised bias, which the task asks for"
        )
    else:
        assert reason == ("" if without_bias else "S always fits a bias, which the task has not")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("supported", [False, True])
def test_sparse_data_go_to_those_who_take_them(sparse: bool, supported: bool) -> None:
    reason = skip_reason(RBF, KERNEL_SOLVER, sparse=sparse, supports_sparse=supported)
    assert reason == ("S does not take sparse data" if sparse and not supported else "")
