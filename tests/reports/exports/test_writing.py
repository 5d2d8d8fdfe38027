"""Files of an export are written whole, never over those of others, and by a command."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import marginbench
from marginbench.harness.errors import BusyError, StorageError
from marginbench.harness.storage import exclusive
from marginbench.reports.errors import ReportError
from marginbench.reports.exports import export

FIGURE = "task-a-b-test_error-evaluations"


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


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
    # Edited by hand since then:
    target.write_text("edited")
    with pytest.raises(ReportError, match="has been changed since it was exported"):
        export(results, tmp_path, **wanted)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ReportError, match="is not a manifest"):
        export(results, tmp_path, **wanted)


def test_another_study_does_not_replace_the_files_of_one(small, results, tmp_path):
    other = small(tmp_path / "other", "z")
    wanted = {"data": ["runs"], "formats": ["csv"]}
    export(results, tmp_path, **wanted)
    with pytest.raises(ReportError, match=f"is of other results \\({re.escape(str(results))}\\)"):
        export(other, tmp_path, **wanted)


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
    assert set(json.loads((out / "manifest.json").read_text())["files"]) == {
        *("data/runs.csv", "data/columns.csv"),
    }


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
    manifest = json.loads((out / "manifest.json").read_text())["files"]
    assert all("replaces" not in entry for entry in manifest.values())
    assert {path.name for path in out.rglob("*") if path.is_file()} == {
        *("runs.csv", "traces.csv", "manifest.json"),
    }


def test_what_cannot_be_written_is_one_line(results, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot be written"):
        export(results, tmp_path / "file" / "out", data=["columns"])
    (tmp_path / "data" / "columns.csv").mkdir(parents=True)
    with pytest.raises(ReportError, match="is in the way and no file"):
        export(results, tmp_path, data=["columns"])


def test_results_in_python_export_themselves(results, tmp_path):
    done = marginbench.load_results(results).export(tmp_path, data="columns", formats="csv")
    assert done.written == [tmp_path / "data" / "columns.csv"]
    assert marginbench.export is export


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


@pytest.mark.slow
@pytest.mark.posix
def test_a_killed_export_leaves_whole_files_and_can_be_repeated(results, done, tmp_path):
    out = tmp_path / "out"
    arguments = [sys.executable, "-m", "marginbench", "export", str(results), "--out", str(out)]
    with subprocess.Popen([*arguments, "--format", "csv,tex,svg"]) as process:
        while process.poll() is None and len(list(out.glob("figures/*.svg"))) < 2:
            pass
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
    whole = digests(done.folder)
    for path, digest in digests(out).items():
        # The lock and a file that was being written have names of their own.
        if path != "manifest.json" and not Path(path).name.startswith("."):
            assert whole[path] == digest
    again = subprocess.run([*arguments, "--format", "csv,tex,svg"], capture_output=True)
    assert again.returncode == 0
    kept = digests(out)
    assert ".lock" not in kept
    assert all(kept[path] == whole[path] for path in whole if path.endswith((".svg", ".tex")))


def test_of_two_exports_at_once_the_second_is_refused(results, tmp_path):
    with exclusive(tmp_path), pytest.raises(BusyError, match="another marginbench command"):
        export(results, tmp_path, data=["columns"], formats=["csv"])
    assert export(results, tmp_path, data=["columns"], formats=["csv"]).written
