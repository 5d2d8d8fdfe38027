"""Records, their journal and ``study.json``: what comes back, what damage costs, what counts."""

import errno
import json
import math
import os
import random
import shutil
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from marginbench import parse_record
from marginbench.harness.errors import RecordError, StorageError, UserError
from marginbench.harness.results.description import (
    SCHEMA_VERSION as DESCRIPTION,
    DamagedDescriptionError,
    read_description,
    write_description,
)
from marginbench.harness.results.feasibility import FeasibilityRecord, Stage
from marginbench.harness.results.journal import TABLE, Journal, line_of, record_line, runs_table
from marginbench.harness.results.records import SCHEMA_VERSION
from marginbench.harness.results.svm import Checkpoint, Record, packed, unpacked

from ..faults.conftest import LONG

COMMON = {
    "key": "ab" * 32,
    "budget": '{"timeout":60.0}',
    "study": "s",
    "task": "t / <odd>",
    "solver": "SMO",
    "solver_class": "marginbench:SMO",
    "seed": 0,
    "status": "converged",
    "counters": {"kernel_evals": 10, "of_a_user": 2**60},
}


def svm_record(**changes):
    checkpoint = Checkpoint(
        n_iter=1, counters={"kernel_evals": 10}, wall_s=0.1, cpu_s=0.1, n_support=3,
        train_error=0.2, test_error=0.3, primal=5.0, dual=None,
    )  # fmt: skip
    return Record(
        **(COMMON | {"dataset": "digits", "primal": 1 / 3, "trace": [checkpoint]}) | changes
    )


def feasibility_record(**changes):
    stage = Stage(n_iter=1, counters={"matvecs": 4}, wall_s=0.1, phi_lo=-0.5, phi_up=1 / 3)
    return FeasibilityRecord(**(COMMON | {"found": "separable", "trace": [stage]}) | changes)


each_kind = pytest.mark.parametrize("make", [svm_record, feasibility_record])


def plan(results, *records):
    """Plan the keys of these records."""
    planned = [
        {name: getattr(r, name) for name in ("key", "task", "solver", "seed")} for r in records
    ]
    write_description(results, {"schema_version": DESCRIPTION, "planned": planned})


def journal_with(results, *records):
    """A journal of one command, whose plan has the keys of these records."""
    plan(results, *records)
    with closing(Journal(results)) as journal:
        for record in records:
            assert journal.append_record(record).key == record.key
    return Journal(results)


def several(n):
    return [svm_record(key=f"{seed:064x}", seed=seed) for seed in range(n)]


@each_kind
def test_a_record_comes_back_as_it_was(tmp_path, make):
    records = [make(), make(seed=1, key="cd" * 32, counters=None, trace=[], status="failed")]
    assert [*map(parse_record, map(record_line, records))] == records
    assert parse_record(record_line(records[0]).decode().strip()) == records[0]
    # Entries of headers that it does not know are passed over.
    assert parse_record(record_line(records[0], later=1)) == records[0]
    journal_with(tmp_path, *records)
    assert [*Journal(tmp_path).records()] == records
    (path,) = Journal(tmp_path).segments()
    # What it took but for compiling is in its header, for forecasts, and on what machine.
    machine = {"processor": "P", "cores": 4, "cores_logical": 8, "memory_mb": 15_900}
    timed = make(wall_s=79.0, data_s=1.0, compile_s=9.0, environment=json.dumps(machine))
    header = json.loads(record_line(timed)[33:].partition(b"\t")[0])
    assert (header["seconds"], header["machine"]) == (80.0, "P, 8 cores, 16 GB")
    assert path.stat().st_mode & 0o044  # others may read results


def test_a_line_is_strict_json():
    stage = Stage(n_iter=1, wall_s=0.1, phi_lo=-math.inf, phi_up=math.inf)
    record = feasibility_record(phi_lo=-math.inf, phi_up=math.nan, trace=[stage], reason="é\u2028")
    line = record_line(record)
    assert line.count(b"\n") == line.count(b"\t") == 1
    body = json.loads(line.partition(b"\t")[2], parse_constant=pytest.fail)
    assert (body["phi_lo"], body["phi_up"], body["trace"]["phi_up"]) == ("-inf", None, ["inf"])
    assert parse_record(line) == replace(record, phi_up=None)


