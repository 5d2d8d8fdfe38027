"""What becomes of each run of either side."""

import pandas as pd
import pytest

from marginbench.reports.comparison.change import paired, spread_single_runs
from marginbench.reports.comparison.result import Difference
from marginbench.reports.comparison.studies import merged


def runs(*rows, **columns):
    """Runs of one solver on one task: pairs of a seed and a status."""
    found = [
        {"task": "a", "solver": "S", "seed": seed, "status": status, "reason": "", "run": seed}
        | {"ok": status in ("converged", "budget"), "fingerprint": "f", "kernel": '{"name":"rbf"}'}
        | {"C": 1.0, "fit_intercept": False, "reference_primal": 100.0, "reference_gap": 1e-4}
        | {"reference_hash": "r"}
        | columns
        for seed, status in rows
    ]
    return pd.DataFrame(found)


@pytest.mark.parametrize(
    ("before", "after", "outcome", "mirrored"),
    [
        ("converged", "budget", "compared", "compared"),
        ("converged", "crashed", "failed in B", "failed in A"),
        ("skipped", "timeout", "failed in B", "failed in A"),
        ("failed", "wrong", "failed in both", "failed in both"),
        ("converged", "missing", "no record in B", "no record in A"),
        ("converged", "damaged", "no record in B", "no record in A"),
        ("skipped", "skipped", "skipped in both", "skipped in both"),
        ("converged", "skipped", "skipped in B", "skipped in A"),
        ("converged", None, "gone", "new"),
        ("skipped", None, "gone", "new"),
        ("failed", None, "failed in A", "failed in B"),
    ],
)
def test_every_run_has_an_outcome_and_it_mirrors(before, after, outcome, mirrored):
    other = runs((0, "converged"))
    a, b = (
        pd.concat([other.assign(task="other"), runs((0, status)) if status else runs()])
        for status in (before, after)
    )
    there, back = paired(a, b), paired(b, a)
    assert there.set_index("task")["outcome"].to_dict() == {"other": "compared", "a": outcome}
    assert back.set_index("task")["outcome"]["a"] == mirrored


def test_seeds_of_one_side_alone_are_listed():
    found = paired(runs((0, "budget"), (1, "budget")), runs((1, "budget"), (2, "budget")))
    assert list(zip(found["seed"], found["outcome"], strict=True)) == [
        *((0, "gone"), (1, "compared"), (2, "new")),
    ]


def test_the_reason_of_a_failure_is_kept():
    found = paired(runs((0, "failed"), reason="no"), runs((0, "wrong")))
    assert found["why"].item() == "A failed: no; B wrong"
    same = runs((0, "skipped"), reason="no bias")
    assert paired(same, same)["why"].item() == "skipped: no bias"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"fingerprint": "g"}, "data"),
        ({"fingerprint": ""}, "data"),
        ({"kernel": '{"name":"rbf","gamma":3}'}, "kernel"),
        ({"C": 5.0, "fit_intercept": True}, "C, bias"),
        ({"C": None}, "C"),
        ({"reference_primal": 99.0, "reference_hash": "s"}, "reference optimum"),
    ],
)
def test_another_problem_is_not_compared_and_is_named(fields, words):
    found = paired(runs((0, "budget")), runs((0, "budget"), **fields))
    assert found[["outcome", "why"]].values.tolist() == [["problem differs", words]]


def test_the_same_problem_may_have_another_certificate():
    other = {"reference_primal": 100.00005, "reference_hash": "s"}
    found = paired(runs((0, "budget")), runs((0, "budget"), **other))
    assert found[["outcome", "same_reference"]].values.tolist() == [["compared", False]]
    spaced = runs((0, "budget"), kernel='{ "name": "rbf" }')
    assert paired(runs((0, "budget")), spaced)["same_reference"].item()


def test_an_exact_optimum_is_the_same_whatever_its_rounding():
    exact = runs((0, "budget"), reference_gap=-1.4e-14)
    other = runs((0, "budget"), reference_gap=0.0, reference_primal=100.0 + 1e-12)
    for after in (exact, other):
        assert list(paired(exact, after)["outcome"]) == ["compared"]


def test_the_only_run_of_a_solver_that_draws_nothing_stands_beside_every_seed():
    single, many = runs((0, "converged")), runs((0, "budget"), (1, "budget"), (2, "failed"))
    found = paired(*spread_single_runs(single, many, {"A"}))
    assert list(found["outcome"]) == ["compared", "compared", "failed in B"]
    assert list(found["seed_a"]) == [0, 0, 0]
    assert list(found["seed_b"]) == [0, 1, 2]
    assert list(paired(*spread_single_runs(single, many, set()))["outcome"])[1:] == [
        *("new", "failed in B"),
    ]


def test_solvers_that_differ_alike_are_told_at_once():
    both = [Difference(name, "version", "1", "2") for name in "ST"]
    own = Difference("S", "params.tol", "1", "2")
    assert merged([*both, own]) == [Difference("S, T", "version", "1", "2"), own]
