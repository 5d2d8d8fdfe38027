"""Merged folders: each run once, conflicts named, nothing lost, the rules of plans kept."""

import json
import shutil
from contextlib import closing
from copy import deepcopy
from dataclasses import replace

import pytest

from marginbench.harness.errors import UserError
from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning import merging
from marginbench.harness.planning.merging import merge
from marginbench.harness.results.description import read_description, write_description
from marginbench.harness.results.journal import Journal
from marginbench.harness.study.select import select
from marginbench.reports.results import load_results

from .answers import InProcess
from .conftest import BOARD, board_study


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """One study, run whole and in two parts that share a task."""
    study = board_study(
        title="A board",
        seeds=2,
        task=[{**BOARD, "label": "a"}, {**BOARD, "label": "b", "C": 2.0}],
        solver=[{"name": "Perceptron"}, {"name": "Pegasos", "params": {"max_epochs": 1}}],
    )
    folder = tmp_path_factory.mktemp("parts")
    for name, selection in (("whole", {}), ("one", {"datasets": ["a"]}), ("two", {"seeds": 1})):
        run_study(
            select(study, **selection), folder / name, whole=study,
            command="run board", executor=InProcess(),
        )  # fmt: skip
    return folder


@pytest.fixture
def folder(parts, tmp_path):
    copy = tmp_path / "parts"
    shutil.copytree(parts, copy)
    return copy


def records(folder):
    return {record.key: record for record in Journal(folder).records()}


def edit(folder, task, **changes):
    """Record a run anew, as another command might have done."""
    record = next(r for r in records(folder).values() if (r.task, r.seed) == (task, 0))
    edited = replace(record, **changes)
    described = read_description(folder)
    for run in described["planned"]:
        if run["key"] == record.key:
            run["key"] = edited.key
    write_description(folder, described)
    with closing(Journal(folder)) as journal:
        journal.append_record(edited)
    return edited


def test_parts_of_a_study_become_the_whole(folder):
    done = merge([folder / "one", folder / "two"], folder / "out")
    assert (done.records, done.copied, done.alike, done.conflicts) == (6, 6, 2, ())
    found, whole = read_description(folder / "out"), read_description(folder / "whole")
    assert found["of"] == whole["of"]
    assert [entry["label"] for entry in found["tasks"]] == ["a", "b"]
    of_whole = [run for run in whole["planned"] if run["task"] == "a" or run["seed"] == 0]
    assert found["planned"] == of_whole
    results = load_results(folder / "out")
    assert results.runs["ok"].all()
    # Now nothing of these is left to do, and the rest is.
    again = merge([folder / "out", folder / "whole"], folder / "out")
    assert (again.records, again.copied, again.alike) == (8, 2, 6)
    assert read_description(folder / "out") == whole


def test_clocks_of_tuning_may_differ_and_its_trials_may_not(folder):
    def trials(seconds, error):
        return json.dumps([{"params": {"C": 1.0}, "error": error, "cpu_s": seconds}])

    edit(folder / "one", "a", tuning=trials(1.0, 0.25), tuning_cpu_s=1.0)
    edit(folder / "two", "a", tuning=trials(2.0, 0.25), tuning_cpu_s=2.0)
    assert merge([folder / "one", folder / "two"], folder / "out").alike == 2
    edit(folder / "two", "a", tuning=trials(2.0, 0.5))
    with pytest.raises(UserError, match="tuning differs"):
        merge([folder / "one", folder / "two"], folder / "other")


def test_records_that_differ_are_refused_and_named(folder):
    edited = edit(folder / "two", "a", test_error=0.123, started_at="9999-01-01T00:00:00+00:00")
    before = records(folder / "one")[edited.key]
    with pytest.raises(UserError) as caught:
        merge([folder / "one", folder / "two"], folder / "out")
    where = f"{folder / 'one'} and {folder / 'two'}"
    assert str(caught.value) == (
        f"a / {edited.solver} / seed 0: test_error differs in {where}; nothing was merged, choose "
        "with --prefer FOLDER or --prefer newest"
    )
    for prefer, expected in (
        ("newest", edited), (str(folder / "one"), before), (str(folder / "two"), edited),
    ):  # fmt: skip
        done = merge([folder / "one", folder / "two"], out := folder / "out", prefer=prefer)
        assert records(out)[edited.key] == expected
        assert [conflict["what"] for conflict in done.conflicts] == [
            f"test_error differs in {where}"
        ]
        shutil.rmtree(out)
        assert records(folder / "one")[edited.key] == before


def test_records_of_other_versions_stay_and_do_not_count(folder):
    key, one = "ab" * 32, folder / "one"
    edited = edit(folder / "two", "a", key=key, key_parts="{}")
    with pytest.raises(UserError, match="seed 0: recorded under different keys in"):
        merge([one, folder / "two"], one)
    before = Journal(one).current[edited.task, edited.solver, edited.seed]
    merge([one, folder / "two"], one, prefer=str(folder / "two"))
    assert records(one)[key] == edited
    assert before.key not in records(one)
    assert Journal(one).recorded(before.key) is not None
    merge([folder / "whole", folder / "two"], folder / "out", prefer=str(folder / "whole"))
    assert key not in records(folder / "out")
    assert Journal(folder / "out").recorded(key) is not None