@each_kind
def test_what_no_run_can_have_is_impossible(make):
    record = make(n_iter=2**63 - 1, counters={"kernel_evals": 0})
    assert record.impossible == ""
    for changes, complaint in (
        ({"status": "zonk"}, "status is 'zonk'"),
        ({"params": "[]"}, "params is '[]'"),
        ({"counters": {"inner_products": -1}}, "counters is {'inner_products': -1}"),
        ({"seed": 2**63}, "seed is 9223372036854775808"),
        ({"jobs": -1}, "jobs is -1"),
        ({"test_error": math.nan}, "test_error is nan"),
        ({"test_error": 1.5}, "test_error is 1.5"),
        ({"trace": [replace(record.trace[0], n_iter=-3)]}, "n_iter is -3"),
    ):
        assert replace(record, **changes).impossible == complaint


def test_version_1_is_read(tmp_path):
    # 0.1.0 wrote this file. It stays as it is: whoever changes the format adds a reader.
    (tmp_path / "journal").mkdir()
    shutil.copy(f"{os.path.dirname(__file__)}/version_1.jsonl", tmp_path / "journal")
    journal = Journal(tmp_path)
    assert journal.damages == journal.others() == []
    assert [*map(journal.load, journal.entries)] == [
        svm_record(),
        feasibility_record(seed=1, key="cd" * 32, phi_lo=-math.inf),
    ]


def test_a_line_of_another_release_ends_the_command(tmp_path):
    for changes, complaint in (
        ({"kind": "quantum"}, "a record of the kind 'quantum', this release knows svm and "),
        ({"another": 1}, "columns differ from the schema: another"),
        ({"trace": {"n_iter": [1]}}, "columns differ from the schema: counters, cpu_s, "),
    ):
        values = svm_record().values() | changes
        with pytest.raises(RecordError, match=complaint):
            parse_record(line_of({"type": "record", "schema": SCHEMA_VERSION}, values))
    with pytest.raises(RecordError, match=r"schema version 0, .*; use that release or choose"):
        parse_record(line_of({"type": "record", "schema": 0, "key": "k"}, {}))
    line = line_of({"type": "record", "schema": 99, "key": "k"}, {})
    with pytest.raises(RecordError, match=r"another release .*schema version 99"):
        parse_record(line)
    journal_with(tmp_path, svm_record())
    (tmp_path / "journal" / "later.jsonl").write_bytes(line)
    with pytest.raises(UserError, match=r"later\.jsonl: written by another release .*; update"):
        Journal(tmp_path)


def test_a_description_of_another_release_is_not_taken_for_one_of_this(tmp_path):
    values = {"schema_version": DESCRIPTION + 1, "name": "a"}
    assert write_description(tmp_path, values)
    message = rf"study\.json: written by another release of marginbench .*{DESCRIPTION + 1}"
    with pytest.raises(UserError, match=message) as told:
        read_description(tmp_path)
    # It is whole: no command may move it aside.
    assert not isinstance(told.value, DamagedDescriptionError)


def flip(content, rng):
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def cut(content, rng):
    del content[rng.randrange(len(content)) :]


def cut_out(content, rng):
    start = rng.randrange(len(content))
    del content[start : start + rng.randint(1, 2000)]


def insert(content, rng):
    place = rng.randrange(len(content))
    content[place:place] = rng.choice((rng.randbytes(9), b"\n", bytes(content)))


def damaged(path, number, *ways):
    """Damages a file as often in these ways; what it holds then."""
    content, rng = path.read_bytes(), random.Random(5)
    for count in range(number):
        changed = bytearray(content)
        ways[count % len(ways)](changed, rng)
        path.write_bytes(changed)
        yield changed


def test_no_damage_is_misread_or_fatal(tmp_path):
    intact = {record.key: record for record in several(6)}
    (path,) = journal_with(tmp_path, *intact.values()).segments()
    end = path.read_bytes()[-40:]
    for content in damaged(path, 10_000 if LONG else 300, flip, cut, cut_out, insert):
        journal = Journal(tmp_path)
        found = {entry.key: journal.load(entry) for entry in journal.entries}
        assert found.items() <= intact.items()
        assert journal.damages or len(found) == 6 or not content.endswith(end)
        for damage in journal.damages:
            assert content[: damage.byte].count(b"\n") == damage.line - 1


