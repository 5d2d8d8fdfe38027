"""From a task and a solver to a run: what is skipped and why, which parameters it gets, its key."""

import json
from dataclasses import replace

import pytest

from marginbench.harness.errors import StudyError
from marginbench.harness.evaluation.svm import ReferenceInfo
from marginbench.harness.planning.preflight import Facts, SolverInfo
from marginbench.harness.planning.svm import KIND

from ..answers import DATA

REFERENCE = ReferenceInfo(10.0, 9.999, 0.001, 0.05, 7, 0.123456789012345, "r" * 64)
KERNELIZED = ("kernel", "gamma", "degree", "coef0", "C", "fit_intercept", "random_state")
LINEAR = ("C", "random_state")
TRAITS = {
    "supports_bias": True,
    "supports_no_bias": True,
    "supports_sparse": True,
    "scalarization": "C",
    "certificate": None,
    "instrumented": True,
}


def solver(accepted=KERNELIZED, **traits):
    """A solver that supports everything, but for what is said otherwise."""
    return SolverInfo(
        "mine.py:Mine",
        "",
        dict.fromkeys(accepted),
        (),
        {**TRAITS, **traits},
        source_hash="s" * 64,
    )


@pytest.fixture
def plan(make_study):
    """Plans the run of a solver on a task."""

    def planned(
        info,
        data=DATA,
        reference=REFERENCE,
        params=None,
        budget=None,
        seed=0,
        entry=None,
        tuning=None,
        **task,
    ):
        width = {} if task.get("kernel") == "linear" else {"gamma": 0.5}
        study = make_study(
            task=[{"label": "t", "dataset": "digits", "C": 2.0, **width, **task}],
            solver=[{"name": "SMO", "label": "mine", "params": params or {}, **(entry or {})}],
            budget=budget or {},
            tuning=tuning or {},
        )
        study = study.with_tasks([each.completed() for each in study.task])
        facts = Facts({"mine": info}, {study.task[0].label: data}, {study.task[0].label: reference})
        return KIND.configuration(study, facts, study.task[0], study.solver[0]).run(seed)

    return planned


def test_a_tuned_run_searches_what_its_solver_takes(plan):
    tune = {"C": [1.0, 10.0], "gamma": [0.5]}
    run = plan(solver(), C=None, gamma=None, tune=tune)
    search = run.work.search
    assert search.configurations == ({"C": 1.0, "gamma": 0.5}, {"C": 10.0, "gamma": 0.5})
    assert run.columns["C"] is None
    assert json.loads(run.columns["kernel"]) == {"name": "rbf", "gamma": None}
    planned = json.loads(run.columns["params"])
    assert (planned["C"], planned["gamma"], planned["kernel"]) == (None, None, "rbf")
    assert run.limits.seconds["tune"] > 2 * search.trial_seconds
    # A linear method has no gamma, and a method without C only what is its own.
    linear = plan(solver(LINEAR), C=None, kernel="linear", tune={"C": [1.0, 10.0]})
    assert linear.work.search.configurations == ({"C": 1.0}, {"C": 10.0})
    without = solver((*set(KERNELIZED) - {"C"}, "eta0"))
    own = plan(without, C=None, gamma=None, tune=tune, entry={"tune": {"eta0": [1, 2]}})
    assert own.work.search.configurations == (
        {"gamma": 0.5, "eta0": 1},
        {"gamma": 0.5, "eta0": 2},
    )
    assert plan(solver()).work.search is None


def test_the_whole_protocol_of_tuning_is_in_the_key(plan):
    base = {"C": None, "tune": {"C": [1.0, 10.0]}}
    others = [
        {},
        {"C": None, "tune": {"C": [1.0, 100.0]}},
        {"C": None, "tune": {"C": [10.0, 1.0]}},
        {"entry": {"tune": {"tol": [0.1, 0.01]}}},
        {"budget": {"timeout": 7.0}},
        *({"tuning": {name: value}} for name, value in (
            ("method", "halving"), ("validation", 0.3), ("folds", 3), ("seed", 1),
            ("seconds", 9.0), ("kernel_evals", 1e6),
        )),
    ]  # fmt: skip
    info = solver((*KERNELIZED, "tol"))
    keys = {plan(info, **{**base, **change}).key for change in others}
    assert len(keys) == len(others)
    # Where nothing is tuned it changes nothing.
    assert plan(info, tuning={"method": "halving"}).key == plan(info).key
    parts = json.loads(plan(info, **base).columns["key_parts"])
    assert "Infinity" not in json.dumps(parts)


def test_too_many_configurations_are_refused(plan):
    values = [float(value) for value in range(1, 41)]
    message = "'mine' on 't' has 1600 configurations to choose from; give fewer values in tune"
    with pytest.raises(StudyError, match=message):
        plan(solver(), C=None, gamma=None, tune={"C": values, "gamma": values})


def test_rules_that_end_a_run_by_what_it_has_done_are_in_its_key(plan):
    budgets = [
        {},
        {"kernel_evals": 1e6},
        {"kernel_evals": 2e6},
        {"iterations": 100},
        {"stop": {"suboptimality": 1e-3}},
        {"stop": {"suboptimality": 1e-2}},
    ]
    keys = [plan(solver(), budget=budget).key for budget in budgets]
    assert len(set(keys)) == len(keys)
    # A limit that only cuts a run short, and an objective that the solver does not minimise.
    assert plan(solver(), budget={"timeout": 7.0}).key == keys[0]
    norm_bound = solver(scalarization=None)
    stopped = plan(norm_bound, budget={"stop": {"suboptimality": 1e-3}})
    assert stopped.key == plan(norm_bound).key
    # The reference to ten digits: the last ones differ between machines.
    again = replace(REFERENCE, primal=REFERENCE.primal * (1 + 1e-13))
    assert plan(solver(), reference=again, budget=budgets[-1]).key == keys[-1]


