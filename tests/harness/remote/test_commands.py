"""Commands that are given URLs: what they print, and what the store has then."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from marginbench.harness.cli.app import build_app, run_app
from marginbench.harness.results.remote.folder_objects import FolderObjects
from marginbench.harness.results.remote.objects import StoreError
from marginbench.harness.results.remote.opening import pushed_page
from marginbench.harness.results.remote.urls import local_folder
from marginbench.reports.commands import watch

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def stored(alone: Path, tmp_path: Path) -> Path:
    """A store with the results of the study."""
    store = tmp_path / "first"
    for name in ("runs", "sources"):
        shutil.copytree(alone / name, store / name)
    shutil.copy(alone / "study.json", store)
    return store


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        def write_report(results: Path, command: str) -> Path:
            path = results / "report.html"
            path.write_text(f"page of {len(list((results / 'runs').iterdir()))} files")
            return path

        app = build_app(write_report)
        watch.add(app)
        with pytest.raises(SystemExit) as ended:
            run_app(app, list(arguments))
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return run


def test_a_report_goes_to_the_store(stored: Path, command: Run) -> None:
    code, out, _ = command("report", f"file://{stored}")
    assert (code, out) == (0, f"report: {stored}/report.html\n")
    assert (stored / "report.html").read_text() == "page of 6 files"


def test_a_store_that_may_only_be_read_needs_no_page_that_it_has(
    stored: Path, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("report", f"file://{stored}")

    def refuse(self: FolderObjects, name: str, content: bytes) -> str:
        raise StoreError(f"{self.place}: access was denied")

    monkeypatch.setattr(FolderObjects, "put", refuse)
    page = local_folder(f"file://{stored}") / "report.html"
    assert pushed_page(page) == f"{stored}/report.html"
    page.write_text("another page")
    with pytest.raises(StoreError, match=f"access was denied; the page is here: {page}$"):
        pushed_page(page)


def test_compacting_a_store(stored: Path, command: Run) -> None:
    code, out, _ = command("compact", f"file://{stored}", "--json")
    done = json.loads(out)
    assert (code, done["records"], done["files"]) == (0, 6, 1)
    assert done["results"] == f"file://{stored}"
    assert [path.name[:8] for path in (stored / "runs").iterdir()] == ["compact-"]
    assert {path.name for path in stored.iterdir()} == {"runs", "sources", "study.json"}


def test_merging_stores_and_folders(stored: Path, command: Run, tmp_path: Path) -> None:
    both = tmp_path / "both"
    second = shutil.copytree(stored, tmp_path / "second")
    code, out, _ = command(
        "merge", f"file://{stored}", str(second), "--out", f"file://{both}", "--json"
    )
    done = json.loads(out)
    assert (code, done["out"], done["records"]) == (0, f"file://{both}", 6)
    assert sorted(path.name for path in (both / "runs").iterdir()) == sorted(
        path.name for path in (stored / "runs").iterdir()
    )
    # Into one of them.
    code, out, _ = command("merge", f"file://{both}", str(second), "--out", f"file://{both}")
    assert (code, out.partition(":")[0]) == (0, "6 records in file")


def test_watching_once(stored: Path, command: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for place in (str(stored), f"file://{stored}"):
        code, out, _ = command("watch", place, "--once", "--json", "--html", str(page))
        found = json.loads(out)
        assert (code, found["planned"], found["done"], found["left"]) == (0, 6, 6, 0)
    assert "<dt>recorded</dt><dd>6</dd>" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["report", "ftp://host/a"], 2, "ftp://host/a: no kind of store is known for this URL"),
        (["report", "file:///no/such"], 2, "file:///no/such: no results here (study.json is"),
        (["watch", "file:///no/such"], 2, "file:///no/such: no results here yet"),
        (["watch", ".", "--every", "0"], 2, "--every must be more than 0 seconds, not 0"),
    ],
)
def test_mistakes_are_one_line(command: Run, arguments: list[str], code: int, message: str) -> None:
    found, out, err = command(*arguments)
    assert (found, out) == (code, "")
    assert err.startswith(f"marginbench: {message}")
    assert err.count("\n") == 1
