"""Solvers that misbehave in every way: each run leaves a record, and the rest goes on.

The solvers below behave on few points, so that the warm-up passes and the run itself goes wrong;
those named ``...AtOnce`` go wrong there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import psutil
import pytest

from marginbench.harness.records import Record, RecordStore
from marginbench.harness.runner import RunSummary, run_study
from marginbench.harness.study import Study

SOLVERS = '''
import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
import numpy as np
from marginbench.solvers import SMO, KernelExpansion, Solution, Solver


class _Base(Solver):
    certificate = "dual"

    def __init__(self, kernel="rbf", *, gamma=1.0, C=1.0, random_state=None):
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.random_state = random_state

    def _solve(self, problem, monitor):
        coef = np.zeros(problem.n)
        if problem.n > 50:
            # Half the work is done and recorded when it goes wrong.
            problem.oracle.rows(np.arange(10))
            monitor.record(1, lambda: problem.expansion(0.01 * problem.y))
            coef = self.misbehave(problem)
        return Solution(problem.expansion(coef), 1, self.status)

    status = "budget"


class Raises(_Base):
    def misbehave(self, problem):
        raise ArithmeticError("step size is zero\\nsecond line")


class Leaves(_Base):
    def misbehave(self, problem):
        sys.exit(7)


class Loops(_Base):
    def misbehave(self, problem):
        while True:
            pass


class Exits(_Base):
    def misbehave(self, problem):
        os._exit(3)


class Segfaults(_Base):
    def misbehave(self, problem):
        ctypes.string_at(0)


class Killed(_Base):
    def misbehave(self, problem):
        os.kill(os.getpid(), signal.SIGKILL)


class Eats(_Base):
    def misbehave(self, problem):
        self.eaten = []
        while True:
            # Touched by the kernel at once: page by page takes long on a busy machine.
            populate = getattr(mmap, "MAP_POPULATE", 0)
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | populate
            self.eaten.append(mmap.mmap(-1, 2**26, flags=flags))
            self.eaten[-1][::4096] = bytes(2**14)
            time.sleep(0.02)


class ChildEats(_Base):
    def misbehave(self, problem):
        code = "import time; x = bytearray(1_500_000_000); time.sleep(60)"
        subprocess.run([sys.executable, "-c", code])


class OutOfMemory(_Base):
    def misbehave(self, problem):
        raise MemoryError("Unable to allocate 100 GiB")


class ReturnsNaN(_Base):
    def misbehave(self, problem):
        return np.full(problem.n, np.nan)


class SaysConverged(_Base):
    """Returns half of a good start and calls it the optimum."""

    status = "converged"

    def misbehave(self, problem):
        return 0.05 * problem.y


class Infeasible(_Base):
    def misbehave(self, problem):
        return -problem.y


class PredictsOtherwise(_Base):
    def misbehave(self, problem):
        return 0.5 * problem.y

    def decision_function(self, X):
        return -super().decision_function(X)


class SaysNothing(_Base):
    """The zero model, as the optimum: a gap needs no support vector."""

    status = "converged"

    def misbehave(self, problem):
        return np.zeros(problem.n)


class InflatesN(_Base):
    status = "converged"

    def misbehave(self, problem):
        return 1e-6 * problem.y

    def _solve(self, problem, monitor):
        solution = super()._solve(problem, monitor)
        return replace(solution, model=replace(solution.model, n_train=10**9))


class CountsTooFar(_Base):
    def _solve(self, problem, monitor):
        return Solution(problem.expansion(0.5 * problem.y), 10**30, "budget")


class FewCoefficients(_Base):
    def misbehave(self, problem):
        return np.ones(3)


class ComplexCoefficients(_Base):
    def _solve(self, problem, monitor):
        model = problem.expansion(0.5 * problem.y)
        return Solution(replace(model, coef=model.coef * 1j), 1, "budget")


class RaisesOddText(_Base):
    def misbehave(self, problem):
        raise ValueError("\\ud800 is half a character")


class LeavesItsSettings(_Base):
    """Spoils the process for whoever comes next."""

    def misbehave(self, problem):
        np.seterr(all="raise")
        sys.setrecursionlimit(60)
        return 0.5 * problem.y


class InventsPoints(_Base):
    def _solve(self, problem, monitor):
        model = problem.expansion(problem.y)
        if problem.n > 50:
            model = KernelExpansion(
                model.kernel, model.points, model.coef, 0.0, model.support + 1, problem.n
            )
        return Solution(model, 1, "budget")


class ChangesItsData(_Base):
    def misbehave(self, problem):
        problem.X[:] = 0.0
        return 0.5 * problem.y


class Chatters(SMO):
    def _solve(self, problem, monitor):
        print("junk on stdout", flush=True)
        os.write(2, b"junk on stderr from C\\n")
        return super()._solve(problem, monitor)


class LoopsAtOnce(_Base):
    def _solve(self, problem, monitor):
        while True:
            pass


class HangsInInit(_Base):
    def __init__(self, kernel="rbf", *, gamma=1.0, C=1.0, random_state=None):
        super().__init__(kernel, gamma=gamma, C=C, random_state=random_state)
        time.sleep(1000)


class LeavesAnOrphan(SMO):
    def _solve(self, problem, monitor):
        if problem.n > 50:
            os.system(f"(setsid {sys.executable} -c 'import time; time.sleep(971)' &)")
            time.sleep(0.5)
        return super()._solve(problem, monitor)


class LeavesAChild(SMO):
    def _solve(self, problem, monitor):
        if problem.n > 50:
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(971)"])
        return super()._solve(problem, monitor)
'''
TOO_LONG = "building and warming up the solver took longer than 3 s"
EXPECTED = {
    "Raises": ("failed", "ArithmeticError: step size is zero"),
    "Leaves": ("failed", "SystemExit: 7"),
    "Loops": ("timeout", "solving took longer than 2 s"),
    "Exits": ("crashed", "the process ended with exit code 3 while solving"),
    "Segfaults": ("crashed", "the process was killed by SIGSEGV while solving"),
    "Eats": ("memory", "more than 600 MB resident while solving"),
    "OutOfMemory": (
        "memory",
        "out of memory while solving (MemoryError: Unable to allocate 100 GiB)",
    ),
    "ReturnsNaN": ("diverged", "the objective of the returned model is not finite"),
    "SaysConverged": ("wrong", "the solver says converged (tol = 0.001), but the duality gap is "),
    "Infeasible": ("wrong", "the solver promises a dual certificate, but its coefficients are "),
    "PredictsOtherwise": ("wrong", "decision_function gives "),
    "SaysNothing": ("wrong", "the solver says converged (tol = 0.001), but the duality gap is 1 "),
    "InflatesN": ("wrong", "the solver says converged (tol = 0.001), but the duality gap is 1 "),
    "CountsTooFar": ("wrong", "n_iter is 1000000000000000000000000000000, not a count"),
    "FewCoefficients": ("failed", "ValueError: coef must hold 200 real numbers, one per training"),
    "ComplexCoefficients": ("wrong", "the model's coefficients have type complex128, not real"),
    "RaisesOddText": ("failed", "ValueError: \\ud800 is half a character"),
    "InventsPoints": ("wrong", "the model's support reaches from 1 to 200; there are 200 "),
    "ChangesItsData": ("failed", "ValueError: assignment destination is read-only"),
    "Chatters": ("converged", ""),
    "LoopsAtOnce": ("timeout", TOO_LONG),
    "SMO": ("converged", ""),
}
#: Variants of the above, each of which costs a worker.
EXPECTED_SLOW = {
    "Killed": ("crashed", "the process was killed by SIGKILL while solving"),
    "ChildEats": ("memory", "more than 600 MB resident while solving"),
    "HangsInInit": ("timeout", TOO_LONG),
    "LeavesAChild": ("converged", ""),
    "LeavesAnOrphan": ("converged", ""),
    "SMO": ("converged", ""),
}
Outcome = tuple[RunSummary, dict[str, Record], Path]


def run_them(folder: Path, study: Study) -> Outcome:
    """Run the solvers, two at a time."""
    results = folder / "results"
    summary = run_study(study, results, jobs=2)
    store = RecordStore(results / "runs")
    return summary, {r.solver: r for r in map(store.read, store.paths())}, results


def study_of(names: Iterable[str], folder: Path, make_study: Callable[..., Study]) -> Study:
    """These solvers under tight limits."""
    file = folder / "bad.py"
    file.write_text(SOLVERS)
    return make_study(
        budget={"timeout": 2.0, "memory": 600.0, "compile_timeout": 3.0},
        solver=[{"name": name if name == "SMO" else f"{file}:{name}"} for name in names],
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


@pytest.mark.parametrize("name", ["Loops", "Exits", "Segfaults", "Eats"])
def test_a_killed_run_keeps_its_trace(name: str, outcome: Outcome) -> None:
    record = outcome[1][name]
    assert [checkpoint.kernel_evals for checkpoint in record.trace] == [2000]
    assert record.kernel_evals == 2000
    assert record.primal == record.trace[0].primal
    assert record.suboptimality is not None


def test_limits_hold(outcome: Outcome) -> None:
    loops, eats = outcome[1]["Loops"], outcome[1]["Eats"]
    assert loops.wall_s is not None
    assert 2.0 <= loops.wall_s < 3.0
    assert eats.peak_memory_mb is not None
    assert 600 < eats.peak_memory_mb < 1500


def test_an_exception_keeps_its_traceback_and_a_crash_its_place(
    outcome: Outcome,
) -> None:
    assert "in misbehave" in outcome[1]["Raises"].traceback
    assert "in misbehave" in outcome[1]["Segfaults"].traceback  # from the fault handler


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
    assert records["SMO"].kernel_evals == records["Chatters"].kernel_evals
    assert not (results / "logs").exists()


def test_what_a_solver_does_to_its_process_harms_no_other_run(
    tmp_path: Path, make_study: Callable[..., Study]
) -> None:
    study = study_of(["LeavesItsSettings", "SMO"], tmp_path, make_study)
    study = study.model_copy(update={"seeds": 3})
    summary = run_study(study, tmp_path / "results")
    # Every order of neighbours occurs among six shuffled runs on one slot.
    store = RecordStore(tmp_path / "results" / "runs")
    records = [store.read(path) for path in store.paths()]
    assert {record.status for record in records if record.solver == "SMO"} == {"converged"}
    assert summary.planned == len(records) == 6


@pytest.mark.slow
def test_more_ways_to_end_and_nothing_is_left_running(
    tmp_path: Path, make_study: Callable[..., Study]
) -> None:
    _, records, _ = run_them(tmp_path, study_of(EXPECTED_SLOW, tmp_path, make_study))
    for name, (status, reason) in EXPECTED_SLOW.items():
        assert (records[name].status, records[name].reason[: len(reason)]) == (status, reason)
    left = [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any("time.sleep(971)" in word for word in process.info["cmdline"] or [])
    ]
    assert left == []
