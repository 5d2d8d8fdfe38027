"""Merged folders: each run once, conflicts named, nothing lost, the rules of plans kept."""

import json
import re
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


@pytest.fixture(scope="module")
def parts(whole, tmp_path_factory):
    """One study, run whole and in two parts that share a task."""
    folder = tmp_path_factory.mktemp("parts")
    for name, selection in (("whole", {}), ("one", {"datasets": ["a"]}), ("two", {"seeds": 1})):
        run_study(
            select(whole, **selection), folder / name, whole=whole,
            command="run board", executor=InProcess(),
        )  # fmt: skip
    return folder


@pytest.fixture
def folder(parts, tmp_path):
    return shutil.copytree(parts, tmp_path / "parts")


def together(folder, *names, out="out", **options):
    """Merge folders of these names, by default both parts."""
    return merge([folder / name for name in names or ("one", "two")], folder / out, **options)


def records(folder):
    return {record.key: record for record in Journal(folder).records()}


def edit(folder, **changes):
    """Record the first run with other values, as another command might have done."""
    described, (before, *others) = read_description(folder), records(folder).values()
    edited = replace(before, **changes)
    described["planned"][0]["key"] = edited.key
    write_description(folder, described)
    shutil.rmtree(folder / "journal")
    with closing(Journal(folder)) as journal:
        for record in (edited, *others):
            journal.append_record(record)
    return edited


def test_parts_of_a_study_become_the_whole(folder):
    done = together(folder)
    assert (done.records, done.copied, done.alike, done.conflicts) == (6, 6, 2, ())
    found, whole = read_description(folder / "out"), read_description(folder / "whole")
    assert found["of"] == whole["of"]
    assert [entry["label"] for entry in found["tasks"]] == ["a", "b"]
    of_whole = [run for run in whole["planned"] if run["task"] == "a" or run["seed"] == 0]
    assert found["planned"] == of_whole
    assert load_results(folder / "out").runs["ok"].all()
    # Now nothing of these is left to do, and the rest is.
    again = together(folder, "out", "whole")
    assert (again.records, again.copied, again.alike) == (8, 2, 6)
    assert read_description(folder / "out") == whole


def tuned(seconds, error):
    trials = [{"params": {"C": 1.0}, "error": error, "cpu_s": seconds}]
    return {"tuning": json.dumps(trials), "tuning_cpu_s": seconds}


def test_clocks_of_tuning_may_differ(folder):
    edit(folder / "one", **tuned(1.0, 0.25))
    edit(folder / "two", **tuned(2.0, 0.25))
    assert together(folder).alike == 2


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"test_error": 0.123}, "test_error differs"),
        (tuned(1.0, 0.5), "tuning differs"),
        # Though it was cut short, it counts where it is preferred.
        ({"status": "timeout"}, "status differs"),
        # The record of another version stays, and does not count.
        ({"key": "ab" * 32, "key_parts": "{}"}, "recorded under different keys"),
    ],
)
def test_records_that_differ_are_refused_and_named_unless_one_is_preferred(folder, changes, what):
    one, two, out = folder / "one", folder / "two", folder / "out"
    before = edit(one, **tuned(2.0, 0.25))
    edited = edit(two, **{**tuned(3.0, 0.25), "started_at": "9999-01-01T00:00:00+00:00", **changes})
    with pytest.raises(UserError) as caught:
        together(folder)
    what += f" in {one} and {two}"
    assert str(caught.value) == (
        f"a / {edited.solver} / seed 0: {what}; nothing was merged, choose with --prefer FOLDER or "
        "--prefer newest"
    )
    for prefer, kept, left, into in (
        *(("newest", edited, before, "out"), (str(two), edited, before, "out")),
        *((str(one), before, edited, "out"), (str(two), edited, before, "one")),
    ):
        done = together(folder, out=into, prefer=prefer)
        assert [conflict["what"] for conflict in done.conflicts] == [what]
        assert next(iter(records(folder / into).values())) == kept
        assert Journal(folder / into).recorded(left.key) is not None
        shutil.rmtree(out, ignore_errors=True)


@pytest.mark.parametrize(
    ("names", "into"),
    [
        (("cut", "damaged"), "out"),
        (("damaged", "cut"), "damaged"),
        (("whole", "cut"), "cut"),
        (("damaged", "whole"), "whole"),
    ],
)
def test_what_any_copy_of_a_folder_holds_whole_stays_and_what_none_holds_is_named(
    folder, names, into
):
    """A copy that was made during the runs, and one of which bytes have changed."""
    expected = records(folder / "whole")
    first, *_, last = Journal(folder / "whole").entries
    for name in ("cut", "damaged"):
        shutil.copytree(folder / "whole", folder / name)
        (path,) = Journal(folder / name).segments()
        content = bytearray(path.read_bytes())
        # With the line of a source no record is lost.
        source = content.index(b'"type":"source"') + 100
        for place in (first.offset + 300, last.offset + 300, source):
            content[place] ^= name == "damaged"
        path.write_bytes(content[: last.offset + 200] if name == "cut" else content)
    held = {key for name in names for key in records(folder / name)}
    sides, out = [folder / name for name in names], folder / into
    for _ in range(2):
        done = merge(sides, out)
        assert records(out) == {key: expected[key] for key in held}
        assert (done.records, len(done.damaged)) == (len(held), 8 - len(held))
        for line in done.damaged:
            assert re.fullmatch(rf"{folder}/.*\.jsonl: line \d+ \(byte {last.offset}\) .*", line)
        sides = [out, *sides]
    assert done.copied == 0
    assert (load_results(out).runs["status"] == "damaged").sum() == 8 - len(held)
    assert json.loads(json.dumps(vars(done)))["damaged"] == list(done.damaged)


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
    original, out = merging._copy_segment, folder / "out"

    def copy(source, target):
        if [*target.parent.glob("*.jsonl")]:
            raise KeyboardInterrupt
        original(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(merging, "_copy_segment", copy)
        with pytest.raises(KeyboardInterrupt):
            together(folder)
    assert list((out / "journal").glob("*.jsonl"))
    assert not (out / "study.json").exists()
    assert together(folder).records == len(read_description(out)["planned"]) == 6
