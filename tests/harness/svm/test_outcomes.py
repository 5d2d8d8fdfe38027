"""Solvers that misbehave: each run leaves a record, and the rest goes on.

The solver below behaves on few points, so that the warm-up passes and the run itself goes wrong.
What every kind of study does with runs that fail is in test_kinds.py; more ways of harm are in
tests/faults/test_hostile_solvers.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from marginbench.harness.evaluation.measurement import measure
from marginbench.harness.evaluation.svm import FitWork, Problem
from marginbench.harness.execution.local import LocalPool
from marginbench.harness.execution.runner import RunSummary, run_study
from marginbench.harness.jobs import CheckpointMessage, Ended, Job, Limits, Message
from marginbench.harness.results.journal import Journal
from marginbench.harness.results.svm import Record
from marginbench.harness.study.svm import Study

SOLVERS = '''
import ctypes
import mmap
import os
import sys
import time
from dataclasses import replace
import numpy as np
from marginbench import SMO, KernelExpansion, Solution, Solver


class Bad(Solver):
    """Goes wrong in the way that it is told to."""

    certificate = "dual"

    def __init__(self, kernel="rbf", *, gamma=1.0, C=1.0, random_state=None, how="raises"):
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.random_state = random_state
        self.how = how

    def _solve(self, problem, monitor):
        if self.how == "loops at once":
            self.loops(problem)
        if problem.n <= 50:
            return Solution(problem.expansion(np.zeros(problem.n)), 1, "budget")
        # Half the work is done and recorded when it goes wrong.
        problem.oracle.rows(np.arange(10))
        monitor.record(1, lambda: problem.expansion(0.01 * problem.y))
        found = getattr(self, self.how.replace(" ", "_"))(problem)
        if isinstance(found, Solution):
            return found
        return Solution(problem.expansion(found), 1, "budget")

    def raises(self, problem):
        raise ArithmeticError("step size is zero\\nsecond line")

    def raises_odd_text(self, problem):
        raise ValueError("\\ud800 is half a character")

    def loops(self, problem):
        while True:
            pass

    def segfaults(self, problem):
        ctypes.string_at(0)

    def eats(self, problem):
        self.eaten = []
        while True:
            # Touched by the kernel at once: page by page takes long on a busy machine.
            populate = getattr(mmap, "MAP_POPULATE", 0)
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | populate
            self.eaten.append(mmap.mmap(-1, 2**26, flags=flags))
            self.eaten[-1][::4096] = bytes(2**14)
            time.sleep(0.02)

    def leaves_its_settings(self, problem):
        np.seterr(all="raise")
        sys.setrecursionlimit(60)
        return 0.5 * problem.y

    def returns_nan(self, problem):
        return np.full(problem.n, np.nan)

    def says_converged(self, problem):
        return Solution(problem.expansion(0.05 * problem.y), 1, "converged")

    def says_that_nothing_is_optimal(self, problem):
        return Solution(problem.expansion(np.zeros(problem.n)), 1, "converged")

    def is_infeasible(self, problem):
        return -problem.y

    def inflates_n(self, problem):
        model = problem.expansion(1e-6 * problem.y)
        return Solution(replace(model, n_train=10**9), 1, "converged")

    def counts_too_far(self, problem):
        return Solution(problem.expansion(0.5 * problem.y), 10**30, "budget")

    def returns_few_coefficients(self, problem):
        return np.ones(3)

    def returns_complex_coefficients(self, problem):
        model = problem.expansion(0.5 * problem.y)
        return Solution(replace(model, coef=model.coef * 1j), 1, "budget")

    def invents_points(self, problem):
        model = problem.expansion(problem.y)
        model = KernelExpansion(
            model.kernel, model.points, model.coef, 0.0, model.support + 1, problem.n
        )
        return Solution(model, 1, "budget")

    def changes_its_data(self, problem):
        problem.X[:] = 0.0

    def predicts_otherwise(self, problem):
        return 0.5 * problem.y

    def decision_function(self, X):
        sign = -1 if self.how == "predicts otherwise" else 1
        return sign * super().decision_function(X)


class Chatters(SMO):
    def _solve(self, problem, monitor):
        print("junk on stdout", flush=True)
        os.write(2, b"junk on stderr from C\\n")
        return super()._solve(problem, monitor)
'''
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
#: What is wrong with what comes back.
WRONG = {
    "returns nan": ("diverged", "the objective of the returned model is not finite"),
    "says converged": ("wrong", "the solver says converged (tol = 0.001), but the duality gap is "),
    "is infeasible": ("wrong", "the solver promises a dual certificate, but its coefficients are "),
    "predicts otherwise": ("wrong", "decision_function gives "),
    # The zero model: a gap needs no support vector.
    "says that nothing is optimal": (
        "wrong",
        "the solver says converged (tol = 0.001), but the duality gap is 1 ",
    ),
    "inflates n": ("wrong", "the solver says converged (tol = 0.001), but the duality gap is 1 "),
    "counts too far": ("wrong", "n_iter is 1000000000000000000000000000000, not a count"),
    "returns complex coefficients": (
        "wrong",
        "the model's coefficients have type complex128, not real",
    ),
    "invents points": ("wrong", "the model's support reaches from 1 to 200; there are 200 "),
}
RAISED = {
    "returns few coefficients": "coef must hold 200 real numbers, one per training",
    "changes its data": "assignment destination is read-only",
}
Outcome = tuple[RunSummary, dict[str, Record], Path]


def run_them(folder: Path, study: Study) -> Outcome:
    """Run the solvers, two at a time."""
    results = folder / "results"
    summary = run_study(study, results, jobs=2)
    return summary, {r.solver: r for r in Journal(results).records()}, results


def entry(name: str, file: Path) -> dict[str, object]:
    if name == "SMO":
        return {"name": name}
    if name == "Chatters":
        return {"name": f"{file}:{name}"}
    return {"name": f"{file}:Bad", "label": name, "params": {"how": name}}


def study_of(names: Iterable[str], folder: Path, make_study: Callable[..., Study]) -> Study:
    """These solvers under tight limits."""
    file = folder / "bad.py"
    file.write_text(SOLVERS)
    return make_study(
        budget={"timeout": 2.0, "memory": 600.0},
        solver=[entry(name, file) for name in names],
    )


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, make_study: Callable[..., Study]) -> Outcome:
    folder = tmp_path_factory.mktemp("outcomes")
    return run_them(folder, study_of(EXPECTED, folder, make_study))


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


@pytest.fixture(scope="module")
def solvers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("solvers") / "bad.py"
    file.write_text(SOLVERS)
    return file


def fit_of(solver: str, how: str = "") -> FitWork:
    """A run on 200 points."""
    data = {"n_train": 200, "n_test": 100}
    problem = Problem("checkers", data, {"name": "rbf", "gamma": 10.0}, 1.0, False)
    return FitWork(problem, solver, {"gamma": 10.0, **({"how": how} if how else {})}, 1.19)


@pytest.mark.parametrize("how", WRONG)
def test_what_comes_back_is_checked(how: str, solvers: Path) -> None:
    status, reason = WRONG[how]
    messages: list[Message] = []
    found = measure(fit_of(f"{solvers}:Bad", how), messages.append)
    assert (found["status"], found["reason"][: len(reason)]) == (status, reason)
    assert any(isinstance(message, CheckpointMessage) for message in messages)


@pytest.mark.parametrize("how", RAISED)
def test_what_cannot_come_back_is_raised(how: str, solvers: Path) -> None:
    with pytest.raises(ValueError, match=RAISED[how]):
        measure(fit_of(f"{solvers}:Bad", how), lambda message: None)


def test_what_a_solver_does_to_its_process_harms_no_other_run(
    solvers: Path, tmp_path: Path
) -> None:
    limits = Limits({}, 4000.0)
    jobs = [
        Job("spoils", fit_of(f"{solvers}:Bad", "leaves its settings"), limits, foreign=True),
        Job("next", fit_of("SMO"), limits),
    ]
    with LocalPool(1, tmp_path / "logs") as pool:
        events = list(pool.execute(iter(jobs)))
    ended = {event.job.tag: event.outcome for event in events if isinstance(event, Ended)}
    assert ended["next"].value["status"] == "converged", ended["next"]


def test_a_solver_that_hangs_as_it_is_warmed_up_is_killed(solvers: Path, tmp_path: Path) -> None:
    job = Job("loops", fit_of(f"{solvers}:Bad", "loops at once"), Limits({"compile": 2.0}, 4000.0))
    with LocalPool(1, tmp_path / "logs") as pool:
        (outcome,) = (e.outcome for e in pool.execute(iter([job])) if isinstance(e, Ended))
    assert outcome.status == "timeout"
    assert outcome.reason.startswith("building and warming up the solver took longer than 2 s")
