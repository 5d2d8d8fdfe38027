"""Merged folders: each run once, conflicts named, nothing lost, the rules of plans kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marginbench.harness.errors import UserError
from marginbench.harness.execution.session import run_study
from marginbench.harness.execution.workbench import InProcess
from marginbench.harness.results.description import read_description
from marginbench.harness.results.folders import merging
from marginbench.harness.results.folders.compacting import compact
from marginbench.harness.results.folders.merging import merge
from marginbench.harness.results.records import RecordBase
from marginbench.harness.results.store import RecordStore
from marginbench.harness.study.select import select
from marginbench.harness.study.svm import Study
from marginbench.reports.results import load_results

BOARD = {
    "dataset": "checkers",
    "dataset_params": {"n_train": 40, "n_test": 20},
    "gamma": 10.0,
    "C": 1.0,
    "reference": False,
}
MakeStudy = Callable[..., Study]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One study, run whole and in two parts that share a task."""
    from marginbench.harness.study.model import StudyFile
    from marginbench.harness.study.toml import completed_study

    study = completed_study(
        Study.model_validate(
            {
                "name": "board", "title": "A board", "seeds": 2,
                "task": [{**BOARD, "label": "a"}, {**BOARD, "label": "b", "C": 2.0}],
                "solver": [
                    {"name": "Perceptron"}, {"name": "Pegasos", "params": {"max_epochs": 1}},
                ],
            }
        ),
        StudyFile("study"),
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("parts")
    for name, selection in (("whole", {}), ("one", {"datasets": ["a"]}), ("two", {"seeds": 1})):
        run_study(
            select(study, **selection), folder / name, whole=study, whole_command="run board",
            command="run board", executor=InProcess(),
        )  # fmt: skip
    return folder


@pytest.fixture
def folder(parts: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "parts"
    shutil.copytree(parts, copy)
    return copy


def planned(folder: Path) -> list[dict[str, Any]]:
    found = read_description(folder)
    assert found is not None
    return found["planned"]  # type: ignore[no-any-return]


def records(folder: Path) -> dict[str, RecordBase]:
    found = RecordStore(folder / "runs").scan()
    return {item.key: item for item in found if isinstance(item, RecordBase)}


def edit(folder: Path, task: str, **changes: Any) -> RecordBase:
    """Change a record of a folder, as a run on another machine might have done."""
    store = RecordStore(folder / "runs")
    record = next(r for r in records(folder).values() if (r.task, r.seed) == (task, 0))
    edited = replace(record, **changes)
    if edited.key != record.key:
        (store.folder / record.file_name).unlink()
    store.write(edited)
    return edited


def test_parts_of_a_study_become_the_whole(folder: Path) -> None:
    compact(folder / "one")  # what is compacted is merged alike
    done = merge([folder / "one", folder / "two"], folder / "out")
    assert (done.records, done.copied, done.alike, done.conflicts) == (6, 6, 2, ())
    found, whole = read_description(folder / "out"), read_description(folder / "whole")
    assert found is not None
    assert whole is not None
    assert found["of"] == whole["of"]
    assert [entry["label"] for entry in found["tasks"]] == ["a", "b"]
    of_whole = [run for run in whole["planned"] if run["task"] == "a" or run["seed"] == 0]
    assert found["planned"] == of_whole
    results = load_results(folder / "out")
    assert results.runs["ok"].all()
    assert not (folder / "out" / ".merging").exists()
    # Now nothing of these is left to do, and the rest is.
    again = merge([folder / "out", folder / "whole"], folder / "out")
    assert (again.records, again.copied, again.alike) == (8, 2, 6)
    assert read_description(folder / "out") == whole


def test_the_environment_of_each_record_is_kept(folder: Path) -> None:
    edited = edit(folder / "two", "b", environment='{"processor": "Another"}', wall_s=99.0)
    merge([folder / "one", folder / "two"], folder / "out")
    assert records(folder / "out")[edited.key] == edited


def test_records_that_differ_are_refused_and_named(folder: Path) -> None:
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
        done = merge([folder / "one", folder / "two"], out := folder / prefer[-3:], prefer=prefer)
        assert records(out)[edited.key] == expected
        assert [conflict.what for conflict in done.conflicts] == [f"test_error differs in {where}"]
        shutil.rmtree(out)
        shutil.copytree(folder / "whole", folder / "one", dirs_exist_ok=True)
        RecordStore(folder / "one" / "runs").write(before)


def test_records_of_other_versions_go_to_superseded(folder: Path) -> None:
    key = "ab" * 32
    edited = edit(folder / "two", "a", key=key, key_parts="{}")
    with pytest.raises(UserError, match="seed 0: recorded under different keys in"):
        merge([folder / "one", folder / "two"], folder / "one")
    before = next(
        r for r in records(folder / "one").values() if r.file_name[:-24] == edited.file_name[:-24]
    )
    compact(folder / "one")
    merge([folder / "one", folder / "two"], folder / "one", prefer=str(folder / "two"))
    assert records(folder / "one")[key] == edited
    assert before.key not in records(folder / "one")
    superseded = RecordStore(folder / "one" / "superseded")
    assert [superseded.read(path) for path in superseded.paths()] == [before]
    merge([folder / "whole", folder / "two"], folder / "out", prefer=str(folder / "whole"))
    assert key not in records(folder / "out")
    assert [path.name for path in (folder / "out" / "superseded").iterdir()] == [edited.file_name]


def test_damaged_records_are_named_and_not_merged(folder: Path) -> None:
    path = sorted((folder / "two" / "runs").glob("b_*"))[0]
    path.write_bytes(path.read_bytes()[:-50])
    done = merge([folder / "one", folder / "two"], folder / "out")
    assert (done.records, done.exit_code) == (5, 1)
    assert done.damaged == (f"{path}: not a readable record (not a whole Parquet file)",)
    assert (load_results(folder / "out").runs["status"] == "missing").sum() == 1
    assert json.loads(json.dumps(done.as_dict()))["damaged"] == list(done.damaged)


def test_what_cannot_be_merged_is_refused(folder: Path) -> None:
    def refused(match: str, *folders: Path, out: Path, **options: Any) -> None:
        with pytest.raises(UserError, match=match):
            merge(list(folders), out, **options)

    one, two, out = folder / "one", folder / "two", folder / "out"
    refused("at least two", one, one, out=out)
    refused("no results here", one, folder, out=out)
    refused("exists already", one, two, out=folder / "whole")
    refused("is none of the folders", one, two, out=out, prefer="three")
    values = read_description(two)
    assert values is not None
    from marginbench.harness.results.description import write_description

    changed = json.loads(json.dumps(values))
    changed["study"]["settings"]["budget"]["timeout"] = 7.0
    write_description(two, changed)
    refused(r"its study has another \[budget\] than that of", one, two, out=out)
    changed = json.loads(json.dumps(values))
    changed["study"]["tasks"]["b"]["C"] = 3.0
    write_description(two, changed)
    refused(r"its study has another task 'b' than that of", one, two, out=out)
    # The task of the preferred folder holds, and runs of the other one are no longer planned.
    merge([one, two], out, prefer=str(one))
    assert {run["task"] for run in planned(out)} == {"a"}
    write_description(two, values | {"name": "other"})
    refused("holds the study 'other'", one, two, out=folder / "more")


def test_an_interrupted_merge_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = 3
    original = merging._write

    def write(path: Path, content: bytes) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        original(path, content)

    monkeypatch.setattr(merging, "_write", write)
    with pytest.raises(KeyboardInterrupt):
        merge([folder / "one", folder / "two"], folder / "out")
    assert not (folder / "out" / "study.json").exists()
    left = 100
    done = merge([folder / "one", folder / "two"], folder / "out")
    assert done.records == len(planned(folder / "out")) == 6
