"""A command with nothing to do: told without planning, and never where anything differs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from marginbench.harness.execution import session
from marginbench.harness.execution.outcomes import RunSummary
from marginbench.harness.execution.workbench import InProcess
from marginbench.harness.results.folders import resuming, stamps
from marginbench.harness.results.folders.compacting import compact
from marginbench.harness.results.store import RecordStore
from marginbench.harness.study.select import select
from marginbench.harness.study.svm import Study

BOARD = {
    "dataset": "checkers",
    "dataset_params": {"n_train": 40, "n_test": 20},
    "gamma": 10.0,
    "C": 1.0,
    "reference": False,
}


class Commands:
    """Runs a study, and tells whether that was planned."""

    def __init__(self, results: Path, study: Study, pools: list[int]) -> None:
        self.results, self.study, self.pools = results, study, pools

    def __call__(self, **options: Any) -> tuple[RunSummary, bool]:
        selection = options.pop("selection", {})
        before = len(self.pools)
        study = select(self.study, **selection)
        found = session.run_study(study, self.results, whole=self.study, **options)
        return found, len(self.pools) > before

    @property
    def records(self) -> list[Path]:
        return RecordStore(self.results / "runs").paths()


@pytest.fixture
def command(
    make_study: Callable[..., Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Commands:
    """A study that has been run once."""
    pools: list[int] = []

    @contextlib.contextmanager
    def pool(jobs: int, logs: Path, *, ahead: bool) -> Iterator[InProcess]:
        pools.append(jobs)
        yield InProcess()

    monkeypatch.setattr(session, "LocalPool", pool)
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "cache"))
    solvers = [{"name": "Perceptron"}, {"name": "Pegasos", "params": {"max_epochs": 1}}]
    study = make_study(task=[{**BOARD, "label": "a"}], solver=solvers, seeds=2)
    found = Commands(tmp_path / "results", study, pools)
    assert found()[1]
    return found


def test_the_same_command_plans_nothing(command: Commands) -> None:
    first = command(retry_failed=True)
    found, planned = command()
    assert not planned
    assert found == first[0]
    assert (found.planned, found.already_recorded, found.exit_code) == (4, 4, 0)
    # Part of it is another command, and is told as well once it has ended.
    selection = {"solvers": ["Pegasos"]}
    assert command(selection=selection)[1]
    found, planned = command(selection=selection)
    assert (planned, found.planned, found.part) == (False, 2, "1 of 2 solvers")


def test_records_are_checked_byte_by_byte(command: Commands) -> None:
    path = command.records[0]
    content, at = path.read_bytes(), path.stat()
    path.write_bytes(content[:2000] + bytes([content[2000] ^ 1]) + content[2001:])
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))
    found, planned = command()
    assert planned
    assert (found.already_recorded, len(command.records)) == (3, 4)
    assert path.with_name(f"_{path.name}.damaged").is_file()


def test_what_differs_is_planned(command: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        command.records[0].unlink()

    def other_record() -> None:
        store = RecordStore(command.results / "runs")
        record = store.read(command.records[0])
        record.reason = "edited"
        store.write(record)

    def described() -> None:
        (command.results / "study.json").unlink()

    def forgotten() -> None:
        for file in (command.results.parent / "cache" / "remembered").iterdir():
            file.unlink()

    def damaged_memory() -> None:
        for file in (command.results.parent / "cache" / "remembered").iterdir():
            file.write_text(file.read_text().replace('"planned": 4', '"planned": 5'))

    for change in (gone, other_record, described, forgotten, damaged_memory):
        change()
        found, planned = command()
        assert planned, change.__name__
        assert found.planned == 4
        assert not command()[1]
    assert command(threads=2)[1]
    monkeypatch.setattr(resuming, "program_stamp", lambda: "another")
    assert command()[1]


def test_a_forged_memory_makes_no_damaged_record_pass(command: Commands) -> None:
    path = command.records[0]
    path.write_bytes(path.read_bytes()[:-200])
    for file in (command.results.parent / "cache" / "remembered").iterdir():
        known = json.loads(file.read_text().partition("\n")[2])
        for entry in known.values():
            entry["records"] = "forged"
        text = json.dumps(known)
        file.write_text(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")
    found, planned = command()
    assert planned
    assert found.already_recorded == 3


def test_a_compacted_folder_is_resumed(command: Commands) -> None:
    before = command()[0]
    compact(command.results)
    found, planned = command()
    assert planned  # its files are others now
    assert found == before
    assert command() == (before, False)
    # Two runs get another key: their records are taken out, and moved aside.
    study, pegasos = command.study, command.study.solver[1]
    changed = pegasos.model_copy(update={"params": {"max_epochs": 2}})
    command.study = study.with_solvers([study.solver[0], changed])
    found, _ = command()
    assert (found.already_recorded, found.planned) == (2, 4)
    store = RecordStore(command.results / "runs")
    assert (len(store.names()), len(store.rows)) == (4, 2)
    assert len(list((command.results / "superseded").iterdir())) == 2
    command.study = study
    found, _ = command()
    assert found == before
    assert len(RecordStore(command.results / "runs").names()) == 4


def test_solvers_of_a_user_are_always_looked_at(
    command: Commands, make_study: Callable[..., Study], tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text('from marginbench import Perceptron\nclass Mine(Perceptron):\n    "Mine."\n')
    study = make_study(task=[{**BOARD, "label": "a"}], solver=[{"name": f"{file}:Mine"}])
    known = resuming.Resumption(resuming.Scope(study, study), tmp_path, {})
    assert known.asked_if_told() == ""
    assert known.summary() is None


def test_an_edit_of_the_program_changes_its_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    first = list(stamps._stamps_below(str(tmp_path)))
    (tmp_path / "a.py").write_text("x = 2\n")
    assert list(stamps._stamps_below(str(tmp_path))) != first
    before = stamps.program_stamp()
    assert stamps.program_stamp() == before
    (tmp_path / "numpy-0.1.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert stamps.program_stamp() != before
