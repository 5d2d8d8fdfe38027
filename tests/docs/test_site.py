"""The documentation site in a browser: axe finds no fault with pages of each kind."""

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (
    "index",
    "command-line",
    "budget",
    "solvers/SMO",
    "api/kernels",
    "_modules/index",
    "search",
)


@pytest.mark.slow
def test_axe_finds_no_fault(tmp_path, browser):
    pytest.importorskip("furo", reason="the extra docs is not installed")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    command = [sys.executable, "-m", "sphinx", "-q", "-j", "auto", str(DOCS), str(tmp_path)]
    subprocess.run(command, check=True, timeout=400)
    faults = []
    for scheme in ("light", "dark"):
        tab = browser.new_page(color_scheme=scheme, reduced_motion="reduce")
        for page in PAGES:
            tab.goto((tmp_path / f"{page}.html").as_uri())
            violations = axe.run(tab).response["violations"]
            faults += [(page, scheme, each["id"], each["nodes"][0]["html"]) for each in violations]
        tab.close()
    assert faults == []
