"""A manifest of a site that no release wrote."""

from pathlib import Path

import pytest

from marginbench.reports.errors import ReportError
from marginbench.reports.site.manifest import read_manifest


def test_a_manifest_nested_too_deep_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(ReportError, match="missing or damaged"):
        read_manifest(tmp_path)
