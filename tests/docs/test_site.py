"""The documentation site in a browser: axe finds no fault with pages of each kind."""

import shutil
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
def test_axe_finds_no_fault(tmp_path):
    pytest.importorskip("furo", reason="the extra docs is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    playwright = pytest.importorskip("playwright.sync_api")
    command = [sys.executable, "-m", "sphinx", "-q", "-j", "auto", str(DOCS), str(tmp_path)]
    subprocess.run(command, check=True, timeout=400)
    faults = []
    with playwright.sync_playwright() as program:
        browser = program.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            tab = browser.new_page(color_scheme=scheme, reduced_motion="reduce")
            for page in PAGES:
                tab.goto((tmp_path / f"{page}.html").as_uri())
                found = axe.run(tab).response["violations"]
                faults += [
                    (page, scheme, fault["id"], fault["nodes"][0]["html"]) for fault in found
                ]
        browser.close()
    assert faults == []
