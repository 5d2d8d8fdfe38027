"""Solvers that misbehave: each run leaves a record, and the rest goes on.

The solvers of liars.py behave on few points: the warm-up passes, and the run itself goes wrong.
What every kind of study does with runs that fail is in test_kinds.py; more ways of harm are in
tests/faults/test_hostile_solvers.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import marginbench
from marginbench.harness.evaluation.svm import FitWork, Problem
from marginbench.harness.execution.local import LocalPool
from marginbench.harness.execution.runner import RunSummary, run_study
from marginbench.harness.jobs import Ended, Job, Limits
from marginbench.harness.results.journal import Journal
from marginbench.harness.results.svm import Record
from marginbench.harness.study.svm import Study

LIARS = Path(__file__).with_name("liars.py")
#: What only a worker and its parent can notice.
EXPECTED = {
    "raises": ("failed", "ArithmeticError: step size is zero"),
    "raises odd text": ("failed", "ValueError: \\ud800 is half a character"),
    "loops": ("timeout", "solving took longer than 2 s"),
    "segfaults": ("crashed", "the process was killed by SIGSEGV while solving"),
    "eats": ("memory", "more than 600 MB resident while solving"),
    "Chatters": ("converged", ""),
    "SMO": ("converged", ""),
}
Outcome = tuple[RunSummary, dict[str, Record], Path]


def entry(name: str) -> dict[str, object]:
    if name == "SMO":
        return {"name": name}
    if name == "Chatters":
        return {"name": f"{LIARS}:{name}"}
    return {"name": f"{LIARS}:Bad", "label": name, "params": {"how": name}}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, make_study: Callable[..., Study]) -> Outcome:
    """Run the solvers under tight limits, two at a time."""
    results = tmp_path_factory.mktemp("outcomes") / "results"
    study = make_study(
        budget={"timeout": 2.0, "memory": 600.0}, solver=[entry(name) for name in EXPECTED]
    )
    summary = run_study(study, results, jobs=2)
    return summary, {r.solver: r for r in Journal(results).records()}, results


@pytest.mark.parametrize("name", EXPECTED)
def test_status_and_reason(name: str, outcome: Outcome) -> None:
    status, reason = EXPECTED[name]
    record = outcome[1][name]
    assert (record.status, record.reason[: len(reason)]) == (status, reason)
    assert "\n" not in record.reason


def test_every_run_has_a_record_and_the_failures_are_told(outcome: Outcome) -> None:
    summary, records, _ = outcome
    assert summary.planned == len(records) == len(EXPECTED)
    assert sum(summary.statuses.values()) == len(EXPECTED)
    bad = [name for name, (status, _) in EXPECTED.items() if status != "converged"]
    assert len(summary.unexpected) == len(bad)
    assert summary.exit_code == 1


@pytest.mark.parametrize("name", ["loops", "segfaults", "eats"])
def test_a_killed_run_keeps_its_trace(name: str, outcome: Outcome) -> None:
    record = outcome[1][name]
    assert [checkpoint.counters["kernel_evals"] for checkpoint in record.trace] == [2000]
    assert record.counters["kernel_evals"] == 2000
    assert record.primal == record.trace[0].primal
    assert record.suboptimality is not None


def test_limits_hold(outcome: Outcome) -> None:
    loops, eats = outcome[1]["loops"], outcome[1]["eats"]
    assert loops.wall_s is not None
    assert 2.0 <= loops.wall_s < 3.0
    assert eats.peak_memory_mb is not None
    assert 600 < eats.peak_memory_mb < 1500


def test_an_exception_keeps_its_traceback_and_a_crash_its_place(
    outcome: Outcome,
) -> None:
    assert "in raises" in outcome[1]["raises"].traceback
    assert "in segfaults" in outcome[1]["segfaults"].traceback  # from the fault handler


def test_good_runs_have_all_their_numbers(
    outcome: Outcome,
) -> None:
    _, records, results = outcome
    for name in ("SMO", "Chatters"):
        record = records[name]
        assert record.reference_primal is not None
        assert record.primal is not None
        assert record.dual is not None
        assert record.suboptimality is not None
        assert -1e-9 <= record.suboptimality < 0.05
        assert record.primal >= record.reference_primal - (record.reference_gap or 0)
        assert record.gap == record.primal - record.dual
        assert record.trace[-1].primal == record.primal
        assert record.wall_s == record.trace[-1].wall_s
        assert record.peak_memory_mb is not None
        assert 50 < record.peak_memory_mb < 600
        assert (record.n_train, record.n_test, record.n_features) == (200, 100, 2)
    assert records["SMO"].counters == records["Chatters"].counters
    assert not (results / "logs").exists()


def fit_of(solver: str, how: str = "") -> FitWork:
    """A run on 200 points."""
    data = {"n_train": 200, "n_test": 100}
    problem = Problem("checkers", data, {"name": "rbf", "gamma": 10.0}, 1.0, False)
    return FitWork(problem, solver, {"gamma": 10.0, **({"how": how} if how else {})}, 1.19)


def test_what_a_solver_does_to_its_process_harms_no_other_run(tmp_path: Path) -> None:
    limits = Limits({}, 4000.0)
    jobs = [
        Job("spoils", fit_of(f"{LIARS}:Bad", "leaves its settings"), limits, foreign=True),
        Job("next", fit_of("SMO"), limits),
    ]
    with LocalPool(1, tmp_path / "logs") as pool:
        events = list(pool.execute(iter(jobs)))
    ended = {event.job.tag: event.outcome for event in events if isinstance(event, Ended)}
    assert ended["next"].value["status"] == "converged", ended["next"]


def test_a_solver_that_hangs_as_it_is_warmed_up_is_killed(tmp_path: Path) -> None:
    job = Job("loops", fit_of(f"{LIARS}:Bad", "loops at once"), Limits({"compile": 2.0}, 4000.0))
    with LocalPool(1, tmp_path / "logs") as pool:
        (outcome,) = (e.outcome for e in pool.execute(iter([job])) if isinstance(e, Ended))
    assert outcome.status == "timeout"
    assert outcome.reason.startswith("building and warming up the solver took longer than 2 s")


@pytest.mark.slow
def test_a_study_of_several_classes(tmp_path: Path, make_study: Callable[..., Study]) -> None:
    task = {"dataset": "digits", "dataset_params": {"positive": "none"}, "gamma": 0.02, "C": 1.0}
    study = make_study(
        task=[{"label": "ten", **task}],
        solver=[
            {"name": "SMO"},
            {"name": "Pegasos", "params": {"max_epochs": 2}},
            {"name": "SBP"},
            {"name": f"{LIARS}:Chatters"},
            {"name": f"{LIARS}:SwapsClasses"},
        ],
        reference={"tol": 1e-4},
    )
    run_study(study, tmp_path)
    records = {record.solver: record for record in Journal(tmp_path).records()}
    smo, own = records["SMO"], records["Chatters"]
    assert (smo.status, smo.n_classes) == ("converged", 10)
    assert -1e-4 <= smo.suboptimality < 1e-3  # the reference is certified to 1e-4
    assert smo.test_error < 0.07
    for name in ("counters", "n_iter", "test_error", "primal", "n_support", "gap"):
        assert getattr(own, name) == getattr(smo, name)
    errors = [point.test_error for point in records["Pegasos"].trace]
    assert errors[0] > 0.5 > errors[-1]
    assert records["SBP"].status == "skipped"
    assert records["SwapsClasses"].status == "wrong"
    assert "decision_function gives" in records["SwapsClasses"].reason
    page = marginbench.report(tmp_path).read_text()
    assert "10 classes, each against the rest" in page
    assert "Several classes" in page
