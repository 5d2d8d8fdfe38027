"""A mirror and its store: what changed on one side reaches the other, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from marginbench.harness.results.records import RecordBase
from marginbench.harness.results.remote.folder_objects import FolderObjects
from marginbench.harness.results.remote.mirror import Mirror
from marginbench.harness.results.remote.objects import Entry
from marginbench.harness.results.store import RecordStore
from marginbench.harness.results.svm import Record

MakeMirror = Callable[..., Mirror]


class Told(FolderObjects):
    """Tells what is asked of it, and may answer a list differently."""

    def __init__(self, objects: FolderObjects) -> None:
        super().__init__(str(objects.folder), objects.place)
        self.asked: list[tuple[str, str]] = []
        self.lists: list[dict[str, Entry]] = []

    def list(self, prefix: str) -> dict[str, Entry]:
        self.asked.append(("list", prefix))
        return self.lists.pop(0) if self.lists else super().list(prefix)

    def get(self, name: str) -> tuple[bytes, str]:
        self.asked.append(("get", name))
        return super().get(name)

    def put(self, name: str, content: bytes) -> str:
        self.asked.append(("put", name))
        return super().put(name, content)

    def delete(self, names: Iterable[str]) -> None:
        names = list(names)
        self.asked += [("delete", name) for name in names]
        super().delete(names)


@pytest.fixture
def told(objects: FolderObjects) -> Told:
    return Told(objects)


def record(started_at: str = "2026-01-01T00:00:00+00:00", **values: Any) -> RecordBase:
    known = {
        "key": "ab" * 32, "study": "s", "task": "t", "solver": "P", "solver_class": "m:P",
        "seed": 0, "status": "converged", "dataset": "d",
    }  # fmt: skip
    return Record(**{**known, **values}, started_at=started_at)


def write(mirror: Mirror, name: str, content: bytes) -> None:
    path = mirror.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_what_is_new_goes_to_the_other_side_and_is_moved_once(
    told: Told, make_mirror: MakeMirror
) -> None:
    here, there = make_mirror("a", told), make_mirror("b", told)
    for name in ("study.json", "runs/x.parquet", "superseded/y.parquet", "sources/z.json"):
        write(here, name, name.encode())
    here.push()
    there.pull()
    assert contents(there.folder) == contents(here.folder)
    assert here.is_ahead is there.is_ahead is False
    told.asked.clear()
    for mirror in (here, there, make_mirror("a", told)):
        mirror.pull()
        mirror.push()
    assert {what for what, _ in told.asked} == {"list"}


def test_files_that_are_not_of_a_results_folder_stay_where_they_are(
    told: Told, make_mirror: MakeMirror
) -> None:
    mirror = make_mirror(of=told)
    told.put("notes/a.txt", b"")
    told.put("other.json", b"")
    write(mirror, ".lock", b"")
    write(mirror, "logs/worker.log", b"")
    write(mirror, "runs/.writing-1", b"")
    mirror.pull()
    mirror.push()
    assert sorted(told.list("")) == ["notes/a.txt", "other.json"]
    assert sorted(contents(mirror.folder)) == [".lock", "logs/worker.log", "runs/.writing-1"]


@pytest.mark.parametrize("name", ["runs/../../escaped", "runs/..", "../study.json", "/study.json"])
def test_no_name_in_a_store_leads_out_of_the_mirror(
    told: Told, make_mirror: MakeMirror, name: str
) -> None:
    told.lists = [{name: Entry("tag", 0.0)}]
    make_mirror(of=told).pull()
    assert [what for what, _ in told.asked] == ["list"]


def test_what_takes_the_place_of_others_is_there_before_they_go(
    told: Told, make_mirror: MakeMirror
) -> None:
    here, there = make_mirror("a", told), make_mirror("b", told)
    write(here, "runs/x.parquet", b"x")
    here.push()
    there.pull()
    told.asked.clear()
    (here.folder / "runs" / "x.parquet").unlink()
    write(here, "runs/compact-1.parquet", b"x")
    here.push()
    assert told.asked == [("put", "runs/compact-1.parquet"), ("delete", "runs/x.parquet")]
    there.pull()
    assert contents(there.folder) == {"runs/compact-1.parquet": b"x"}


def test_a_list_of_two_moments_loses_nothing(told: Told, make_mirror: MakeMirror) -> None:
    mirror = make_mirror(of=told)
    write(mirror, "runs/x.parquet", b"x")
    mirror.push()
    told.delete(["runs/x.parquet"])
    told.put("runs/compact-1.parquet", b"x")
    # Its first part was listed before the one was there, its second after the other had gone.
    told.lists = [{}]
    mirror.pull()
    assert contents(mirror.folder) == {"runs/compact-1.parquet": b"x"}


def test_what_is_pushed_while_the_store_is_listed_stays(
    told: Told, make_mirror: MakeMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = make_mirror(of=told)
    write(mirror, "study.json", b"{}")
    mirror.push()
    before = told.list("")
    told.lists = [before]
    listed = Mirror._listed

    def pushing(self: Mirror) -> dict[str, Entry]:
        found = listed(self)
        write(mirror, "runs/x.parquet", b"x")
        mirror.push_file("runs/x.parquet")
        return found

    monkeypatch.setattr(Mirror, "_listed", pushing)
    mirror.pull()
    assert (mirror.folder / "runs" / "x.parquet").read_bytes() == b"x"


@pytest.mark.parametrize(("ours", "theirs"), [("2026-01-02", "2026-01-01"), ("2026-01-01",) * 2])
def test_of_two_records_the_later_stays(
    told: Told, make_mirror: MakeMirror, ours: str, theirs: str
) -> None:
    here, there = make_mirror("a", told), make_mirror("b", told)
    name = record().file_name
    for mirror, when, reason in ((here, ours, "ours"), (there, theirs, "theirs")):
        (mirror.folder / "runs").mkdir()
        RecordStore(mirror.folder / "runs").write(record(when, reason=reason))
    there.push()
    here.pull()
    here.push()
    there.pull()
    found = [RecordStore(m.folder / "runs").load(name) for m in (here, there)]
    expected = "ours" if ours > theirs else "theirs"
    assert [item and item.reason for item in found] == [expected] * 2


def test_what_was_killed_before_it_was_pushed_is_pushed_by_the_next_command(
    told: Told, make_mirror: MakeMirror
) -> None:
    first = make_mirror(of=told)
    write(first, "study.json", b"1")
    write(first, "runs/x.parquet", b"x")
    first.push()
    write(first, "runs/y.parquet", b"y")
    (first.folder / "runs" / "x.parquet").unlink()
    with (first.folder.parent / "mirror.jsonl").open("ab") as index:
        index.write(b'["runs/z.par')  # killed in the middle of a line
    again = make_mirror(of=told)
    assert again.is_ahead
    again.pull()
    again.push()
    assert sorted(told.list("")) == ["runs/y.parquet", "study.json"]


def test_a_file_that_changed_there_is_not_removed_because_it_is_gone_here(
    told: Told, make_mirror: MakeMirror
) -> None:
    here, there = make_mirror("a", told), make_mirror("b", told)
    write(here, "runs/x.parquet", b"x")
    here.push()
    there.pull()
    (here.folder / "runs" / "x.parquet").unlink()
    write(there, "runs/x.parquet", b"later")
    there.push()
    here.pull()
    here.push()
    assert told.get("runs/x.parquet")[0] == b"later"


def test_damage_on_the_disk_here_is_mended_from_the_store(
    told: Told, make_mirror: MakeMirror
) -> None:
    mirror = make_mirror(of=told)
    (mirror.folder / "runs").mkdir()
    path = RecordStore(mirror.folder / "runs").write(record())
    mirror.push()
    whole, at = path.read_bytes(), path.stat()
    path.write_bytes(whole[:-40] + b"#" + whole[-39:])
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))
    mirror.verify()
    assert path.read_bytes() == whole
