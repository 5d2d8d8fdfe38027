"""Where the page of a comparison may stand."""

from pathlib import Path

import pytest

from marginbench.harness.errors import StorageError
from marginbench.reports.comparison.page import check_target


@pytest.mark.parametrize("name", ["study.json", "journal/one.jsonl", "sources/one.json"])
def test_a_page_never_replaces_what_a_study_recorded(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError, match="is part of the results"):
        check_target(tmp_path / "x" / ".." / name, [tmp_path])


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_page_without_a_name_is_one_line(name: str) -> None:
    with pytest.raises(StorageError, match="is a folder"):
        check_target(Path(name), [])


def test_a_page_beside_the_records_is_fine(tmp_path: Path) -> None:
    check_target(tmp_path / "comparison.html", [tmp_path])
