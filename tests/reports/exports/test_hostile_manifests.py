"""Manifests that no release wrote, and links that lead nowhere."""

import json
from pathlib import Path

import pytest

from marginbench.reports.errors import ReportError
from marginbench.reports.exports.writing import Artefact, Origin, write_all

_ORIGIN = Origin("study", "results", "0", (), "1", "1")
_FILE = Artefact("tables/a.csv", "table", "a", "A", "export", b"new")


def test_a_manifest_nested_too_deep_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(ReportError, match="is not a manifest"):
        write_all(tmp_path, [_FILE], _ORIGIN)


def test_a_folder_of_results_with_a_null_character_is_another_one(tmp_path: Path) -> None:
    write_all(tmp_path, [_FILE], _ORIGIN)
    manifest = tmp_path / "manifest.json"
    listed = json.loads(manifest.read_bytes())
    listed["files"]["tables/a.csv"]["results"] = "a\0b"
    manifest.write_text(json.dumps(listed))
    changed = Artefact("tables/a.csv", "table", "a", "A", "export", b"newer")
    with pytest.raises(ReportError, match="is of other results"):
        write_all(tmp_path, [changed], _ORIGIN)


def test_a_link_that_leads_nowhere_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/a.csv").symlink_to("nowhere")
    with pytest.raises(ReportError, match="is in the way"):
        write_all(tmp_path, [_FILE], _ORIGIN)
