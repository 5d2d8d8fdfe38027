"""Files of an export are written whole, never over those of others, and by a command."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

import marginbench
from marginbench.harness.errors import BusyError, StorageError
from marginbench.harness.storage import exclusive
from marginbench.reports.errors import ReportError
from marginbench.reports.exports import export
from marginbench.reports.exports.writing import Artefact, Origin, write_all

FIGURE = "task-a-b-test_error-evaluations"


def test_files_of_others_are_replaced_only_by_force(results, tmp_path):
    target = tmp_path / "data" / "columns.csv"
    target.parent.mkdir()
    target.write_text("mine")
    wanted = {"data": ["columns"], "formats": ["csv", "parquet"]}
    with pytest.raises(ReportError, match=r"no export wrote it.*--force"):
        export(results, tmp_path, **wanted)
    assert target.read_text() == "mine"
    assert not (tmp_path / "data" / "columns.parquet").exists()
    export(results, tmp_path, **wanted, force=True)
    assert target.read_text() != "mine"
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    target.write_text("mine")
    with pytest.raises(ReportError, match="no export wrote it"):
        export(results, tmp_path, **wanted)


def test_records_that_changed_replace_their_files_and_others_stay_listed(small, tmp_path):
    folder = small(tmp_path / "r", "a")
    out = tmp_path / "out"
    export(folder, out, data=["runs", "columns"], formats=["csv"])
    before = (out / "data" / "runs.csv").read_bytes()
    shutil.rmtree(folder)
    small(folder, "b")
    done = export(folder, out, data=["runs"], formats=["csv"])
    assert done.written == [out / "data" / "runs.csv"]
    assert done.written[0].read_bytes() != before
    listed = json.loads((out / "manifest.json").read_text())["files"]
    assert set(listed) == {"data/runs.csv", "data/columns.csv"}


def test_an_export_that_was_cut_off_is_taken_up_by_the_next_one(small, tmp_path, monkeypatch):
    folder, out = tmp_path / "r", tmp_path / "out"
    wanted = {"data": ["runs", "traces"], "formats": ["csv"]}

    def results_on(task):
        shutil.rmtree(folder, ignore_errors=True)
        return small(folder, task)

    export(results_on("a"), out, **wanted)
    replace = os.replace

    def full(source, target):
        if Path(target).name == "traces.csv":
            raise OSError("disk full")
        replace(source, target)

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(StorageError, match=r"traces\.csv: cannot be written \(disk full\)"):
        export(results_on("b"), out, **wanted)
    monkeypatch.undo()
    # One file is of the second export now, the other still of the first.
    assert len(export(results_on("c"), out, **wanted).written) == 2
    assert {path.name for path in out.rglob("*") if path.is_file()} == {
        *("runs.csv", "traces.csv", "manifest.json"),
    }


def test_what_stands_in_the_way_is_not_replaced(results, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot be written"):
        export(results, tmp_path / "file" / "out", data=["columns"])
    (tmp_path / "data" / "columns.csv").mkdir(parents=True)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "a.csv").symlink_to("nowhere")
    for name in ("data/columns.csv", "tables/a.csv"):
        new = Artefact(name, "table", "a", "A", "export", b"new")
        with pytest.raises(ReportError, match="no export wrote it"):
            write_all(tmp_path, [new], Origin("study", "results", "0", (), "1", "1"))


@pytest.mark.slow
def test_the_command_lists_and_writes(results, done, command, tmp_path, monkeypatch):
    code, out, _ = command("export", results, "--list")
    assert code == 0
    lines = out.splitlines()
    assert {line.split()[1] for line in lines[1:]} == {path.stem for path in done.written}
    assert re.search(rf"figure +{FIGURE} +a/b: Test error against", "\n".join(lines))
    monkeypatch.chdir(tmp_path)
    one = ["export", results, "--figure", FIGURE, "--format", "pdf,csv", "--out", "."]
    code, out, _ = command(*one)
    assert code == 0
    assert out.splitlines() == [
        *(f"figures/{FIGURE}.pdf", f"figures/{FIGURE}.csv"),
        "2 files written, 0 unchanged: .",
    ]
    assert command(*one) == (0, "0 files written, 2 unchanged: .\n", "")


def test_mistakes_of_the_command_have_an_exit_code(results, command, tmp_path):
    for arguments, code, message in (
        ([results, "--data", "rums"], 2, "unknown data 'rums' (did you mean 'runs'?)"),
        ([tmp_path], 2, "not a results folder"),
        ([results, "--out", "/proc/nowhere", "--data", "columns"], 4, "cannot be written"),
        ([results, "--width", "3ft"], 2, "--width '3ft'"),
    ):
        found, out, err = command("export", *arguments)
        assert (found, out) == (code, "")
        assert message in err
        assert err.count("\n") == 1


def test_of_two_exports_at_once_the_second_is_refused(results, tmp_path):
    loaded = marginbench.load_results(results)
    with exclusive(tmp_path), pytest.raises(BusyError, match="another marginbench command"):
        loaded.export(tmp_path, data="columns", formats="csv")
    done = loaded.export(tmp_path, data="columns", formats="csv")
    assert done.written == [tmp_path / "data" / "columns.csv"]
