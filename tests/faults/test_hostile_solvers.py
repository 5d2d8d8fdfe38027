"""Solvers from outside that attack the harness: each gets the status that it deserves.

``marginbench`` runs them as a user would. No status may depend on how busy the machine is: the long
form (MARGINBENCH_FAULTS=long) runs all of them again beside processes that burn every core.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from marginbench.harness.results.journal import Journal
from marginbench.harness.results.records import RecordBase

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
#: What all that these tests start has in its environment.
TOKEN = uuid.uuid4().hex
TIMEOUT = 5.0
#: Seconds of work that are hidden from the clocks.
HIDDEN = 0.6

#: Name of the attack -> status, and what the reason contains.
SOLVERS = {
    "raises": ("failed", "ArithmeticError: step size is zero"),
    "raises_a_base_exception": ("failed", "odd"),
    "raises_an_interrupt": ("failed", "KeyboardInterrupt"),
    "raises_without_text": ("failed", "Cruel"),
    "raises_a_long_text": ("failed", "xxxxxxxx"),
    "raises_control_characters": ("failed", r"a\x00b\x1b[31mc\u202ed\u2066e\x07"),
    "raises_out_of_memory": ("memory", "out of memory while solving"),
    "blames_the_data": ("failed", "adult: cannot be fetched"),
    "exits": ("failed", "SystemExit"),
    "exits_at_once": ("crashed", "the process ended with exit code 0 while solving"),
    "aborts": ("crashed", "killed by SIGABRT while solving"),
    "segfaults": ("crashed", "killed by SIGSEGV while solving"),
    "kills_itself": ("crashed", "killed by SIGKILL while solving"),
    "kills_its_guardian": ("crashed", "while solving"),
    "stops_itself": ("timeout", f"solving took longer than {TIMEOUT:g} s"),
    "loops": ("timeout", f"solving took longer than {TIMEOUT:g} s"),
    "sleeps": ("timeout", f"solving took longer than {TIMEOUT:g} s"),
    "loops_in_pauses": ("timeout", f"took longer than {TIMEOUT:g} s"),
    "loops_in_one_pause": ("timeout", f"evaluating the model took longer than {TIMEOUT:g} s"),
    "loops_in_a_snapshot": ("timeout", f"evaluating the model took longer than {TIMEOUT:g} s"),
    "loops_in_its_predictions": ("timeout", "evaluating the model took longer than 6 s"),
    "waits_for_a_lock": ("timeout", f"solving took longer than {TIMEOUT:g} s"),
    "ignores_signals_and_loops": ("timeout", f"solving took longer than {TIMEOUT:g} s"),
    "eats": ("memory", "more than 700 MB resident while solving"),
    "has_a_child_that_eats": ("memory", "more than 700 MB resident while solving"),
    "prints_much": ("converged", ""),
    "leaves_a_child": ("converged", ""),
    "leaves_a_daemon": ("converged", ""),
    "leaves_a_child_and_crashes": ("crashed", "killed by SIGABRT while solving"),
    "leaves_a_child_without_environment": ("converged", ""),
    "leaves_many": ("converged", ""),
    "leaves_threads": ("converged", ""),
    "leaves_its_settings": ("converged", ""),
    "sends_garbage": ("crashed", "no valid message: bytes that begin no message"),
    "sends_a_pickle": ("crashed", "no valid message: bytes that begin no message"),
    "sends_half_a_message": ("timeout", f"solving took longer than {TIMEOUT:g} s"),
    "sends_a_long_header": ("crashed", "no valid message: a message of "),
    "sends_deep_json": ("crashed", "no valid message: no JSON"),
    "sends_an_odd_array": ("crashed", "no valid message: an array of an odd type"),
    "sends_a_judgement": ("crashed", "no valid message"),
    "sends_a_result": ("crashed", "no valid message: a result message that is none"),
    "sends_claims_without_a_model": ("wrong", "fit did not report its end"),
    "sends_an_earlier_phase": ("crashed", "no valid message: phase 'data' after 'solve'"),
    "sends_odd_times": ("crashed", "no valid message: a phase message that is none"),
    "floods": ("timeout", "took longer than"),
    "sends_long_texts": ("crashed", "no valid message: a message with "),
    "blames_the_disk": ("failed", "No space left on device"),
    "replaces_its_spool": ("converged", ""),
    "replaces_its_log": ("crashed", "killed by SIGABRT while solving"),
    "hangs_up": ("crashed", "the process closed its connection"),
    "closes_everything": ("crashed", "the process closed its connection"),
    "patches_the_mean": ("converged", ""),
    "patches_the_evaluator": ("converged", ""),
    "says_converged_too_early": ("wrong", "the solver says converged (tol = 0.001), but"),
    "says_that_its_tolerance_is_large": ("wrong", "the solver says converged (tol = 0.001), but"),
    "predicts_otherwise": ("wrong", "decision_function gives 1 for test point"),
    "predicts_with_objects": ("wrong", "decision_function returned no numbers"),
    "has_an_odd_status": ("wrong", "status_ is 'optimal'"),
    "returns_nan": ("diverged", "the objective of the returned model is not finite"),
    "returns_objects": ("wrong", "coefficients have type object, not real"),
    "returns_no_model": ("wrong", "model_ is a str, no marginbench.Model"),
    "returns_points_of_its_own": ("wrong", "the model's support reaches from "),
    "counts_backwards": ("wrong", "kernel_evals is 10, but the solver has already had "),
    "forgets_its_counters": ("wrong", "but the solver has already had "),
    "forgets_what_it_has_said": ("wrong", "but it was 1000000 before"),
    "stops_counting": ("wrong", "the solver says that it counts, but there are no counts"),
    "counts_less_than_nothing": ("wrong", "inner_products is -1, not a count"),
    "iterates_too_often": ("wrong", "n_iter is 1000000000000000000000000000000, not a count"),
    "says_nothing_of_its_end": ("wrong", "fit did not report its end"),
    "changes_its_labels": ("converged", ""),
    "patches_the_clocks": ("converged", "recorded is what passed outside"),
    "works_in_a_pause": ("converged", "recorded is what passed outside"),
    "works_in_a_snapshot": ("converged", "recorded is what passed outside"),
    "starts_its_clocks_again": ("converged", "recorded is what passed outside"),
    "lets_children_work_that_nobody_is_charged_for": (
        "converged",
        "recorded is what passed outside",
    ),
    "lets_a_child_work": ("converged", "recorded is what passed outside"),
}
METHODS = {
    "raises": ("failed", "ArithmeticError: step size is zero"),
    "loops": ("timeout", "solving took longer than"),
    "turns_its_separator_round": ("wrong", "y does not separate"),
    "says_that_nothing_separates": ("wrong", "x does not prove that nothing separates"),
    "has_an_odd_status": ("wrong", "the result's status is 'proven'"),
    "returns_a_long_point": ("wrong", "the result's x has shape (7,), not (100,)"),
    "returns_objects": ("wrong", "y is no array of numbers"),
    "returns_nan": ("wrong", "y contains NaN or infinity"),
    "reports_other_bounds": ("wrong", "phi_lo is "),
    "patches_the_check": ("wrong", "y does not separate"),
    "works_for_nothing": ("converged", "recorded is what passed outside"),
    "sends_a_result": ("crashed", "no valid message: a result message that is none"),
    "has_an_endless_history": ("converged", ""),
    "counts_too_far_in_its_history": ("wrong", "a point that no run can have"),
    "takes_less_than_no_time": ("crashed", "wall_s is -100.0"),
    "sends_a_result_before_it_solves": ("crashed", "no valid message: a result before the fit"),
}
LONG = bool(os.environ.get("MARGINBENCH_FAULTS"))
if not LONG:
    # Solvers try the same, or it is tested without a process.
    for name in (
        *("raises", "loops", "has_an_odd_status", "returns_a_long_point", "reports_other_bounds"),
        *("sends_a_result", "counts_too_far_in_its_history"),
    ):
        del METHODS[name]
    # The same from a quick test of a run's ends, of frames and messages, or of what comes back.
    for name in (
        *("raises_without_text", "raises_out_of_memory", "exits", "kills_itself", "sleeps"),
        *("loops_in_a_snapshot", "has_a_child_that_eats", "sends_a_pickle", "sends_a_long_header"),
        *("sends_deep_json", "sends_an_odd_array", "predicts_otherwise", "returns_nan"),
        *("returns_points_of_its_own", "iterates_too_often", "counts_less_than_nothing"),
    ):
        del SOLVERS[name]
#: Those whose work is hidden from the clocks inside.
HIDE = {name for name, (_, reason) in SOLVERS.items() if "passed outside" in reason}
#: Those that lie about errors or data, or about nothing.
AS_SMO = {
    "replaces_its_spool",
    "patches_the_mean",
    "patches_the_evaluator",
    "changes_its_labels",
    "prints_much",
}

STUDY = """
name = "hostile"
seeds = 1
[budget]
timeout = {timeout}
evaluation_timeout = 6.0
compile_timeout = 300.0
memory = 700.0
[[task]]
dataset = "checkers"
dataset_params = {{ n_train = 200, n_test = 100 }}
gamma = 10.0
C = 1.0
[[solver]]
name = "SMO"
label = "before"
"""
FEASIBILITY = """
name = "hostile-methods"
kind = "feasibility"
[budget]
timeout = 6.0
compile_timeout = 300.0
[[cell]]
label = "easy"
generator = "ldfp"
m = 8
n = 100
kappa = 1.5
instances = 1
tol = 0.0
"""


def run(study: str, folder: Path) -> dict[str, RecordBase]:
    """The records of the study by label, run by the command."""
    file = folder / "hostile.toml"
    file.write_text(study)
    done = subprocess.run(
        [sys.executable, "-m", "marginbench", "run", file, "--out", folder / "results"]
        + ["--jobs", "2"],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env={**os.environ, "MARGINBENCH_TEST": TOKEN},
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr) + len(done.stdout) < 200_000
    return {record.solver: record for record in Journal(folder / "results").records()}


@contextlib.contextmanager
def busy(cores: int) -> Iterator[None]:
    """Processes that burn so many cores."""
    burning = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(cores)]
    for process in burning:
        process.start()
    try:
        yield
    finally:
        for process in burning:
            process.kill()


def _burn() -> None:
    while True:
        pass


@pytest.fixture(scope="module", params=["idle", "busy"] if LONG else ["idle"])
def load(request: pytest.FixtureRequest) -> Iterator[str]:
    with busy((os.cpu_count() or 1) + 1 if request.param == "busy" else 0):
        yield request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, load: str) -> Path:
    return tmp_path_factory.mktemp(f"hostile-{load}")


@pytest.fixture(scope="module")
def records(folder: Path) -> dict[str, RecordBase]:
    entries = [
        f'[[solver]]\nname = "{HERE}/hostile.py:Hostile"\nlabel = "{how}"\n'
        f'params = {{ how = "{how}", folder = "{folder}", hidden = {HIDDEN} }}\n'
        for how in SOLVERS
    ]
    return run(STUDY.format(timeout=TIMEOUT) + "".join(entries), folder)


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory, load: str) -> dict[str, RecordBase]:
    entries = [
        f'[[method]]\nname = "{HERE}/hostile.py:HostileMethod"\nlabel = "{how}"\n'
        f'params = {{ how = "{how}", hidden = {HIDDEN} }}\n'
        for how in METHODS
    ]
    return run(FEASIBILITY + "".join(entries), tmp_path_factory.mktemp(f"methods-{load}"))


@pytest.mark.parametrize("how", SOLVERS)
def test_a_hostile_solver_gets_the_status_it_deserves(
    how: str, records: dict[str, RecordBase]
) -> None:
    status, reason = SOLVERS[how]
    record = records[how]
    assert (record.status, reason in record.reason) == (status, True), record.reason
    assert "\n" not in record.reason
    assert len(record.reason) < 1000


@pytest.mark.parametrize("how", METHODS)
def test_a_hostile_method_gets_the_status_it_deserves(
    how: str, methods: dict[str, RecordBase]
) -> None:
    status, reason = METHODS[how]
    record = methods[how]
    assert (record.status, reason in record.reason) == (status, True), record.reason


def test_no_process_or_file_is_left(
    records: dict[str, RecordBase], methods: dict[str, RecordBase], folder: Path
) -> None:
    left = [
        process.info
        for process in psutil.process_iter(["pid", "cmdline"])
        if any("97531" in word for word in process.info["cmdline"] or [])
        or _environment(process).get("MARGINBENCH_TEST") == TOKEN
    ]
    assert left == []
    results = folder / "results"
    assert sorted(path.name for path in results.iterdir() if path.name != "sources") == [
        "journal", "report.html", "runs.parquet", "study.json",
    ]  # fmt: skip
    assert not (folder / "forged").exists()


def _environment(process: psutil.Process) -> dict[str, str]:
    with contextlib.suppress(psutil.Error):
        return process.environ()
    return {}


@pytest.mark.parametrize("how", sorted(AS_SMO))
def test_what_a_solver_does_to_its_process_changes_no_result(
    how: str, records: dict[str, RecordBase]
) -> None:
    honest, record = records["before"], records[how]
    for name in ("test_error", "train_error", "primal", "dual", "n_support", "counters"):
        assert getattr(record, name) == getattr(honest, name)
    assert record.test_error > 0
    assert [item.primal for item in record.trace] == [item.primal for item in honest.trace]


@pytest.mark.parametrize("how", sorted(HIDE))
def test_hidden_work_is_in_the_times(how: str, records: dict[str, RecordBase]) -> None:
    record = records[how]
    assert record.wall_s >= HIDDEN
    assert record.cpu_s >= 0.9 * HIDDEN  # the system counts in ticks
    assert record.trace[-1].wall_s == record.wall_s


def test_hidden_work_of_a_method_is_in_its_times(methods: dict[str, RecordBase]) -> None:
    record = methods["works_for_nothing"]
    assert record.wall_s >= HIDDEN
    assert record.cpu_s >= 0.9 * HIDDEN


def test_runs_that_are_cut_short_keep_their_trace(records: dict[str, RecordBase]) -> None:
    honest = [item.primal for item in records["before"].trace][:-1]
    for how in ("loops", "segfaults", "raises", "sends_garbage", "eats"):
        assert [item.primal for item in records[how].trace] == honest


def test_what_only_the_solver_vouches_for_is_named(records: dict[str, RecordBase]) -> None:
    assert records["before"].claimed == ""
    assert records["prints_much"].claimed.split() == ["n_iter", "counters", "epochs"]


def test_pages_and_records_stay_small(
    folder: Path, records: dict[str, RecordBase], methods: dict[str, RecordBase]
) -> None:
    assert records
    results = folder / "results"
    assert (results / "report.html").stat().st_size < 2_000_000
    assert max(entry.size for entry in Journal(results).entries) < 400_000
    assert len(methods["has_an_endless_history"].trace) <= 5000
    assert json.loads((results / "study.json").read_text())
