"""Studies on stores: the records of a local run, each run once, nothing lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from marginbench.harness.errors import BusyError, InterruptedRunError
from marginbench.harness.execution.guarding import exclusive
from marginbench.harness.execution.jobs import Event, Job, Started
from marginbench.harness.execution.outcomes import RunSummary
from marginbench.harness.execution.runner import run_study
from marginbench.harness.execution.workbench import InProcess
from marginbench.harness.results.folders.compacting import compact
from marginbench.harness.results.folders.merging import OF_THE_MACHINE
from marginbench.harness.results.remote import opening, shared as shared_module
from marginbench.harness.results.remote.folder_objects import FolderObjects
from marginbench.harness.results.remote.monitoring import Monitor
from marginbench.harness.results.remote.objects import StoreError
from marginbench.harness.results.remote.urls import StoreUrl
from marginbench.harness.results.store import RecordStore
from marginbench.harness.study.select import select
from marginbench.harness.study.svm import Study

_ONE_RUN = threading.Lock()


class Counting(InProcess):
    """Counts the runs; may wait before one, or end there."""

    def __init__(self, seen: Counter[str], before: Any = lambda number: None) -> None:
        self.seen, self.before = seen, before

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        events = super().execute(jobs)
        while True:
            # The harness takes a process to do one run at a time.
            with _ONE_RUN:
                event = next(events, None)
            if event is None:
                return
            if isinstance(event, Started) and len(event.job.tag) == 64:
                self.seen[event.job.tag] += 1
                self.before(self.seen.total())
            yield event


@pytest.fixture
def store(tmp_path: Path) -> StoreUrl:
    return StoreUrl.of_folder(tmp_path / "store")


def run(
    study: Study, store: StoreUrl, executor: InProcess, whole: Study | None = None
) -> RunSummary:
    with opening.shared(store, str(store), lambda line: None) as (folder, sharing):
        return run_study(study, folder, executor=executor, whole=whole, sharing=sharing)


def values(folder: Path) -> dict[str, dict[str, Any]]:
    """What records say, without clocks and machines."""
    found = {}
    for record in RecordStore(folder / "runs").scan():
        assert not isinstance(record, Exception), record
        row = record.row()
        found[record.key] = {k: repr(v) for k, v in row.items() if k not in OF_THE_MACHINE}
    return found


def test_a_store_has_what_a_local_folder_has(
    board: Study, store: StoreUrl, alone: Path, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    summary = run(board, store, Counting(seen))
    assert summary.statuses == {"converged": 3, "budget": 3}
    assert values(tmp_path / "store") == values(alone)
    files = {path.name for path in (tmp_path / "store").iterdir()}
    assert files == {"study.json", "runs", "sources"}
    # Nothing is done again, also by who has no mirror yet.
    again = run(board, store, Counting(seen))
    assert again.already_recorded == again.planned == seen.total() == 6


def test_two_commands_at_once_run_each_run_once(
    board: Study, store: StoreUrl, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_module, "WAIT_S", 0.05)
    seen: Counter[str] = Counter()
    together = threading.Barrier(2, timeout=60)

    def before(number: int) -> None:
        if number <= 2:
            together.wait()  # both are in the middle of it

    with ThreadPoolExecutor(2) as pool:
        commands = [pool.submit(run, board, store, Counting(seen, before)) for _ in range(2)]
        summaries = [command.result() for command in commands]
    assert set(seen.values()) == {1}
    assert len(seen) == 6
    for summary in summaries:
        assert sum(summary.statuses.values()) == summary.planned == 6
        assert values(summary.results) == values(alone)
    assert values(tmp_path / "store") == values(alone)
    assert not (tmp_path / "store" / "claims").exists()
    assert not (tmp_path / "store" / "commands").exists()


@pytest.mark.slow
def test_parts_of_a_study_are_planned_together(
    board: Study, store: StoreUrl, tmp_path: Path
) -> None:
    for part in ({"solvers": ["Perceptron"]}, {"solvers": ["Pegasos"]}):
        run(select(board, **part), store, Counting(Counter()), whole=board)
    with opening.monitored(str(store)) as monitor:
        standing = monitor.look()
    assert (standing.planned, standing.done, standing.left) == (6, 6, 0)


def test_an_interrupted_command_leaves_no_claim_and_pushes_what_it_has(
    board: Study, store: StoreUrl, alone: Path, tmp_path: Path
) -> None:
    def before(number: int) -> None:
        if number == 4:
            raise KeyboardInterrupt

    seen: Counter[str] = Counter()
    with pytest.raises(InterruptedRunError, match=f"3 of 6 runs are recorded in {store}"):
        run(board, store, Counting(seen, before))
    assert len(values(tmp_path / "store")) == 3
    assert not (tmp_path / "store" / "claims").exists()
    assert run(board, store, Counting(seen)).already_recorded == 3
    assert values(tmp_path / "store") == values(alone)


def test_what_a_store_did_not_take_is_pushed_by_the_next_command(
    board: Study, store: StoreUrl, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = FolderObjects.put

    def failing(self: FolderObjects, name: str, content: bytes) -> str:
        if name.startswith("runs/"):
            raise StoreError(f"{self.place}: out of order")
        return put(self, name, content)

    seen: Counter[str] = Counter()
    with monkeypatch.context() as patch:
        patch.setattr(FolderObjects, "put", failing)
        with pytest.raises(StoreError, match="out of order; what was recorded stays in "):
            run(board, store, Counting(seen))
    assert seen
    assert not (tmp_path / "store" / "runs").exists()
    summary = run(board, store, Counting(seen))
    assert summary.already_recorded >= 1
    assert set(seen.values()) == {1}
    assert values(tmp_path / "store") == values(alone)


@pytest.mark.slow
def test_compacting_and_studies_keep_out_of_each_others_way(
    board: Study, store: StoreUrl, alone: Path, tmp_path: Path
) -> None:
    run(board, store, Counting(Counter()))
    with opening.changing(store, lambda line: None) as folder:
        assert compact(folder).gathered == 6
    names = [path.name for path in (tmp_path / "store" / "runs").iterdir()]
    assert len(names) == 1
    assert names[0].startswith("compact-")
    assert values(opening.fetched(str(store))) == values(alone)
    with (
        opening.shared(store, str(store), lambda line: None),
        pytest.raises(BusyError, match="a marginbench command is writing here"),
        opening.changing(store, lambda line: None),
    ):
        pass


def test_a_shared_folder_is_closed_to_commands_that_do_not_share_it(
    store: StoreUrl, tmp_path: Path
) -> None:
    with (
        opening.shared(store, str(store), lambda line: None),
        opening.shared(store, str(store), lambda line: None),
        pytest.raises(BusyError),
        exclusive(tmp_path / "store"),
    ):
        pass
    with (
        exclusive(tmp_path / "store"),
        pytest.raises(BusyError, match="give it --share"),
        opening.shared(store, str(store), lambda line: None),
    ):
        pass
    assert list((tmp_path / "store").iterdir()) == []


def test_a_look_reads_only_what_is_new_and_shows_what_runs(
    board: Study, store: StoreUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    read: list[str] = []
    rows_of = Monitor._rows_of

    def counted(self: Monitor, path: Path) -> Any:
        read.append(path.name)
        return rows_of(self, path)

    monkeypatch.setattr(Monitor, "_rows_of", counted)
    objects = FolderObjects(str(tmp_path / "store"), "the store")
    monitor = Monitor(tmp_path / "store", objects)
    pushed = threading.Event()
    push = shared_module.Shared._push

    def told(self: Any, *arguments: Any) -> None:
        push(self, *arguments)
        pushed.set()

    monkeypatch.setattr(shared_module.Shared, "_push", told)

    def before(number: int) -> None:
        if number > 1:
            assert pushed.wait(60)
            pushed.clear()
        looks.append(monitor.look())

    run(board, store, Counting(Counter(), before))
    assert [(look.done, look.left, len(look.running)) for look in looks] == [
        (number, 6 - number, 1) for number in range(6)
    ]
    assert all(look.commands == 1 for look in looks)
    assert len(read) == len(set(read)) == 5
    assert monitor.look().machines.popitem()[1].done == 6