def test_a_preferred_record_counts_though_it_was_cut_short(folder):
    record = next(iter(records(folder / "two").values()))
    shutil.rmtree(folder / "two" / "journal")
    with closing(Journal(folder / "two")) as journal:
        journal.append_record(replace(record, status="timeout"))
    with pytest.raises(UserError, match="status differs"):
        merge([folder / "one", folder / "two"], folder / "out")
    merge([folder / "one", folder / "two"], folder / "out", prefer=str(folder / "two"))
    assert records(folder / "out")[record.key].status == "timeout"


def test_damaged_records_are_named(folder):
    one, two = folder / "one", folder / "two"
    journal = Journal(two)
    entry = next(entry for entry in journal.entries if entry.task == "b")
    (path,) = journal.segments()
    content = bytearray(path.read_bytes())
    content[entry.offset + 300] ^= 1
    path.write_bytes(content)
    done = merge([one, two], folder / "out")
    assert done.records == 5
    (line,) = done.damaged
    assert line.startswith(f"{path}: line ")
    assert (load_results(folder / "out").runs["status"] == "damaged").sum() == 1
    assert json.loads(json.dumps(vars(done)))["damaged"] == list(done.damaged)
    # Half a line at the end of a folder that comes from another machine.
    last = Journal(two).entries[-1]
    elsewhere = path.rename(path.with_name("20260101T000000.000000Z-0-0.jsonl"))
    elsewhere.write_bytes(content[: last.offset + 60])
    (line, cut) = merge([one, two], folder / "cut").damaged
    assert cut.startswith(f"{elsewhere}: line ")
    # A line that holds no record: nothing is lost.
    first = next(
        path for path in Journal(one).segments() if b'"type":"source"' in path.read_bytes()
    )
    content = bytearray(first.read_bytes())
    content[content.index(b'"type":"source"') + 100] ^= 1
    first.write_bytes(content)
    assert not merge([one, folder / "whole"], folder / "sources").damaged


@pytest.mark.parametrize(
    ("names", "into"),
    [
        (("cut", "damaged"), "out"),
        (("damaged", "cut"), "damaged"),
        (("whole", "cut"), "cut"),
        (("damaged", "whole"), "whole"),
    ],
)
def test_what_any_copy_of_a_folder_holds_whole_stays(folder, names, into):
    """A copy that was made during the runs, and one of which a byte has changed."""
    expected = records(folder / "whole")
    first, *_, last = Journal(folder / "whole").entries
    for name in ("cut", "damaged"):
        shutil.copytree(folder / "whole", folder / name)
        (path,) = Journal(folder / name).segments()
        content = bytearray(path.read_bytes())
        content[first.offset + 300] ^= name == "damaged"
        path.write_bytes(content[: last.offset + 100] if name == "cut" else content)
    held = {key for name in names for key in records(folder / name)}
    sides, out = [folder / name for name in names], folder / into
    for _ in range(2):
        done = merge(sides, out)
        assert records(out) == {key: expected[key] for key in held}
        assert (done.records, done.damaged) == (len(held), ())
        sides = [out, *sides]
    assert done.copied == 0


def test_what_cannot_be_merged_is_refused(folder):
    def refused(match, *folders, out, **options):
        with pytest.raises(UserError, match=match):
            merge(list(folders), out, **options)

    one, two, out = folder / "one", folder / "two", folder / "out"
    refused("at least two", one, one, out=out)
    refused("no results here", one, folder, out=out)
    refused("exists already", one, two, out=folder / "whole")
    refused("is none of the folders", one, two, out=out, prefer="three")
    with closing(Journal(one)) as journal:
        journal.begin()
        refused("another marginbench command is writing here", one, two, out=one)
    values = read_description(two)
    for part, name, key, what in (
        ("settings", "budget", "timeout", r"another \[budget\]"),
        ("tasks", "b", "C", "another task 'b'"),
    ):
        changed = deepcopy(values)
        changed["study"][part][name][key] = 7.0
        write_description(two, changed)
        refused(f"its study has {what} than that of", one, two, out=out, prefer=str(one))
    write_description(two, values | {"name": "other"})
    refused("holds the study 'other'", one, two, out=folder / "more")


def test_an_interrupted_merge_goes_on(folder, monkeypatch):
    original, sides, out = merging._copy_segment, [folder / "one", folder / "two"], folder / "out"

    def copy(source, target):
        if [*target.parent.glob("*.jsonl")]:
            raise KeyboardInterrupt
        original(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(merging, "_copy_segment", copy)
        with pytest.raises(KeyboardInterrupt):
            merge(sides, out)
    assert list((out / "journal").glob("*.jsonl"))
    assert not (out / "study.json").exists()
    assert merge(sides, out).records == len(read_description(out)["planned"]) == 6