def test_what_does_not_count_cannot_be_limited_by_counts(plan):
    peer = solver(instrumented=False)
    assert plan(peer, budget={"stop": {"suboptimality": 0.1}}).skip_reason == ""
    assert plan(peer, budget={"kernel_evals": 1e6, "iterations": 5}).skip_reason == (
        "mine does not count, so the budget's kernel_evals and iterations cannot limit it"
    )
    run = plan(peer, C=None, tune={"C": [1.0, 2.0]}, tuning={"kernel_evals": 1e6})
    assert run.skip_reason == "mine does not count, so kernel_evals of [tuning] cannot limit it"
    assert plan(peer, tuning={"kernel_evals": 1e6}).skip_reason == ""


@pytest.mark.parametrize(
    ("accepted", "task", "reason"),
    [
        # A linear method runs on linear tasks only; one that takes a kernel, on all.
        (LINEAR, {"kernel": "linear"}, ""),
        (LINEAR, {"kernel": "rbf"}, "mine takes no kernel; the task has 'rbf'"),
        (("kernel",), {"kernel": "linear"}, ""),
        (("kernel", "gamma"), {"kernel": "rbf"}, ""),
        (("kernel", "gamma"), {"kernel": "poly"}, "mine does not take the kernel's coef0, degree"),
        (("kernel",), {"kernel": "rbf"}, "mine does not take the kernel's gamma"),
    ],
)
def test_the_kernel_decides_who_runs(plan, accepted, task, reason):
    assert plan(solver(accepted), **task).skip_reason == reason


@pytest.mark.parametrize(
    ("traits", "data", "task", "reason"),
    [
        ({"supports_sparse": False}, {"sparse": True}, {}, "mine does not take sparse data"),
        ({}, {"n_classes": 10}, {}, ""),
        (
            {"scalarization": "S"},
            {"n_classes": 10},
            {},
            "mine takes nu from the reference optimum, and each of the 10 classes has another one; "
            "give nu a number in params",
        ),
    ],
)
def test_storage_and_classes_decide_who_runs(plan, traits, data, task, reason):
    run = plan(solver(**traits), replace(DATA, **data), **task)
    assert (run.skip_reason, run.failure) == (reason, "")


def test_a_solver_gets_what_it_takes_of_the_task_and_its_own_parameters(plan):
    info = solver(("kernel", "gamma", "C", "random_state", "tol"))
    work = plan(info, params={"tol": 0.1}, seed=4).work
    assert work.params == {"kernel": "rbf", "gamma": 0.5, "C": 2.0, "random_state": 4, "tol": 0.1}


@pytest.mark.parametrize("params", [{}, {"nu": "reference"}])
def test_nu_is_that_of_the_reference_to_ten_digits(plan, params):
    info = solver((*KERNELIZED, "nu"), scalarization="S")
    run = plan(info, params=params)
    assert run.work.params["nu"] == 0.1234567890
    # Digits that the certificate does not promise change no key.
    noisy = replace(REFERENCE, nu=0.123456789012999, hash="q" * 64)
    assert plan(info, params=params, reference=noisy).key == run.key
    given = plan(info, params={"nu": 0.5})
    assert given.work.params["nu"] == 0.5
    assert given.failure == ""


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("the task has reference = false", "the task has reference = false"),
        (replace(REFERENCE, nu=None), "its w is zero"),
    ],
)
def test_without_a_reference_nu_must_be_given(plan, reference, why):
    info = solver((*KERNELIZED, "nu"), scalarization="S")
    failure = plan(info, reference=reference).failure
    assert failure == (
        f"nu is to be that of the reference optimum, but there is none: {why}; "
        "give nu a number in params"
    )
    assert plan(info, reference=reference, params={"nu": 0.5}).failure == ""
    # One reason is enough where the data are missing as well.
    missing = plan(info, data="digits: gone", reference=reference)
    assert (missing.failure, missing.skip_reason) == ("digits: gone", "")


def test_the_key_knows_what_changes_a_run_and_nothing_else(plan):
    info = solver()
    key = plan(info).key
    same = [
        plan(info, budget={"timeout": 1.0, "memory": 99.0, "evaluation_timeout": 3.0}),
        plan(info, data=replace(DATA, citation="another", notes=("a note",))),
        plan(info, reference=replace(REFERENCE, hash="q" * 64)),
        plan(info, reference="timeout"),
    ]
    assert {run.key for run in same} == {key}
    other = [
        plan(info, seed=1),
        plan(info, C=3.0),
        plan(info, gamma=3.0),
        plan(info, kernel="linear"),
        plan(info, fit_intercept=True),
        plan(info, label="another"),
        plan(info, data=replace(DATA, fingerprint="g" * 64)),
        plan(info, data="digits: gone"),
        plan(info, budget={"checkpoint_factor": 2.0}),
        plan(info, budget={"epoch_checkpoints": True}),
        plan(replace(info, source_hash="t" * 64)),
        plan(replace(info, defaults={**info.defaults, "tol": 0.1})),
        plan(replace(info, shown="other.py:Mine")),
    ]
    assert len({key, *(run.key for run in other)}) == len(other) + 1
