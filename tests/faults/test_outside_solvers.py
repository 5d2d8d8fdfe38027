"""Classifiers and programs from outside that misbehave, run by the command as a user would."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from marginbench.harness.results.journal import Journal
from marginbench.harness.results.records import RecordBase

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
OUTSIDE = HERE.parent / "harness" / "svm" / "outside"
TIMEOUT = 4.0
STUDY = f"""
name = "hostile"
seeds = 1
[budget]
timeout = {TIMEOUT}
memory = 700
[[task]]
dataset = "checkers"
dataset_params = {{ n_train = 80, n_test = 40 }}
gamma = 10.0
C = 1.0
reference = false
"""
#: How a program or classifier goes wrong -> its status, and what the reason contains.
PROGRAMS = {
    "right": ("converged", ""),
    "forks": ("converged", ""),
    "prints": ("converged", ""),
    "sleeps": ("timeout", f"solving took longer than {TIMEOUT:g} s"),
    "eats": ("memory", "more than 700 MB resident while solving"),
    "fails": ("failed", "ended with exit code 2: no memory for the cache"),
}
CLASSIFIERS = {
    "raises in predict": ("failed", "ArithmeticError: not fitted"),
}
EXPECTED = {**PROGRAMS, **CLASSIFIERS, "missing": ("failed", "no program 'no-such-97531' here")}


def study() -> str:
    start = f"{sys.executable} -S {OUTSIDE / 'program.py'}"
    tables = [
        f"""
[[solver]]
name = "command"
label = "{how}"
[solver.params]
train = "{start} train '{how}' {{train}} {{model}}"
predict = "{start} predict '{how}' {{test}} {{model}} {{output}}"
"""
        for how in PROGRAMS
    ]
    tables += [
        f"""
[[solver]]
name = "{OUTSIDE / "estimators.py"}:Constant"
label = "{how}"
params = {{ how = "{how}" }}
"""
        for how in CLASSIFIERS
    ]
    missing = """
[[solver]]
name = "command"
label = "missing"
params = { train = "no-such-97531 {train}", predict = "no-such-97531 {test} {output}" }
"""
    return "".join([STUDY, *tables, missing])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, make_place: Callable[[Path], Any]) -> Path:
    """The results of a study of them all."""
    place = make_place(tmp_path_factory.mktemp("outside"))
    (place.folder / "hostile.toml").write_text(study(), encoding="utf-8")
    ended = place.command("run", "hostile.toml", env={"PRINTED_MB": "1000"})
    assert ended.code == 1, ended.err
    results: Path = place.folder / "results" / "hostile"
    return results


@pytest.fixture(scope="module")
def records(folder: Path) -> dict[str, RecordBase]:
    found = Journal(folder).records()
    return {record.solver: record for record in found}


@pytest.mark.parametrize("how", EXPECTED)
def test_each_gets_the_status_that_it_deserves(how: str, records: dict[str, RecordBase]) -> None:
    status, reason = EXPECTED[how]
    record = records[how]
    assert (record.status, reason in record.reason) == (status, True), record.reason
    assert "\n" not in record.reason


def test_honest_runs_agree_whatever_their_program_does_besides(
    records: dict[str, RecordBase],
) -> None:
    for how in ("forks", "prints"):
        assert records[how].test_error == records["right"].test_error
    # The output is read by another process, at no cost to the program's own time.
    assert records["prints"].cpu_s is not None
    assert records["prints"].cpu_s < TIMEOUT


def test_no_process_or_file_is_left(records: dict[str, RecordBase], folder: Path) -> None:
    left = [
        process.info["cmdline"]
        for process in psutil.process_iter(["cmdline"])
        if str(OUTSIDE / "program.py") in (process.info["cmdline"] or [])
    ]
    assert left == []
    assert sorted(path.name for path in folder.iterdir()) == [
        "journal", "report.html", "runs.parquet", "sources", "study.json",
    ]  # fmt: skip
