"""Compacted folders: the same records for every reader, whatever is killed, damaged or replaced."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import marginbench
from marginbench.harness.errors import RecordError, UserError
from marginbench.harness.results.description import write_description
from marginbench.harness.results.folders import compacted, compacting, gathering
from marginbench.harness.results.folders.compacted import CompactedFile
from marginbench.harness.results.folders.compacting import compact
from marginbench.harness.results.records import RecordBase
from marginbench.harness.results.store import RecordStore
from marginbench.harness.results.svm import Checkpoint, Record

OLD = Path(__file__).parents[1] / "old_records"


def record(seed: int, **changes: Any) -> Record:
    trace = [
        Checkpoint(
            n_iter=place, counters={"kernel_evals": 10 * place, "of_a_user": 2**60}, wall_s=0.1,
            cpu_s=0.1, n_support=3, train_error=0.2, test_error=1 / 3, primal=5.0, dual=None,
        )
        for place in range(1, 3)
    ]  # fmt: skip
    values = {
        "key": f"{seed:02x}" * 32, "study": "s", "task": "t / <odd>", "solver": "SMO",
        "solver_class": "marginbench:SMO", "seed": seed, "status": "converged",
        "counters": {"kernel_evals": 20}, "dataset": "digits", "primal": 1 / 3, "trace": trace,
    }  # fmt: skip
    return Record(**(values | changes))


class Folder:
    """A results folder with records of seeds."""

    def __init__(self, path: Path, seeds: int) -> None:
        self.path = path
        path.mkdir()
        (path / "runs").mkdir()
        for seed in range(seeds):
            self.store.write(record(seed))

    @property
    def store(self) -> RecordStore:
        return RecordStore(self.path / "runs")

    def records(self) -> list[RecordBase]:
        """All records by any reader: exactly once each, none damaged."""
        found = list(self.store.scan())
        assert not [item for item in found if isinstance(item, RecordError)]
        return sorted(
            (item for item in found if isinstance(item, RecordBase)), key=lambda r: r.seed
        )

    def files(self) -> set[str]:
        return {path.name for path in (self.path / "runs").iterdir()}


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacting, "FILE_ROWS", 4)
    monkeypatch.setattr(compacted, "GROUP_ROWS", 2)


@pytest.mark.usefixtures("small_files")
def test_records_are_the_same_after_compaction(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a", 7)
    before = folder.records()
    frame = pd.read_parquet(folder.path / "runs").sort_values("seed", ignore_index=True)
    done = compact(folder.path)
    assert (done.records, done.gathered, done.files, done.damaged) == (7, 7, 2, ())
    assert folder.store.paths() == []
    assert folder.records() == before == [record(seed) for seed in range(7)]
    assert folder.store.load(record(3).file_name) == record(3)
    assert folder.store.load("t-SMO-s99-0000000000000000.parquet") is None
    # Others read the folder as before, single records beside compacted ones too.
    RecordStore(folder.path / "runs").write(record(7))
    after = pd.read_parquet(folder.path / "runs").sort_values("seed", ignore_index=True)
    pd.testing.assert_frame_equal(after[:7], frame)
    lazy = pl.scan_parquet(folder.path / "runs" / "*.parquet")
    assert lazy.select(pl.col("seed").sort()).collect()["seed"].to_list() == list(range(8))


@pytest.mark.usefixtures("small_files")
def test_a_second_compaction_gathers_what_is_new_and_leaves_full_files(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a", 5)
    compact(folder.path)
    first = folder.files()
    assert compact(folder.path).gathered == 0
    assert folder.files() == first
    folder.store.write(record(5))
    done = compact(folder.path)
    assert (done.gathered, done.files, done.records) == (1, 2, 6)
    assert len(folder.files() & first) == 1
    assert folder.records() == [record(seed) for seed in range(6)]


@pytest.mark.usefixtures("small_files")
def test_each_row_group_is_read_once_in_the_order_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path / "a", 16)
    # Neither the order of names nor that of seeds.
    names = [record(7 * place % 16).file_name for place in range(16)]
    write_description(folder.path, {"planned": [{"file": name} for name in names]})
    compact(folder.path)
    read: list[int] = []
    whole = CompactedFile._read_rows
    monkeypatch.setattr(
        CompactedFile, "_read_rows", lambda file, number: read.append(number) or whole(file, number)
    )
    store = folder.store
    assert [store.load(name) for name in names] == [record(7 * place % 16) for place in range(16)]
    assert read == [0, 1] * 4


@pytest.mark.usefixtures("small_files")
def test_the_docs_tell_how_to_verify_a_file_without_this_package(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a", 3)
    compact(folder.path)
    text = (Path(__file__).parents[3] / "docs" / "results-folder.md").read_text()
    (code,) = (part for part in text.split("```python\n") if part.startswith("import hashlib"))
    found: dict[str, Any] = {}
    exec(code.partition("```")[0], found)
    (path,) = folder.store.compacted_paths()
    found["verify"](path)
    content = path.read_bytes()
    for place in random.Random(0).sample(range(len(content)), 200):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises((AssertionError, ValueError, OSError)):
            found["verify"](path)


@pytest.mark.parametrize("content", ["{}", "no JSON", '{"planned": 3}', '{"planned": [{}]}'])
def test_compaction_does_not_need_the_plan(tmp_path: Path, content: str) -> None:
    folder = Folder(tmp_path / "a", 3)
    (folder.path / "study.json").write_text(content)
    assert compact(folder.path).gathered == 3
    assert folder.records() == [record(seed) for seed in range(3)]


def test_a_file_of_its_own_goes_before_a_row(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a", 3)
    compact(folder.path)
    folder.store.write(record(1, primal=9.0))
    assert folder.records() == [record(0), record(1, primal=9.0), record(2)]
    compact(folder.path)
    assert folder.records() == [record(0), record(1, primal=9.0), record(2)]
    assert len(folder.files()) == 1
    assert len(pd.read_parquet(folder.path / "runs")) == 3


def test_records_taken_out_are_as_they_were(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a", 3)
    compact(folder.path)
    store = folder.store
    gathering.take_out(store, [record(1).file_name, "unknown"])
    assert [path.name for path in store.paths()] == [record(1).file_name]
    assert store.read(store.paths()[0]) == record(1)
    assert len(pd.read_parquet(store.folder)) == 3
    gathering.take_out(store, [record(0).file_name, record(2).file_name])
    assert store.compacted_paths() == []
    assert folder.records() == [record(seed) for seed in range(3)]


def test_records_of_other_schemas_and_without_checksums_are_kept(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a", 2)
    for kind in ("svm", "feasibility"):
        shutil.copy(OLD / f"{kind}-4.parquet", folder.path / "runs")
        old = marginbench.read_record(OLD / f"{kind}-4.parquet")
        folder.store.write(old)
    before = sorted(map(repr, folder.store.scan()))
    done = compact(folder.path)
    assert (done.gathered, done.files, done.without_checksum) == (4, 2, 2)
    assert sorted(map(repr, folder.store.scan())) == before


def test_a_damaged_record_is_named_and_left(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a", 3)
    path = folder.store.paths()[1]
    path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    done = compact(folder.path)
    assert (done.gathered, done.exit_code) == (2, 1)
    assert done.damaged[0].startswith(f"{path}: ")
    assert folder.store.paths() == [path]


def test_what_is_no_results_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no results here"):
        compact(tmp_path)
    folder = Folder(tmp_path / "a", 1)
    compact(folder.path)
    (path,) = folder.store.compacted_paths()
    with pytest.raises(RecordError, match="holds the records of many runs"):
        marginbench.read_record(path)


@pytest.mark.usefixtures("small_files")
def test_damage_costs_the_records_of_a_row_group_only(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a", 4)
    compact(folder.path)
    (path,) = folder.store.compacted_paths()
    content = bytearray(path.read_bytes())
    content[100] ^= 1  # in the first of two row groups
    path.write_bytes(content)
    found = list(folder.store.scan())
    assert [isinstance(item, RecordError) for item in found] == [True, True, False, False]
    assert str(found[0]).startswith(f"{path}: damaged (row group 0, of 2 records")
    said: list[str] = []
    gathering.put_right(store := folder.store, said.append)
    assert said == [
        f"{path}: damaged (2 records of 4 in 1 row group); moved to _{path.name}.damaged, their "
        "runs are done again"
    ]
    assert list(store.scan()) == [record(2), record(3)]
    assert store.load(record(0).file_name) is None


def test_every_damaged_bit_is_noticed(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a", 2)
    compact(folder.path)
    (path,) = folder.store.compacted_paths()
    content, rng = path.read_bytes(), random.Random(3)
    for _ in range(60):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        assert all(isinstance(item, RecordError) for item in folder.store.scan())
        with pytest.raises(RecordError, match=r"compact-.*\.parquet: (damaged|not readable)"):
            folder.store.load(record(0).file_name)
    path.write_bytes(content[:-1])
    assert isinstance(next(folder.store.scan()), RecordError)


def steps_killed(action: Callable[[], object]) -> Iterator[int]:
    """Do it in processes that die before the first, the second ... change of a file, until none."""
    for last in range(100):
        child = os.fork()
        if child == 0:
            left = last
            for name in ("replace", "unlink"):
                original = getattr(os, name)

                def step(*args: Any, original: Any = original, **options: Any) -> Any:
                    nonlocal left
                    if left == 0:
                        os._exit(9)
                    left -= 1
                    return original(*args, **options)

                setattr(os, name, step)
            try:
                action()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        yield last
        if os.waitstatus_to_exitcode(status) == 0:
            return
    raise AssertionError("it does not end")


@pytest.mark.slow
@pytest.mark.usefixtures("small_files")
def test_a_kill_between_any_two_steps_loses_and_doubles_nothing(tmp_path: Path) -> None:
    def prepared(name: str) -> Folder:
        folder = Folder(tmp_path / name, 2)
        compact(folder.path)
        folder.store.write(record(1, primal=9.0))
        for seed in (2, 3, 4):
            folder.store.write(record(seed))
        return folder

    expected = [record(0), record(1, primal=9.0), *map(record, (2, 3, 4))]
    original = prepared("original").path
    counter = iter(range(100))
    copies: list[Path] = []

    def killed() -> None:
        compact(copies[-1])

    def fresh() -> None:
        copies.append(tmp_path / f"copy-{next(counter)}")
        shutil.copytree(original, copies[-1])

    fresh()
    for _ in steps_killed(killed):
        folder = Folder.__new__(Folder)
        folder.path = copies[-1]
        assert folder.records() == expected
        compact(folder.path)
        assert folder.records() == expected
        assert len(pd.read_parquet(folder.path / "runs")) == 5
        assert all(compacted.NAME.fullmatch(name) for name in folder.files())
        fresh()
    assert len(copies) > 9


def test_replaced_and_repeated_rows_get_files_of_their_own_first(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a", 3)
    compact(folder.path)
    store = folder.store
    store.write(record(2, primal=9.0))
    gathering.separate(store, [record(1).file_name])
    assert sorted(store.rows) == [record(0).file_name]
    assert folder.records() == [record(0), record(1), record(2, primal=9.0)]


def test_the_footer_lists_each_record_with_its_digest(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = Folder(tmp_path / "a", 2)
    compact(folder.path)
    (path,) = folder.store.compacted_paths()
    metadata = pq.read_metadata(path).metadata
    (group,) = json.loads(metadata[b"marginbench.compacted"])["groups"]
    assert group["names"] == [record(seed).file_name for seed in range(2)]
    # A digest is that of the values alone: that of the same record in a file of its own.
    (single,) = (RecordStore(tmp_path).write(replace(record(0))),)
    assert pq.read_metadata(single).metadata[b"marginbench.content"].decode() == group["digests"][0]
