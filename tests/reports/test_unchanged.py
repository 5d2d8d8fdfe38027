"""A page that would be the same is not computed again, and any change is noticed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from marginbench.harness.results.folders.compacting import compact
from marginbench.harness.results.store import RecordStore
from marginbench.reports import command, results


@pytest.fixture
def folder(make: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "cache"))
    runs = [make.finished("a", "SMO", n, make.trace([10, 20], [0.3, 0.2])) for n in range(2)]
    (tmp_path / "results").mkdir()
    written: Path = make.folder(tmp_path / "results", runs, [make.task("a")], [make.solver("SMO")])
    return written


def test_the_same_report_is_computed_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read: list[Path] = []
    original = results.load_results

    def load_results(path: Path) -> results.Results:
        read.append(path)
        return original(path)

    monkeypatch.setattr(results, "load_results", load_results)

    def reported(line: str = "marginbench run x") -> tuple[str, int]:
        before = len(read)
        command.write_report(folder, line)
        return capsys.readouterr().out, len(read) - before

    first, computed = reported()
    assert computed == 1
    note = "The report says the same already; its file stays as it is.\n"
    assert reported() == (first + note, 0)

    page = folder / "report.html"
    content = page.read_bytes()
    page.write_bytes(content + b"<!-- -->")
    assert reported() == (first, 1)
    assert page.read_bytes() == content
    page.unlink()
    assert reported() == (first, 1)
    assert reported("marginbench run y")[1] == 1
    assert reported()[1] == 1
    monkeypatch.setenv("COLUMNS", "70")
    assert reported()[1] == 1

    # After compaction it is the same page, byte for byte.
    compact(folder)
    out, computed = reported()
    assert computed == 1
    assert out.endswith(note)
    assert page.read_bytes() == content
    assert reported()[1] == 0

    (path,) = RecordStore(folder / "runs").compacted_paths()
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 3] ^= 1
    path.write_bytes(damaged)
    assert reported()[1] == 1
    assert "does not match its checksum" in page.read_text(encoding="utf-8")
    assert reported()[1] == 1
