"""The documentation site: it is built without a warning, and axe finds no fault with its pages."""

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

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site; a warning, such as of a link that leads nowhere, ends the build with an error."""
    pytest.importorskip("furo", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    options = ["-W", "--keep-going", "-q", "-j", "auto"]
    subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder)], check=True, timeout=400
    )
    return folder


def test_it_is_built_without_a_warning(site):
    assert {page for page in PAGES if not (site / f"{page}.html").is_file()} == set()


def test_axe_finds_no_fault(site, browser):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    faults = []
    # Dark, colours alone are others.
    for scheme, pages in (("light", PAGES), ("dark", ("index", "solvers/SMO"))):
        tab = browser.new_page(color_scheme=scheme, reduced_motion="reduce")
        for page in pages:
            tab.goto((site / f"{page}.html").as_uri())
            violations = axe.run(tab).response["violations"]
            faults += [(page, scheme, each["id"], each["nodes"][0]["html"]) for each in violations]
        tab.close()
    assert faults == []