def test_a_line_that_has_changed_since_it_was_read_is_named(tmp_path):
    journal = journal_with(tmp_path, *several(2))
    (path,), entry = journal.segments(), journal.entries[1]
    content = path.read_bytes()
    assert journal.load(entry) == several(2)[1]
    path.write_bytes(content.replace(b"digits", b"digitz"))
    with pytest.raises(RecordError, match=rf"^{path}: byte {entry.offset}: damaged"):
        journal.load(entry)


def test_no_damage_shows_another_description(tmp_path):
    values = {"schema_version": DESCRIPTION, "name": "é", "tasks": [{"C": 0.1}] * 9}
    write_description(tmp_path, values)
    path = tmp_path / "study.json"
    content = path.read_bytes()
    for _ in damaged(path, 400, flip, flip, flip, cut_out):
        try:
            found = read_description(tmp_path)
        except DamagedDescriptionError:
            assert write_description(tmp_path, values)
            assert path.read_bytes() == content
            continue
        assert found == values  # only white space was changed
        assert not write_description(tmp_path, values)


def start_of(record):
    return record.key, (record.task, record.solver, record.seed)


def test_what_others_write_is_known_while_they_live(tmp_path):
    first, second = several(2)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    line = record_line(second)
    with closing(Journal(here)) as other:
        for record in (first, second):
            other.append_start(*start_of(record))
        other.append_record(first)
        (path,) = other.segments()
        with path.open("ab") as file:
            file.write(line[:200])
        mine = Journal(here)
        assert (len(mine.entries), mine.damages, mine.others()) == (1, [], [path.name])
        (start,) = mine.running()
        assert (start.key, start.cell) == start_of(second)
        # So is what they plan.
        assert mine.plan == {}
        plan(here, second)
        mine.refresh()
        assert [*mine.plan.values()] == [second.key]
        assert other.running() == []
        shutil.copytree(here, there)
        with path.open("ab") as file:
            file.write(line[200:] + line[:200])
        assert [entry.key for entry in mine.refresh()] == [second.key]
        assert mine.running() == []
    mine.refresh()
    # Half a line is damage once its writer is gone.
    assert [(damage.line, damage.key) for damage in mine.damages] == [(5, second.key)]
    assert mine.others() == Journal(here).others() == []
    killed = Journal(here)
    killed.append_start(*start_of(second))
    mine.refresh()
    assert len(mine.running()) == 1
    os.close(killed._own[1])  # as the system does
    assert (mine.running(), mine.others()) == ([], [])
    # Nobody writes the cut file of a folder that was copied ...
    reader = Journal.settled(there)
    assert (reader.others(), reader.running()) == ([], [])
    assert [damage.key for damage in reader.damages] == [second.key]
    copy = there / path.relative_to(here)
    with copy.open("ab") as file:
        file.write(b"x")  # ... unless it grows: on a shared disk, its writer is elsewhere
    reader.refresh()
    assert reader.others() == [copy.name]
    with copy.open("ab") as file:
        file.write(b"\n" + line_of({"type": "end", "schema": SCHEMA_VERSION}, {}))
    reader.refresh()
    assert reader.others() == []


def test_a_line_that_is_finished_while_it_is_looked_at_is_no_damage(tmp_path, monkeypatch):
    (path,) = journal_with(tmp_path, several(1)[0]).segments()
    # What a command has written that is killed before it ends.
    whole = b"".join(path.read_bytes().splitlines(keepends=True)[:-1])
    path.write_bytes(whole[:-50])
    reader = Journal(tmp_path / "elsewhere")
    reader.folder = path.parent

    def finished(path):
        """The writer writes the rest and gives up the file, just before it is asked for."""
        path.write_bytes(whole)
        return False

    monkeypatch.setattr(reader, "_is_written", finished)
    assert (reader.refresh(), reader.damages) == ([], [])
    assert [entry.key for entry in reader.refresh()] == [several(1)[0].key]


