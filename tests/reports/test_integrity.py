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
        trace = make.trace([1, 2], [0.2, 0.1], primals)
        return results_of(
            [make.finished("a", "SMO", seed, trace, **each) for seed, each in enumerate(fields)]
        )

    return find


def test_like_records_give_no_caution_and_skipped_ones_none(cautions):
    base = {"environment": environment(), "jobs": 1}
    same_code = [base | {"version": "a" * 10 + commit} for commit in ("", " git:1234567890")]
    found = cautions(*same_code, {"status": "skipped", "environment": "{}", "jobs": 2})
    assert analysis.cautions(found) == []
    assert analysis.environments(found)["n"].tolist() == [2]
    assert integrity.machine(analysis.environments(found)) == "CPU, 4 cores"


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
        ({"jobs": 2}, ["2 runs took place at a time"]),
        ({"threads": 4}, ["different numbers of threads (1, 4)"]),
        ({"fingerprint": "0" * 64}, ["one data: 2"]),
        ({"reference_hash": "0" * 64}, ["one reference optimum: 2"]),
        ({"version": "b" * 10}, ["SMO are of 2 versions", "a" * 10, "b" * 10]),
    ],
)
def test_unlike_records_give_a_caution(cautions, changes, words):
    base = {"environment": environment(), "version": "a" * 10 + " git:1234567890"}
    results = cautions(base, base | changes)
    machines = "2 different machines" if "another" in str(changes) else "CPU, "
    assert integrity.machine(analysis.environments(results)).startswith(machines)
    found = analysis.cautions(results)
    for word in words:
        assert any(word in sentence for sentence in found), found


def test_runs_side_by_side_or_below_the_certified_bound_give_a_caution(cautions):
    beside = analysis.cautions(cautions({"jobs": 2}, {"jobs": 2}))
    assert any(sentence.startswith("2 runs took place at a time") for sentence in beside)
    # The certificate puts the optimum at 99.9999 or above.
    below = analysis.cautions(cautions({}, primals=(101.0, 99.9)))
    assert any("lower bound" in text for text in below)
