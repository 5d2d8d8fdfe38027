"""What readers are warned of."""

import json

import pytest

from marginbench.reports import analysis
from marginbench.reports.statistics import integrity


def environment(**changes):
    base = {"commit": "a" * 40, "dirty": False, "processor": "CPU", "cores": 4}
    return json.dumps(base | changes)


@pytest.fixture
def cautions(make, results_of):
    def find(*fields, primals=(101.0, 100.0)):
        records = [
            make.finished("a", "SMO", seed, make.trace([1, 2], [0.2, 0.1], primals), **changes)
            for seed, changes in enumerate(fields)
        ]
        return results_of(records)

    return find


def test_like_records_give_no_caution(cautions):
    found = cautions({"environment": environment()}, {"environment": environment()})
    assert analysis.cautions(found) == []
    assert analysis.environments(found)["n"].tolist() == [2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"environment": environment(cores=8)}, ["2 different environments (1 and 1 runs): do"]),
        (
            {"environment": environment(processor="another")},
            ["2 different environments", "on different machines, CPU and another: do not compare"],
        ),
        ({"environment": environment(commit="b" * 40)}, ["2 different commits", "b" * 10]),
        ({"environment": environment(dirty=True)}, ["1 run came", "uncommitted"]),
        ({"jobs": 2}, ["different numbers of parallel jobs (1, 2)"]),
        ({"threads": 4}, ["different numbers of threads (1, 4)"]),
        ({"fingerprint": "0" * 64}, ["one data: 2"]),
        ({"reference_hash": "0" * 64}, ["one reference optimum: 2"]),
        ({"version": "b" * 10}, ["SMO are of 2 versions", "a" * 10, "b" * 10]),
    ],
)
def test_unlike_records_give_a_caution(cautions, changes, words):
    base = {"environment": environment(), "version": "a" * 10 + " git:1234567890"}
    found = analysis.cautions(cautions(base, base | changes))
    for word in words:
        assert any(word in sentence for sentence in found), found


def test_the_same_code_of_another_commit_is_one_version(cautions):
    changes = [{"version": f"{'a' * 10}{commit}"} for commit in ("", " git:1234567890")]
    assert not [text for text in analysis.cautions(cautions(*changes)) if "version" in text]


def test_runs_side_by_side_give_a_caution(cautions):
    found = analysis.cautions(cautions({"jobs": 2}, {"jobs": 2}))
    assert any(sentence.startswith("2 runs took place at a time") for sentence in found)


def test_an_objective_below_the_certified_bound_gives_a_caution(cautions):
    # The certificate puts the optimum at 99.9999 or above.
    assert any(
        "lower bound" in text for text in analysis.cautions(cautions({}, primals=(101.0, 99.9)))
    )


def test_skipped_runs_measure_nothing_and_raise_no_caution(make, results_of):
    records = [
        make.finished("a", "SMO", 0, make.trace([1], [0.1], [100.0]), jobs=1),
        make.record("a", "SMO", 1, status="skipped", environment="{}", jobs=2),
    ]
    assert analysis.cautions(results_of(records)) == []


def test_the_machine_is_named_or_counted(cautions):
    alike = cautions({"environment": environment()}, {"environment": environment()})
    assert integrity.machine(analysis.environments(alike)) == "CPU, 4 cores"
    unlike = cautions(
        {"environment": environment()}, {"environment": environment(processor="another")}
    )
    assert integrity.machine(analysis.environments(unlike)) == "2 different machines"