@pytest.mark.parametrize("step", ["write", "sync"])
def test_a_full_disk_leaves_no_half_line(tmp_path, step, monkeypatch):
    first, second = several(2)
    with closing(Journal(tmp_path)) as journal:
        journal.append_record(first)
        (path,) = journal.segments()
        size = path.stat().st_size
        write = os.write

        def full(descriptor, content=b""):
            if step == "write" and path.stat().st_size == size:
                return write(descriptor, content[:50])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr("marginbench.harness.results.journal._SYNC_S", -1.0)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write" if step == "write" else "fsync", full)
            with pytest.raises(StorageError, match=r"cannot be written .*No space"):
                journal.append_record(second)
        assert path.stat().st_size == size
        journal.append_record(second)
    assert [entry.key for entry in Journal(tmp_path).entries] == [first.key, second.key]


def test_the_last_line_counts_but_one_that_was_cut_short_never_replaces_a_whole_one(tmp_path):
    for status, reason, counts in (
        ("timeout", "", "timeout"),
        ("budget", "max_seconds=60 are over", "budget"),
        ("converged", "", "converged"),
        ("timeout", "", "converged"),
        ("budget", "max_seconds=60 are over", "converged"),
        ("crashed", "", "converged"),
        ("budget", "", "budget"),
    ):
        journal_with(tmp_path, svm_record(status=status, reason=reason))
        assert [record.status for record in Journal(tmp_path).records()] == [counts]
        first, *later = Journal(tmp_path).segments()
        if not later:
            # The last command is that which began last, whatever its clock says.
            first.rename(first.with_name(f"29991231T235959.999999Z-{first.name.partition('-')[2]}"))


def test_a_folder_that_is_removed_does_not_come_back(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    journal = Journal(results)
    journal.append_record(svm_record())
    (results / "journal").rename(tmp_path / "elsewhere")
    for write in (lambda: journal.append_record(svm_record()), journal.close):
        with pytest.raises(
            StorageError, match=r"results/journal/.* \(No such file or directory\); make its folder"
        ):
            write()
        assert not (results / "journal").exists()
    journal.close()  # there is nothing left to end


def test_the_table_is_that_of_the_journal(tmp_path):
    records = several(4)
    (path,) = journal_with(tmp_path, *records[:3]).segments()
    table, lost = runs_table(tmp_path, Record, write=True)
    assert (table["seed"].to_pylist(), lost) == ([0, 1, 2], {})
    stored = (tmp_path / TABLE).read_bytes()
    again, _ = runs_table(tmp_path, Record, write=True)
    assert again.equals(table)
    assert (tmp_path / TABLE).read_bytes() == stored
    # Another line, a damaged line, a damaged table: what the journal says holds.
    with path.open("ab") as file:
        file.write(record_line(replace(records[0], status="budget")))
        file.write(record_line(records[1]).replace(b"digits", b"digitz"))
    table, lost = runs_table(tmp_path, Record)
    assert (table["status"].to_pylist(), lost) == (["budget", "converged", "converged"], {})
    runs_table(tmp_path, Record, write=True)
    for _ in damaged(tmp_path / TABLE, 60, flip, cut):
        assert runs_table(tmp_path, Record)[0].equals(table)


def test_a_run_that_was_killed_has_the_numbers_of_its_last_checkpoint():
    first = feasibility_record().trace[0]
    last = replace(first, n_iter=2, wall_s=2.0, counters={"matvecs": 8}, phi_up=0.5)
    record = feasibility_record(wall_s=9.0, trace=[first, first, last])
    record.take_last_checkpoint()
    assert (record.n_iter, record.counters, record.phi_up) == (2, {"matvecs": 8}, 0.5)
    assert record.wall_s == 9.0  # the time that it was given, not that of the checkpoint


def test_the_mistakes_of_a_model_come_back_and_what_holds_no_such_number_is_none():
    for n in (1, 7, 8, 9, 1000):
        mistakes = np.random.default_rng(n).random(n) < 0.3
        text = packed(mistakes)
        assert np.array_equal(unpacked(text, n), mistakes)
        for wrong in (text[:-4], f"{text[:4]}\n{text[4:]}", f"{text}A"):
            assert unpacked(wrong, n) is None
        assert unpacked(text, n + 8) is unpacked(text, n - 8) is None
    assert unpacked("", 0) is None


def test_a_journal_that_cannot_be_listed_is_no_empty_one(tmp_path):
    (tmp_path / "journal").write_text("")
    with pytest.raises(NotADirectoryError):
        Journal(tmp_path)
